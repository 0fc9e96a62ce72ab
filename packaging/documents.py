#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies README.md, CHANGELOG.md, docs/ and the skill for agents to where they are read without the sources: into packages,
and for the site.

usage: documents.py TARGET      creates TARGET/README.md, TARGET/docs/..., and what these refer to;
                                $DESTDIR stands before an absolute TARGET
What only readers of the source need stays behind, and links to what stays behind become plain text.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE_ONLY = {"docs/architecture.md", "docs/releasing.md", "docs/images/make_report.py"}
SUFFIXES = {".cpp", ".md", ".png", ".py", ".svg"}
FENCE = re.compile(r"(^```.*?^```$|`[^`\n]+`(?!\]))", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\(([^()\s#]*)(#[^()\s]*)?\)")


def names(root=ROOT):
    """The paths of the files, relative to the root."""
    top = ("README.md", "README.zh.md", "CHANGELOG.md", "data/finding.schema.json", "skills/msprobe/SKILL.md")
    found = [pathlib.Path(name) for name in top if (root / name).is_file()]
    found += [path.relative_to(root) for path in sorted((root / "docs").rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    return [name for name in found if str(name) not in SOURCE_ONLY and "__pycache__" not in name.parts]


def without_dead_links(text, name, kept):
    """The text of file `name` in which a link to a file that is not in `kept` is plain text."""

    def one(link):
        words, target, _ = link.groups()
        if not target or re.match(r"[a-z]+:", target):
            return link[0]
        place = os.path.normpath(os.path.join(os.path.dirname(name), target))
        return link[0] if place in kept else words

    return "".join(part if part.startswith("`") else LINK.sub(one, part) for part in FENCE.split(text))


def copy(target, root=ROOT):
    kept = {str(name) for name in names(root)}
    for name in sorted(kept):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = (root / name).read_bytes()
        if path.suffix == ".md":
            data = without_dead_links(data.decode("utf-8"), name, kept).encode("utf-8")
        path.write_bytes(data)
        path.chmod(0o644)


def main(target):
    destination = os.environ.get("DESTDIR", "")
    copy(pathlib.Path(destination + target if os.path.isabs(target) else target))


if __name__ == "__main__":
    main(*sys.argv[1:])

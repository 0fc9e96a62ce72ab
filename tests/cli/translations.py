#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Chinese pages are translations of the English pages as they are now.

A Chinese page ends with a comment: the English page, and a hash of its text without program output and line breaks. If the English
text changes, update the Chinese page; MSPROBE_TEST_ACCEPT=1 then writes the new hash.

usage: translations.py MSPROBE SOURCE_ROOT
"""

import hashlib
import os
import pathlib
import re

import harness

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"\n<!-- translated from (\S+), ([0-9a-f]{12}) -->\n\Z")


def hash_of(english):
    text = " ".join(FENCE.sub("", english.read_text(encoding="utf-8")).split())
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def outdated(root, accept=False):
    """The work to be done, a line for each page. `accept` writes the new hashes instead."""
    for page in [root / "README.zh.md", *sorted((root / "docs/zh").glob("*.md"))]:
        name = page.relative_to(root)
        text = page.read_text(encoding="utf-8")
        mark = MARK.search(text)
        if not mark:
            yield f"{name}: does not end with <!-- translated from PAGE, HASH -->"
        elif not (root / mark[1]).is_file():
            yield f"{name}: {mark[1]} does not exist"
        elif hash_of(root / mark[1]) != mark[2]:
            if accept:
                page.write_text(text[:mark.start(2)] + hash_of(root / mark[1]) + text[mark.end(2):], encoding="utf-8")
            else:
                yield f"{name}: {mark[1]} has changed since it was translated"


def finds_a_changed_page(scratch):
    (scratch / "docs/zh").mkdir(parents=True)
    english, chinese = scratch / "README.md", scratch / "README.zh.md"
    english.write_text("One two\nthree\n\n```\noutput\n```\n", encoding="utf-8")
    chinese.write_text("一二三\n", encoding="utf-8")
    harness.check_equal("a page without a mark", len(list(outdated(scratch))), 1)
    chinese.write_text(f"一二三\n\n<!-- translated from README.md, {hash_of(english)} -->\n", encoding="utf-8")
    harness.check_equal("a page that is up to date", list(outdated(scratch)), [])
    english.write_text("One\ntwo three\n\n```\nother output\n```\n", encoding="utf-8")
    harness.check_equal("other lines and output", list(outdated(scratch)), [])
    english.write_text("One two four\n", encoding="utf-8")
    harness.check_equal("a page that changed", list(outdated(scratch)), ["README.zh.md: README.md has changed since it was translated"])


def make_tests(_msprobe, root):
    root = pathlib.Path(root).resolve()
    accept = os.environ.get("MSPROBE_TEST_ACCEPT") == "1"

    def translated(_scratch):
        harness.check_equal("outdated pages", list(outdated(root, accept)), [])

    return [("a changed English page is found", finds_a_changed_page), ("the Chinese pages are up to date", translated)]


if __name__ == "__main__":
    harness.main(make_tests)

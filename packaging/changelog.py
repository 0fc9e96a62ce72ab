#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CHANGELOG.md as the changelog of a Debian package, on standard output.

usage: changelog.py PACKAGE MAINTAINER
What is not released yet stands in the entry of the version that meson.build has, whose time is SOURCE_DATE_EPOCH.
"""

import datetime
import email.utils
import os
import re
import sys
import textwrap

import metadata

HEADING = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<day>\S+))?$")


def releases(text):
    """(name, day or None, [(section, [item])]) of each heading."""
    found = []
    for line in text.splitlines():
        heading = HEADING.match(line)
        if heading:
            found.append((heading["name"], heading["day"], []))
        elif not found:
            continue
        elif line.startswith("### "):
            found[-1][2].append((line[4:], []))
        elif line.startswith("- "):
            if not found[-1][2]:
                found[-1][2].append((None, []))
            found[-1][2][-1][1].append(line[2:])
        elif line.startswith("  ") and found[-1][2]:
            found[-1][2][-1][1][-1] += " " + line.strip()
    return found


def plain(item):
    """Without what Markdown adds."""
    item = re.sub(r" ?\(\[[^\]]+\]\([^)]+\)\)", "", item)
    item = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", item)
    return re.sub(r"[`*]{1,2}([^`*]+)[`*]{1,2}", r"\1", item)


def wrapped(text, first, later):
    return textwrap.wrap(text, 78, initial_indent=first, subsequent_indent=later, break_on_hyphens=False, break_long_words=False)


def entry(package, maintainer, name, when, sections):
    lines = [f"{package} ({name}) stable; urgency=medium", ""]
    for section, items in sections:
        if section is not None:
            lines.append(f"  * {section}:")
        for item in items:
            lines += wrapped(plain(item), *(("  * ", "    ") if section is None else ("    - ", "      ")))
    if not any(items for _, items in sections):
        lines.append("  * Released.")
    return "\n".join([*lines, "", f" -- {maintainer}  {email.utils.format_datetime(when)}", ""])


def main(package, maintainer):
    built = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    version = metadata.version()
    entries = []
    waiting = []
    for name, day, sections in releases((metadata.ROOT / "CHANGELOG.md").read_text("utf-8")):
        if name == "Unreleased":
            waiting = sections
            continue
        when = datetime.datetime.fromisoformat(day).replace(tzinfo=datetime.timezone.utc)
        if name == version:
            later = [(f"{section or 'Changed'} since the release of {name}", items) for section, items in waiting]
            sections, when = [*later, *sections], built if waiting else when
            waiting = []
        entries.append(entry(package, maintainer, name, when, sections))
    if waiting:  # the version is that of a release to come
        entries.insert(0, entry(package, maintainer, version, built, waiting))
    print("\n".join(entries), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])

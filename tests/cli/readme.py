#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The output that the documents show for the sample dumps is the output of the program.

A block that begins with `$ msprobe ... data/samples ...` is run: its lines have to be the first ones of what comes; behind
a line of dots others may have been left out. scripts/demo ends with the command that the README shows.

usage: readme.py MSPROBE SOURCE_ROOT
"""

import pathlib
import re
import shlex

import harness

DOCUMENTS = ("README.md", "docs/loss-differs.md")


def blocks(text):
    """Command lines on the samples, each with the lines that are shown of its output."""
    for block in re.findall(r"^```\n(\$ msprobe .*?)^```$", text, re.MULTILINE | re.DOTALL):
        first, *lines = block.splitlines()
        if "data/samples/" in first and lines and not lines[0].startswith("$ "):
            yield first[2:], lines


def without_time(line):
    return re.sub(r"\d{14}", "TIME", line)


def check_shown(output, shown):
    """The lines that are shown are there, in order, and without a gap but where dots stand."""
    place = 0
    gap = False
    for line in map(without_time, shown):
        if line == "…":
            gap = True
            continue
        if gap:
            while place < len(output) and output[place] != line:
                place += 1
            gap = False
        harness.check(place < len(output), f"not said: {line}")
        harness.check_equal("line", output[place], line)
        place += 1


def make_tests(msprobe, root):
    root = pathlib.Path(root).resolve()
    tests = []
    for document in DOCUMENTS:
        found = list(blocks((root / document).read_text(encoding="utf-8")))

        def shown(scratch, found=found):
            harness.check(found, "no command on the samples is shown")
            (scratch / "data").symlink_to(root / "data")
            for command, lines in found:
                result = harness.run(msprobe, shlex.split(command)[1:], scratch, status=0)
                check_shown([without_time(line) for line in (result.stdout + result.stderr).splitlines()], lines)

        tests.append((f"{document} shows what the program says", shown))

    def demo(_):
        last = (root / "scripts" / "demo").read_text(encoding="utf-8").rstrip().splitlines()[-1]
        command, _ = next(blocks((root / "README.md").read_text(encoding="utf-8")))
        harness.check_equal("last line of scripts/demo", last, f"show {command}")

    tests.append(("scripts/demo ends with what the README shows", demo))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)

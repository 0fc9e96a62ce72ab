#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Metadata of the packages: the version is one, the page for the index stands alone, the changelog is Debian's.

usage: metadata.py DIST VERSION MACHINE     the first and the last are those of the other tests, and not used
"""

import email
import os
import re
import shutil
import subprocess
import sys

import roots
from roots import harness

SOURCE = roots.SOURCE


def say(*command, **more):
    see = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    return subprocess.run([str(one) for one in command], capture_output=True, text=True, timeout=120, check=True, env=see,
                          **more).stdout


def make_tests(_dist, version, _machine):
    def one_version(_):
        harness.check_equal("wheel and sdist", say(sys.executable, SOURCE / "packaging/metadata.py", "--name"),
                            f"msprobe_native-{version}\n")
        citation = (SOURCE / "CITATION.cff").read_text("utf-8")
        harness.check_equal("CITATION.cff", re.search(r"^version: (.+)$", citation, re.MULTILINE)[1], version)
        released = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", (SOURCE / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
        if released:
            harness.check_equal("its day", re.search(r"^date-released: (.+)$", citation, re.MULTILINE)[1], released[1])
        for name in ("README.md", "docs/install.md", "packaging/index-page.md"):
            harness.check(version not in (SOURCE / name).read_text("utf-8"), f"{name} names the version")

    def fields(_):
        told = email.message_from_string(say(sys.executable, SOURCE / "packaging/metadata.py"))
        for name in ("Summary", "Keywords", "Author", "License", "Requires-Python"):
            harness.check(told[name], f"no {name}")
        harness.check_equal("extras", told.get_all("Provides-Extra"), ["pandas", "transformers"])
        harness.check(len(told.get_all("Classifier")) > 5, "few classifiers")
        page = told.get_payload()
        harness.check(page.startswith("# msprobe\n"), page[:80])
        harness.check_equal("links to files", re.findall(r"\]\((?!https?:)[^)]*\)", page), [])

    def changelog(scratch):
        made = say(sys.executable, SOURCE / "packaging/changelog.py", "msprobe", "somebody <somebody@example.invalid>")
        harness.check(made.startswith(f"msprobe ({version}) "), made[:80])
        harness.check("](" not in made and max(map(len, made.splitlines())) <= 80, "Markdown or long lines are left")
        if shutil.which("dpkg-parsechangelog") is None:
            raise harness.Skip("no dpkg-dev")
        (scratch / "changelog").write_text(made, "utf-8")
        done = subprocess.run(["dpkg-parsechangelog", "--all", "-l", scratch / "changelog"], capture_output=True, text=True, check=True)
        harness.check_equal("complaints", done.stderr, "")
        harness.check(f"Version: {version}\n" in done.stdout, done.stdout[:200])

    return [("one version", one_version), ("the fields, and the page for the index", fields), ("Debian's changelog", changelog)]


if __name__ == "__main__":
    sys.exit(harness.tap(make_tests(*sys.argv[1:])))

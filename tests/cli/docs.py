#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`msprobe docs` finds the documents that were installed with it, lists and shows them.

usage: docs.py MSPROBE SOURCE_ROOT
"""

import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

import harness

MOST_LINES_OF_SKILL = 300


def install(msprobe, root, scratch):
    """The program and what is put beside it, in a prefix."""
    prefix = scratch / "prefix"
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(msprobe, prefix / "bin/msprobe")
    subprocess.run([sys.executable, root / "packaging/documents.py", prefix / "share/doc/msprobe"], check=True)
    return str(prefix / "bin/msprobe"), prefix / "share/doc/msprobe"


def dead_links(folder):
    """Links of its pages to files that are not there."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    import references

    for page in sorted(folder.rglob("*.md")):
        name = page.relative_to(folder)
        yield from (f"{name}: {link}" for link in references.links_in(name, page.read_text(encoding="utf-8"), folder))


def check_front_matter(text):
    """As programs that load skills demand it: a name and a description, and a text that is short enough to be read whole."""
    found = re.match(r"---\nname: ([a-z0-9-]{1,64})\ndescription: (.{1,1024})\n---\n", text)
    harness.check(found, f"no front matter: {text[:200]}")
    harness.check_equal("name", found[1], "msprobe")
    harness.check(text.count("\n") <= MOST_LINES_OF_SKILL, "the skill is too long")


def make_tests(msprobe, root):
    root = pathlib.Path(root).resolve()

    def lists(scratch):
        program, folder = install(msprobe, root, scratch)
        done = harness.run(program, ["docs"], scratch)
        harness.check_equal("exit status", (done.returncode, done.stderr), (0, ""))
        listed = {line.split()[0] for line in done.stdout.splitlines()}
        there = {str(page.relative_to(folder / "docs").with_suffix("")) for page in (folder / "docs").rglob("*.md")}
        harness.check_equal("pages", listed, there | {"skill"})
        titles = [line.split(maxsplit=1)[1:] for line in done.stdout.splitlines()]
        harness.check(all(titles), f"a page without a title: {done.stdout}")
        harness.check("architecture" not in listed, "a page for readers of the source is installed")
        harness.check_equal("path", harness.run(program, ["docs", "--path"], scratch).stdout, f"{folder}\n")

    def shows(scratch):
        program, folder = install(msprobe, root, scratch)
        done = harness.run(program, ["docs", "glossary"], scratch)
        harness.check_equal("page", done.stdout, (folder / "docs/glossary.md").read_text(encoding="utf-8"))
        done = harness.run(program, ["docs", "--path", "glossary"], scratch)
        harness.check_equal("path", done.stdout, f"{folder / 'docs/glossary.md'}\n")
        skill = harness.run(program, ["docs", "skill"], scratch).stdout
        harness.check_equal("skill", skill, (folder / "skills/msprobe/SKILL.md").read_text(encoding="utf-8"))
        check_front_matter(skill)
        done = harness.run(program, ["docs", "../README"], scratch)
        harness.check_equal("a name that leads out", (done.returncode, done.stdout), (2, ""))

    def pager(scratch):
        program, folder = install(msprobe, root, scratch)
        master, slave = pty.openpty()
        see = {**harness.environment(program, scratch), "PAGER": "cp -t ."}
        done = subprocess.run([program, "docs", "glossary"], cwd=scratch, env=see, stdout=slave, stdin=slave, timeout=60,
                              check=False)
        os.close(slave)
        os.close(master)
        harness.check_equal("exit status", done.returncode, 0)
        harness.check_equal("page", (scratch / "glossary.md").read_bytes(), (folder / "docs/glossary.md").read_bytes())

    def absent(scratch):
        (scratch / "bin").mkdir()
        shutil.copy(msprobe, scratch / "bin/msprobe")
        done = harness.run(str(scratch / "bin/msprobe"), ["docs"], scratch)
        harness.check_equal("without documents", (done.returncode, done.stdout), (2, ""))
        done = harness.run(str(scratch / "bin/msprobe"), ["docs", "glossary"], scratch, env={"MSPROBE_DOCS": str(root)})
        harness.check(done.stdout.startswith("# Glossary\n"), done.stderr)

    def links(scratch):
        _, folder = install(msprobe, root, scratch)
        harness.check_equal("dead links", list(dead_links(folder)), [])

    return [("it lists the pages", lists), ("it shows a page", shows), ("a pager shows it on a terminal", pager),
            ("no documents, and those of a folder", absent), ("no link of an installed page is dead", links)]


if __name__ == "__main__":
    harness.main(make_tests)

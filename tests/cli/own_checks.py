#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checkers of this repository find what they are for: scripts/check-prose and scripts/check-commits.

usage: own_checks.py MSPROBE SOURCE_ROOT
"""

import pathlib
import shutil
import subprocess

import harness

WRONG = {
    "a.cpp": '// Adds two numbers.\n// Whoever calls it\n// is told why.\nint a;\nthrow Error("the rank that stands behind the first one");\n',
    "a.py": '"""Those that are left out."""\ntext = "# What is no comment"\nnumber = 1  # which is held against others\n',
    "a.md": "# Title\n\nIt puts out rows. Of them\none is first.\n\n```\nWhat a program says.\n```\n\n| a cell that stands beside another one here | b |\n",
    "run": "#!/bin/bash\n# Is it there.\necho 'Those'\n",
}
FOUND = ["a.cpp:1: a clause", "a.cpp:1: tell:", "a.cpp:1: nobody", "a.cpp:5: behind", "a.cpp:5: stands", "a.py:1: a clause",
         "a.py:3: held", "a.md:3: put out", "a.md:3: begins with Of", "a.md:10: stands", "run:1: a question's"]
RIGHT = "// What is it? Adds two numbers, and reports each error.\n// There are none left after the call.\nint a;\n"

SUBJECTS = {
    "Add a reader": None,
    "Feed the queue in order": None,
    "Added a reader": "'Added' is not an imperative",
    "Fixing: a reader": "'Fixing' is not an imperative",
    "add a reader": "does not begin with a capital letter",
    "Add a reader.": "ends with a full stop",
    "Add " + "a" * 69: "73 characters, at most 72 are allowed",
}


def make_tests(_msprobe, root):
    root = pathlib.Path(root).resolve()

    def called(scratch, name, *arguments, repository=root):
        if shutil.which("git") is None:
            raise harness.Skip("no git")
        see = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(scratch), "LC_ALL": "C.UTF-8", "MSPROBE_REPOSITORY": str(repository)}
        return subprocess.run([root / "scripts" / name, *arguments], cwd=scratch, env=see, capture_output=True, text=True, timeout=60,
                              check=False)

    def prose(scratch):
        for name, text in WRONG.items():
            (scratch / name).write_text(text, encoding="utf-8")
        done = called(scratch, "check-prose", *WRONG)
        lines = [line.removeprefix(f"{scratch}/") for line in done.stdout.splitlines()]
        harness.check_equal("status", (done.returncode, done.stderr), (1, ""))
        harness.check_equal("hits", len(lines), len(FOUND) + 1)
        for line, expected in zip(sorted(lines), sorted([*FOUND, lines[-1]])):
            harness.check(line.startswith(expected), f"{line}, not {expected}")
        (scratch / "b.cpp").write_text(RIGHT, encoding="utf-8")
        done = called(scratch, "check-prose", "b.cpp")
        harness.check_equal("a right text", (done.returncode, done.stdout.count("\n")), (0, 1))

    def commits(scratch):
        repository = scratch / "repository"

        def git(*arguments, folder=repository):
            done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments], cwd=folder, check=True,
                                  capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": str(scratch)})
            return done.stdout.strip()

        if shutil.which("git") is None:
            raise harness.Skip("no git")
        git("init", "--quiet", repository, folder=scratch)
        git("commit", "--quiet", "--allow-empty", "--message", "older commits are as they are.")
        since = git("rev-parse", "HEAD")
        for subject in SUBJECTS:
            git("commit", "--quiet", "--allow-empty", "--message", subject)
        done = called(scratch, "check-commits", since, repository=repository)
        expected = [f"{subject}: {fault}" for subject, fault in SUBJECTS.items() if fault]
        lines = [line.partition(": ")[2] for line in reversed(done.stdout.splitlines()[:-1])]
        harness.check_equal("faults", (done.returncode, lines), (1, expected))
        git("clone", "--quiet", "--depth", "1", f"file://{repository}", "shallow", folder=scratch)
        done = called(scratch, "check-commits", since, repository=scratch / "shallow")
        harness.check_equal("a shallow clone", done.stdout.splitlines()[-1], "1 subjects checked, 1 wrong")
        done = called(scratch, "check-commits", "0" * 40, repository=repository)
        harness.check_equal("an unknown commit in a whole clone", done.returncode, 1)

    return [("check-prose finds sentences without a subject", prose), ("check-commits finds subjects that are not imperative", commits)]


if __name__ == "__main__":
    harness.main(make_tests)

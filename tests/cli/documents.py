#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Manual pages are complete and clean, and shells complete commands, options and values.

usage: documents.py MSPROBE MAN_FOLDER|- [COMPLETIONS_FOLDER]
"""

import json
import pathlib
import shutil
import subprocess

import harness
from pseudo_terminal import Terminal


def zsh_test(msprobe, completions, typed, expected):
    """zsh completes in its line editor only, so it gets a terminal with typed keys."""

    def body(scratch):
        shell = shutil.which("zsh", path="/usr/local/bin:/usr/bin:/bin")
        if completions is None or shell is None:
            raise harness.Skip("no zsh")
        variables = {**harness.environment(msprobe, scratch), "COMPLETIONS": str(pathlib.Path(completions).resolve())}
        with Terminal([shell, "-f", "-i"], scratch, **variables) as terminal:
            terminal.type('fpath=("$COMPLETIONS" $fpath); autoload -Uz compinit; compinit -u -D; echo RE""ADY\n')
            terminal.wait_for("READY")
            terminal.type(f"msprobe {typed}\t")
            terminal.wait_for(expected)

    return body


def make_tests(msprobe, man, completions=None):
    program = json.loads(harness.run(msprobe, ["__options"], ".").stdout)
    tests = []
    for entry in [program["program"], *program["commands"]]:
        words = entry["name"].split()
        title = "-".join(["msprobe", *words])

        def page_is_whole(scratch, entry=entry, title=title):
            if man == "-":
                raise harness.Skip("built without manual pages")
            page = (pathlib.Path(man) / f"{title}.1").read_text(encoding="utf-8")
            harness.check('.\\" SYNOPSIS' not in page and '.\\" OPTIONS' not in page, f"{title}: a marker is left")
            for option in entry["options"]:
                heading = ", ".join(rf"\fB{name}\fR".replace("-", r"\-") for name in option["names"])
                harness.check(f".TP\n{heading}" in page, f"{heading} is not in {title}.1")

        def page_lint(scratch, title=title):
            if man == "-" or shutil.which("mandoc") is None:
                raise harness.Skip("no mandoc, or no manual pages")
            lint = subprocess.run(
                ["mandoc", "-T", "lint", "-W", "style", str(pathlib.Path(man) / f"{title}.1")],
                capture_output=True,
                text=True,
                check=False,
            )
            # A page may refer to one that is in the same folder and not installed; a sentence is a line.
            accepted = ("referenced manual not found", "input text line longer than 80 bytes")
            complaints = [line for line in lint.stdout.splitlines() if not any(each in line for each in accepted)]
            harness.check_equal("mandoc", complaints, [])

        tests.append((f"{title}: page", page_is_whole))
        tests.append((f"{title}: page is clean", page_lint))

    def in_shell(name, script, expected):
        def body(scratch):
            shell = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
            if completions is None or shell is None:
                raise harness.Skip(f"no {name}")
            (scratch / "folder").mkdir()
            (scratch / "file.yaml").write_text("", encoding="utf-8")
            variables = {**harness.environment(msprobe, scratch), "COMPLETIONS": str(pathlib.Path(completions).resolve())}
            result = harness.run(shell, ["-c", script], scratch, env=variables)
            harness.check_equal("stderr", result.stderr, "")
            harness.check_equal("candidates", result.stdout.split(), expected)

        tests.append((f"completion in {name}: {script.splitlines()[-1].strip()}", body))

    bash = """source "$COMPLETIONS/msprobe.bash"
    ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _msprobe msprobe 2>/dev/null; echo "${COMPREPLY[@]}"; }
    """
    in_shell("bash", bash + "ask msprobe --prog", ["--progress"])
    in_shell("bash", bash + "ask msprobe --progress = al", ["always"])
    in_shell("bash", bash + "ask msprobe -f ''", ["pytorch", "mindspore"])
    in_shell("bash", bash + "ask msprobe compare --format csv,x", ["csv,xlsx"])
    in_shell("bash", bash + "ask msprobe compare --by One", ["One\\", "Thousandth\\", "Err\\", "Ratio"])
    fish = """source "$COMPLETIONS/msprobe.fish"
    """
    in_shell("fish", fish + "complete -C 'msprobe --prog' | string split -f1 \\t", ["--progress"])
    in_shell("fish", fish + "complete -C 'msprobe --progress=al' | string split -f1 \\t", ["--progress=always"])
    in_shell("fish", fish + "complete -C 'msprobe -f ' | string split -f1 \\t", ["mindspore", "pytorch"])
    in_shell("fish", fish + "complete -C 'msprobe config_check --format csv,js' | string split -f1 \\t", ["csv,json", "csv,jsonl"])
    for typed, expected in (("--prog", "--progress"), ("comp", "compare"), ("compare --progress=al", "always")):
        tests.append((f"completion in zsh: {typed}", zsh_test(msprobe, completions, typed, expected)))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)

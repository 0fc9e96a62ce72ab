#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shell of `msprobe parse`: from a pipe, held against the Python tool's answers, and in a terminal.

usage: parse_shell.py MSPROBE DATA
"""

import ast
import csv
import json
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import zlib

import harness
from pseudo_terminal import Terminal

PROMPT = "Parse >>> "


def run_lines(msprobe, lines, scratch):
    """The shell with these lines in a pipe."""
    return subprocess.run(
        [msprobe, "parse"],
        cwd=scratch,
        env=harness.environment(msprobe, scratch),
        input="".join(line + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=harness.TIME_LIMIT_S,
        check=False,
    )


def read_npy(path):
    """dtype, shape and the CRC of the elements."""
    raw = path.read_bytes()
    end = 10 + int.from_bytes(raw[8:10], "little")
    header = ast.literal_eval(raw[10:end].decode("latin-1"))
    return header["descr"], list(header["shape"]), f"{zlib.crc32(raw[end:]):08x}"


def nearly(got, expected):
    """Sums in another order differ in their last digits."""
    if got == expected:
        return True
    try:
        left, right = float(got), float(expected)
    except ValueError:
        return False
    return abs(left - right) <= 1e-6 * max(abs(left), abs(right))


def make_tests(msprobe, data):
    data = pathlib.Path(data).resolve()
    inputs = data / "shell"
    adump = data / "golden" / "parse" / "adump"
    peer = json.loads((inputs / "peer.json").read_text(encoding="utf-8"))
    tests = []

    def test(function):
        tests.append((function.__doc__, function))

    def with_inputs(scratch):
        shutil.copytree(inputs, scratch, dirs_exist_ok=True)

    @test
    def numbers(scratch):
        """pt and cn give the Python tool's numbers"""
        with_inputs(scratch)
        harness.check(len(peer["answers"]) >= 8, "too few answers of the Python tool")
        for command, expected in peer["answers"].items():
            result = run_lines(msprobe, [command], scratch)
            harness.check_equal(f"{command}: exit status", result.returncode, 0)
            specs = re.findall(r"(\[Shape: .*?\]) (\[Dtype: .*?\]) \[Max: (.*?)\] \[Min: (.*?)\] \[Mean: (.*?)\]", result.stdout)
            harness.check_equal(f"{command}: tensors", len(specs), len(expected["specs"]))
            for got, wanted in zip(specs, expected["specs"]):
                harness.check_equal(command, list(got[:4]), wanted[:4])
                harness.check(nearly(got[4], wanted[4]), f"{command}: mean {got[4]}, not {wanted[4]}")
            values = dict(re.findall(r"^(NumCnt|AllClose|CosSim|ErrorPer): +(.*)$", result.stdout, re.M))
            for name in ("NumCnt", "AllClose", "ErrorPer"):
                harness.check_equal(f"{command}: {name}", values.get(name), expected.get(name))
            cosine = (values.get("CosSim", ""), expected.get("CosSim", ""))
            harness.check(nearly(*cosine), f"{command}: CosSim {cosine}")
            if expected["data"]:
                shown = [line.split(None, 1)[1].rstrip() for line in result.stdout.splitlines() if re.match(r" *\d+ ", line)]
                harness.check_equal(f"{command}: elements", shown, expected["data"])
        for name, text in peer["texts"].items():
            harness.check_equal(name, (scratch / name).read_text(encoding="utf-8"), text)

    @test
    def folders(scratch):
        """vc gives the Python tool's table"""
        with_inputs(scratch)
        result = run_lines(msprobe, ["vc -m mine -g golden -out result"], scratch)
        harness.check_equal("exit status and stderr", (result.returncode, result.stderr), (0, ""))
        (table,) = (scratch / "result").iterdir()
        harness.check(re.fullmatch(r"batch_compare_\d+\.csv", table.name), table.name)
        harness.check(result.stdout == f"Compare result is saved in : result/{table.name}\n", result.stdout)
        with open(table, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
        harness.check_equal("rows", len(rows), len(peer["vc"]))
        for got, wanted in zip(rows, peer["vc"]):
            harness.check(len(got) == len(wanted) and all(map(nearly, got, wanted)), f"{got}, not {wanted}")

    def check_converted(folder, expected):
        found = {path.name: path for path in folder.rglob("*.npy")}
        checked = 0
        for name, wanted in expected.items():
            if not name.endswith(".npy"):
                continue
            harness.check(name in found, f"{name} is missing")
            _, shape, crc = read_npy(found[name])
            # One-byte floats are float32 here, and right.
            if wanted["dtype"] != "float64" or "fp8" not in name:
                harness.check_equal(name, (shape, crc), (wanted["shape"], wanted["crc32_of_data"]))
                checked += 1
        return checked

    @test
    def one_dump(scratch):
        """dc converts as the Python tool does"""
        results = json.loads((adump / "results.json").read_text(encoding="utf-8"))
        checked = 0
        for name, expected in results.items():
            files = expected["npy_files"]
            if not files or not (adump / "in" / name).exists() or name.startswith("Npy."):
                continue
            result = run_lines(msprobe, [f"dc -n {adump / 'in' / name} -out out"], scratch)
            harness.check(result.stdout.startswith(f"SrcFile: {adump / 'in' / name}\n - out/{name}."), result.stdout)
            checked += check_converted(scratch / "out", {key: files[key] for key in files if key.startswith(name)})
        harness.check(checked >= 20, f"only {checked} files were compared")

    @test
    def all_dumps(scratch):
        """cad sorts its results by operator and time, and refuses namesakes and links that lead out"""
        names = [path.name for path in (adump / "in").iterdir() if path.name.startswith(("Add.", "Mixed."))]
        harness.check_equal("dumps", len(names), 2)
        for folder in ("dump/a", "dump/b"):
            (scratch / folder).mkdir(parents=True)
        for name in names:
            shutil.copy(adump / "in" / name, scratch / "dump" / "a" / name)
        shutil.copy(adump / "in" / names[0], scratch / "dump" / "b" / names[0])
        (scratch / "dump" / "b" / "Leak.out.1.2.3").symlink_to("/etc/passwd")
        result = run_lines(msprobe, ["cad -m dump -out out"], scratch)
        harness.check_equal("exit status", result.returncode, 2)
        leak, namesake = result.stderr.splitlines()
        harness.check(leak.startswith("msprobe: error: cad: b/Leak.out.1.2.3: "), leak)
        wanted = f"cad: b/{names[0]}: refused: its results would have the same names as those of a/{names[0]}"
        harness.check_equal("stderr", namesake, "msprobe: error: " + wanted)
        for name in names:
            fields = name.split(".")
            folder = scratch / "out" / fields[1] / fields[-1]
            results = json.loads((adump / "results.json").read_text(encoding="utf-8"))[name]["npy_files"]
            harness.check(check_converted(folder, results) >= 3, f"nothing in {folder}")
        harness.check(not list((scratch / "out").rglob("Leak*")), "a link out of the folder was followed")

    @test
    def typing(scratch):
        """a terminal gets a prompt, editing and Ctrl-D"""
        with_inputs(scratch)
        with Terminal([msprobe, "parse"], scratch) as terminal:
            terminal.wait_for_editor(PROMPT)
            # Backspaces, and a character put in before the last two.
            terminal.type("pt -n whale\x7f\x7f\x7fole.py\x02\x02n\n")
            terminal.wait_for("[Max: 8]")
            terminal.wait_for_editor(PROMPT)
            terminal.type("what\n")
            terminal.wait_for("unknown command")
            terminal.wait_for_editor(PROMPT)
            terminal.type("\x04")
            harness.check_equal("exit status", terminal.status(), 0)

    @test
    def history(scratch):
        """the history is kept for the next time, for nobody else to read"""
        with_inputs(scratch)
        state = scratch / "state"
        with Terminal([msprobe, "parse"], scratch, XDG_STATE_HOME=str(state)) as terminal:
            terminal.wait_for_editor(PROMPT)
            terminal.type("pt -n whole.npy\n")
            terminal.wait_for("[Max: 8]")
            terminal.wait_for_editor(PROMPT)
            terminal.type("exit\n")
            harness.check_equal("exit status", terminal.status(), 0)
        file = state / "msprobe" / "parse_history"
        harness.check_equal("mode of the file", stat.S_IMODE(file.stat().st_mode), 0o600)
        harness.check_equal("mode of the folder", stat.S_IMODE(file.parent.stat().st_mode), 0o700)
        harness.check_equal("files", [path.name for path in file.parent.iterdir()], ["parse_history"])
        with Terminal([msprobe, "parse"], scratch, XDG_STATE_HOME=str(state)) as terminal:
            terminal.wait_for_editor(PROMPT)
            terminal.type("\x10\x10\n")  # Ctrl-P twice: behind exit
            terminal.wait_for("[Max: 8]")
            terminal.wait_for_editor(PROMPT)
            terminal.type("quit\n")
            harness.check_equal("exit status", terminal.status(), 0)

    @test
    def no_history(scratch):
        """a history that cannot be kept is no error, and no link is written through"""
        with_inputs(scratch)
        (scratch / "file").write_text("", encoding="utf-8")
        (scratch / "state" / "msprobe").mkdir(parents=True)
        (scratch / "kept").write_text("kept", encoding="utf-8")
        (scratch / "state" / "msprobe" / "parse_history").symlink_to(scratch / "kept")
        for where in (scratch / "file", scratch / "state"):
            with Terminal([msprobe, "parse"], scratch, XDG_STATE_HOME=str(where)) as terminal:
                terminal.wait_for_editor(PROMPT)
                terminal.type("pt -n whole.npy\n")
                terminal.wait_for("[Max: 8]")
                terminal.wait_for_editor(PROMPT)
                terminal.type("exit\n")
                harness.check_equal("exit status", terminal.status(), 0)
                harness.check("error" not in terminal.seen, terminal.seen)
        harness.check_equal("behind the link", (scratch / "kept").read_text(encoding="utf-8"), "kept")

    @test
    def wide_characters(scratch):
        """names that are not ASCII can be typed"""
        with_inputs(scratch)
        (scratch / "gr\u00f6\u00dfe\u6570.npy").write_bytes((scratch / "whole.npy").read_bytes())
        with Terminal([msprobe, "parse"], scratch) as terminal:
            terminal.wait_for_editor(PROMPT)
            terminal.type("pt -n gr\u00f6\u00dfe\u6570.npy\n")
            terminal.wait_for("[Max: 8]")
            terminal.wait_for_editor(PROMPT)
            terminal.type("\x04")
            harness.check_equal("exit status", terminal.status(), 0)

    def interrupt(how):
        def body(scratch):
            with Terminal([msprobe, "parse"], scratch) as terminal:
                terminal.wait_for_editor(PROMPT)
                terminal.type("half a li")
                terminal.wait_for("li")
                how(terminal)
                harness.check_equal("exit status", terminal.status(), 130)
                harness.check("msprobe: interrupted" in terminal.seen, terminal.seen)

        return body

    tests.append(("Ctrl-C ends it and leaves the terminal as it was", interrupt(lambda terminal: terminal.type("\x03"))))
    tests.append(
        ("SIGTERM ends it and leaves the terminal as it was", interrupt(lambda t: t.process.send_signal(signal.SIGTERM)))
    )
    return tests


if __name__ == "__main__":
    harness.main(make_tests)

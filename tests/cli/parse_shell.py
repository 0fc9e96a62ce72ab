#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shell of `msprobe parse`: from a pipe, compared with the Python tool's answers, and in a terminal.

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
import zlib
from functools import partial

import harness
from pseudo_terminal import Terminal

PROMPT = "Parse >>> "


def run_lines(msprobe, lines, scratch):
    """The shell with these lines in a pipe."""
    return harness.run(msprobe, ["parse"], scratch, input="".join(line + "\n" for line in lines))


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


def pt_and_cn_give_the_numbers_of_the_python_tool(msprobe, scratch, inputs, peer):
    shutil.copytree(inputs, scratch, dirs_exist_ok=True)
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


def vc_gives_the_table_of_the_python_tool(msprobe, scratch, inputs, peer):
    shutil.copytree(inputs, scratch, dirs_exist_ok=True)
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


def dc_converts_as_the_python_tool_does(msprobe, scratch, adump):
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


def cad_sorts_its_results_and_refuses_namesakes_and_links_that_lead_out(msprobe, scratch, adump):
    """They are sorted by operator and time."""
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


def check_typed(msprobe, folder, *lines, end="exit\n", **environment):
    """The shell in a terminal gives each line its answer, and ends; returns what came out last."""
    with Terminal([msprobe, "parse"], folder, **environment) as terminal:
        for line, answer in lines:
            terminal.wait_for_editor(PROMPT)
            terminal.type(line)
            terminal.wait_for(answer)
        terminal.wait_for_editor(PROMPT)
        terminal.type(end)
        harness.check_equal("exit status", terminal.status(), 0)
        return terminal.seen


def a_terminal_gets_a_prompt_editing_and_ctrl_d(msprobe, scratch, inputs):
    shutil.copytree(inputs, scratch, dirs_exist_ok=True)
    # Backspaces, and a character put in before the last two.
    line = "pt -n whale\x7f\x7f\x7fole.py\x02\x02n\n"
    check_typed(msprobe, scratch, (line, "[Max: 8]"), ("what\n", "unknown command"), end="\x04")


def the_history_is_kept_and_only_its_owner_can_read_it(msprobe, scratch, inputs):
    shutil.copytree(inputs, scratch, dirs_exist_ok=True)
    state = scratch / "state"
    check_typed(msprobe, scratch, ("pt -n whole.npy\n", "[Max: 8]"), XDG_STATE_HOME=str(state))
    file = state / "msprobe" / "parse_history"
    harness.check_equal("mode of the file", stat.S_IMODE(file.stat().st_mode), 0o600)
    harness.check_equal("mode of the folder", stat.S_IMODE(file.parent.stat().st_mode), 0o700)
    harness.check_equal("files", [path.name for path in file.parent.iterdir()], ["parse_history"])
    # Ctrl-P twice: the line before exit.
    check_typed(msprobe, scratch, ("\x10\x10\n", "[Max: 8]"), end="quit\n", XDG_STATE_HOME=str(state))


def a_history_that_cannot_be_kept_is_no_error_and_no_link_is_written_through(msprobe, scratch, inputs):
    shutil.copytree(inputs, scratch, dirs_exist_ok=True)
    (scratch / "file").write_text("", encoding="utf-8")
    (scratch / "state" / "msprobe").mkdir(parents=True)
    (scratch / "kept").write_text("kept", encoding="utf-8")
    (scratch / "state" / "msprobe" / "parse_history").symlink_to(scratch / "kept")
    for where in (scratch / "file", scratch / "state"):
        seen = check_typed(msprobe, scratch, ("pt -n whole.npy\n", "[Max: 8]"), XDG_STATE_HOME=str(where))
        harness.check("error" not in seen, seen)
    harness.check_equal("behind the link", (scratch / "kept").read_text(encoding="utf-8"), "kept")


def names_that_are_not_ascii_can_be_typed(msprobe, scratch, inputs):
    name = "gr\u00f6\u00dfe\u6570.npy"
    shutil.copy(inputs / "whole.npy", scratch / name)
    check_typed(msprobe, scratch, (f"pt -n {name}\n", "[Max: 8]"), end="\x04")


def check_interrupted(msprobe, how, scratch):
    with Terminal([msprobe, "parse"], scratch) as terminal:
        terminal.wait_for_editor(PROMPT)
        terminal.type("half a li")
        terminal.wait_for("li")
        how(terminal)
        harness.check_equal("exit status", terminal.status(), 130)
        harness.check("msprobe: interrupted" in terminal.seen, terminal.seen)


def make_tests(msprobe, data):
    data = pathlib.Path(data).resolve()
    peer = json.loads((data / "shell" / "peer.json").read_text(encoding="utf-8"))
    ways = {"Ctrl-C": lambda terminal: terminal.type("\x03"), "SIGTERM": lambda terminal: terminal.process.send_signal(signal.SIGTERM)}
    return [
        *harness.tests_of_script(msprobe=msprobe, inputs=data / "shell", adump=data / "golden" / "parse" / "adump", peer=peer),
        *((f"{name} ends it and leaves the terminal as it was", partial(check_interrupted, msprobe, how)) for name, how in ways.items()),
    ]


harness.main(make_tests)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runners of `msprobe acc_check` that crash, hang, lie, flood or talk; Ctrl-C; a full disk; going on afterwards.

usage: precheck_runners.py MSPROBE

The runners here are no PyTorch: a few lines of Python that take requests and answer them, well or not. They return the
first argument as both sides' output.
"""

import csv
import json
import pathlib
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time

import dumps
import harness

LIMIT_S = 5  # for a call: no busy machine takes as long for one that does not hang

# The runner executes the statement of FAULTS at a call of that name.
RUNNER = """#!{python}
import json, os, signal, sys, time
def tell(answer):
    os.write(4, (json.dumps(answer) + "\\n").encode())
print("noise before anything", flush=True)
open({starts!r}, "a").write("x")
{begin}
tell({{"hello": 1, "torch": "9.9", "device": "cpu"}})
for line in os.fdopen(3, "rb"):
    request = json.loads(line)
    name = request["name"]
    print("noise" * 10000, flush=True)
    stored, shape, offset, _, _ = request["args"][0]["tensor"]
    size = 4
    for length in shape:
        size *= length
    os.ftruncate(6, 0)
    os.pwrite(6, os.pread(5, size, offset) + bytes(64 - size) + os.pread(5, size, offset), 0)
    made = {{"tensor": [stored, shape, 0]}}
    other = {{"tensor": [stored, shape, 64]}}
    answer = {{"id": request["id"], "forward": {{"reference": made, "device": other}}}}
{faults}
    tell(answer)
"""

FAULTS = {
    "segv": "os.kill(os.getpid(), signal.SIGSEGV)",
    "leaves": "sys.exit(3)",
    "hangs": "time.sleep(1000)",
    "floods": "[os.write(4, b'x' * 65536) for _ in range(1000)]",
    "other_id": "answer['id'] += 1",
    "no_json": "os.write(4, b'what?\\n'); continue",
    "no_outputs": "answer.pop('forward')",
    "beyond": "made['tensor'][2] = 1 << 40",
    "nowhere": "made['tensor'][2] = (1 << 63) - 1",
    "huge": "made['tensor'][1] = [1 << 40, 1 << 40]",
    "minus": "made['tensor'][1] = [-1]",
    "deep": "answer = json.loads('[' * 900 + ']' * 900)",
    "shrinks": "os.ftruncate(6, 0)",
    "types": "made['tensor'][0] = 'what'",
}
REASONS = {
    "segv": "the runner died of signal 11 (SIGSEGV)",
    "leaves": "the runner ended with status 3",
    "hangs": f"the runner did not return within {LIMIT_S} s",
    "floods": "the runner sends an answer without end",
    "other_id": "the runner sent a malformed answer: it answers another request",
    "no_json": "the runner sent a malformed answer: it is not JSON",
    "no_outputs": "the runner sent a malformed answer: it has neither outputs nor an error",
    "beyond": "the runner sent a malformed answer: a tensor is not where it should be",
    "nowhere": "the runner sent a malformed answer: a tensor is not where it should be",
    "huge": "the runner sent a malformed answer: a tensor is larger than the data sent",
    "minus": "the runner sent a malformed answer: a number is out of range",
    "deep": "the runner sent a malformed answer: it is not JSON",
    "shrinks": "the runner sent a malformed answer: a tensor is larger than the data sent",
    "types": "the runner sent a malformed answer: a tensor's type is unknown",
}


def tensor(low=0.0):
    return dumps.tensor((1.0, low, 0.5, 1.0), [8])


def write_dump(scratch, names):
    dumps.write_rank(scratch, {f"Torch.{name}.0.forward": dumps.call([tensor()], [tensor()]) for name in names}, level="L1")


def write_runner(scratch, begin="", name="runner", faults=None, python=sys.executable):
    lines = "".join(f"    if name == {word!r}:\n        {what}\n" for word, what in (faults or FAULTS).items())
    path = scratch / name
    path.write_text(RUNNER.format(python=python, starts=str(scratch / "starts"), begin=begin, faults=lines),
                    encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def words_of(scratch, *options):
    return ["acc_check", "-api_info", "dump.json", "-o", "out", "--python", str(scratch / "runner"), "--timeout",
            str(LIMIT_S), "-n", "1", *options]


def result_files(scratch):
    return list((scratch / "out").glob("accuracy_checking_result_*.csv"))


def results_of(scratch):
    (path,) = result_files(scratch)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return path, list(csv.reader(file))[1:]


def runners_left(scratch):
    """The processes that have the runner's name."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if str(scratch / "runner").encode() in line:
            yield folder.name


def nobody_is_left(scratch):
    harness.check_equal("runners that are left", list(runners_left(scratch)), [])


def every_fault_of_a_runner_costs_one_row(msprobe, scratch):
    names = [name for fault in FAULTS for name in (fault, f"after_{fault}")]
    write_dump(scratch, names)
    write_runner(scratch)
    result = harness.run(msprobe, words_of(scratch), scratch)
    harness.check_equal("exit status", (result.returncode, result.stdout), (0, ""))
    rows = results_of(scratch)[1]
    harness.check_equal("names", [row[0] for row in rows], [f"Torch.{name}.0" for name in names])
    for row in rows:
        name = row[0].split(".")[1]
        if name in FAULTS:
            harness.check_equal(name, row[1:], ["SKIP", "SKIP", REASONS[name], "skip", "", REASONS[name]])
        else:
            harness.check_equal(name, row[1:], ["pass", " ", "", "pass", "", ""])
    harness.check_equal("starts", len((scratch / "starts").read_text()), len(FAULTS) + 1)
    harness.check(f"{len(FAULTS)} lost a runner" in result.stderr, result.stderr)
    nobody_is_left(scratch)


def a_time_limit_beyond_all_clocks_is_one(msprobe, scratch):
    write_dump(scratch, ["a"])
    write_runner(scratch)
    for seconds in ("1e10", "1e300", "inf"):
        shutil.rmtree(scratch / "out", ignore_errors=True)
        harness.run(msprobe, words_of(scratch, "--timeout", seconds), scratch, status=0)
        harness.check_equal(seconds, [row[1] for row in results_of(scratch)[1]], ["pass"])


def what_does_not_start_ends_the_command(msprobe, scratch):
    write_dump(scratch, ["a"])
    for begin, reason in {
        "sys.exit(7)": "the runner ended with status 7: noise before anything",
        "tell({'fatal': 'ModuleNotFoundError: torch'}); sys.exit(1)": "ModuleNotFoundError: torch",
        "os.write(4, b'\\n')": "the runner sent a malformed answer: it is not JSON: noise before anything",
    }.items():
        runner = write_runner(scratch, begin)
        result = harness.run(msprobe, words_of(scratch), scratch, status=2)
        harness.check_equal("error", result.stderr.splitlines()[0], f"msprobe: error: {runner}: {reason}")
        harness.check(not (scratch / "out").exists(), "files were written")
    result = harness.run(msprobe, words_of(scratch, "--python", "no/such/python"), scratch)
    harness.check_equal("missing", (result.returncode, result.stderr),
                        (2, "msprobe: error: no/such/python: No such file or directory\n"))


def ctrl_c_and_going_on(msprobe, scratch):
    names = [f"n{i}" for i in range(20)]
    write_dump(scratch, names)
    write_runner(scratch, faults={"n12": "time.sleep(1000)"})
    words = words_of(scratch, "--timeout", "0")
    process = subprocess.Popen([msprobe, *words], cwd=scratch, env=harness.environment(msprobe, scratch),
                               stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + harness.TIME_LIMIT_S
    while True:
        harness.check(time.monotonic() < deadline, "it never came to n12")
        if result_files(scratch) and len(results_of(scratch)[1]) == 12:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=harness.TIME_LIMIT_S)
    harness.check_equal("interrupted", (process.returncode, told), (130, "msprobe: interrupted\n"))
    nobody_is_left(scratch)
    path, before = results_of(scratch)
    # As a process leaves it that is killed while it writes.
    with path.open("ab") as file:
        file.write(b"Torch.n12.0,pa")
    write_runner(scratch, faults={"x": "pass"})
    result = harness.run(msprobe, words_of(scratch, "-csv_path", str(path)), scratch, status=0)
    after = results_of(scratch)[1]
    harness.check_equal("names", [row[0] for row in after], [f"Torch.{name}.0" for name in names])
    harness.check_equal("rows before", after[:12], before)
    harness.check("8 operations" in result.stderr and "12 were done in an earlier run" in result.stderr, result.stderr)


def killed_and_going_on(msprobe, scratch):
    """Where the command itself is killed its runners end, too."""
    write_dump(scratch, ["n0", "n1", "n2"])
    # This call takes as long as the command lives.
    write_runner(scratch, "command = os.getppid()", faults={"n1": "while os.getppid() == command: time.sleep(0.01)"})
    process = subprocess.Popen([msprobe, *words_of(scratch, "--timeout", "0")], cwd=scratch,
                               env=harness.environment(msprobe, scratch), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + harness.TIME_LIMIT_S
    while not result_files(scratch) or len(results_of(scratch)[1]) < 1:
        harness.check(time.monotonic() < deadline, "it never came to n1")
        time.sleep(0.05)
    process.kill()
    process.wait()
    while list(runners_left(scratch)):
        harness.check(time.monotonic() < deadline, "its runner does not end")
        time.sleep(0.05)
    path, rows = results_of(scratch)
    harness.check_equal("rows", [row[0] for row in rows], ["Torch.n0.0"])
    write_runner(scratch, faults={"x": "pass"})
    harness.run(msprobe, words_of(scratch, "-csv_path", str(path)), scratch, status=0)
    harness.check_equal("names", [row[0] for row in results_of(scratch)[1]], [f"Torch.n{i}.0" for i in range(3)])


def a_full_disk_and_going_on(msprobe, scratch):
    """No file may grow beyond a few KB: one line, status 2, and what is there is whole and can be gone on with."""
    names = [f"n{i}" for i in range(600)]
    write_dump(scratch, names)
    write_runner(scratch, faults={"x": "pass"})

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))

    result = harness.run(msprobe, words_of(scratch), scratch, preexec_fn=limit, status=2)
    harness.check_equal("lines", len(result.stderr.splitlines()), 1)
    harness.check("accuracy_checking_" in result.stderr and "File too large" in result.stderr, result.stderr)
    path, rows = results_of(scratch)
    harness.check(0 < len(rows) < 600 and all(len(row) == 7 for row in rows), f"{len(rows)} rows")
    result = harness.run(msprobe, words_of(scratch, "-csv_path", str(path)), scratch, status=0)
    harness.check_equal("names", [row[0] for row in results_of(scratch)[1]], [f"Torch.{name}.0" for name in names])


def hostile_dumps(msprobe, scratch):
    write_runner(scratch)
    for content, reason in {
        '{"framework": "pytorch"}': "it has no 'data'",
        '{"framework": "mindtorch", "data": {}}': "only operations of pytorch and mindspore are called again, not those "
                                                  "of mindtorch",
        '{"framework": "pytorch", "data": 1}': "'data' is not an object",
        '{"framework": "pytorch", "data": {"Torch.a.0.forward": ': "",
    }.items():
        (scratch / "dump.json").write_text(content, encoding="utf-8")
        result = harness.run(msprobe, words_of(scratch), scratch)
        harness.check_refused(result, "dump.json: ", reason)
        harness.check(not (scratch / "out").exists(), "files were written")
    entry = dumps.call([tensor()], [tensor()])
    # A runner looks the names up, which this test does not cover; no name may lead out of a folder.
    names = ("Torch.../../x.0", "a", ".", "Torch.\u001b[31m.0", "Torch..0", "=cmd.a.0")
    data = {f"{name}.forward": entry for name in names}
    (scratch / "dump.json").write_text(json.dumps({"framework": "pytorch", "data": data}), encoding="utf-8")
    result = harness.run(msprobe, words_of(scratch, "-save_error_data"), scratch, status=0)
    harness.check("\x1b[31m" not in result.stderr, "a name drives the terminal")
    harness.check(all(not row[0].startswith("=") for row in results_of(scratch)[1]), "a formula")


def refused_command_lines(msprobe, scratch):
    write_dump(scratch, ["exp"])
    write_runner(scratch)
    (scratch / "renamed.csv").write_text("x", encoding="utf-8")

    for options, reason in (
        (("-d", "0", "0"), "-d/--device: duplicate device"),
        (("-d", "0", "x"), "-d/--device: 'x' must be a number or one of cpu, cuda, npu"),
        (("-d", "cuda:-1"), "-d/--device: 'cuda:-1' must be a number or one of cpu, cuda, npu"),
        (("-n", "65"), "--num_splits: '65' is not a whole number from 0 to 64"),
        (("-csv_path", "renamed.csv"), "renamed.csv"),
        ({"white_list": "exp"}, "white_list must be a list"),
        ({"white_list": ["sofmax"]}, "'sofmax' is not an operation that is recorded; did you mean 'softmax'?"),
        ({"black_list": [1]}, "black_list: every element must be text"),
        ({"error_data_path": "missing"}, "error_data_path: missing does not exist"),
    ):
        if isinstance(options, dict):
            (scratch / "config.json").write_text(json.dumps({"run_ut": options}), encoding="utf-8")
            options = ("-config", "config.json")
        result = harness.run(msprobe, words_of(scratch, *options), scratch)
        harness.check_refused(result, reason)
        harness.check(not (scratch / "out").exists(), "files were written")


def keys_of_the_online_mode(msprobe, scratch):
    """The keys of releases 8.x: one line, and none for a default file, where they are switched off."""
    write_dump(scratch, ["exp"])
    write_runner(scratch)
    for on in (False, True):
        keys = {"is_online": on, "is_benchmark_device": True, "nfs_path": "", "host": "", "port": -1, "rank_list": [0]}
        (scratch / "config.json").write_text(json.dumps({"run_ut": keys}), encoding="utf-8")
        result = harness.run(msprobe, words_of(scratch, "-config", "config.json"), scratch, status=0)
        told = [line for line in result.stderr.splitlines() if "no effect of" in line]
        harness.check_equal("lines", [line.split("no effect of ")[1] for line in told],
                            [", ".join(keys)] if on else [])


def spellings_of_the_python_tool(msprobe, scratch):
    write_dump(scratch, ["exp", "sin"])
    write_runner(scratch)
    sections = {"run_ut": {"white_list": ["sin"]}, "acc_check": {"white_list": ["exp"]}}
    (scratch / "config.json").write_text(json.dumps(sections), encoding="utf-8")
    for words, called in (
        (["-f", "pytorch", "run_ut"], "Torch.sin.0"),
        (["acc_check"], "Torch.exp.0"),
        (["multi_acc_check", "-n", "2", "-d", "0", "1"], "Torch.exp.0"),
        (["-f", "pytorch", "multi_run_ut"], "Torch.sin.0"),
    ):
        for path in (scratch / "out").glob("*"):
            path.unlink()
        options = ("-j", "-config", "config.json", "-f")
        result = harness.run(msprobe, [*words, *words_of(scratch)[1:], *options], scratch)
        harness.check_equal("exit status", (result.returncode, result.stderr if result.returncode else ""), (0, ""))
        passed = [row[0] for row in results_of(scratch)[1] if row[4] == "pass"]
        harness.check_equal(" ".join(words), passed, [called])


if __name__ == "__main__":
    harness.main_of_script()

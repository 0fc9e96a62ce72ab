#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Behaviour of msprobe at a terminal, in a pipe, and when it is interrupted.

usage: terminal.py MSPROBE
"""

import array
import re
import signal
import subprocess
from functools import partial

import harness
import tensor_files
from dumps import call, tensor, write_rank
from pseudo_terminal import Terminal

CLEAR = "\r\x1b[K"
SIZES = (500, 20_000)  # tensor pairs of 1 MiB; the larger number is for machines that are done with the smaller at once


def make_dump(folder, apis):
    """A tensor dump: every API has one output, and all share one file."""
    folder.mkdir()
    count = 1 << 18
    (folder / "shared.npy").write_bytes(tensor_files.npy("<f4", (count,), array.array("f", range(count)).tobytes()))
    output = tensor((count - 1.0, 0.0, 1.0, 1.0), [count], data_name="shared.npy")
    data = {f"Functional.relu.{i}.forward": call([], [output]) for i in range(apis)}
    return write_rank(folder, data, task="tensor", level="L1", dump_data_dir=str(folder))


def compare(dump, *more):
    return ["compare", "-tp", str(dump), "-gp", str(dump), *more]


def run_in_terminal(msprobe, arguments, scratch, stdout=False, **variables):
    """Exit status and what came out of a terminal of 60 columns that is stderr, or stdout as well."""
    with Terminal([msprobe, *arguments], scratch, columns=60, stdout=stdout, **variables) as terminal:
        return terminal.status(), terminal.seen.replace("\r\n", "\n")


def what_stays(text):
    """The lines as they stand on the screen in the end."""
    return [line.split(CLEAR)[-1] for line in text.split("\n")]


def a_terminal_shows_progress_and_keeps_none_of_it(msprobe, scratch):
    for apis in SIZES:
        dump = make_dump(scratch / str(apis), apis)
        status, text = run_in_terminal(msprobe, compare(dump, "-o", "out"), scratch)
        harness.check_equal("exit status", status, 0)
        if CLEAR in text:
            break
    harness.check(CLEAR in text, "no progress was shown")
    for drawn in re.split("\n|" + re.escape(CLEAR), text):
        if "%" in drawn:
            harness.check(len(drawn) < 60, f"a line too long for the terminal: {drawn!r}")
    harness.check(not any("%" in line for line in what_stays(text)), f"progress stays on the screen: {text!r}")


def a_narrow_terminal_gets_whole_names(msprobe, scratch):
    path = "Module.decoder.layers.{}.self_attention.output_projection.Linear.forward.0"
    names = [path.format(i) for i in range(3)]
    for side, off in (("target", 1), ("golden", 0)):
        data = {name: call([], [tensor((2 + off * i, -2, 0.5, 3 + off * i), [4])]) for i, name in enumerate(names, 1)}
        write_rank(scratch / side, data)
    sides = ["-tp", str(scratch / "target"), "-gp", str(scratch / "golden")]
    plain = ["--progress", "never", "--color", "never"]
    _, text = run_in_terminal(msprobe, [*plain, "compare", *sides, "-o", "out", "--details"], scratch, stdout=True)
    lines = [line.strip() for line in text.split("worst 3", 1)[1].split("\n")]
    for name in names:
        harness.check(f"{name}.output.0" in lines, f"the whole name stands on a line of its own: {text!r}")
    harness.check(not any("..." in line for line in lines), f"{text!r}")
    _, text = run_in_terminal(msprobe, [*plain, "compare", *sides, "--explain", names[1]], scratch, stdout=True)
    harness.check("l2norm  target 5  golden 3" in text.replace(".0", ""), f"{text!r}")


def a_narrow_terminal_gets_the_answer(msprobe, scratch):
    """The answer: no line is wider than the terminal unless it is one word, and links where they are shown."""
    source = scratch / "model.py"
    source.write_text("x = y\n", encoding="utf-8")
    entry = "Functional.linear.1.forward"
    for side, bias in (("target", 1e-5), ("golden", 1e-6)):
        taken = [tensor((2, -2, 0.5, 3), [4]), {"type": "float", "value": bias}]
        data = {entry: call(taken, [tensor((2, -2, 0.5, 3 + 1e4 * bias), [4])])}
        write_rank(scratch / side, data, stack={entry: [f"File {source}, line 1, in forward, \n x = y"]})
    arguments = ["--progress", "never", "compare", "target", "golden", "-o", "out"]
    _, text = run_in_terminal(msprobe, arguments, scratch, stdout=True, FORCE_HYPERLINK="1")
    harness.check(f"\x1b]8;;file://{source}#L1\x1b\\" in text, f"{text!r}")
    _, text = run_in_terminal(msprobe, [*arguments, "--color", "never"], scratch, stdout=True)
    harness.check(text.startswith(f"culprit: {entry}") and "\x1b" not in text, f"{text!r}")
    harness.check(f"   {source}:1" in text, f"{text!r}")
    for line in text.split("\n\n")[0].split("\n"):
        harness.check(len(line) <= 60 or " " not in line.strip(), f"{line!r}")


def a_narrow_terminal_gets_the_whole_name_of_what_is_dangerous(msprobe, scratch):
    name = "encodings.idna.__builtins__.__getitem__.__call__.exec_of_what_nobody_may_run"
    module, _, attribute = ("os." + name).rpartition(".")
    pickle = b"\x80\x02c" + module.encode() + b"\n" + attribute.encode() + b"\n)R."
    (scratch / "evil_with_a_rather_long_name.pkl").write_bytes(pickle)
    _, text = run_in_terminal(msprobe, ["--color", "never", "inspect", "evil_with_a_rather_long_name.pkl"], scratch, stdout=True)
    (line,) = [one.strip() for one in text.split("\n") if "os.encodings" in one]
    harness.check_equal("the name", line.split()[-1], f"{module}.{attribute}")
    harness.check("to be called" in text and "byte " in text, f"{text!r}")


def a_dumb_terminal_gets_plain_lines(msprobe, scratch):
    dump = make_dump(scratch / "dump", 300)
    status, text = run_in_terminal(msprobe, compare(dump, "-o", "out"), scratch, TERM="dumb")
    harness.check_equal("exit status", status, 0)
    harness.check("\x1b" not in text and "%" not in text, f"escape sequences on a dumb terminal: {text!r}")


def a_quiet_run_says_nothing(msprobe, scratch):
    dump = make_dump(scratch / "dump", 300)
    status, text = run_in_terminal(msprobe, ["-q", *compare(dump, "-o", "out")], scratch, stdout=True)
    harness.check_equal("exit status and output", (status, text), (0, ""))


def no_color_is_obeyed(msprobe, scratch):
    dump = make_dump(scratch / "dump", 10)
    for variables in ({"NO_COLOR": "1"}, {"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}):
        arguments = ["--progress", "never", *compare(dump, "-o", "out")]
        _, text = run_in_terminal(msprobe, arguments, scratch, stdout=True, **variables)
        harness.check("no culprit: " in text and "\x1b" not in text, f"colours in spite of {variables}: {text!r}")


def a_pipe_gets_no_progress(msprobe, scratch):
    dump = make_dump(scratch / "dump", 300)
    result = harness.run(msprobe, compare(dump, "-o", "out"), scratch, env={"TERM": "xterm"}, status=0)
    harness.check("\x1b" not in result.stderr, f"{result.stderr!r}")
    harness.check("\x1b" not in result.stdout and "no culprit: " in result.stdout, f"{result.stdout!r}")


def a_pipe_gets_progress_on_request(msprobe, scratch):
    dump = make_dump(scratch / "dump", 10)
    result = harness.run(msprobe, ["--progress=always", *compare(dump, "-o", "out")], scratch)
    harness.check("\x1b[K" in result.stderr, f"{result.stderr!r}")


def a_reader_that_leaves_is_no_error(msprobe, scratch):
    dump = make_dump(scratch / "dump", 300)
    for form in ("csv", "json", "jsonl"):
        with subprocess.Popen(
            [msprobe, "-q", *compare(dump, "--format", form, "-o", "-")],
            cwd=scratch,
            env=harness.environment(msprobe, scratch),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            harness.check(process.stdout.readline(), f"{form}: nothing came out")
            process.stdout.close()
            errors = process.stderr.read()
            harness.check_equal(f"{form}: exit status", process.wait(timeout=harness.TIME_LIMIT_S), 0)
        harness.check_equal(f"{form}: stderr", errors, b"")
    harness.check_equal("files", [path.name for path in scratch.iterdir()], ["dump"])


def interrupted(msprobe, number, scratch):
    for apis in SIZES:
        dump = make_dump(scratch / str(apis), apis)
        out = scratch / f"out{apis}"
        with subprocess.Popen(
            [msprobe, "--progress=always", *compare(dump, "-o", str(out), "--format", "csv,xlsx")],
            cwd=scratch,
            env=harness.environment(msprobe, scratch),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            process.stderr.read(1)  # the first sign of progress
            process.send_signal(number)
            errors = process.stderr.read().decode()
            status = process.wait(timeout=harness.TIME_LIMIT_S)
        if status != 0:  # else it was done before the signal came
            harness.check_equal("exit status", status, 130)
            harness.check(errors.endswith("msprobe: interrupted\n"), f"{errors!r}")
            harness.check_equal("files", [path.name for path in out.glob("*")] if out.exists() else [], [])
            return
    raise harness.Skip("this machine is too fast to interrupt")


def make_tests(msprobe):
    return [*harness.tests_of_script(msprobe=msprobe),
            *((f"{name} leaves no files and ends with 130", partial(interrupted, msprobe, number))
              for name, number in (("Ctrl-C", signal.SIGINT), ("SIGTERM", signal.SIGTERM)))]


harness.main(make_tests)

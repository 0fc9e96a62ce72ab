#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every gate (--fail-on) of every command that reads dumps, over dumps of which nothing, or a whole part, cannot be judged:
no rank, no value, no name in common, NaN throughout. None of them passes, and a line says what was not judged. Beside them
stands what each command can judge, which passes. gates_of_records.py has the other commands, and
gates_of_recorders.py each format and recorder.

usage: gates.py MSPROBE SAMPLES GOLDEN_FOLDER PYTHON_WITH_PYTORCH
"""

import json
import math
import pathlib
import shutil
import struct
import subprocess

import harness
from gate_checks import *
from tensor_files import npy


def compare_cases(samples, tensors):
    pair, both, unjudged = unjudged_pairs(samples)

    def unread(*ranks):
        def write(scratch):
            for side in "tg":
                shutil.copytree(tensors / "golden", scratch / side)
            for rank in ranks:
                shutil.rmtree(scratch / f"t/step0/rank{rank}/dump_tensor_data")
                (scratch / f"t/step0/rank{rank}/dump_tensor_data").mkdir()
        return write

    unjudged["no tensor files"] = unread(0, 1)
    unjudged["no tensor files in a rank"] = unread(1)
    failed = {
        "checksums against statistics in a rank": pair({1: checksums}),
        "structure against statistics": pair(absent, of_target={"task": "structure"}),
    }
    judged = {
        "the same": pair(),
        "the same, two steps": both(None, steps=(0, 1)),
        "the same checksums": both(checksums),
        "the same files": unread(),
        "an entry without tensors": both(first_entry(no_tensors)),
    }
    two = ["compare", "-tp", "t", "-gp", "g", "-o", "out"]
    for level in ("culprit", "error", "warning", "unmatched"):
        for name, write in unjudged.items():
            yield f"compare {level}: {name}", write, [*two, "--fail-on", level], check_of(level, name)
        for name, write in failed.items():
            yield f"compare {level}: {name}", write, [*two, "--fail-on", level], fails
        for name, write in judged.items():
            yield f"compare {level}: {name}", write, [*two, "--fail-on", level], something
    # The Python tool's verdicts, and -da, which searches by itself.
    for options, kinds in (
        (["--python-rules", "--fail-on", "error"], ("no entries in a rank", "null statistics in a rank", "NaN throughout in a rank",
                                                    "3x + 1 throughout", "a rank less in golden", "a step more in golden")),
        (["-da", "--fail-on", "error"], ("no entries", "no entries in a rank", "null statistics", "null statistics in a rank",
                                         "no statistics in a rank", "NaN throughout", "no tensors in a rank",
                                         "null statistics in the target", "null statistics in a rank of golden",
                                         "checksums of two digits in the target", "the checksum of no element in golden",
                                         "a rank less in golden", "a step more in the target", "no checksums in a rank")),
    ):
        for name in kinds:
            yield f"compare {' '.join(options)}: {name}", unjudged[name], [*two, *options], nothing
        for name in ("the same", "an entry without tensors", "the same checksums"):
            yield f"compare {' '.join(options)}: {name}", judged[name], [*two, *options], something
    # The ranks of a model that are put together: without one of them there is no whole.
    for level in ("culprit", "error"):
        for name in ("no entries in a rank", "no entries in a rank of the target", "null statistics in a rank",
                     "null statistics in a rank of golden", "no statistics in a rank of the target", "no tensors in a rank",
                     "no statistics of outputs in the target", "a rank less in golden", "a rank less in the target"):
            yield f"compare --merge-ranks, {level}: {name}", unjudged[name], [*two, "--merge-ranks", "--fail-on", level], fails
        yield f"compare --merge-ranks, {level}: the same", judged["the same"], [*two, "--merge-ranks", "--fail-on", level], something
    for level in ("culprit", "error"):
        against = ["compare", "--against", "g", "t", "-o", "out", "--fail-on", level]
        for name in ("no entries in a rank", "null statistics", "no name in common", "a rank less in the target",
                     "NaN throughout in a rank"):
            yield f"compare --against, {level}: {name}", unjudged[name], against, nothing
        yield f"compare --against, {level}: the same", judged["the same"], against, something

    # A mapping that names nothing of the dumps.
    maps = {
        "-dm": ("Functional.{0}.0.forward.input.0: Functional.{0}.0.forward.input.0\n", "embedding"),
        "-cm": ("{0}: {0}\n", "part"),
        "-am": ("- ms_api: Functional.{0}\n  pt_api: Functional.{0}\n  ms_args: [0]\n  pt_args: [0]\n", "embedding"),
        "-lm": ("TopLayer:\n  {0}: {0}\n", "part"),
    }
    for option, (text, known) in maps.items():
        for what, check in (("nowhere", nothing), (known, something)):
            def write(scratch, text=text.format(what), change=modules if option in ("-cm", "-lm") else same):
                both(change)(scratch)
                (scratch / "map.yaml").write_text(text, encoding="utf-8")
            yield f"compare {option}: names {what}", write, [*two, option, "map.yaml", "--fail-on", "culprit"], check
            yield f"compare -da {option}: names {what}", write, [*two, "-da", option, "map.yaml", "--fail-on", "error"], check


def doubles(values):
    return npy("<f8", (len(values),), struct.pack(f"<{len(values)}d", *values))


def other_layout_cases():
    """Dumps without a dump.json: arrays saved by name, statistics of ATB."""
    def arrays(target, golden=None):
        def write(scratch):
            for side, saved in (("t", target), ("g", target if golden is None else golden)):
                for place, values in saved.items():
                    path = scratch / side / "data" / "tag" / place
                    path.mkdir(parents=True)
                    (path / "x.npy").write_bytes(doubles(values))
        return write

    def statistics(value, name="Linear"):
        row = f"0_11,0,Model/{{}},X,0_3,input,0,float,nd,2,{','.join([value] * 4)},N/A\n"
        def write(scratch):
            for side, operation in (("t", "Linear"), ("g", name)):
                (scratch / side).mkdir()
                (scratch / side / "statistic.csv").write_text("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o\n" + row.format(operation))
        return write

    one, nan = [1.0, 2.0], [math.nan, math.nan]
    two = ["compare", "-tp", "t", "-gp", "g", "-o", "out", "--fail-on"]
    for level in ("error", "warning", "unmatched"):
        for name, write, check in (
            ("NaN throughout", arrays({"step0/rank0": nan}), nothing_or_found),
            ("a step more", arrays({"step0/rank0": one, "step1/rank0": one}, {"step0/rank0": one}), nothing_or_found),
            ("no element", arrays({"step0/rank0": []}), nothing_or_found),
            ("the same", arrays({"step0/rank0": one, "step0/rank1": [1.0, math.nan]}), something),
        ):
            yield f"compare of saved arrays, {level}: {name}", write, [*two, level], check
        for name, write, check in (
            ("no statistics", statistics("N/A"), nothing),
            ("no name in common", statistics("1", "Other"), nothing_or_found),
            ("the same", statistics("1"), something),
        ):
            yield f"compare -m atb, {level}: {name}", write, [*two, level, "-m", "atb"], check


def anomaly_cases(msprobe, samples):
    def dump(change=None, task="statistics", **more):
        return lambda scratch: samples.write(scratch / "dump", change, task=task, **more)

    unjudged = {
        "no entries": dump(empty),
        "no entries in a rank": dump({1: empty}),
        "null statistics": dump(nulls),
        "null statistics in a rank": dump({1: nulls}),
        "no statistics in a rank": dump({0: absent}),
        "no tensors": dump(no_tensors),
        "no tensors in a rank": dump({1: no_tensors}),
        "checksums": dump(checksums),
        "task structure": dump(absent, task="structure"),
        "task nan_check without its word": dump(absent, task="nan_check"),
        "no entries in any of ten ranks": dump(empty, steps=range(5)),
        "no entries in any step": dump(empty, steps=(0, 1)),
    }
    unjudged["an entry without statistics"] = dump(first_entry(absent))
    unjudged["Mean and Norm alone"] = dump(without("Max", "Min", "dtype"))
    unjudged["Mean and Norm alone in an entry"] = dump(first_entry(without("Max", "Min", "dtype")))
    unjudged["no statistics of outputs"] = dump(outputs(absent))
    unjudged["words as statistics"] = dump(with_statistics("x"))
    judged = {"clean": dump(), "an entry without tensors": dump(first_entry(no_tensors)), "two steps": dump(steps=(0, 1)),
              "an entry without elements": dump(first_entry(hollow)), "an entry of booleans": dump(first_entry(with_statistics(True)))}
    words = ["nan_analyze", "-i", "dump", "-o", "out", "--statistics", "--fail-on", "anomaly"]
    yield "nan_analyze --statistics: NaN throughout", dump(nans), words, nothing
    for options in ([], ["--all"], ["--levels"], ["--statistics"]):
        commands = ("nan_analyze", "overflow_check") if not options else ("nan_analyze",)
        for command in commands:
            for kinds, check in ((unjudged, nothing), (judged, something)):
                for name, write in kinds.items():
                    place = "dump/step0" if len(name) % 2 else "dump"
                    words = [command, "-i", place, "-o", "out", "--fail-on", "anomaly", *options]
                    yield f"{' '.join([command, *options])}: {name}", write, words, check


def precheck_cases(samples, golden, python):
    def dump(change=None, **more):
        return lambda scratch: samples.write(scratch / "dump", change, **more)

    def tensors(scratch):
        shutil.copytree(golden / "prechecks/acc_check/dump_tensor", scratch / "dump/step0/rank0")

    acc = ["acc_check", "-api_info", "dump/step0/rank0/dump.json", "-o", "out", "--recorded", "-n", "1", "--python", python]
    for level in ("error", "warning", "skip"):
        for name, change in (("no entries", empty), ("no tensors", no_tensors), ("null statistics", nulls), ("no name of an operation", renamed)):
            if change is empty or python != "-":
                yield f"acc_check {level}: {name}", dump(change), [*acc, "--fail-on", level], \
                    nothing_or_found if level == "skip" else nothing
    if python != "-":
        def one(scratch):
            tensors(scratch)
            path = scratch / "dump/step0/rank0/dump.json"
            whole = json.loads(path.read_text(encoding="utf-8"))
            whole["data"] = {name: value for name, value in whole["data"].items() if name.startswith("Functional.linear.0.forward")}
            path.write_text(json.dumps(whole), encoding="utf-8")
        yield "acc_check error: a call that passes", one, [*acc, "--fail-on", "error"], something

    lines = (golden / "prechecks/precision_compare/in/main_npu.csv").read_bytes().splitlines(keepends=True)
    good = next(line for line in lines if line.startswith(b"Torch.tanh.0."))
    other = next(line for line in lines if line.startswith(b"Torch.tanh.1."))
    blank = next(line for line in lines if line.startswith(b"Torch.tanh.57."))

    def details(npu, gpu):
        def write(scratch):
            (scratch / "npu.csv").write_bytes(b"".join([lines[0], *npu]))
            (scratch / "gpu.csv").write_bytes(b"".join([lines[0], *gpu]))
        return write

    for level in ("error", "skip"):
        words = ["api_precision_compare", "-npu", "npu.csv", "-gpu", "gpu.csv", "-o", "out", "--fail-on", level]
        for name, npu, gpu in (("no rows", [], []), ("no rows of the judged device", [], [good]), ("no rows of the other device", [good], []),
                               ("no name in common", [good], [other]), ("rows without figures", [blank], [blank])):
            yield f"api_precision_compare {level}: {name}", details(npu, gpu), words, nothing_or_found if level == "skip" else nothing
        untyped = good.replace(b"torch.float32,torch.float32", b"torch.float32, ")
        yield f"api_precision_compare {level}: figures without a type", details([untyped], [untyped]), words, nothing_or_found
        for column in range(9, 14):  # the figures of a row that passes
            for figure in (b"nan", b" ", b"inf"):
                fields = good.split(b",")
                at = column + 1  # the shape has a comma
                if not fields[at].strip():
                    continue
                fields[at] = figure
                changed = b",".join(fields)
                yield f"api_precision_compare {level}: {figure.decode()!r} in column {column}", details([changed], [changed]), words, nothing_or_found
        yield f"api_precision_compare {level}: a row that passes", details([good], [good]), words, something


def has_pytorch(python):
    return python != "-" and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def make_tests(msprobe, samples_folder, golden_folder, python):
    python = harness.prepared_interpreter(python) if has_pytorch(python) else "-"
    samples = Samples(samples_folder)
    golden = harness.data(golden_folder, "prechecks")
    return tests_of(msprobe, [
        *compare_cases(samples, pathlib.Path(samples_folder)),
        *other_layout_cases(),
        *anomaly_cases(msprobe, samples),
        *precheck_cases(samples, golden, python),
    ])


harness.main(make_tests)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One run by two recorders: what they write differently is no difference of the runs.

usage: two_recorders.py MSPROBE
"""

import csv
import json

import harness
from harness import check, check_equal

# The Python tool's own recorder sums in float32, msprobe's in double, and signs its dumps.
OURS = {"recorder": "msprobe 1.0"}


def tensor(statistics, shape=(4,), **more):
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(shape),
            **dict(zip(("Max", "Min", "Mean", "Norm"), statistics)), "requires_grad": False, **more}


def forward(inputs, outputs):
    return {"input_args": inputs, "input_kwargs": {}, "output": outputs}


def write_dump(folder, entries, task="statistics", **header):
    rank = folder / "step0" / "rank0"
    rank.mkdir(parents=True, exist_ok=True)
    header = {"task": task, "level": "L1", "framework": "pytorch", "dump_data_dir": None, **header}
    (rank / "dump.json").write_text(json.dumps({**header, "data": entries}))


def compare(msprobe, scratch, *options, status=0):
    result = harness.run(msprobe, ["compare", "-tp", "target", "-gp", "golden", *options], scratch)
    check_equal(result.stderr, result.returncode, status)
    return result


def scalars_by_xor(msprobe, scratch):
    """The Python tool writes the number itself, msprobe's collector its bits."""

    def scalar(dtype, checksum):
        return {"type": "torch.Tensor", "dtype": f"torch.{dtype}", "shape": [], "md5": checksum, "requires_grad": False}

    def write(side, *scalars):
        vector = {**scalar("float32", "0x7fb1fc227bab8ff2"), "shape": [4]}
        entries = {f"Torch.a{i}.0.forward": forward([vector], [one]) for i, one in enumerate(scalars)}
        write_dump(scratch / side, entries)

    numbers = (("float32", 2.468505382537842, "0x00000000401dfbfe"), ("bfloat16", -1.5, "0x000000000000bfc0"),
               ("float64", 0.1, "0x3fb999999999999a"), ("float16", float("nan"), "0x0000000000007e00"),
               ("int32", "0xffffffffffffffff", "0x00000000ffffffff"), ("bool", "0x0000000000000001", "0x0000000000000001"))
    write("target", *(scalar(dtype, number) for dtype, number, _ in numbers))
    write("golden", *(scalar(dtype, bits) for dtype, _, bits in numbers))
    result = compare(msprobe, scratch, "--format", "csv", "-o", "-", "--fail-on", "error")
    check("no culprit: all 12 rows that could be compared are equal" in result.stderr, result.stderr)
    rows = list(csv.DictReader(result.stdout.splitlines()))
    check_equal("cells", (rows[1]["NPU MD5"], rows[1]["BENCH MD5"]), ("2.468505382537842",) * 2)
    write("golden", scalar("float32", "0x00000000401dfbff"), *(scalar(dtype, bits) for dtype, _, bits in numbers[1:]))
    result = compare(msprobe, scratch, "--format", "csv", "-o", "-", "--fail-on", "error", status=1)
    rows = list(csv.DictReader(result.stdout.splitlines()))
    check("The XOR value of NPU differs from that of the bench." in rows[1]["Err_message"], rows[1])
    check("no culprit: checksums differ, which do not tell by how much; 11 rows are equal" in result.stderr, result.stderr)
    result = compare(msprobe, scratch, "--format", "csv", "-o", "-", "--python-rules")
    check("The CRC-32 value of NPU" in result.stdout and "0x00000000401dfbff" in result.stdout, result.stdout)


def checksums_say_more_than_statistics(msprobe, scratch):
    """The same elements in another order: the answer does not say that all is equal while a row is red."""
    for side, md5 in (("target", "aaaaaaaa"), ("golden", "bbbbbbbb")):
        write_dump(scratch / side, {"Torch.a.0.forward": forward([], [tensor([2.0, -1.0, 0.5, 3.0], md5=md5)])}, **OURS)
    told = compare(msprobe, scratch, "--format", "csv", "-o", "-", "--fail-on", "error", status=1).stderr
    check("no culprit: checksums differ" in told and "are equal" not in told, told)
    check("the first entry whose checksums differ" in told, told)


def make_tests(msprobe):
    return [(test.__name__.replace("_", " "), lambda scratch, test=test: test(msprobe, scratch)) for test in (
        scalars_by_xor, checksums_say_more_than_statistics)]


if __name__ == "__main__":
    harness.main(make_tests)

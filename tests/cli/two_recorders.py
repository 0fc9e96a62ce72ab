#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One run by two recorders: differences between the recorders do not count as differences of the runs.

usage: two_recorders.py MSPROBE
"""

import csv
import json
import struct

import harness
import tensor_files
from dumps import call, tensor, write_rank
from harness import check, check_equal

LOWEST = -3.4028234663852886e38
# The Python tool's own recorder sums in float32, msprobe's in double, and signs its dumps.
OURS = {"recorder": "msprobe 1.0"}


def write_dump(folder, entries, task="statistics", files=(), rank=0, **header):
    """`files`: name to elements, or to a scalar."""
    rank = folder / "step0" / f"rank{rank}"
    (rank / "dump_tensor_data").mkdir(parents=True, exist_ok=True)
    write_rank(rank, entries, task=task, level="L1", **header)
    for name, elements in dict(files).items():
        shape, elements = ((len(elements),), elements) if isinstance(elements, list) else ((), [elements])
        content = tensor_files.npy("<f4", shape, struct.pack(f"<{len(elements)}f", *elements))
        (rank / "dump_tensor_data" / name).write_bytes(content)


def compare(msprobe, scratch, *options, status=0):
    result = harness.run(msprobe, ["compare", "-tp", "target", "-gp", "golden", *options], scratch)
    check_equal(result.stderr, result.returncode, status)
    return result


def files_count_for_the_first_difference(msprobe, scratch):
    """-da: the recorded mean of a mask differs, the tensors do not."""
    elements = {"mask": [1.0, LOWEST, LOWEST, 2.0], "late": [1.0, 2.0, 3.0, 4.0]}

    def write(side, mask, **header):
        statistics = {"mask": mask, "late": [max(elements["late"]), 1.0, 2.5, 5.477225575051661]}
        entries = {}
        for name in elements:
            file = f"Torch.{name}.0.forward.output.0.npy"
            entries[f"Torch.{name}.0.forward"] = call([], [tensor(statistics[name], [4], data_name=file)])
        files = {f"Torch.{name}.0.forward.output.0.npy": values for name, values in elements.items()}
        write_dump(scratch / side, entries, "tensor", files, **header)

    # Not even the signs of the recorded means are right: only the files can tell.
    write("golden", [2.0, LOWEST, 1e38, 4.8e38], **OURS)
    write("target", [2.0, LOWEST, -float("inf"), float("inf")])
    check("2 entries: 0 differ" in compare(msprobe, scratch, "-da", "-o", "out").stderr, "the mask")
    elements["late"][3] = 9.0
    write("target", [2.0, LOWEST, -1e38, float("inf")])
    told = compare(msprobe, scratch, "-da", "-o", "out").stderr
    check("first difference: rank0: Torch.late.0.forward" in told and "max 9.0, not 4.0" in told, told)
    for file in (scratch / "golden").glob("*/*/*/*mask*"):
        file.unlink()
    told = compare(msprobe, scratch, "-da", "-o", "out").stderr
    check("first difference: rank0: Torch.mask.0.forward" in told, told)
    check("rank0: using the recorded statistics of 1 tensor whose files cannot be read: " in told, told)


def scalars_by_xor(msprobe, scratch):
    """The Python tool writes the number itself, msprobe's collector its bits."""

    def scalar(dtype, checksum):
        return {"type": "torch.Tensor", "dtype": f"torch.{dtype}", "shape": [], "md5": checksum, "requires_grad": False}

    def write(side, *scalars):
        vector = {**scalar("float32", "0x7fb1fc227bab8ff2"), "shape": [4]}
        entries = {f"Torch.a{i}.0.forward": call([vector], [one]) for i, one in enumerate(scalars)}
        write_dump(scratch / side, entries)

    numbers = (("float32", 2.468505382537842, "0x00000000401dfbfe"), ("bfloat16", -1.5, "0x000000000000bfc0"),
               ("float64", 0.1, "0x3fb999999999999a"), ("float16", 1.5, "0x0000000000003e00"),
               ("int32", "0xffffffffffffffff", "0x00000000ffffffff"),
               ("bool", "0x0000000000000001", "0x0000000000000001"))
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
    answer = "no culprit in the 91 % that could be compared: checksums differ; they do not show by how much\n   11 rows are equal\n"
    check(answer in result.stderr, result.stderr)
    result = compare(msprobe, scratch, "--format", "csv", "-o", "-", "--python-rules")
    check("The CRC-32 value of NPU" in result.stdout and "0x00000000401dfbff" in result.stdout, result.stdout)


def checksums_say_more_than_statistics(msprobe, scratch):
    """The same elements in another order: the answer does not say that all is equal while a row is red."""
    for side, md5 in (("target", "aaaaaaaa"), ("golden", "bbbbbbbb")):
        write_dump(scratch / side, {"Torch.a.0.forward": call([], [tensor([2.0, -1.0, 0.5, 3.0], [4], md5=md5)])}, **OURS)
    told = compare(msprobe, scratch, "--format", "csv", "-o", "-", "--fail-on", "error", status=1).stderr
    check("no culprit: checksums differ" in told and "are equal" not in told, told)
    check("the first entry whose checksums differ" in told, told)


def norms_that_recorders_round(msprobe, scratch):
    """Rows and colours: norms of bfloat16 are bfloat16 in the one, and one of float16 overflowed."""

    def write(side, rounded, overflown, **header):
        def half(mean, norm):
            return tensor([1.5, -1.5, mean, norm], (64, 64), dtype="torch.bfloat16")

        def mask(norm):
            return tensor([2.0, -65504.0, -30704.0, norm], (32, 60), dtype="torch.float16")

        entries = {}
        for i in range(10):
            small, large = (2.0, 4.5) if rounded else (2.00001, 4.489966869354248)
            entries[f"Torch.a{i}.0.forward"] = call([half(0.5, small)], [half(0.25, large)])
        scores = tensor([2.0, -2.0, 0.0, 4.0], (32, 60), dtype="torch.float16")
        entries["Tensor.masked_fill.0.forward"] = call([scores], [mask(float("inf") if overflown else 2029567.25)])
        write_dump(scratch / side, entries, **header)
        construct = scratch / side / "step0" / "rank0" / "construct.json"
        construct.write_text(json.dumps(dict.fromkeys(entries)))

    write("target", rounded=True, overflown=True)
    write("golden", rounded=False, overflown=False, **OURS)
    result = compare(msprobe, scratch, "--format", "csv", "-o", "-", "--fail-on", "warning")
    check("by fixed limits: 0 error, 0 warning, 22 pass" in result.stderr, result.stderr)
    messages = [row["Err_message"] for row in csv.DictReader(result.stdout.splitlines())]
    check_equal("told", [one for one in messages if one != "[]"], ['["Not compared: L2norm (only in Bench)."]'])
    rules = ["--format", "csv", "-o", "-", "--python-rules"]
    verdicts = [row["Result"] for row in csv.DictReader(compare(msprobe, scratch, *rules).stdout.splitlines())]
    check_equal("as they are", (verdicts.count("warning"), verdicts.count("error")), (10, 1))
    graph = ["graph_visualize", "-tp", "target/step0", "-gp", "golden/step0", "-o", "out"]
    told = harness.run(msprobe, graph, scratch).stderr
    check("0 error, 0 warning, 11 pass" in told, told)
    harness.run(msprobe, [*graph[:-1], "vis", "--file_type", "vis"], scratch)
    (file,) = (scratch / "vis").glob("*.vis")
    nodes = json.loads(file.read_text())["NPU"]["node"]
    indexes = {node["data"]["precision_index"] for node in nodes.values() if "precision_index" in node["data"]}
    check_equal("indexes", indexes, {0})
    # A norm that is off by more, and one that only one side can tell to be wrong.
    write("target", rounded=False, overflown=False, **OURS)
    path = scratch / "target" / "step0" / "rank0" / "dump.json"
    path.write_text(path.read_text().replace("4.489966869354248", "9.0", 1))
    result = compare(msprobe, scratch, "--format", "csv", "-o", "-", "--fail-on", "error", status=1)
    check("by fixed limits: 1 error, 0 warning, 21 pass" in result.stderr, result.stderr)


def ranks_with_data_of_their_own(msprobe, scratch):
    """--merge-ranks of data-parallel ranks: what the ranks of both sides hold otherwise is no copy that differs."""
    losses = {0: 1.25, 1: 2.5}
    masks = {0: [1.0, 0.0, 0.0, 1.0], 1: [0.0, 1.0, 1.0, 0.0]}  # the same statistics, other elements

    def write(side, wrong=0.0):
        for rank in (0, 1):
            mask = [masks[rank][0] + wrong, *masks[rank][1:]] if rank == 1 else masks[rank]
            values = {"eq": mask, "loss": losses[rank]}
            files = {f"Torch.{name}.0.forward.output.0.npy": value for name, value in values.items()}
            equal, loss = files
            entries = {
                "Torch.eq.0.forward": call([], [tensor([1.0, 0.0, 0.5, 2**0.5], [4], data_name=equal)]),
                "Torch.loss.0.forward": call([], [tensor([losses[rank]] * 4, (), data_name=loss)]),
            }
            write_dump(scratch / side, entries, "tensor", files, rank=rank)

    write("target")
    write("golden")
    result = compare(msprobe, scratch, "--merge-ranks", "--format", "csv", "-o", "-", "--fail-on", "warning")
    check("by fixed limits: 0 error, 0 warning, 2 pass" in result.stderr, result.stderr)
    check("could not be read" not in result.stderr, result.stderr)
    write("target", wrong=0.5)
    result = compare(msprobe, scratch, "--merge-ranks", "--format", "csv", "-o", "-")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    check_equal("largest error", [row["MaxAbsErr"] for row in rows], ["0.5", "0.0"])


harness.main_of_script()

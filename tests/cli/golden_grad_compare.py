#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""grad_compare: the Python tool's table byte for byte, what is suspect, and what could not be compared.

usage: golden_grad_compare.py MSPROBE GOLDEN_FOLDER
"""

import pathlib
import re
import shutil

import harness
import tensor_files


def booleans(values):
    """A one-dimensional array of them."""
    return tensor_files.npy("|b1", (len(values),), bytes(values))


def record(folder, steps, rank=0, header="param_name,max,min,norm,shape"):
    """steps: step -> parameter -> signs, as task grad_probe writes them at level L1."""
    folder = folder / f"rank{rank}"
    for step, parameters in steps.items():
        signs = folder / f"step{step}"
        signs.mkdir(parents=True)
        for name, values in parameters.items():
            (signs / f"{name}.npy").write_bytes(booleans(values))
        rows = "".join(f"{name},1.0,-1.0,1.0,[{len(values)}]\r\n" for name, values in parameters.items())
        (folder / f"grad_summary_{step}.csv").write_bytes(b"\xef\xbb\xbf" + (header + "\r\n" + rows).encode())


def compare(msprobe, scratch, *more, first="a", second="b", status=0):
    result = harness.run(msprobe, ["grad_compare", str(first), str(second), "-o", "out", *more], scratch)
    harness.check(result.returncode == status, f"exit status {result.returncode}: {result.stderr}")
    return result.stderr


def make_tests(msprobe, golden):
    case = pathlib.Path(golden).resolve() / "monitor" / "grad_probe"

    def table_is_the_python_tools(scratch):
        told = compare(msprobe, scratch, "--fail-on", "suspect", first=case / "L1_a", second=case / "L1_b", status=1)
        expected = (case / "compare" / "rank0" / "similarities.csv").read_bytes()
        harness.check_equal("table", (scratch / "out/rank0/similarities.csv").read_bytes(), expected)
        harness.check("rank 0, step 0: 0.8333 of all signs are equal, below 0.97 at the first step; "
                      "1.weight agrees least: 0.5" in told, told)
        harness.check("rank 0, step 2: 0.6667 of all signs are equal, 0.8333 one step before" in told, told)
        page = (scratch / "out/similarities.html").read_text(encoding="utf-8")
        harness.check("1.weight, step 0: 0.5000" in page and "<script" not in page, page[:2000])

    def equal_runs(scratch):
        told = compare(msprobe, scratch, "--fail-on", "unequal", first=case / "L1_a", second=case / "L2")
        harness.check("gradient signs of 1 rank over 2 steps: all are equal" in told, told)

    def a_fall_is_suspect(scratch):
        good = [True] * 98 + [False] * 2
        record(scratch / "a", {0: {"w": [True] * 100}, 1: {"w": [True] * 100}, 2: {"w": [True] * 100}})
        record(scratch / "b", {0: {"w": good}, 1: {"w": [True] * 94 + [False] * 6}, 2: {"w": [True] * 92 + [False] * 8}})
        told = compare(msprobe, scratch, "--fail-on", "suspect", status=1)
        harness.check_equal("suspects", re.findall(r"rank 0, step (\d+)", told), ["1"])
        told = compare(msprobe, scratch)
        harness.check("1 step is suspect" in told, told)

    def what_sinks_slowly_is_suspect_once(scratch):
        steps = {step: {"w": [int(i >= step) for i in range(100)]} for step in range(8)}
        record(scratch / "a", {step: {"w": [1] * 100} for step in range(8)})
        record(scratch / "b", steps)
        told = compare(msprobe, scratch, "--fail-on", "suspect", status=1)
        harness.check_equal("suspects", re.findall(r"rank 0, step (\d+)", told), ["4"])

    def what_is_missing_is_told(scratch):
        record(scratch / "a", {0: {"w": [1, 0], "only.a": [1]}, 1: {"w": [1, 0]}})
        record(scratch / "a", {0: {"w": [1, 0]}}, rank=1)
        record(scratch / "b", {0: {"w": [1, 0]}, 5: {"w": [1, 0]}})
        told = compare(msprobe, scratch, "--fail-on", "suspect", status=2)
        harness.check("not judged: 1 of 2 gradients was not compared: there are no signs on both sides, only.a; a/rank1: " in told, told)
        told = compare(msprobe, scratch)
        for text in ("a/rank1: the other side has no rank1", "a/rank0/step1: the other side has no step1",
                     "b/rank0/step5: the other side has no step5", "b/rank0/step0/only.a.npy: ",
                     "all that were compared are equal, but not all could be compared"):
            harness.check(text in told, f"{text!r} is not in {told}")
        rows = (scratch / "out/rank0/similarities.csv").read_text(encoding="utf-8-sig").splitlines()
        harness.check_equal("table", rows, ["step,0", "w,1.0", "only.a,", "summary,1.0"])

    def other_shapes_are_not_compared(scratch):
        record(scratch / "a", {0: {"w": [1, 0], "v": [1]}})
        record(scratch / "b", {0: {"w": [1, 0, 1], "v": [1]}})
        told = compare(msprobe, scratch, "--fail-on", "suspect", status=2)
        harness.check("w.npy: has a different shape on the other side" in told, told)

    def broken_files_are_told(scratch):
        for side in "ab":
            record(scratch / side, {0: {"w": [1, 0], "v": [1]}})
        (scratch / "b/rank0/step0/w.npy").write_bytes(b"\x93NUMPY\x01\x00")
        told = compare(msprobe, scratch, "--fail-on", "suspect", status=2)
        harness.check("b/rank0/step0/w.npy: " in told, told)

    def nothing_to_compare(scratch):
        shutil.copytree(case / "L0", scratch / "a")
        shutil.copytree(case / "L0", scratch / "b")
        told = compare(msprobe, scratch, status=2)
        harness.check("grad_level L1 and L2 record them" in told, told)
        harness.check(not (scratch / "out").exists(), "files were written")
        (scratch / "empty").mkdir()
        told = compare(msprobe, scratch, first="empty", status=2)
        harness.check_equal("told", told, "msprobe: error: empty: has no folder rank<N> of a gradient probe\n")

    def a_foreign_table_is_refused(scratch):
        record(scratch / "a", {0: {"w": [1]}}, header="name,max")
        record(scratch / "b", {0: {"w": [1]}})
        told = compare(msprobe, scratch, status=2)
        harness.check("a/rank0/grad_summary_0.csv: is not a summary of gradients" in told, told)

    def a_link_out_of_the_folder_is_not_followed(scratch):
        for side in "ab":
            record(scratch / side, {0: {"w": [1, 0], "v": [1]}})
        (scratch / "secret.npy").write_bytes(booleans([1, 0]))
        (scratch / "b/rank0/step0/w.npy").unlink()
        (scratch / "b/rank0/step0/w.npy").symlink_to(scratch / "secret.npy")
        compare(msprobe, scratch, "--fail-on", "suspect", status=2)

    def many_steps_and_parameters_fit_into_the_page(scratch):
        steps = {step: {f"layer.{i}.weight": [1, 1, 1, int(step < 500 or i != 7)] for i in range(8)} for step in range(600)}
        record(scratch / "a", {step: {name: [1, 1, 1, 1] for name in names} for step, names in steps.items()})
        record(scratch / "b", steps)
        told = compare(msprobe, scratch)
        harness.check("rank 0, step 500: 0.9688 of all signs are equal, 1 one step before; layer.7.weight agrees least: 0.75"
                      in told, told)
        page = (scratch / "out/similarities.html").read_text(encoding="utf-8")
        harness.check(len(page) < 600_000, f"{len(page)} bytes")

    return [(function.__name__.replace("_", " "), function) for function in (
        table_is_the_python_tools, equal_runs, a_fall_is_suspect, what_sinks_slowly_is_suspect_once, what_is_missing_is_told, other_shapes_are_not_compared,
        broken_files_are_told, nothing_to_compare, a_foreign_table_is_refused, a_link_out_of_the_folder_is_not_followed,
        many_steps_and_parameters_fit_into_the_page)]


if __name__ == "__main__":
    harness.main(make_tests)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`msprobe acc_check --against`: of two recorded runs, whose outputs do not follow from their inputs. The reference is
called by the PyTorch of the Python that runs this test; wrong kernels are recorded tensors that were changed.

usage: precheck_sides.py MSPROBE GOLDEN_FOLDER
"""

import csv
import json
import shutil

import harness
import torch

COLUMNS = ["A Name", "B Name", "Wrong Side", "Verdict", "A Forward", "A Backward", "B Forward", "B Backward", "A Reason",
           "B Reason"]
# Old PyTorch's matmul in bfloat16 rounds in between.
BLACK = ["matmul"] if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 2) else []


def rows_of(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    harness.check_equal("columns", rows[0], COLUMNS)
    return rows[1:]


def side(case, scratch, name, change=None, edit=None):
    """A copy of the recorded dump: some tensors changed, its JSON edited."""
    folder = scratch / name
    shutil.copytree(case / "dump_tensor", folder)
    for file, function in (change or {}).items():
        path = folder / "dump_tensor_data" / file
        torch.save(function(torch.load(path).detach().clone()), path)
    if edit:
        dump = json.loads((folder / "dump.json").read_text(encoding="utf-8"))
        edit(dump["data"])
        (folder / "dump.json").write_text(json.dumps(dump), encoding="utf-8")
    return f"{name}/dump.json"


def against(msprobe, scratch, a, b, *options, fail_on="error"):
    shutil.rmtree(scratch / "out", ignore_errors=True)
    (scratch / "config.json").write_text(json.dumps({"acc_check": {"black_list": BLACK}}))
    words = ["acc_check", "-api_info", a, "--against", b, "-o", "out", "--python", harness.prepared_interpreter(), "-n", "1",
             "-config", "config.json", "--fail-on", fail_on, *options]
    result = harness.run(msprobe, words, scratch)
    files = list((scratch / "out").glob("accuracy_checking_sides_*.csv"))
    return result, {row[0] or row[1]: row for row in rows_of(files[0])} if files else None


def tile(tensor):
    tensor[:2, :3] = 0
    return tensor


LINEAR = {"Functional.linear.0.forward.output.0.pt": tile}
SUM = {"Tensor.sum.0.backward.output.0.pt": lambda t: t * 2}
NORM = {"Functional.layer_norm.0.forward.output.0.pt": lambda t: t.bfloat16().float()}


def wrong(rows):
    return {name: row[2] for name, row in rows.items() if row[3] == "error"}


def a_wrong_kernel_on_either_side(msprobe, scratch, case):
    good = side(case, scratch, "good")
    bad = side(case, scratch, "bad", {**LINEAR, **NORM})
    for a, b, letter, other in ((good, bad, "B", "A"), (bad, good, "A", "B")):
        result, rows = against(msprobe, scratch, a, b)
        harness.check_equal("exit status", (result.returncode, result.stdout), (1, ""))
        harness.check_equal("wrong", wrong(rows), {"Functional.linear.0": letter, "Functional.layer_norm.0": letter})
        first = next(name for name in rows if name in ("Functional.linear.0", "Functional.layer_norm.0"))
        harness.check("the first result that does not follow from its inputs is that of "
                      f"{first}, forward, in {letter}: "
                      in result.stderr, result.stderr)
        harness.check(f"; that in {other} follows from its inputs\n" in result.stderr, result.stderr)
        row = rows["Functional.linear.0"]
        places = (4, 5, 8) if letter == "A" else (6, 7, 9)
        harness.check_equal("verdicts", [row[place] for place in places[:2]], ["error", "pass"])
        harness.check("is off by" in row[places[2]], f"{row}")
        for kind in ("result", "details"):
            for folder in "AB":
                harness.check_equal(kind, len(list((scratch / "out" / folder).glob(f"*_{kind}_*.csv"))), 1)


def neither_side(msprobe, scratch, case):
    good = side(case, scratch, "good")
    result, rows = against(msprobe, scratch, good, good, fail_on="warning")
    harness.check_equal("exit status", result.returncode, 0)
    harness.check_equal("wrong", {row[2] for row in rows.values()}, {"neither", "not judged"})
    harness.check("follow from their inputs in both A and B" in result.stderr, result.stderr)
    # A call that was not judged does not pass.
    harness.check_equal("not judged", {row[3] for row in rows.values() if row[2] == "not judged"}, {"skip"})
    harness.check_equal("gate", against(msprobe, scratch, good, good, fail_on="skip")[0].returncode, 1)


def both_sides_and_a_wrong_gradient(msprobe, scratch, case):
    a = side(case, scratch, "a", LINEAR)
    b = side(case, scratch, "b", {**LINEAR, **SUM})
    result, rows = against(msprobe, scratch, a, b)
    harness.check_equal("wrong", wrong(rows), {"Functional.linear.0": "both", "Tensor.sum.0": "B"})
    harness.check_equal("sum", rows["Tensor.sum.0"][4:8], ["pass", "pass", "pass", "error"])
    harness.check("of Functional.linear.0, forward, in A and B: " in result.stderr, result.stderr)
    harness.check("  error    B     Tensor.sum.0, backward  " in result.stderr, result.stderr)


def the_first_one_is_the_first_that_ran(msprobe, scratch, case):
    """The backward of an early operation runs after the forward of a later one."""
    a = side(case, scratch, "a", {"Functional.linear.0.backward.output.0.pt": lambda t: t * 2})
    b = side(case, scratch, "b", NORM)
    result, rows = against(msprobe, scratch, a, b)
    harness.check_equal("wrong", list(wrong(rows).items()),
                        [("Functional.linear.0", "A"), ("Functional.layer_norm.0", "B")])
    harness.check("is that of Functional.layer_norm.0, forward, in B: " in result.stderr, result.stderr)


def what_one_side_lacks(msprobe, scratch, case):
    """The output names operations of one side alone, and those that have another number in it."""
    def less(entries):
        for name in [name for name in entries if name.startswith("Functional.gelu.0.")]:
            del entries[name]
        del entries["Functional.linear.0.backward"]

    def renumber(entries):
        renamed = {name.replace("Functional.linear.0.", "Functional.linear.7."): value
                   for name, value in entries.items()}
        entries.clear()
        entries.update(renamed)

    a = side(case, scratch, "a")
    b = side(case, scratch, "b", LINEAR, lambda entries: (less(entries), renumber(entries)))
    result, rows = against(msprobe, scratch, a, b)
    harness.check_equal("gelu", rows["Functional.gelu.0"][1:8],
                        ["", "not judged", "skip", "pass", "pass", "missing", "missing"])
    harness.check_equal("linear", rows["Functional.linear.0"][1:8],
                        ["Functional.linear.7", "B", "error", "pass", "pass", "error", "missing"])
    harness.check("  missing  in B  Functional.gelu.0\n" in result.stderr, result.stderr)
    harness.check(", 2 missing\n" in result.stderr, result.stderr)
    harness.check("some have different names in B" in result.stderr, result.stderr)
    # A call that one side lacks is a finding, but not an error.
    b = side(case, scratch, "b2", None, less)
    for level, status in (("error", 0), ("warning", 1)):
        harness.check_equal(level, against(msprobe, scratch, a, b, fail_on=level)[0].returncode, status)
        harness.check_equal(level, against(msprobe, scratch, b, a, fail_on=level)[0].returncode, status)


def nothing_to_judge_on_one_side(msprobe, scratch, case):
    """Statistics alone say nothing of one side: that is no pass of both."""
    good = side(case, scratch, "good")
    statistics = str(case / "dump_statistics" / "dump.json")
    for a, b in ((good, statistics), (statistics, good)):
        result, rows = against(msprobe, scratch, a, b, fail_on="skip")
        harness.check_equal("exit status", result.returncode, 1)
        harness.check_equal("linear", rows["Functional.linear.0"][2:4], ["not judged", "skip"])


def refused(msprobe, scratch, case):
    good = side(case, scratch, "good")
    for options, reason in ((["--filter_api"], "--against and --filter_api cannot be combined"),
                            (["-csv_path", "x.csv"], "--against and -csv_path cannot be combined")):
        result, rows = against(msprobe, scratch, good, good, *options)
        harness.check_equal("exit status", (result.returncode, rows), (2, None))
        harness.check(reason in result.stderr, result.stderr)
    (scratch / "broken.json").write_text('{"framework": "pytorch", "data": {"Torch.a.0.forward": ')
    for a, b in ((good, "broken.json"), ("broken.json", good), (good, "missing.json")):
        result, rows = against(msprobe, scratch, a, b)
        harness.check_refused(result, ".json: ")
        harness.check(not (scratch / "out").exists(), "files were written")


def make_tests(msprobe, golden):
    case = harness.data(golden, "prechecks/acc_check") / "prechecks/acc_check"
    return harness.tests_of_script(msprobe=msprobe, case=case)


if __name__ == "__main__":
    harness.main(make_tests)

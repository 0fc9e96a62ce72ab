#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds `msprobe acc_check` to the Python tool's results of the same dumps, called again by the PyTorch of the Python
that runs this test: each status, message and type is that of the Python tool, or a predicate covers it that names an item of
docs/differences/prechecks.md.

usage: golden_precheck_calls.py MSPROBE GOLDEN_FOLDER

Figures of floating-point outputs depend on the kernels of a processor and of a PyTorch, so those are not compared here.
"""

import csv
import json
import pathlib
import re
import shutil
from functools import partial

import harness
import torch
from predicates import Cell, Row, unexplained_cells, wrong

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
# Old PyTorch has hardly any operation in float16 on a CPU, and its matmul in bfloat16 rounds in between.
HAS_HALF = VERSION >= (2, 2)
HALF = "Half"
ROUNDS_BFLOAT16 = {"Torch.matmul.0"}
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "differences" / "prechecks.md"
PLAIN = ("API name", "API Name", "Forward Test Success", "Backward Test Success", "Message", "Bench Dtype", "DEVICE Dtype", "Shape",
         "Status")  # of other columns it counts whether they are filled
STATUSES = "Forward Test Success|Backward Test Success|Status"
NOT_CALLED = r"API .* (not support for acc_check|in black list or not in white list)\. SKIP\.|'NoneType' object is not subscriptable"
NO_BACKWARD = "(This API does not|function with out=|Multiple backward is not).*"


def by_version(all_types, without_half):
    """How many cells a predicate covers; those of calls that an old PyTorch cannot make are not compared."""
    return all_types if HAS_HALF else without_half


def of(*operations):
    return lambda row, _: row.operation in operations


def passing(*operations):
    """The Python tool does not judge these; they pass here."""
    return lambda row, _: row.operation in operations and row.ours.get("Status", row.ours.get("Forward Test Success")) == "pass"


RANDOM = of("Functional.dropout.0")
UNKNOWN_KIND = of("VF.lstm.0")
BACKWARD = of("Torch.repeat_interleave.0", "Torch.add.1", "Torch.split.0", "Torch.masked_select.0")
FAILED_BACKWARD = of("Torch.exp.0", "Torch.exp.1", "Torch.exp.2", "Torch.exp.3")
NOT_LISTED = passing("Tensor.__getitem__.0", "Torch.meshgrid.0", "Tensor.size.0")
DRAWN = of("Torch.matmul.0", "Torch.mul.0", "Tensor.masked_fill_.0")
PREDICATES = [
    Cell("P66", 23, "Message", NOT_CALLED, ".+", when=lambda r, _: r.same_status()),
    Cell("P30", 12, ".*", "pass| ||", "SKIP|its result is random|.*output.0", when=RANDOM),
    Cell("P21", 4, ".*", "pass| ||Bench output is None, skip this test.", "SKIP|operations of the kind VF .*", when=UNKNOWN_KIND),
    Cell("P25", by_version(7, 6), "Bench Dtype", "torch.float32", "torch.float64", when=of("Functional.softmax.0", "Torch.add.0", "Torch.matmul.0")),
    Cell("P25", 3, "Bench Dtype", "torch.float16", "torch.float32", when=of("Torch.linspace.0")),
    Cell("P26", 3, "Bench Dtype", "torch.float32", "torch.float64", when=of("Functional.conv2d.0")),
    Cell("P24", 14, ".*", "SKIP| |", ".*", when=lambda r, _: r.case == "statistics" and passing("Tensor.abs.1")(r, _)),
    Cell("P27", 8, "Backward Test Success", "SKIP", " |pass", when=BACKWARD),
    Cell("P27", 10, "Message", NO_BACKWARD, ".*", when=BACKWARD),
    Cell("P27", 6, "API Name", ".*backward.output.0", "", when=BACKWARD),
    Cell("P27", 1, "API Name", "", ".*backward.output.1", when=BACKWARD),
    Cell("P27", 22, ".*", " |SKIP", ".*", when=passing("Torch.split.0", "Torch.masked_select.0")),
    Cell("P28", 60, ".*", " |SKIP|.*grad.*|", ".*", when=lambda r, _: r.case == "gradients" and FAILED_BACKWARD(r, _)),
    Cell("P28", 1, "API Name", "", ".*backward.output.1", when=of("Functional.linear.0")),
    Cell("P67", 40, ".*", f" |SKIP|{NOT_CALLED}|", ".*", when=NOT_LISTED),
    Cell("P22", by_version(10, 5), "(?!.*Dtype|Shape|API).*", ".*", ".*", when=lambda r, _: r.case in ("statistics", "gradients") and DRAWN(r, _)),
]


class Result(Row):
    """A row of a file and ours; the side that lacks one has empty cells."""

    def __init__(self, theirs, ours, case):
        super().__init__(theirs, ours)
        self.case = case
        name = ours.get("API name") or theirs.get("API name") or ours.get("API Name") or theirs["API Name"]
        self.operation = re.sub(r"\.(for|back)ward\.output\.\d+$", "", name)

    def same_status(self):
        return all(self.ours[column] == cell for column, cell in self.theirs.items() if re.fullmatch(STATUSES, column))

    def unexplained(self):
        names = [column for column in ("API name", "API Name") if column in self.theirs and self[column] != self.ours[column]]
        return [f"{self.operation}: {line}" for line in unexplained_cells(
            self, names or [column for column in self.theirs if self[column] != self.ours[column]], PREDICATES)]


def rows_of(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))[1:]


def table_of(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, restval=""))
    return [{column: cell if column in PLAIN or not cell.strip() else "a number" for column, cell in row.items()} for row in rows]


def check_files(scratch, name="out"):
    (result,) = (scratch / name).glob("accuracy_checking_result_*.csv")
    (details,) = (scratch / name).glob("accuracy_checking_details_*.csv")
    return rows_of(result), rows_of(details), result


def acc_check(msprobe, scratch, dump, *options, name="out", python=None, **more):
    shutil.rmtree(scratch / name, ignore_errors=True)
    number = () if "-n" in options else ("-n", "1")
    words = ["acc_check", "-api_info", str(dump), "-o", name, "--python", python or harness.prepared_interpreter(), "-d", "cpu",
             *number, *options]
    return harness.run(msprobe, words, scratch, **more)


def like_golden(msprobe, case, dump, out, options, scratch):
    """--python-rules changes nothing."""
    result = acc_check(msprobe, scratch, case / dump, "--python-rules", *options)
    harness.check_equal("exit status", (result.returncode, result.stdout), (0, ""))
    harness.check("msprobe acc_check: --python-rules has no effect" in result.stderr, result.stderr)
    excused = set()
    problems = []
    for kind in ("result", "details"):
        ours, theirs = (table_of(next(folder.glob(f"*_{kind}_*.csv"))) for folder in (scratch / "out", case / out))
        problems += [line for row in paired(theirs, ours, out.split("_")[1]) if not is_excused(row, excused)
                     for line in row.unexplained()]
    harness.check(len(excused) <= 5, f"{sorted(excused)} differ")
    harness.check_equal("unexplained", problems, [])


def paired(theirs, ours, case):
    """Rows of both files by their names; both have the same order."""
    key = next(iter(theirs[0]))
    names, our_names = ([row[key] for row in rows] for rows in (theirs, ours))
    harness.check_equal("names", (len(set(names)), len(set(our_names))), (len(names), len(our_names)))
    harness.check_equal("order", [name for name in our_names if name in names], [name for name in names if name in our_names])
    both = {row[key]: (row, None) for row in theirs}
    for row in ours:
        both[row[key]] = both.get(row[key], (None, None))[0], row
    for wanted, row in both.values():
        columns = wanted or {column: row[column] for column in theirs[0]}
        yield Result(wanted or dict.fromkeys(columns, ""), row or dict.fromkeys(columns, ""), case)


def is_excused(row, excused):
    """Calls that an old PyTorch cannot make on a CPU, or rounds otherwise."""
    if "Forward Test Success" in row.theirs:
        if not HAS_HALF and row.ours["Forward Test Success"] == "SKIP" and HALF in row.ours["Message"]:
            excused.add(row.operation)
        elif not HAS_HALF and row.operation in ROUNDS_BFLOAT16:
            excused.add(row.operation)
            harness.check(row.ours["Forward Test Success"] in ("warning", "error", "Warning"), f"{row.ours}")
    return row.operation in excused


def our_rules(msprobe, case, scratch):
    result = acc_check(msprobe, scratch, case / "small.json")
    harness.check_equal("exit status", (result.returncode, result.stdout), (0, ""))
    found = {row[0]: row for row in check_files(scratch)[0]}
    for name, reason in {
        "Tensor.to.0": "has no result to judge",
        "Torch.no_such_api.0": f"PyTorch {torch.__version__} has no Torch.no_such_api",
        "Distributed.all_reduce.0": "communication is not called again",
        "VF.lstm.0": "operations of the kind VF are not called again",
        "Torch.a.b.c.0": f"PyTorch {torch.__version__} has no Torch.a.b.c",
    }.items():
        harness.check_equal(name, found[name][1:], ["SKIP", "SKIP", reason, "skip", "", reason])
    # A correct rounding of bfloat16, and the gradients of several outputs.
    harness.check_equal("exp", found["Torch.exp.0"][4:], ["pass", "pass", ""])
    harness.check_equal("split", found["Torch.split.0"][1:], ["pass", "pass", "", "pass", "pass", ""])
    harness.check_equal("masked_select", found["Torch.masked_select.0"][4:6], ["pass", "pass"])
    harness.check("12 with random data" in result.stderr, result.stderr)


def any_number_of_runners(msprobe, case, scratch):
    kept = []
    for number in ("1", "2"):
        result = acc_check(msprobe, scratch, case / "small.json", "-n", number, "--jobs", "2", name=f"out{number}")
        harness.check_equal("exit status", result.returncode, 0)
        kept.append(check_files(scratch, f"out{number}")[:2])
    harness.check_equal("rows", kept[0], kept[1])


def nothing_is_false(msprobe, case, options, scratch):
    result = acc_check(msprobe, scratch, case / "dump_tensor" / "dump.json", "--fail-on", "warning", *options)
    rows = check_files(scratch)[0]
    bad = [row for row in rows if {"error", "warning"} & set(row[4:6])]
    if VERSION < (2, 2):
        bad = [row for row in bad if row[0] not in ROUNDS_BFLOAT16]
    harness.check_equal("false verdicts", bad, [])
    # Older ones cannot call each of them.
    harness.check(result.returncode in ((0, 1, 2) if VERSION < (2, 2) else (0,)), result.stderr)
    harness.check(sum(row[4] == "pass" for row in rows) >= 30, f"{rows}")


def changed_dump(case, scratch, change):
    """A copy of the recorded tensors, some of them changed."""
    folder = scratch / "dump"
    shutil.copytree(case / "dump_tensor", folder)
    for name, function in change.items():
        path = folder / "dump_tensor_data" / name
        tensor = torch.load(path)
        torch.save(function(tensor.detach().clone()), path)
    return folder / "dump.json"


def tile(tensor):
    tensor[:2, :3] = 0
    return tensor


def recorded_faults_are_named_and_nothing_else(msprobe, case, scratch):
    dump = changed_dump(case, scratch, {
        "Functional.linear.0.forward.output.0.pt": tile,
        "Functional.layer_norm.0.forward.output.0.pt": lambda t: t.bfloat16().float(),
        "Torch.clamp.0.forward.output.0.pt": lambda t: t.clamp(-0.4, 0.5),
        "Tensor.sum.0.backward.output.0.pt": lambda t: t * 2,
    })
    result = acc_check(msprobe, scratch, dump, "--recorded", "--fail-on", "error")
    harness.check_equal("exit status", result.returncode, 1)
    rows = check_files(scratch)[0]
    wrong = {row[0]: row[4:6] for row in rows if "error" in row[4:6]}
    harness.check_equal("wrong", wrong, {
        "Functional.linear.0": ["error", "pass"],
        "Functional.layer_norm.0": ["error", "pass"],
        "Torch.clamp.0": ["error", ""],
        "Tensor.sum.0": ["pass", "error"],
    })


def recorded_outputs_need_tensors(msprobe, case, scratch):
    result = acc_check(msprobe, scratch, case / "dump_statistics" / "dump.json", "--recorded", "--fail-on", "error")
    rows = check_files(scratch)[0]
    harness.check_equal("matmul", next(row for row in rows if row[0] == "Torch.matmul.0")[4:],
                        ["skip", "", "argument 0 was not dumped as a tensor"])
    harness.check("pass" not in {row[4] for row in rows if row[0] == "Functional.gelu.0"}, f"{rows}")
    harness.check(result.returncode in (1, 2), result.stderr)


def recorded_statistics(msprobe, case, scratch):
    """Where inputs were dumped and outputs were not, their statistics are judged."""
    folder = scratch / "dump"
    shutil.copytree(case / "dump_tensor", folder)
    dump = json.loads((folder / "dump.json").read_text(encoding="utf-8"))
    for _name, entry in dump["data"].items():
        for item in entry["output"]:
            item.pop("data_name", None)
    linear, softmax = (dump["data"][f"Functional.{name}.0.forward"]["output"][0] for name in ("linear", "softmax"))
    linear["Norm"] *= 1.001
    softmax["Max"] *= 0.999
    dump["data"]["Torch.cat.0.forward"]["output"][0]["Min"] -= 1
    (folder / "dump.json").write_text(json.dumps(dump), encoding="utf-8")
    acc_check(msprobe, scratch, folder / "dump.json", "--recorded")
    rows = {row[0]: row for row in check_files(scratch)[0]}
    harness.check_equal("wrong", {name for name, row in rows.items() if row[4] == "error"},
                        {"Functional.linear.0", "Functional.softmax.0", "Torch.cat.0"})
    harness.check_equal("cat", rows["Torch.cat.0"][4:], ["error", "", "Min is -1 instead of 0, by statistics only"])
    passed = {name for name, row in rows.items() if row[4] == "pass"}
    harness.check(len(passed) > 20 and "Functional.gelu.0" in passed, f"{sorted(passed)}")
    harness.check_equal("gelu", rows["Functional.gelu.0"][4:],
                        ["pass", "skip", "its outputs were not dumped as tensors"])


OPTION_CASES = ("plain", "filter", "white", "black", "white_and_black")


def options(msprobe, case, scratch):
    """The rows that the Python tool wrote for each set of options, from the list of operations that it was given."""
    golden = json.loads((case / "options.json").read_text(encoding="utf-8"))
    lists = {"white": {"white_list": ["exp"]}, "black": {"black_list": ["exp"]},
             "white_and_black": {"white_list": ["exp", "add"], "black_list": ["exp"]}}
    dump = part_of_small(case, scratch)
    for name in OPTION_CASES:
        options = ["-f"] if name == "filter" else []
        if name in lists:
            (scratch / "config.json").write_text(json.dumps({"task": "acc_check", "acc_check": lists[name]}))
            options = ["-config", "config.json"]
        result = acc_check(msprobe, scratch, dump, *options)
        harness.check_equal("exit status", (name, result.returncode), (name, 0))
        ours = table_of(check_files(scratch)[2])
        theirs = [dict(zip(list(ours[0])[:4], [*row, ""])) for row in golden[name]["result"]]
        harness.check_equal("rows", len(ours), len(theirs))
        excused = set()
        problems = [line for row in paired(theirs, ours, name) if not is_excused(row, excused) for line in row.unexplained()]
        harness.check_equal(name, problems, [])


def part_of_small(case, scratch):
    small = json.loads((case / "small.json").read_text(encoding="utf-8"))
    names = ("Torch.exp.0", "Torch.exp.1", "Torch.exp.2", "Torch.add.0", "Functional.softmax.0")
    wanted = tuple(name + "." for name in names)
    small["data"] = {key: value for key, value in small["data"].items() if key.startswith(wanted)}
    dump = scratch / "small.json"
    dump.write_text(json.dumps(small))
    return dump


def tensors_of_what_is_not_right(msprobe, case, scratch):
    golden = json.loads((case / "options.json").read_text(encoding="utf-8"))["error_path"]
    dump = part_of_small(case, scratch)
    (scratch / "errors").mkdir()
    config = {"acc_check": {"white_list": ["exp"], "error_data_path": str(scratch / "errors")}}
    (scratch / "config.json").write_text(json.dumps(config))
    (scratch / "strict.yaml").write_text("types:\n  bfloat16: {units_warning: 0}\n")  # any rounding is a warning (P11)
    acc_check(msprobe, scratch, dump, "-config", "config.json", "-save_error_data", "--standards", "strict.yaml")
    time = check_files(scratch)[2].stem[-14:]
    errors = scratch / "errors"
    found = {str(path.relative_to(errors)).replace(time, "TIME") for path in errors.rglob("*")}
    harness.check_equal("files", found, {name.replace("20260101000000", "TIME") for name in golden["error_data"]})
    folder = scratch / "errors" / f"ut_error_data{time}"
    exp = torch.load(folder / "Torch.exp.0.forward.input.0.pt")
    device = torch.load(folder / "Torch.exp.0.forward.output.device.0.pt")
    reference = torch.load(folder / "Torch.exp.0.forward.output.bench.0.pt")
    harness.check_equal("types", (exp.dtype, device.dtype, reference.dtype),
                        (torch.bfloat16, torch.bfloat16, torch.float32))
    harness.check(torch.equal(reference, torch.exp(exp.float())), "the reference is not that of the input")


def described(shape):
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(shape), "Max": 1.0, "Min": -1.0, "Mean": 0.0,
            "Norm": 1.0, "requires_grad": False}


def what_recorders_call_by_another_name(msprobe, scratch):
    x = described([3, 4])
    calls = {
        "Torch._foreach_norm.0": {"input_args": [[x, x]], "output": [[described([]), described([])]]},
        "Torch.vector_norm.0": {"input_args": [x], "output": [described([])]},
        "Tensor.__setitem__.0": {
            "input_args": [x, {"type": "int", "value": 0}, described([4])],
            "output": None},
        "Torch._assert_async.0": {"input_args": [x], "output": None},
    }
    data = {f"{name}.forward": {"input_kwargs": {}, **entry} for name, entry in calls.items()}
    dump = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (scratch / "dump.json").write_text(json.dumps(dump), encoding="utf-8")
    result = acc_check(msprobe, scratch, scratch / "dump.json")
    harness.check_equal("exit status", result.returncode, 0)
    rows = {row[0]: row[4:] for row in check_files(scratch)[0]}
    harness.check_equal("foreach", rows["Torch._foreach_norm.0"], ["pass", "", ""])
    harness.check_equal("linalg", rows["Torch.vector_norm.0"], ["pass", "", ""])
    harness.check_equal("assignment", rows["Tensor.__setitem__.0"], ["", "", ""])
    harness.check_equal("internal", rows["Torch._assert_async.0"][2],
                        "Torch._assert_async is not an operation that is called again")
    harness.check("2 pass, 0 error, 0 warning, 1 SKIP, 1 without output;" in result.stderr, result.stderr)


def a_gradient_in_place_on_a_view(msprobe, scratch):
    """The gradient as the Python tool records it at the border of a module; a gradient that is wrong otherwise stays wrong."""
    x, grad = torch.tensor([[-1.0, 2.0], [3.0, -4.0]]), torch.tensor([[0.5, 0.25], [1.0, 2.0]])
    tensors = {"in": x, "out": x.relu(), "grad": grad, "right": grad * (x > 0), "wrong": grad * 2}
    folder = scratch / "dump_tensor_data"
    folder.mkdir()
    for name, tensor in tensors.items():
        torch.save(tensor, folder / f"{name}.pt")

    def saved(name, requires_grad=False):
        return {**described([2, 2]), "data_name": f"{name}.pt", "requires_grad": requires_grad}

    data = {}
    for number, left in enumerate(("grad", "right", "wrong")):
        for api, kwargs in (("Functional.relu", {"inplace": {"type": "bool", "value": True}}), ("Functional.silu", {})):
            data[f"{api}.{number}.forward"] = {"input_args": [saved("in", True)], "input_kwargs": kwargs,
                                               "output": [saved("out", True)]}
            data[f"{api}.{number}.backward"] = {"input": [saved("grad")], "output": [saved(left)]}
    dump = {"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": str(folder), "data": data}
    (scratch / "dump.json").write_text(json.dumps(dump), encoding="utf-8")
    result = acc_check(msprobe, scratch, scratch / "dump.json", "--recorded")
    harness.check_equal("exit status", result.returncode, 0)
    rows = {row[0]: row[4:] for row in check_files(scratch)[0]}
    harness.check_equal("as it came in", rows["Functional.relu.0"][1:], [
        "skip", "an in-place operation on a view: the dump has the incoming gradient, not the outgoing one"])
    harness.check_equal("as it should be", rows["Functional.relu.1"], ["pass", "pass", ""])
    harness.check_equal("wrong", rows["Functional.relu.2"][:2], ["pass", "error"])
    harness.check_equal("not in place", rows["Functional.silu.0"][1], "error")


def make_tests(msprobe, golden):
    case = harness.data(golden, "prechecks/acc_check") / "prechecks/acc_check"
    return [
        *harness.tests_of_script(msprobe=msprobe, case=case),
        ("tensors, 26", partial(like_golden, msprobe, case, "dump_tensor/dump.json", "out_tensor", ())),
        ("tensors, 8.1.1", partial(like_golden, msprobe, case, "dump_tensor/dump.json", "out_tensor_8.1.1", ("--release", "8"))),
        ("statistics", partial(like_golden, msprobe, case, "dump_statistics/dump.json", "out_statistics", ())),
        ("a dump made by hand", partial(like_golden, msprobe, case, "small.json", "out_small", ())),
        ("gradients of all kinds", partial(like_golden, msprobe, case, "gradients.json", "out_gradients", ())),
        ("as many cells as the predicates say", lambda _: harness.check_equal("", wrong(PREDICATES, PAGE), [])),
        ("no false verdict on the device", partial(nothing_is_false, msprobe, case, ())),
        ("no false verdict on what was recorded", partial(nothing_is_false, msprobe, case, ["--recorded"])),
    ]


if __name__ == "__main__":
    harness.main(make_tests)

# SPDX-License-Identifier: Apache-2.0
"""The results of PrecisionChecker as objects, text and a table."""

import csv
import dataclasses
import os
import typing

from msprobe.core.files import whole_file

RELATIVE = 1e-3


@dataclasses.dataclass
class TensorDiff:
    max_abs: float
    mean_abs: float
    max_rel: float
    allclose: bool
    shape: tuple


@dataclasses.dataclass
class ModuleDiff:
    """None if nothing was compared."""
    name: str
    fwd_input: typing.Optional[list] = None
    fwd_output: typing.Optional[list] = None
    grad_input: typing.Optional[list] = None
    grad_output: typing.Optional[list] = None
    note: str = ""


@dataclasses.dataclass
class CompareResult:
    all_pass: bool
    diffs: list
    loss_compiled: typing.Optional[float] = None
    loss_eager: typing.Optional[float] = None
    loss_diff: typing.Optional[float] = None
    cast_dtype: typing.Any = None


def diff_of(made, expected, threshold):
    """The difference between a tensor of the compiled module and that of the original module."""
    if made.shape != expected.shape:
        return TensorDiff(float("inf"), float("inf"), float("inf"), False, tuple(made.shape))
    made, expected = made.detach().double(), expected.detach().double().to(made.device)
    if made.numel() == 0:
        return TensorDiff(0.0, 0.0, 0.0, True, tuple(made.shape))
    near = made.isclose(expected, rtol=RELATIVE, atol=threshold, equal_nan=True)
    error = (made - expected).abs().masked_fill(near & ~(made - expected).isfinite(), 0.0)
    relative = error / expected.abs().clamp_min(1e-12)
    return TensorDiff(float(error.max()), float(error.mean()), float(relative.max()), bool(near.all()),
                      tuple(made.shape))


def show(result, threshold):
    def line(what, diffs):
        for one in diffs if diffs is not None else [None]:
            if one is None:
                print("  -     %-40s not compared" % what)
            else:
                print("  %-5s %-40s max_abs=%.3e  mean_abs=%.3e  max_rel=%.3e  shape=%s" % (
                    "pass" if one.allclose else "FAIL", what, one.max_abs, one.mean_abs, one.max_rel, one.shape))

    if result.loss_compiled is not None:
        print("  Loss: compiled %.6g%s" % (
            result.loss_compiled, "" if result.loss_eager is None else ", eager %.6g" % result.loss_eager))
    for diff in result.diffs:
        line(diff.name + ", output", diff.fwd_output)
        line(diff.name + ", gradient of the input", diff.grad_input)
    bad = sum(1 for diff in result.diffs if not passes(diff))
    print("  RESULT: %s  (atol=%s rtol=1e-3)" % (
        "ALL PASS" if result.all_pass else "%d of %d modules FAIL" % (bad, len(result.diffs)), _plain(threshold)))


def passes(diff):
    return all(one.allclose for part in (diff.fwd_input, diff.fwd_output, diff.grad_input, diff.grad_output)
               for one in part or ())


def _plain(number):
    """1e-4, not 0.0001."""
    return "%ge-%d" % next(((number * 10 ** power, power) for power in range(1, 20)
                            if number > 0 and round(number * 10 ** power, 9) >= 1), (number, 0))


def write(result, path):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with whole_file(path, newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["module_name", "check_type", "tensor_index", "status", "max_abs_diff", "mean_abs_diff",
                        "max_rel_diff", "shape", "note"])
        if result.loss_compiled is not None:
            eager = "" if result.loss_eager is None else " eager=%.6f" % result.loss_eager
            difference = "N/A" if result.loss_diff is None else "%.6e" % result.loss_diff
            table.writerow(["LOSS", "loss", 0, "PASS", difference, "N/A", "N/A",
                            "compiled=%.6f%s" % (result.loss_compiled, eager), ""])
        for diff in result.diffs:
            for kind in ("fwd_input", "fwd_output", "grad_input", "grad_output"):
                for index, one in enumerate(getattr(diff, kind) or ()):
                    table.writerow([diff.name, kind, index, "PASS" if one.allclose else "FAIL", "%.6e" % one.max_abs,
                                    "%.6e" % one.mean_abs, "%.6e" % one.max_rel, one.shape, diff.note])

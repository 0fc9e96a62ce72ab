# SPDX-License-Identifier: Apache-2.0
"""Calls one operation of a training on a device and, in double precision, on the CPU, and judges the difference.

    python3 run.py [--device cpu|cuda|npu|cuda:1] [--iterations N] [--forward]

Needs PyTorch, and for an operation of MindSpore that, nothing else. The call and its arguments are in case.json and
tensors/ beside this file. Exit status: 0 the device is right, 1 it is not, 2 the operation could not be called.
"""

import argparse
import json
import math
import os
import sys
import warnings

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import op_runner  # noqa: E402

COLUMNS = ("output", "dtype", "shape", "max abs err", "max rel err", "units", "cosine", "verdict")
VERDICTS = ("pass", "warning", "error")
MASK = 2.0 ** 64  # inputs as large stand for infinity
RAISED = {"float16": "float64", "bfloat16": "float64", "float32": "float64"}


class Case:
    """The request of case.json, with tensors that are files: what it adds to a runner."""

    def __init__(self, told, wanted):
        super().__init__(wanted, False)
        self.case = told
        self.request = told["request"]
        self.files = told["tensors"]
        self.loaded = {}
        if os.path.exists(os.path.join(HERE, "fused_references.py")):
            import fused_references

            self.fused = fused_references.FUNCTIONS

    def stored(self, name, shape, offset):
        if offset not in self.loaded:
            file = self.files[str(offset)]
            if os.path.basename(file) != file:
                raise op_runner.Refusal(f"case.json: {file!r} is not a file name")
            self.loaded[offset] = self.torch.load(os.path.join(HERE, "tensors", file), map_location="cpu",
                                                  weights_only=True)
        tensor = self.loaded[offset]
        if tensor.dtype != self.dtype(name) or list(tensor.shape) != list(shape):
            raise op_runner.Refusal(f"{self.files[str(offset)]} is not the tensor of this case any more")
        return tensor

    def results(self, side, backward):
        """[(name, value)] of all outputs, and of all gradients."""
        request = dict(self.request)
        if side == "reference" and request["raise"]:
            request["raise"] = {name: RAISED.get(name, name) for name in request["raise"]}
        if not backward:
            request.pop("grads", None)
        find = self.reference if side == "reference" else self.function
        function = find(request["type"], request["name"])
        result, leaves = self.call(request, side, function)
        found = [(f"forward.output.{at}", one) for at, one in enumerate(self.leaves(result))]
        if "grads" in request:
            gradients, _ = self.gradients(request, side, result, leaves)
            found += [(f"backward.output.{at}", one) for at, one in enumerate(gradients) if one is not None]
        self.wait(side)
        return [(name, self.as_torch(one)) for name, one in found]

    def leaves(self, value):
        if isinstance(value, (list, tuple)):
            return [leaf for one in value for leaf in self.leaves(one)]
        if isinstance(value, dict):
            return [leaf for one in value.values() for leaf in self.leaves(one)]
        return [value]

    # ------------------------------------------------------------------ judging

    def judge(self, reference, device):
        """(figures of a row, verdict, why)"""
        if not isinstance(device, self.torch.Tensor) or not isinstance(reference, self.torch.Tensor):
            if type(reference) is type(device) and (reference == device or reference != reference):
                return {}, 0, ""
            if isinstance(reference, float) and isinstance(device, float):
                far = abs(reference - device) / max(abs(reference), sys.float_info.min)
                return {"max rel err": far}, 0 if far < 1e-6 else 2, "" if far < 1e-6 else "the values differ"
            return {}, 2, f"{device!r} instead of {reference!r}"
        device = device.detach().cpu()
        reference = reference.detach().cpu()
        row = {"dtype": str(device.dtype).replace("torch.", ""), "shape": list(device.shape)}
        if device.shape != reference.shape:
            return row, 2, f"the shape is {list(device.shape)}, not {list(reference.shape)}"
        if device.dtype.is_floating_point or device.dtype.is_complex:
            return self.judge_floats(row, reference, device)
        if reference.dtype.is_floating_point or reference.dtype.is_complex:
            return row, 2, f"{device.dtype} instead of {reference.dtype}"
        unequal = int((reference.to(device.dtype) != device).sum())
        row["max abs err"] = unequal and float((reference.double() - device.double()).abs().max())
        return row, 2 if unequal else 0, f"{unequal} of {device.numel()} elements differ" if unequal else ""

    def judge_floats(self, row, reference, device):
        torch = self.torch
        limits = self.case["limits"].get(row["dtype"], self.case["limits"]["other"])
        if device.dtype.is_complex:
            device, reference = torch.view_as_real(device.resolve_conj()), torch.view_as_real(reference.resolve_conj())
        if not device.numel():
            return row, 0, ""
        form = torch.finfo(device.dtype)
        # Numbers beyond the range of the device's type are infinite there.
        exact = reference.double()
        r = torch.where(exact.abs() > form.max, reference.to(device.dtype).double(), exact).flatten()
        d = device.double().flatten()
        nonfinite = ~(torch.isfinite(r) & torch.isfinite(d))
        alike = (r == d) | (torch.isnan(r) & torch.isnan(d))
        wrong = int((nonfinite & ~alike).sum())
        if wrong:
            at = int((nonfinite & ~alike).nonzero()[0])
            return row, 2, (f"{wrong} of {r.numel()} elements are NaN or infinite on one side, or differ in sign; the "
                            f"first is [{at}]: {d[at].item()} instead of {r[at].item()}")
        r, d = r[~nonfinite], d[~nonfinite]
        if not r.numel():
            return row, 0, ""
        error = (r - d).abs()
        rms = float(r.square().mean().sqrt())
        size = r.abs().clamp_min(rms)
        exponent = torch.frexp(size)[1] - 1
        least = round(math.log2(form.tiny))
        unit = torch.ldexp(torch.full_like(r, form.eps), exponent.clamp_min(least))
        units = torch.where(size > 0, error / unit, torch.where(error > 0, error / (form.eps * form.tiny), error))
        at = int(units.argmax())
        most = float(units[at])
        row["max abs err"] = float(error.max())
        relative = torch.where(error > 0, error / r.abs(), error)
        row["max rel err"] = float(relative.max())
        row["units"] = most
        lengths = float(r.norm() * d.norm())
        row["cosine"] = float(r @ d) / lengths if lengths else float("nan")
        told = (f"element {at} is off by {most:.6g} units in the last place of {row['dtype']}: {float(d[at]):.9g} instead "
                f"of {float(r[at]):.9g}")
        larger = torch.maximum(r.abs(), d.abs())
        without_digit = int(((error > 0.25 * larger) & (larger > 2 * form.tiny)).sum())
        verdict = 2 if most > limits[1] else 1 if most > limits[0] else 0
        if verdict < 2 and without_digit > self.case["wrong_share"] * r.numel():
            verdict, told = 2, f"{without_digit} of {r.numel()} elements have no correct digit; {told}"
        scale = self.case["input_scale"]
        # Sums that cancel out leave the rounding of what was added, in float32 at least; a mask is no such number.
        if verdict == 2 and 0 < scale < MASK:
            summed_in = torch.finfo(torch.float32) if most > limits[1] and device.element_size() < 4 else form
            at_inputs = summed_in.eps * 2.0 ** max(math.frexp(scale)[1] - 1, round(math.log2(summed_in.tiny)))
            if row["max abs err"] <= limits[0] * at_inputs:
                return row, 1, told + "; no more than rounding of the inputs explains"
        return row, verdict, told if verdict else ""


def same(first, second):
    """Whether two results are so bit by bit."""
    import torch

    for (_, one), (_, other) in zip(first, second):
        if isinstance(one, torch.Tensor):
            if not torch.equal(torch.nan_to_num(one.detach(), nan=0.5), torch.nan_to_num(other.detach(), nan=0.5)):
                return False
        elif one != other and one == one:
            return False
    return len(first) == len(second)


def table(rows):
    cells = [COLUMNS] + [tuple(spelled(row.get(column, "")) for column in COLUMNS) for row in rows]
    widths = [max(len(line[at]) for line in cells) for at in range(len(COLUMNS))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def spelled(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def runner_of(told):
    """The class of what calls the case."""
    if told["framework"] != "mindspore":
        return op_runner.Runner
    import mindspore_runner

    return mindspore_runner.MindSporeRunner


def run(options, told):
    case = type("Case", (Case, runner_of(told)), {})(told, options.device)
    versions = case.hello()
    called = f"MindSpore {versions['mindspore']}, judged by " if "mindspore" in versions else ""
    print(f"{told['name']} on {case.device} with {called}PyTorch {versions['torch']}"
          + (", inputs made of recorded ranges" if told["synthetic"] else ""))
    reference = case.results("reference", not options.forward)
    first = None
    worst, reason, unsteady = 0, "", 0
    rows = []
    for _ in range(max(options.iterations or told["iterations"], 1)):
        device = case.results("device", not options.forward)
        if first is not None:
            unsteady += not same(first, device)
            if same(first, device):
                continue
        first = first or device
        if len(device) != len(reference):
            print(f"verdict: error: {len(device)} results instead of {len(reference)}")
            return 1
        for (name, wanted), (_, got) in zip(reference, device):
            row, verdict, why = case.judge(wanted, got)
            row.update({"output": name, "verdict": VERDICTS[verdict]})
            rows.append(row)
            if verdict > worst:
                worst, reason = verdict, f"{name}: {why}"
    table(rows)
    if unsteady:
        print(f"{unsteady} of {options.iterations or told['iterations']} calls gave other results than the first one")
        worst = max(worst, 1)
        reason = reason or "calls with the same inputs differ"
    print(f"verdict: {VERDICTS[worst]}" + (f": {reason}" if reason else ""))
    return 1 if worst == 2 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="auto", help="cpu, cuda or npu; default: the device present")
    parser.add_argument("--iterations", type=int, default=0, help="number of calls; default: that of the case")
    parser.add_argument("--forward", action="store_true", help="call forward only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        with open(os.path.join(HERE, "case.json"), encoding="utf-8") as file:
            told = json.load(file)
        return run(options, told)
    except Exception as error:  # the user gets every exception of the call as one line
        name = "" if isinstance(error, op_runner.Refusal) else type(error).__name__ + ": "
        print(f"the operation cannot be called: {name}{error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

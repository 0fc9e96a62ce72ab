#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch's operations are replayed: what PyTorch computed follows from the inputs, and what was corrupted
afterwards does not, by as much as it was.

usage: replay_pytorch.py REPLAY_DUMP [-v] [SEED]    (run by the Python that has PyTorch; 77 without)
"""

import json
import math
import os
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    print("SKIPPED: PyTorch is not installed (python3-torch)")
    sys.exit(77)

import replay_cases


class Dump:
    """A folder as the collector writes it, as far as the replay reads it."""

    def __init__(self, folder):
        self.folder = folder
        self.data = {}
        self.counts = {}
        os.mkdir(os.path.join(folder, "dump_tensor_data"))

    def name(self, api):
        number = self.counts.get(api, 0)
        self.counts[api] = number + 1
        if api.startswith("Module."):
            return "%s.forward.%d" % (api, number)
        return "%s.%d.forward" % (api, number)

    def element(self, value, place):
        if isinstance(value, torch.Tensor):
            described = {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape)}
            if value.numel() > 0:
                described["data_name"] = place + ".pt"
                torch.save(value.detach().clone(), os.path.join(self.folder, "dump_tensor_data", place + ".pt"))
            return described
        if isinstance(value, (list, tuple)):
            return [self.element(item, "%s.%d" % (place, i)) for i, item in enumerate(value)]
        if isinstance(value, torch.dtype):
            return {"type": "torch.dtype", "value": str(value)}
        for kind in (bool, int, float, str):
            if isinstance(value, kind):
                return {"type": kind.__name__, "value": value}
        return None

    def inputs(self, name, args, kwargs):
        self.data[name] = {
            "input_args": [self.element(value, "%s.input.%d" % (name, i)) for i, value in enumerate(args)],
            "input_kwargs": {key: self.element(value, "%s.kwargs.%s" % (name, key)) for key, value in kwargs.items()},
        }

    def outputs(self, name, output, parameters=None):
        outputs = list(output) if isinstance(output, (list, tuple)) else [output]
        self.data[name]["output"] = [self.element(value, "%s.output.%d" % (name, i))
                                     for i, value in enumerate(outputs)]
        if parameters is not None:
            self.data[name]["parameters"] = {key: self.element(value, "%s.parameters.%s" % (name, key))
                                             for key, value in parameters.items()}
        return outputs

    def write(self):
        with open(os.path.join(self.folder, "dump.json"), "w", encoding="utf-8") as file:
            json.dump({"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": None,
                       "data": self.data}, file, indent=1)


def corrupt(tensor, block):
    """A copy in which a block of elements is shifted, and by how much that changed it."""
    flat = tensor.detach().clone().flatten()
    start = (flat.numel() - block) // 2
    before = flat.double().clone()
    flat[start:start + block] += 2 * before.norm().item() / math.sqrt(flat.numel())
    after = flat.double()
    return flat.view(tensor.shape), ((after - before).norm() / before.norm()).item()


def record(cases, right, wrong):
    """Records all cases in one dump, and those that can be corrupted so in the other one."""
    expected = {}
    impossible = []
    for case in cases:
        name = right.name(case.api)
        assert wrong.name(case.api) == name
        for dump in (right, wrong):
            dump.inputs(name, case.args, case.kwargs)
        try:
            with torch.no_grad():
                output = case.function(*case.args, **case.kwargs)
        except (RuntimeError, TypeError, AttributeError) as error:
            impossible.append("%s (%s): %s" % (name, case.note, error))
            continue
        outputs = right.outputs(name, output, case.parameters)
        broken, changes = [], []
        for value in outputs:
            change = None
            usable = (value.is_floating_point() and value.numel() >= 16 and bool(torch.isfinite(value).all())
                      and value.double().norm().item() > 0) if isinstance(value, torch.Tensor) else False
            if usable:
                value, change = corrupt(value, max(2, value.numel() // 64))
            broken.append(value)
            changes.append(change)
        wrong.outputs(name, broken, case.parameters)
        expected[name] = (case, changes)
    right.write()
    wrong.write()
    return expected, impossible


def replayed(program, folder):
    result = subprocess.run([program, folder], check=False, capture_output=True, text=True,
                            timeout=170)
    assert result.returncode == 0, "replay_dump failed with %d: %s" % (result.returncode, result.stderr)
    lines = {}
    for line in result.stdout.splitlines():
        name, place, status, r, tolerance = line.split("\t")
        lines.setdefault(name, []).append((place, status, float(r), float(tolerance)))
    return lines


def main():
    program = sys.argv[1]
    torch.set_num_threads(1)
    cases = replay_cases.make(int(sys.argv[-1]) if sys.argv[-1].isdigit() else 11)
    with tempfile.TemporaryDirectory() as right_folder, tempfile.TemporaryDirectory() as wrong_folder:
        expected, failures = record(cases, Dump(right_folder), Dump(wrong_folder))
        right = replayed(program, right_folder)
        wrong = replayed(program, wrong_folder)
    outputs, noticed, worst = 0, 0, {}
    for name, (case, changes) in expected.items():
        if len(right.get(name, [])) != len(changes):
            failures.append("%s: %d outputs, not %d" % (name, len(right.get(name, [])), len(changes)))
            continue
        for i, (place, status, r, tolerance) in enumerate(right[name]):
            outputs += 1
            told = "%s %s (%s): %s, r %g, tolerance %g" % (name, place, case.note, status, r, tolerance)
            if status != case.status:
                failures.append("%s, not %s" % (told, case.status))
            elif status == "computed" and not r <= tolerance:
                failures.append(told)
            if status == "computed":
                worst[case.api] = max(worst.get(case.api, 0), r / max(tolerance, 1e-30))
                # A tolerance as loose as this notices nothing.
                if tolerance > 0.1:
                    failures.append(told + ": the tolerance is too large")
            if status != "computed" or changes[i] is None or not case.corruptible:
                continue
            _, status, r, tolerance = wrong[name][i]
            noticed += 1
            if not (status == "computed" and r > 1.5 * tolerance and 0.5 * changes[i] < r < 1.6 * changes[i]):
                failures.append("%s %s (%s) corrupted by %g: %s, r %g, tolerance %g"
                                % (name, place, case.note, changes[i], status, r, tolerance))
    for failure in failures:
        print("FAILED " + failure)
    if "-v" in sys.argv:
        for api, ratio in sorted(worst.items(), key=lambda item: -item[1]):
            print("%-50s r up to %.3f of the tolerance" % (api, ratio))
    print("PyTorch %s: %d calls, %d outputs, %d corrupted ones noticed, %d failures"
          % (torch.__version__, len(cases), outputs, noticed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

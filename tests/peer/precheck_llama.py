# SPDX-License-Identifier: Apache-2.0
"""A small Llama, recorded healthy and with three wrong kernels, before `msprobe acc_check`.

usage: precheck_llama.py MSPROBE PACKAGE_FOLDER
       precheck_llama.py record FOLDER DTYPE TASK healthy|faulty

No operation of a healthy run may be called wrong, in float32 and bfloat16, with tensors and with statistics, called again
or as it was recorded. The wrong kernels lie below the recorder, in PyTorch's dispatcher: nothing of a dump tells of them
but the outputs. Exactly the three operations that met them are to be named.
"""

import csv
import os
import pathlib
import subprocess
import sys
import tempfile

DTYPES = ("float32", "bfloat16")
TASKS = ("tensor", "statistics")
# Attention of the first layer, the SiLU of the second one, its last projection; in the order of execution.
WRONG = ["Functional.softmax.0", "Functional.silu.1", "Functional.linear.13"]


def plant(torch):
    """Wrong kernels for a call each; the library that holds them."""
    library = torch.library.Library("aten", "IMPL")
    seen = {"softmax": 0, "silu": 0, "mm": 0}

    def is_call(name, number):
        seen[name] += 1
        return seen[name] == number + 1

    # Operators themselves, which no recorder wraps.
    aten = torch.ops.aten

    def softmax(values, axis, half_to_float):
        """The wrong argument: over the queries."""
        if is_call("softmax", 0):
            axis -= 1
        wide = aten._to_copy(values, dtype=torch.float64)
        powers = aten.exp(aten.sub(wide, aten.amax(wide, [axis], True)))
        return aten._to_copy(aten.div(powers, aten.sum(powers, [axis], True)), dtype=values.dtype)

    def silu(values):
        """Lower precision: a mantissa of three bits."""
        wide = aten._to_copy(values, dtype=torch.float64)
        right = aten._to_copy(aten.mul(wide, aten.sigmoid(wide)), dtype=values.dtype)
        if not is_call("silu", 1):
            return right
        return aten._to_copy(aten._to_copy(right, dtype=torch.float8_e4m3fn), dtype=values.dtype)

    def product(left, right):
        """A tile left out, where 128 columns are multiplied by the 128 x 48 weight of an MLP's end."""
        made = aten.squeeze(aten.bmm(aten.unsqueeze(left, 0), aten.unsqueeze(right, 0)), 0)
        if tuple(right.shape) == (128, 48) and is_call("mm", 1):
            aten.zero_(aten.slice(aten.slice(made, 0, 0, 4), 1, 0, 16))
        return made

    for name, function in (("_softmax", softmax), ("silu", silu), ("mm", product)):
        library.impl(name, function, "CPU")
    return library


def record(folder, dtype, task, health):
    import torch
    from msprobe.pytorch import PrecisionDebugger
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(11)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=96, hidden_size=48, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, use_cache=False, attn_implementation="eager"))
    model = model.to(getattr(torch, dtype)).train()
    tokens = torch.randint(0, 96, (2, 15))
    library = plant(torch) if health == "faulty" else None
    debugger = PrecisionDebugger(dump_path=folder, task=task, level="L1")
    debugger.start(model)
    model(input_ids=tokens, labels=tokens).loss.backward()
    debugger.stop()
    debugger.step()
    del library


class Check:
    def __init__(self, msprobe, package, folder):
        self.msprobe = str(pathlib.Path(msprobe).resolve())
        self.package = package
        self.folder = pathlib.Path(folder)
        self.failed = 0

    def dump(self, dtype, task, health):
        folder = self.folder / f"{dtype}-{task}-{health}"
        if not folder.exists():
            environment = {**os.environ, "PYTHONPATH": self.package}
            subprocess.run([sys.executable, "-W", "ignore", __file__, "record", str(folder), dtype, task, health],
                           check=True, env=environment, stdout=subprocess.DEVNULL)
        (dump,) = folder.glob("step0/*/dump.json")
        return dump

    def acc_check(self, dump, *options):
        """Rows of the table, by name, and what the terminal says."""
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run(
                [self.msprobe, "acc_check", "-api_info", str(dump), "-o", out, "--python", sys.executable, "-d", "cpu",
                 *map(str, options)], capture_output=True, text=True, check=False)
            kind = "sides" if "--against" in options else "result"
            files = list(pathlib.Path(out).glob(f"accuracy_checking_{kind}_*.csv"))
            if done.returncode != 0 or not files:
                raise SystemExit(f"acc_check ended with {done.returncode}: {done.stderr}")
            with files[0].open(encoding="utf-8-sig", newline="") as file:
                rows = list(csv.reader(file))
        return {row[0]: row for row in rows[1:]}, done.stderr

    def expect(self, what, found, expected):
        good = found == expected
        print(f"{'ok' if good else 'not ok'} - {what}" + ("" if good else f": {found}, expected {expected}"), flush=True)
        self.failed += not good

    def healthy(self, dtype, task, *options):
        rows, said = self.acc_check(self.dump(dtype, task, "healthy"), *options)
        bad = {name: row[4:] for name, row in rows.items() if "error" in row[4:6]}
        passed = sum(row[4] == "pass" for row in rows.values())
        what = " ".join([dtype, task, *options])
        self.expect(f"{what}: {said.splitlines()[0]}", bad, {})
        if task == "tensor" or not options:
            self.expect(f"{what}: {passed} of {len(rows)} pass", passed > len(rows) * 0.9, True)

    def faulty(self, dtype):
        rows, said = self.acc_check(self.dump(dtype, "tensor", "faulty"), "--recorded")
        print(said, end="")
        self.expect(f"{dtype}: the wrong kernels", [name for name, row in rows.items() if "error" in row[4:6]], WRONG)
        dumps = [self.dump(dtype, "tensor", health) for health in ("healthy", "faulty")]
        for letter, (a, b) in (("B", dumps), ("A", dumps[::-1])):
            rows, said = self.acc_check(a, "--against", b)
            wrong = [(name, row[2]) for name, row in rows.items() if row[3] == "error"]
            self.expect(f"{dtype}: the wrong side is {letter}", wrong, [(name, letter) for name in WRONG])
            first = f"the first result that does not follow from its inputs is of {WRONG[0]}, forward, in {letter}: "
            self.expect(f"{dtype}: {said.splitlines()[1].strip()}", first in said and "missing" not in said, True)


def main(msprobe, package):
    with tempfile.TemporaryDirectory() as folder:
        check = Check(msprobe, package, folder)
        for dtype in DTYPES:
            for task in TASKS:
                check.healthy(dtype, task)
                check.healthy(dtype, task, "--recorded")
            check.faulty(dtype)
        return 1 if check.failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(*sys.argv[2:])
    else:
        sys.exit(main(*sys.argv[1:]))

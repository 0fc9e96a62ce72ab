#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of `msprobe op_generate`: what is in them, what their script says of a device that is right or wrong.

usage: op_generate_cases.py MSPROBE GOLDEN_FOLDER
"""

import json
import shutil
import subprocess
import sys

import harness

try:
    import torch
except ImportError:
    torch = None

FILES = ["case.json", "entries.json", "op_runner.py", "run.py", "tensors"]


def run_case(folder, *words, before=""):
    """The script as someone elsewhere runs it; `before` is done to PyTorch first."""
    begin = [sys.executable, str(folder / "run.py")]
    if before:
        text = (f"import runpy, sys, torch\n{before}\nsys.argv = sys.argv[1:]\n"
                "runpy.run_path(sys.argv[0], run_name='__main__')")
        begin = [sys.executable, "-c", text, str(folder / "run.py")]
    return subprocess.run([*begin, "--device", "cpu", *words], capture_output=True, text=True, cwd="/",
                          env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}, check=False)


def generate(msprobe, scratch, *words):
    result = harness.run(msprobe, ["op_generate", *map(str, words), "-o", "out"], scratch)
    harness.check_equal("exit status", (result.returncode, result.stderr if result.returncode else ""), (0, ""))


def rows_of(result):
    lines = [line.split("  ") for line in result.stdout.splitlines()]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in lines if line[0].endswith(tuple("0123456789"))]
    return {row[0]: row[1:] for row in rows if ".output." in row[0]}


def recorded_tensors(msprobe, golden, scratch):
    dump = golden / "prechecks" / "acc_check" / "dump_tensor" / "dump.json"
    generate(msprobe, scratch, "-api_info", dump, "--api", "Functional.linear.0")
    folder = scratch / "out" / "Functional.linear.0"
    harness.check_equal("files", sorted(path.name for path in folder.iterdir()), FILES)
    entries = json.loads((folder / "entries.json").read_text())
    data = json.loads(dump.read_text())["data"]
    harness.check_equal("entries", entries, {name: data[name] for name in (
        "Functional.linear.0.forward", "Functional.linear.0.backward")})
    moved = scratch / "elsewhere"
    shutil.move(folder, moved)
    loaded = torch.load(moved / "tensors" / "Functional.linear.0.forward.input.0.pt")
    recorded = torch.load(dump.parent / "dump_tensor_data" / "Functional.linear.0.forward.input.0.pt")
    harness.check(torch.equal(loaded, recorded.detach()), "the tensor is not the recorded one")

    result = run_case(moved)
    harness.check_equal("exit status", (result.returncode, result.stderr), (0, ""))
    harness.check_equal("outputs", list(rows_of(result)), [
        "forward.output.0", "backward.output.0", "backward.output.1", "backward.output.2"])
    harness.check_equal("verdict", result.stdout.splitlines()[-1], "verdict: pass")
    inputs = [torch.load(moved / "tensors" / f"Functional.linear.0.forward.input.{at}.pt") for at in range(3)]
    # The same by other means: the error of the product in single precision.
    error = (torch.nn.functional.linear(*inputs).double()
             - torch.nn.functional.linear(*[one.double() for one in inputs])).abs().max().item()
    harness.check_equal("max abs err", rows_of(result)["forward.output.0"][2], f"{error:.6g}")
    harness.check_equal("no backward", list(rows_of(run_case(moved, "--forward"))), ["forward.output.0"])

    # A function of Python's, as those of the module are.
    wrong = ("f = torch.nn.functional.linear\ndef linear(*a):\n    r = f(*a)\n"
             "    return r * 1.001 if r.dtype == torch.float32 else r\ntorch.nn.functional.linear = linear")
    result = run_case(moved, before=wrong)
    harness.check_equal("exit status", result.returncode, 1)
    last = result.stdout.splitlines()[-1]
    harness.check(last.startswith("verdict: error: ") and "units in the last place of float32" in last, last)

    nan = wrong.replace("r * 1.001 if r.dtype == torch.float32 else r", "r / (r.dtype != torch.float32)")
    result = run_case(moved, "--forward", before=nan)
    harness.check_equal("exit status", result.returncode, 1)
    harness.check("24 of 24 elements are NaN or infinite on one side" in result.stdout, result.stdout)

    unsteady = ("n = [0]\nf = torch.nn.functional.linear\ndef linear(*a):\n    n[0] += 1\n"
                "    r = f(*a)\n    return torch.nextafter(r, r + 1) if n[0] == 3 else r\n"
                "torch.nn.functional.linear = linear")
    result = run_case(moved, "--iterations", "3", "--forward", before=unsteady)
    harness.check_equal("exit status", result.returncode, 0)
    harness.check("1 of 3 calls gave other results than the first one" in result.stdout, result.stdout)
    harness.check(result.stdout.splitlines()[-1].startswith("verdict: warning"), result.stdout)

    (moved / "tensors" / "Functional.linear.0.forward.input.0.pt").unlink()
    result = run_case(moved)
    harness.check_equal("exit status", (result.returncode, result.stdout.count("verdict: ")), (2, 0))
    harness.check(result.stderr.startswith("the operation cannot be called: "), result.stderr)


def random_tensors(msprobe, golden, scratch):
    dump = golden / "prechecks" / "acc_check" / "small.json"
    generate(msprobe, scratch, "-api_info", dump, "--api", "Torch.add.0", "--seed", "1234")
    folder = scratch / "out" / "Torch.add.0"
    generator = torch.Generator().manual_seed(1234)
    for at in range(2):
        wanted = torch.rand(4, generator=generator)  # times Max - Min, plus Min: 1 and 0 here
        wanted[0], wanted[-1] = 0.0, 1.0
        made = torch.load(folder / "tensors" / f"Torch.add.0.forward.input.{at}.pt")
        harness.check(torch.equal(made, wanted), f"{made} {wanted}")
    result = run_case(folder)
    harness.check_equal("exit status", (result.returncode, result.stderr), (0, ""))
    harness.check("inputs made of recorded ranges" in result.stdout, result.stdout)
    # The dump has tensors of this one: they are not taken.
    tensors = golden / "prechecks" / "acc_check" / "dump_tensor" / "dump.json"
    generate(msprobe, scratch, "-api_info", tensors, "--api", "Torch.topk.0", "--data", "random")
    case = json.loads((scratch / "out" / "Torch.topk.0" / "case.json").read_text())
    harness.check(case["synthetic"], "recorded tensors were taken")
    script = (folder / "run.py").read_bytes()
    harness.check_equal("one script for all", (scratch / "out" / "Torch.topk.0" / "run.py").read_bytes(), script)


def configurations(msprobe, golden, scratch):
    dump = golden / "prechecks" / "acc_check" / "small.json"
    base = {"dump_json_path": str(dump), "extract_api_path": "api.json", "propagation": "forward",
            "data_mode": "random_data", "random_seed": 1234, "iter_times": 2}

    def run(scratch, status=None, **changes):
        (scratch / "config.json").write_text(json.dumps({**base, **changes}))
        shutil.rmtree(scratch / "out", ignore_errors=True)
        return harness.run(msprobe, ["-f", "pytorch", "op_generate", "-i", "config.json", "-o", "out"], scratch, status)

    run(scratch, api_name="Functional.softmax.0", status=0)
    case = json.loads((scratch / "out" / "Functional.softmax.0" / "case.json").read_text())
    harness.check_equal("case", (case["iterations"], "grads" in case["request"]), (2, False))
    extracted = json.loads((scratch / "api.json").read_text())
    harness.check_equal("extracted", list(extracted), ["Functional.softmax.0.forward"])
    # An extract that was edited, without the dump.
    extracted["Functional.softmax.0.forward"]["input_args"][0]["shape"] = [7, 3]
    (scratch / "api.json").write_text(json.dumps(extracted))
    run(scratch, api_name="Functional.softmax.0", dump_json_path="", status=0)
    made = torch.load(scratch / "out/Functional.softmax.0/tensors/Functional.softmax.0.forward.input.0.pt")
    harness.check_equal("shape", list(made.shape), [7, 3])
    for changes, words in (
        ({"api_name": "Torch.nothing.0"}, "no operation 'Torch.nothing.0'"),
        ({"api_name": "Torch.add.0", "propagation": "backward"}, "Torch.add.0: it has no backward"),
        ({"api_name": "Torch.add.0", "iter_times": 0}, "iter_times: must be a whole number from 1 to 1000"),
        ({"api_name": "Torch.add.0", "iter_times": 1001}, "iter_times: must be a whole number from 1 to 1000"),
        ({"api_name": "Torch.add.0", "propagation": "both"}, "propagation: 'both' must be forward or backward"),
        ({"api_name": "Torch.add.0", "data_mode": "x"}, "data_mode: 'x' must be random_data or real_data"),
        ({"api_name": "Torch.add.0", "data_mode": "real_data"}, "was not dumped as a tensor"),
        ({"api_name": "Torch.add.0", "random_seed": "1"}, "random_seed: must be a whole number"),
        ({"api_name": "Distributed.all_reduce.0"}, "communication is not called again"),
        ({}, "api_name: is missing"),
    ):
        harness.check_refused(run(scratch, **changes), words)
        left = (scratch / "out").exists() and list((scratch / "out").iterdir())
        harness.check(not left, f"{words}: {left}")


def hostile_dumps(msprobe, scratch):
    entries = {
        "Torch.exp('x').0.forward": {"input_args": [], "input_kwargs": {}, "output": []},
        "Torch.../../x.0.forward": {"input_args": [], "input_kwargs": {}, "output": []},
        "Torch.load.0.forward": {"input_args": [{"type": "str", "value": "/dev/null"}], "input_kwargs": {},
                                 "output": []},
        "Torch.exp.1.forward": {"input_args": [{"type": "x", "value": "\"\"\"\nopen('ran', 'w')"}],
                                "input_kwargs": {"a\"\n": {"type": "int", "value": 1}}, "output": []},
        "Torch.exp.2.forward": {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float33", "shape": [1],
                                                "Max": 1, "Min": 0}], "input_kwargs": {}, "output": []},
        "Torch.exp.3.forward": {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "Max": 1, "Min": 0,
                                                "shape": [1 << 40, 1 << 40]}], "input_kwargs": {}, "output": []},
    }
    dump = {"framework": "pytorch", "dump_data_dir": None, "data": entries}
    (scratch / "dump.json").write_text(json.dumps(dump))
    for name, words in (
        ("Torch.exp('x').0", "is not the name of an operation"),
        ("Torch.../../x.0", "is not the name of an operation"),
        ("Torch.exp.2", "elements of the unknown type 'torch.float33'"),
        ("Torch.exp.3", "makes the arguments larger than"),
    ):
        words_typed = ["op_generate", "-api_info", "dump.json", "--api", name, "-o", "out"]
        result = harness.run(msprobe, words_typed, scratch)
        harness.check_equal(name, (result.returncode, (scratch / "out").exists()), (2, False))
        harness.check(words in result.stderr, result.stderr)
    for name, words in (("Torch.load.0", "Torch.load is not an operation that is called again"), ("Torch.exp.1", "TypeError")):
        generate(msprobe, scratch, "-api_info", "dump.json", "--api", name)
        result = run_case(scratch / "out" / name)
        harness.check_equal(name, result.returncode, 2)
        harness.check(words in result.stderr, result.stderr)
    harness.check_equal("nothing ran", list(scratch.rglob("ran")), [])


def make_tests(msprobe, golden):
    golden = harness.data(golden, "prechecks/acc_check")
    return harness.tests_of_script(msprobe=msprobe, golden=golden) if torch is not None else []


if __name__ == "__main__":
    harness.main(make_tests)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that parse writes load in PyTorch (weights_only=True), NumPy and safetensors, with the same values.

usage: parse_peers.py MSPROBE GOLDEN_FOLDER

The libraries are those of MSPROBE_PEER_PYTHON, or else of the Python that runs this; what is not installed there is
reported as skipped, by name.
"""

import json
import os
import pathlib
import subprocess
import sys

import harness

PEER = os.environ.get("MSPROBE_PEER_PYTHON") or sys.executable

# Runs in the peer's Python: what a library finds in each file, as one JSON document.
LOADER = r"""
import json, pathlib, sys

library, folder = sys.argv[1], pathlib.Path(sys.argv[2])


def numpy_facts(array):
    if array.dtype.kind == "c":
        array = array.copy().view("f8" if array.dtype.itemsize == 16 else "f4")
    return [str(array.dtype), [repr(value) for value in array.reshape(-1).astype("f8").tolist()]]


def torch_facts(tensor):
    return [str(tensor.dtype), list(tensor.shape), [repr(value) for value in tensor.double().reshape(-1).tolist()]]


def facts(path):
    if library == "numpy":
        import numpy

        loaded = numpy.load(path, allow_pickle=False)
        arrays = dict(loaded) if path.suffix == ".npz" else {"": loaded}
        return {name: [list(array.shape), *numpy_facts(array)] for name, array in arrays.items()}
    import torch

    if library == "torch":
        loaded = torch.load(str(path), weights_only=True)
        tensors = loaded if isinstance(loaded, dict) else {"": loaded}
    else:
        from safetensors.torch import load_file

        tensors = load_file(str(path))
    found = {}
    for name, tensor in tensors.items():
        real = torch.view_as_real(tensor.to(torch.complex64)) if tensor.dtype.is_complex else tensor
        found[name] = torch_facts(real)
    return found


result = {}
for path in sorted(folder.iterdir()):
    try:
        result[path.name] = facts(path)
    except Exception as error:
        result[path.name] = f"{type(error).__name__}: {error}"
print(json.dumps(result))
"""

SUFFIXES = {"numpy": (".npy", ".npz"), "torch": (".pt",), "safetensors": (".safetensors",)}
# Texts in the errors of a PyTorch before 2.3 about types that it lacks; _rebuild_tensor_v3 builds no other.
NEWER = ("float8_", "uint16", "uint32", "uint64", "torch._utils._rebuild_tensor_v3")


def importable(library):
    modules = "torch, safetensors.torch" if library == "safetensors" else library
    code = f"import {modules}; import {library} as m; print(m.__version__)"
    found = subprocess.run([PEER, "-c", code], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise harness.Skip(f"{PEER} has no {modules.replace(', ', ' with ')}")
    return found.stdout.strip()


def torch_has(name):
    code = f"import sys, torch; sys.exit(not hasattr(torch, {name!r}))"
    return subprocess.run([PEER, "-c", code], check=False).returncode == 0


def load(library, folder):
    result = subprocess.run([PEER, "-c", LOADER, library, str(folder)], capture_output=True, text=True, check=False, timeout=120)
    harness.check_equal("exit status of the loader", (result.returncode, result.stderr), (0, result.stderr))
    return json.loads(result.stdout)


def number(value):
    """As the fp8 tables and the loader spell it: a float, NaN as text."""
    return "nan" if str(value) == "nan" else repr(float(value))


def convert(msprobe, source, kind, scratch):
    """The files of one type made of a folder of dumps, some of which are broken on purpose."""
    harness.run(msprobe, ["-q", "parse", "-d", str(source), "-t", kind, "-o", f"out_{kind}"], scratch)
    folder = scratch / f"out_{kind}"
    for other in [path for path in folder.iterdir() if path.suffix != f".{kind}"]:
        other.unlink()
    return folder


def make_tests(msprobe, golden):
    golden = pathlib.Path(golden).resolve()
    tables = json.loads((golden / "fp8_tables.json").read_text(encoding="utf-8"))

    def loads(library, kind):
        def body(scratch):
            version = importable(library)
            print(f"# {library} {version}")
            old = library != "numpy" and not torch_has("uint16")
            folder = convert(msprobe, golden / "adump" / "in", kind, scratch)
            found = load(library, folder)
            harness.check(len(found) >= 20, f"only {len(found)} files")
            for name, facts in found.items():
                if isinstance(facts, str):
                    newer = old and any(word in facts for word in NEWER)
                    harness.check(newer, f"{name}: {facts}")
            atb = load(library, convert(msprobe, golden / "atb" / "in" / "ok", kind, scratch))
            broken = {name: facts for name, facts in atb.items() if isinstance(facts, str) and name not in found}
            harness.check_equal("files that do not load", broken, {})
            harness.check(any(name.startswith("b07") for name in atb), "no bfloat16")

        return body

    def tables_hold(library, kind):
        def body(scratch):
            importable(library)
            if library != "numpy" and not torch_has("float8_e4m3fn"):
                raise harness.Skip("this PyTorch has no float8 types")
            found = load(library, convert(msprobe, golden / "adump" / "in", kind, scratch))
            for index, name in enumerate(("float8_e4m3fn", "float8_e5m2", "hifloat8")):
                facts = found[f"Low.fp8_all_codes.36.5.1636595794731103.output.{index}.{kind}"]
                (values,) = [entry[-1] for entry in facts.values()]
                wanted = [number(value) for value in tables[name]["definition"]]
                harness.check_equal(name, values, wanted)
                dtype = [entry for entry in next(iter(facts.values())) if isinstance(entry, str)][0]
                native = library != "numpy" and name != "hifloat8"
                harness.check_equal("dtype", dtype.removeprefix("torch."), name if native else "float32")

        return body

    def same_as_the_python_tool(scratch):
        importable("torch")
        ours = load("torch", convert(msprobe, golden / "atb" / "in" / "ok", "pt", scratch))
        theirs_folder = scratch / "theirs"
        theirs_folder.mkdir()
        for path in (golden / "atb" / "out").glob("*.pt"):
            (theirs_folder / path.name).write_bytes(path.read_bytes())
        harness.check_equal("tensors", ours, load("torch", theirs_folder))

    def checkpoint(scratch):
        importable("torch")
        importable("safetensors")
        code = (
            "import torch; torch.save({'model': {'w': torch.arange(6.).reshape(2, 3).t(), 'b': torch.ones(2).bfloat16()},"
            " 'step': 3}, 'c.pt')"
        )
        subprocess.run([PEER, "-c", code], cwd=scratch, check=True)
        for kind in ("safetensors", "npz"):
            harness.run(msprobe, ["parse", "-d", "c.pt", "-t", kind, "-o", "out"], scratch, status=0)
        (scratch / "st").mkdir()
        (scratch / "out" / "c.safetensors").rename(scratch / "st" / "c.safetensors")
        found = load("safetensors", scratch / "st")["c.safetensors"]
        harness.check_equal("w", found["model.w"], ["torch.float32", [3, 2], ["0.0", "3.0", "1.0", "4.0", "2.0", "5.0"]])
        harness.check_equal("b", found["model.b"], ["torch.bfloat16", [2], ["1.0", "1.0"]])
        found = load("numpy", scratch / "out")["c.npz"]
        harness.check_equal("npz", found["model.b"], [[2], "float32", ["1.0", "1.0"]])

    tests = []
    for library, suffixes in SUFFIXES.items():
        for suffix in suffixes:
            kind = suffix[1:]
            tests.append((f"{library} loads .{kind}", loads(library, kind)))
            tests.append((f"one-byte floats in .{kind}, all codes", tables_hold(library, kind)))
    tests.append(("tensors are those of the Python tool", same_as_the_python_tool))
    tests.append(("a checkpoint becomes .safetensors and .npz", checkpoint))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)

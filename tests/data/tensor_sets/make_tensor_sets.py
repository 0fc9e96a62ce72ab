# SPDX-License-Identifier: Apache-2.0
"""Writes the files with several tensors beside this script, and what is in them to expected.json.

usage: python make_tensor_sets.py    (needs torch, numpy and safetensors)

The files of hostile/ would touch a file called CANARY in the working directory if Python loaded them.
"""

import collections
import io
import json
import pathlib
import pickle
import pickletools
import struct
import zipfile

import numpy
import safetensors.torch
import torch

HERE = pathlib.Path(__file__).parent
EXPECTED = {}


def describe(tensor):
    raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape), "hex": raw.hex()}


def describe_array(array):
    return {"dtype": str(array.dtype), "shape": list(array.shape), "hex": numpy.ascontiguousarray(array).tobytes().hex()}


def make_safetensors():
    numbers = torch.tensor([[0.0, 1.5, -2.0], [0.25, 448.0, -0.5]])
    tensors = {
        f"of.{dtype}".replace("torch.", ""): numbers.to(dtype)
        for dtype in (
            torch.float64,
            torch.float32,
            torch.float16,
            torch.bfloat16,
            torch.float8_e4m3fn,
            torch.float8_e5m2,
            torch.int64,
            torch.int32,
            torch.int16,
            torch.int8,
            torch.bool,
        )
    }
    for dtype in (torch.uint64, torch.uint32, torch.uint16, torch.uint8):
        tensors[f"of.{dtype}".replace("torch.", "")] = numbers.abs().to(torch.int64).to(dtype)
    tensors["scalar"] = torch.tensor(7.0)
    tensors["empty"] = torch.empty(0, 3)
    tensors["äöü \u202e"] = torch.ones(1)
    safetensors.torch.save_file(tensors, HERE / "every_type.safetensors", metadata={"format": "pt", "made by": "the recipe"})
    EXPECTED["every_type.safetensors"] = {name: describe(tensor) for name, tensor in tensors.items()}
    safetensors.torch.save_file({}, HERE / "none.safetensors")
    EXPECTED["none.safetensors"] = {}


def make_npz():
    arrays = {
        "plain": numpy.arange(6, dtype="<f4").reshape(2, 3),
        "deep/name": numpy.array([1 + 2j, -3j]),
        "fortran": numpy.asfortranarray(numpy.arange(6, dtype="<i2").reshape(2, 3)),
        "scalar": numpy.array(5, dtype="<u8"),
        "zeros": numpy.zeros(1000),
    }
    numpy.savez(HERE / "stored.npz", **arrays)
    numpy.savez_compressed(HERE / "deflated.npz", **arrays)
    numpy.savez(HERE / "none.npz")
    for name in ("stored.npz", "deflated.npz"):
        EXPECTED[name] = {key: describe_array(array) for key, array in arrays.items()}
    EXPECTED["none.npz"] = {}


def make_checkpoint():
    torch.manual_seed(1)
    shared = torch.arange(4.0)
    model = collections.OrderedDict(weight=torch.nn.Parameter(torch.arange(6.0).reshape(2, 3).t()), bias=shared[1:3])
    checkpoint = {
        "model": model,
        "optimizer": {"state": {0: {"step": torch.tensor(3), "exp_avg": shared}}, "param_groups": [{"lr": 0.1}]},
        "rng": [torch.zeros(2, dtype=torch.uint8)],
        "iteration": 12,
        "name": "run",
    }
    EXPECTED["checkpoint.pt"] = EXPECTED["checkpoint_legacy.pt"] = {
        "model.weight": describe(model["weight"]),
        "model.bias": describe(model["bias"]),
        "optimizer.state.0.step": describe(checkpoint["optimizer"]["state"][0]["step"]),
        "optimizer.state.0.exp_avg": describe(shared),
        "rng.0": describe(checkpoint["rng"][0]),
    }
    torch.save(checkpoint, HERE / "checkpoint.pt")
    torch.save(checkpoint, HERE / "checkpoint_legacy.pt", _use_new_zipfile_serialization=False)


class Calls:
    """Pickles as a call of any global."""

    def __init__(self, module, name, *arguments):
        self.module, self.name, self.arguments = module, name, arguments

    def pickled(self, protocol):
        # Written by hand: the pickler would insist on importing the global, and posix is os.system's real module.
        out = io.BytesIO()
        if protocol >= 2:
            out.write(pickle.PROTO + bytes([protocol]))
        if protocol >= 4:
            for text in (self.module, self.name):
                out.write(pickle.SHORT_BINUNICODE + bytes([len(text)]) + text.encode())
            out.write(pickle.STACK_GLOBAL)
        else:
            out.write(pickle.GLOBAL + f"{self.module}\n{self.name}\n".encode())
        out.write(pickle.MARK)
        for argument in self.arguments:
            out.write(pickle.UNICODE + argument.encode() + b"\n")
        out.write(pickle.TUPLE + pickle.REDUCE + pickle.STOP)
        return out.getvalue()


def packed(path, entries):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data)


def make_hostile():
    folder = HERE / "hostile"
    folder.mkdir(exist_ok=True)
    command = "touch CANARY"
    system = Calls("os", "system", command)
    for protocol in (0, 2, 4):
        (folder / f"system_{protocol}.pkl").write_bytes(system.pickled(protocol))
    (folder / "posix.pkl").write_bytes(Calls("posix", "system", command).pickled(2))
    (folder / "eval.pkl").write_bytes(Calls("builtins", "eval", f"__import__('os').system('{command}')").pickled(2))
    (folder / "exec_python2.pkl").write_bytes(Calls("__builtin__", "exec", "open('CANARY', 'w')").pickled(2))
    (folder / "runpy.pkl").write_bytes(Calls("runpy", "_run_code", command).pickled(2))
    (folder / "through_torch.pkl").write_bytes(Calls("torch", "serialization.os.system", command).pickled(4))
    (folder / "unknown.pkl").write_bytes(Calls("megatron.core.enums", "ModelType", "1").pickled(2))
    # The call is complete before the pickle breaks off: Python would have made it.
    (folder / "cut_off.pkl").write_bytes(system.pickled(2)[:-1] + b"\xff")
    # Two pickles: a reader that looks at the first one only sees nothing.
    (folder / "second.pkl").write_bytes(pickle.dumps([1, 2], 2) + system.pickled(2))
    buffer = io.BytesIO()
    torch.save({"weight": torch.ones(2)}, buffer)
    with zipfile.ZipFile(buffer) as archive:
        entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    root = entries[0][0].split("/")[0]
    evil = system.pickled(2)
    packed(folder / "checkpoint.pt", [(n, evil if n == f"{root}/data.pkl" else d) for n, d in entries])
    packed(folder / "beside.pt", [*entries, (f"{root}/extra.pkl", evil)])
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + system.pickled(2)
    (folder / "object.npy").write_bytes(array)
    packed(folder / "object.npz", [("good.npy", (HERE.parent / "formats" / "npy_f4.npy").read_bytes()), ("bad.npy", array)])
    for path in folder.glob("*.pkl"):
        if path.name != "cut_off.pkl":
            list(pickletools.genops(path.read_bytes()))


def main():
    make_safetensors()
    make_npz()
    make_checkpoint()
    make_hostile()
    (HERE / "expected.json").write_text(json.dumps(EXPECTED, indent=1) + "\n", encoding="utf-8")


main()

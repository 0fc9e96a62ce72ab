# SPDX-License-Identifier: Apache-2.0
"""Writes the .pt and .npy files beside this script, and expected.json with what PyTorch and NumPy read from them.

Run with PyTorch 2.13 and NumPy 2.4: python make_fixtures.py. The contents are the same each time (only the keys of
storages in legacy files are addresses and differ). In expected.json each file
has its element type, shape and the bytes of its elements in row-major order, little-endian, as hex; files that must
be refused have the words that the message must contain.
"""
import collections
import io
import json
import pathlib
import pickle
import sys
import types
import zipfile

import numpy
import torch

HERE = pathlib.Path(__file__).parent
EXPECTED = {}


def element_hex(tensor):
    plain = tensor.detach().as_subclass(torch.Tensor).resolve_conj().resolve_neg()
    if plain.is_quantized:
        plain = plain.int_repr()
    copy = plain.clone(memory_format=torch.contiguous_format)
    if copy.numel() == 0:
        return ""
    return bytes(copy.reshape(-1).view(torch.uint8).tolist()).hex()


def expect(name, tensor, **extra):
    EXPECTED[name] = {
        "dtype": str(tensor.dtype).replace("torch.", ""),
        "shape": list(tensor.shape),
        "hex": element_hex(tensor),
        **extra,
    }


def refuse(name, *words):
    EXPECTED[name] = {"refused": list(words)}


def save(name, tensor, **options):
    torch.save(tensor, HERE / name, **options)
    expect(name, tensor)


def rewrite(name, source, method=zipfile.ZIP_STORED, change=lambda name, data: data):
    """A .pt that another program packed: other records, another method, no padding."""
    with zipfile.ZipFile(HERE / source) as old, zipfile.ZipFile(HERE / name, "w", method) as new:
        for info in old.infolist():
            data = change(info.filename.split("/", 1)[1], old.read(info))
            if data is not None:
                entry = zipfile.ZipInfo(info.filename)
                entry.compress_type = method
                new.writestr(entry, data)


class Rebuilt:
    """Pickles as a call of `function` with `args`."""

    def __init__(self, function, args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


def stand_in(module, name, make=None):
    """A function (or class) that pickle finds under a name of a package that is not installed here."""
    for depth in range(1, len(module.split(".")) + 1):
        part = ".".join(module.split(".")[:depth])
        sys.modules.setdefault(part, types.ModuleType(part))
    made = make or (lambda *args: None)
    made.__module__, made.__qualname__, made.__name__ = module, name, name
    setattr(sys.modules[module], name, made)
    return made


class Tagged(torch.Tensor):
    """A tensor subclass that lives only in the program that wrote the file."""


def typed(tensor):
    return torch.storage.TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)


SPECIAL = [1.5, -0.0, float("nan"), float("inf"), -float("inf"), 1e-40]
FLOATS = ["float64", "float32", "float16", "bfloat16"]
FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]
COMPLEX = ["complex32", "complex64", "complex128"]
FLOAT8_BYTES = [0x00, 0x38, 0x7F, 0x80, 0xFF, 0x01]


def sample(name):
    """Six elements of the type, 2 by 3, extremes among them."""
    dtype = getattr(torch, name)
    if name in FLOATS:
        return torch.tensor(SPECIAL, dtype=torch.float64).to(dtype).reshape(2, 3)
    if name in FLOAT8:
        return torch.tensor(FLOAT8_BYTES, dtype=torch.uint8).view(dtype).reshape(2, 3)
    if name in INTEGERS:
        limits = torch.iinfo(dtype)
        return torch.tensor([limits.min, limits.max, 0, 1, 2, 77], dtype=dtype).reshape(2, 3)
    if name in COMPLEX:
        parts = torch.arange(12, dtype=torch.float64).reshape(6, 2) - 5.5
        return torch.view_as_complex(parts).to(dtype).reshape(2, 3)
    return torch.tensor([[True, False, True], [False, False, True]])


def zip_types():
    for name in FLOATS + FLOAT8 + INTEGERS + COMPLEX + ["bool"]:
        save(f"type_{name}.pt", sample(name))
    real = torch.tensor([[-1.0, 0.0, 0.25], [0.5, 1.0, 2.0]])
    save("type_qint8.pt", torch.quantize_per_tensor(real, 0.1, 3, torch.qint8))
    save("type_quint8.pt", torch.quantize_per_tensor(real, 0.1, 10, torch.quint8))
    save("type_qint32.pt", torch.quantize_per_tensor(real, 0.001, 0, torch.qint32))
    scales, zeros = torch.tensor([0.1, 0.2], dtype=torch.float64), torch.tensor([1, 2])
    save("per_channel_qint8.pt", torch.quantize_per_channel(real, scales, zeros, 0, torch.qint8))


def zip_views():
    twelve = torch.arange(12, dtype=torch.float32)
    save("view_slice.pt", twelve.reshape(3, 4)[:, 1:3])
    save("view_transposed.pt", twelve.reshape(3, 4).t())
    save("view_permuted.pt", torch.arange(24, dtype=torch.int16).reshape(2, 3, 4).permute(2, 0, 1))
    save("view_every_other.pt", torch.arange(20, dtype=torch.float64)[3::2])
    save("view_expanded.pt", torch.tensor([[1.0], [2.0]]).expand(2, 3))
    save("view_diagonal.pt", torch.arange(9, dtype=torch.uint8).reshape(3, 3).diagonal())
    save("view_unfolded.pt", torch.arange(6, dtype=torch.int32).unfold(0, 3, 1))
    save("view_offset.pt", twelve[5:])
    save("view_float8.pt", torch.arange(12, dtype=torch.uint8).view(torch.float8_e4m3fn).reshape(3, 4)[1:, ::2])
    save("odd_strides_of_one.pt", torch.as_strided(twelve, (1, 3, 1), (7, 1, 9), 2))
    save("scalar.pt", torch.tensor(3.25))
    save("scalar_in_storage.pt", twelve[7])
    save("empty.pt", torch.empty(0))
    save("empty_3d.pt", torch.empty(2, 0, 3, dtype=torch.int64))
    save("conjugated.pt", sample("complex64").conj())
    save("conjugated_view.pt", sample("complex128").conj().t())
    save("negated.pt", sample("complex64").conj().imag)
    save("parameter.pt", torch.nn.Parameter(twelve.reshape(2, 6).clone()))
    with_state = torch.nn.Parameter(torch.ones(2))
    with_state.partition_dim = 1
    save("parameter_with_state.pt", with_state)
    save("requires_grad.pt", torch.ones(2, requires_grad=True))
    attributed = torch.full((2,), 7.0)
    attributed.note = "a"
    save("tensor_with_attribute.pt", attributed)
    save("subclass.pt", torch.ones(3).as_subclass(Tagged))
    save("protocol_4.pt", sample("float32"), pickle_protocol=4)
    save("protocol_5.pt", sample("bfloat16"), pickle_protocol=5)
    # More than one window of the reader that gathers rising views, yet small as a file: it is deflated.
    wide = torch.zeros(3, 200_000)
    wide[:, 100_000:100_002] = torch.arange(6, dtype=torch.float32).reshape(3, 2)
    torch.save(wide[:, 100_000:100_002], HERE / "wide.tmp")
    rewrite("view_wide_deflated.pt", "wide.tmp", zipfile.ZIP_DEFLATED)
    (HERE / "wide.tmp").unlink()
    expect("view_wide_deflated.pt", wide[:, 100_000:100_002])


def zip_packings():
    source = "view_slice.pt"
    tensor = torch.load(HERE / source)
    oldest = {"data.pkl", "data/0", "version"}
    rewrite("packed_as_1_13.pt", source, change=lambda name, data: data if name in oldest else None)
    expect("packed_as_1_13.pt", tensor)
    rewrite("deflated.pt", source, zipfile.ZIP_DEFLATED)
    expect("deflated.pt", tensor)

    def swap(name, data):
        if name == "byteorder":
            return b"big"
        return numpy.frombuffer(data, "<f4").byteswap().tobytes() if name == "data/0" else data

    rewrite("big_endian.pt", source, change=swap)
    expect("big_endian.pt", tensor)


def zip_other_calls():
    tensor = torch.arange(6, dtype=torch.float16).reshape(2, 3)
    hooks = collections.OrderedDict()
    geometry = (typed(tensor), 0, (2, 3), (3, 1))
    npu = stand_in("torch_npu.utils.storage", "_rebuild_npu_tensor")
    layout = stand_in("torch_npu.npu._format", "Format", lambda code: code)
    oldest = sys.modules["torch._utils"]._rebuild_tensor
    for name, function, args in [
        ("npu.pt", npu, (*geometry, False, hooks, True)),
        ("npu_format.pt", npu, (*geometry, False, hooks, Rebuilt(layout, (29,)))),
        ("rebuild_v1.pt", oldest, geometry),
    ]:
        torch.save(Rebuilt(function, args), HERE / name)
        expect(name, tensor)


def legacy():
    def old(name, tensor):
        save(f"legacy_{name}.pt", tensor, _use_new_zipfile_serialization=False)

    for name in ["float32", "bfloat16", "int64", "bool", "complex64", "float8_e5m2", "uint16"]:
        old(name, sample(name))
    old("view", torch.arange(12, dtype=torch.float32).reshape(3, 4)[:, 1:3])
    old("parameter", torch.nn.Parameter(torch.arange(4, dtype=torch.float64)))
    old("scalar", torch.tensor(-2.5, dtype=torch.float16))
    old("empty", torch.empty(0))
    old("quint8", torch.quantize_per_tensor(torch.tensor([0.0, 1.0]), 0.5, 1, torch.quint8))


def refused():
    def old(name, thing, *words):
        torch.save(thing, HERE / f"{name}.pt")
        refuse(f"{name}.pt", *words)

    old("refused_dict", {"a": torch.ones(1)}, "a dict", "not one tensor")
    old("refused_list", [torch.ones(1)], "a list", "not one tensor")
    old("refused_module", torch.nn.Linear(1, 1), "calls torch.nn.modules.linear.Linear")
    old("refused_sparse", torch.eye(2).to_sparse(), "calls torch._utils._rebuild_sparse_tensor")
    old("refused_meta", torch.ones(2, device="meta"), "on the device meta")
    packed = torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    old("refused_float4", packed, "torch.float4_e2m1fn_x2 is not supported")
    script = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Identity()), script)
    (HERE / "refused_torchscript.pt").write_bytes(script.getvalue())
    refuse("refused_torchscript.pt", "TorchScript")
    (HERE / "refused_plain_pickle.pt").write_bytes(pickle.dumps([1, 2, 3], 2))
    refuse("refused_plain_pickle.pt", "not a PyTorch file")


NUMPY_NAMES = {"b1": "bool", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128"}


def numpy_name(code):
    if code in NUMPY_NAMES:
        return NUMPY_NAMES[code]
    return ("uint" if code[0] == "u" else "int") + str(8 * int(code[1:]))


def npy_bytes(array, version=None):
    out = io.BytesIO()
    numpy.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def put_npy(name, array, dtype, version=None, data=None):
    (HERE / name).write_bytes(data or npy_bytes(array, version))
    little = numpy.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    EXPECTED[name] = {"dtype": dtype, "shape": list(array.shape), "hex": little.tobytes().hex()}


def npy():
    for code in ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]:
        for order in "<>" if code[1:] != "1" else "|":
            values = numpy.arange(6).reshape(2, 3) % (2 if code == "b1" else 100)
            array = values.astype(numpy.dtype(order + code))
            if code[0] == "c":
                array = array * (1 - 2j)
            array = array.astype(order + code)
            put_npy(f"npy_{'big_' if order == '>' else ''}{code}.npy", array, numpy_name(code))
    cube = numpy.arange(24, dtype="<f4").reshape(2, 3, 4)
    put_npy("npy_fortran.npy", numpy.asfortranarray(cube), "float32")
    put_npy("npy_fortran_big.npy", numpy.asfortranarray(cube.astype(">f8")), "float64")
    put_npy("npy_2_0.npy", cube, "float32", (2, 0))
    put_npy("npy_3_0.npy", cube, "float32", (3, 0))
    put_npy("npy_scalar.npy", numpy.array(2.5), "float64")
    put_npy("npy_empty.npy", numpy.empty((0, 3), "<i4"), "int32")
    bits = numpy.array([0x3F80, 0xC000, 0x7FC0], "<u2")
    void = npy_bytes(bits).replace(b"'<u2'", b"'|V2'")
    put_npy("npy_bfloat16.npy", bits, "bfloat16", data=void)
    old = b"\x93NUMPY\x01\x00" + b"\x3c\x00" + b"{'descr': '<i2', 'fortran_order': False, 'shape': (2L,), }\n"
    old = old[:8] + bytes([len(old) - 10, 0]) + old[10:]
    pair = numpy.array([5, -6], "<i2")
    put_npy("npy_python2.npy", pair, "int16", data=old + pair.tobytes())
    objects = io.BytesIO()
    numpy.save(objects, numpy.array([1, "a"], dtype=object), allow_pickle=True)
    for name, data, words in [
        ("object", objects.getvalue(), "object array"),
        ("text", npy_bytes(numpy.array(["ab"])), "text array"),
        ("structured", npy_bytes(numpy.zeros(1, [("a", "<f4"), ("b", "<i4")])), "structured"),
        ("dates", npy_bytes(numpy.zeros(1, "<M8[s]")), "dates"),
        ("records", npy_bytes(numpy.zeros(1, "V3")), "raw records"),
        ("longdouble", npy_bytes(numpy.zeros(1, numpy.longdouble)), "not supported"),
    ]:
        (HERE / f"refused_{name}.npy").write_bytes(data)
        refuse(f"refused_{name}.npy", words)


def main():
    for old in [*HERE.glob("*.pt"), *HERE.glob("*.npy")]:
        old.unlink()
    for step in [zip_types, zip_views, zip_packings, zip_other_calls, legacy, refused, npy]:
        step()
    lines = [f"{json.dumps(name)}: {json.dumps(EXPECTED[name], sort_keys=True)}" for name in sorted(EXPECTED)]
    (HERE / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()

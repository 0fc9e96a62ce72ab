# SPDX-License-Identifier: Apache-2.0
"""Every dtype, odd geometries, and every kind of argument."""

import collections
import enum
import math
import types
import zlib

import numpy

from helpers import *

Point = collections.namedtuple("Point", "x y")


class Colour(enum.IntEnum):
    RED = 1


class Values(Case):
    def record(self, *args, section=None, **kwargs):
        library = types.ModuleType("library")
        library.function = lambda *a, **k: None
        debugger = self.open("L1", section=section or {})
        debugger.register_custom_api(library, "function")
        debugger.start()
        library.function(*args, **kwargs)
        debugger.stop()
        tree = self.tree()
        self.assertEqual(tree.errors, "")
        entry = tree.data["library.function.0.forward"]
        return entry["input_kwargs"] if kwargs else entry["input_args"]

    def test_dtypes(self):
        names = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
                 "complex64", "complex128"] + [name for name in ("uint16", "uint32", "float8_e4m3fn", "float8_e5m2")
                                               if hasattr(torch, name)]
        tensors = [torch.tensor([0.0, 1.0, 3.0]).to(getattr(torch, name)) for name in names]
        records = self.record(*tensors, section={"summary_mode": "md5"})
        for name, tensor, got in zip(names, tensors, records):
            self.assertEqual(got["dtype"], "torch." + name)
            self.assertEqual(got["shape"], [3])
            raw = bytes(tensor.view(torch.uint8).numpy()) if name.startswith(("bfloat", "float8", "uint")) else \
                tensor.numpy().tobytes()
            self.assertEqual(got["md5"], "%08x" % zlib.crc32(raw), name)
            if name == "bool":
                self.assertEqual((got["Max"], got["Min"]), (True, False))
            elif not name.startswith("float8"):
                self.assertEqual((got["Max"], got["Min"]), (3, 0), name)
            if name in ("float64", "int64", "int8", "uint8", "float32"):
                self.assertAlmostEqual(got["Mean"], 4 / 3, places=5)
                self.assertAlmostEqual(got["Norm"], math.sqrt(10), places=5)
            if name.startswith("int"):
                self.assertIsInstance(got["Max"], int)

    def test_special_numbers(self):
        nan, inf, both = self.record(torch.tensor([1.0, math.nan]), torch.tensor([1.0, math.inf]),
                                     torch.tensor([-math.inf, math.inf]))
        self.assertTrue(math.isnan(nan["Max"]) and math.isnan(nan["Min"]))
        self.assertEqual((inf["Max"], inf["Min"]), (math.inf, 1.0))
        self.assertTrue(math.isnan(both["Mean"]))

    def test_geometries(self):
        base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
        empty, scalar, expanded, transposed, strided = self.record(
            torch.empty(0, 3), torch.tensor(2.5), torch.tensor([1.0, 2.0]).expand(3, 2), base.t(), base[:, 1:3],
            section={"summary_mode": "md5"})
        self.assertEqual((empty["Max"], empty["Mean"], empty["shape"], empty["md5"]), (None, None, [0, 3], "00000000"))
        self.assertEqual([scalar[key] for key in ("Max", "Min", "Mean", "Norm")], [2.5] * 4)
        self.assertEqual((expanded["Mean"], expanded["shape"]), (1.5, [3, 2]))
        self.assertAlmostEqual(expanded["Norm"], math.sqrt(15), places=5)
        self.assertEqual((transposed["shape"], transposed["md5"]), ([4, 3], "7109b3e5"))
        self.assertEqual((strided["Max"], strided["Min"]), (10.0, 1.0))
        self.assertEqual(strided["md5"], "%08x" % zlib.crc32(base[:, 1:3].contiguous().numpy().tobytes()))

    def test_conjugate_and_negative_views(self):
        values = torch.tensor([1 + 2j, 3 - 4j])
        conjugate, negative = self.record(values.conj(), values.conj().imag, section={"summary_mode": "md5"})
        self.assertEqual(conjugate["md5"], "%08x" % zlib.crc32(values.conj().resolve_conj().numpy().tobytes()))
        self.assertEqual((negative["Max"], negative["Min"]), (4.0, -2.0))
        self.assertEqual(conjugate["Max"], 5.0)

    def test_tensors_without_memory(self):
        sparse, meta = self.record(torch.eye(3).to_sparse(), torch.empty(2, 3, device="meta"))
        for got, shape in ((sparse, [3, 3]), (meta, [2, 3])):
            self.assertEqual((got["type"], got["dtype"], got["shape"], got["Max"]),
                             ("torch.Tensor", "torch.float32", shape, None))

    def test_parameters_and_subclasses(self):
        class Own(torch.Tensor):
            pass

        parameter, own, quantized = self.record(
            nn.Parameter(torch.ones(2)), torch.ones(3).as_subclass(Own),
            torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 0, torch.quint8))
        self.assertEqual((parameter["type"], parameter["requires_grad"], parameter["Max"]), ("torch.Tensor", True, 1.0))
        self.assertEqual((own["type"], own["shape"], own["Max"]), ("torch.Tensor", [3], 1.0))
        self.assertEqual(quantized["dtype"], "torch.quint8")

    def test_inference_mode(self):
        with torch.inference_mode():
            tensor = torch.ones(2000)
            got, = self.record(tensor)
        self.assertEqual((got["Max"], got["Mean"]), (1.0, 1.0))

    def test_plain_values(self):
        got = self.record(None, True, 3, 2 ** 70, 2.5, math.inf, "text \u00e9\ud800", slice(1, 5, 2),
                          slice(None, torch.tensor(3)), ..., torch.Size([2, 3]), torch.contiguous_format, 1j, {1, 2},
                          b"x", object())
        self.assertEqual(got[:6], [None, {"type": "bool", "value": True}, {"type": "int", "value": 3},
                                   {"type": "int", "value": 2 ** 70}, {"type": "float", "value": 2.5},
                                   {"type": "float", "value": math.inf}])
        self.assertEqual(got[6], {"type": "str", "value": "text \u00e9?"})
        self.assertEqual(got[7:], [
            {"type": "slice", "value": [1, 5, 2]}, {"type": "slice", "value": [None, 3, None]},
            {"type": "ellipsis", "value": "..."}, {"type": "torch.Size", "value": [2, 3]},
            {"type": "torch.memory_format", "format": "contiguous_format"}, None, None, None, None])

    def test_containers(self):
        got = self.record([1, (2.5, None)], {"a": 1, 2: "b"}, Point(1, 2), Colour.RED, collections.OrderedDict(z=1),
                          (), {})
        one = {"type": "int", "value": 1}
        self.assertEqual(got, [
            [one, [{"type": "float", "value": 2.5}, None]], {"a": one, "2": {"type": "str", "value": "b"}},
            {"x": one, "y": {"type": "int", "value": 2}}, {"type": "Colour", "value": 1}, {"z": one}, [], {}])

    def test_numpy(self):
        scalar, array, texts, empty = self.record(numpy.float32(1.5), numpy.arange(6.0).reshape(2, 3),
                                                  numpy.array(["a"]), numpy.zeros(0))
        self.assertEqual(scalar, {"type": "float32", "value": 1.5})
        self.assertEqual((array["type"], array["dtype"], array["shape"], array["Max"], array["Mean"]),
                         ("numpy.ndarray", "float64", [2, 3], 5.0, 2.5))
        self.assertNotIn("requires_grad", array)
        self.assertEqual((texts["dtype"], texts["Max"]), ("<U1", None))
        self.assertIsNone(empty["Max"])

    def test_dtype_and_device(self):
        got = self.record(dtype=torch.float16, device=torch.device("cpu"), other=torch.float32, output_dtype=None)
        self.assertEqual(got["dtype"], {"type": "torch.dtype", "value": "torch.float16"})
        self.assertEqual(got["device"], {"type": "torch.device", "value": "cpu:None"})
        self.assertEqual(got["other"], {"type": "torch.dtype", "value": "torch.float32"})
        self.assertEqual(self.record(device="cpu")["device"], {"type": "torch.device", "value": "cpu"})

    def test_results_are_not_used_again_after_a_change(self):
        library = types.ModuleType("library")
        library.function = lambda value: None
        debugger = self.open("L1")
        debugger.register_custom_api(library, "function")
        tensor = torch.zeros(5000)
        debugger.start()
        library.function(tensor)
        library.function(tensor)
        tensor.add_(1.0)
        library.function(tensor)
        tensor.data.add_(1.0)
        library.function(tensor)
        array = tensor.numpy()
        library.function(tensor)
        array += 1.0
        library.function(tensor)
        debugger.stop()
        data = self.tree().data
        self.assertEqual([data["library.function.%d.forward" % call]["input_args"][0]["Max"] for call in range(6)],
                         [0.0, 0.0, 1.0, 2.0, 2.0, 3.0])


class Decided(Case):
    """Choices in docs/collector-details.md about values and places."""

    def test_no_dtype_is_null(self):
        debugger = self.open("L1")
        debugger.start()
        torch.sum(torch.ones(2), dtype=None)
        torch.full((2,), 1.0, dtype=torch.float64, device=None)
        debugger.stop()
        data = self.tree().data
        self.assertEqual(data["Torch.sum.0.forward"]["input_kwargs"], {"dtype": None})
        self.assertEqual(data["Torch.full.0.forward"]["input_kwargs"],
                         {"dtype": {"type": "torch.dtype", "value": "torch.float64"}, "device": None})

    def test_means_of_masks_do_not_overflow(self):
        debugger = self.open("L1")
        debugger.start()
        torch.abs(torch.full((4,), -3.0e38))
        debugger.stop()
        mask = self.tree().data["Torch.abs.0.forward"]["input_args"][0]
        self.assertAlmostEqual(mask["Mean"] / -3.0e38, 1.0, places=6)

    def test_tied_parameters_belong_to_every_module(self):
        debugger = self.open("L0")

        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding(5, 3)
                self.head = nn.Linear(3, 5, bias=False)
                self.head.weight = self.embedding.weight

            def forward(self, x):
                return self.head(self.embedding(x))

        model = Tied()
        debugger.start(model)
        model(torch.tensor([1, 2])).sum().backward()
        debugger.stop()
        data = self.tree().data
        names = [name for name in data if "parameters_grad" in name]
        self.assertEqual(names, ["Module.embedding.Embedding.parameters_grad.0", "Module.head.Linear.parameters_grad.0"])
        self.assertEqual(names, list(data)[-2:])
        norms = [data[name]["weight"][0]["Norm"] for name in names]
        self.assertAlmostEqual(norms[0], float(model.head.weight.grad.norm()), places=5)
        self.assertEqual(norms[0], norms[1])

    def test_copies_record_nothing_of_modules(self):
        import copy
        debugger = self.open("mix")
        model = make_net()
        debugger.start(model)
        model(make_input())
        twin = copy.deepcopy(model)
        debugger.stop()
        debugger.step()
        debugger.start(model)
        twin(make_input())
        self.assertEqual(len(model.b1._forward_hooks), 1)
        debugger.stop()
        debugger.step()
        names = self.tree(1).names
        self.assertEqual([name for name in names if name.startswith("Module.")], [])
        self.assertIn("Functional.linear.2.forward", names)
        debugger.start(twin)
        twin(make_input())
        debugger.stop()
        self.assertIn("Module.b1.l1.Linear.forward.0", self.tree(2).names)


if __name__ == "__main__":
    unittest.main()

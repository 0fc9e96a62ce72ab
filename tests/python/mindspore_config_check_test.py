# SPDX-License-Identifier: Apache-2.0
"""ConfigChecker for MindSpore, by a stand-in for it; tests/peer/mindspore_packs.py has the real one."""

import json
import os
import tempfile
import unittest
import zipfile

import doubles  # noqa: F401 - the stand-in
import numpy
import mindspore as ms

from msprobe.core.common.exceptions import MsprobeException
from msprobe.core.config_check import ConfigChecker


class Net(ms.nn.Cell):
    def __init__(self):
        self.hooks = {}
        self.weight = ms.Parameter(numpy.array([1.5, -2.0], "float32"))

    def register_forward_pre_hook(self, hook, with_kwargs=False):
        self.hooks[hook] = with_kwargs
        return type("Handle", (), {"remove": lambda handle: self.hooks.pop(hook)})()

    def parameters_and_names(self):
        return iter([("fc.weight", self.weight)])

    def __call__(self, *args, **kwargs):
        for hook, with_kwargs in list(self.hooks.items()):
            hook(self, args, kwargs) if with_kwargs else hook(self, args)


class ConfigCheck(unittest.TestCase):
    def test_pack(self):
        with tempfile.TemporaryDirectory(prefix="msprobe-test-") as folder:
            path = os.path.join(folder, "pack.zip")
            ConfigChecker.apply_patches("mindspore")
            for _ in range(2):
                ms.set_seed(1)
                drawn = ms.ops.rand(3)
            net = Net()
            checker = ConfigChecker(net, output_zip_path=path, fmk="mindspore")
            x = ms.Tensor(numpy.array([[3.0, -1.0], [0.0, 2.0]], "float32"))
            net(x, [x, "text"], mask=ms.Tensor(numpy.array([True, False])), nothing=ms.Tensor(numpy.zeros((0, 2), "float32")))
            other = Net()
            other.hooks = dict(net.hooks)  # as a copy shares them
            other(x)
            checker.remove()
            net(x)
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                pack = {name: json.loads(archive.read(name)) for name in names[2:]}
                self.assertNotIn("torch.get_default_dtype()", json.loads(archive.read("env")))
        self.assertEqual(names, ["env", "pip", "dataset/step0/rank0/dataset.json", "weights/step0/rank0/weight.json",
                                 "random/rank0.json"])
        of_x = {"max": 3.0, "min": -1.0, "mean": 1.0, "norm": float(numpy.float32(14.0 ** 0.5))}
        self.assertEqual(pack["dataset/step0/rank0/dataset.json"], {
            "args": {"0": of_x, "1": {"0": of_x, "1": ""}},
            "kwargs": {"mask": {"max": 1.0, "min": 0.0, "mean": 0.5, "norm": 1.0}, "nothing": dict.fromkeys(of_x)}})
        self.assertEqual(pack["weights/step0/rank0/weight.json"],
                         {"fc.weight": {"max": 1.5, "min": -2.0, "mean": -0.25, "norm": 2.5}})
        self.assertEqual({name: [call["count"] for call in calls] for name, calls in pack["random/rank0.json"].items()
                          if name.startswith("mindspore")}, {"mindspore.set_seed": [2], "mindspore.ops.rand": [2]})
        self.assertEqual(drawn.shape, (3,))

    def test_what_is_no_cell(self):
        with tempfile.TemporaryDirectory(prefix="msprobe-test-") as folder:
            with self.assertRaisesRegex(MsprobeException, "must be a mindspore.nn.Cell"):
                ConfigChecker(object(), output_zip_path=os.path.join(folder, "pack.zip"), fmk="mindspore")


if __name__ == "__main__":
    unittest.main()

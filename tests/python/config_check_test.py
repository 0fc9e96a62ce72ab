# SPDX-License-Identifier: Apache-2.0
"""ConfigChecker: what a pack collected inside a run holds."""

import json
import zipfile

from helpers import *
from msprobe.core.common.exceptions import MsprobeException
from msprobe.core.config_check import ConfigChecker


class ConfigCheck(Case):
    def test_pack(self):
        path = os.path.join(self.folder, "pack.zip")
        os.environ["MSPROBE_TEST_API_KEY"] = "hidden"
        ConfigChecker.apply_patches()
        ConfigChecker.apply_patches()
        for _ in range(2):
            torch.rand(3)
        net = make_net()
        checker = ConfigChecker(net, output_zip_path=path)
        x = make_input()
        net(x)
        net(x)
        checker.remove()
        net(x)
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            self.assertEqual(names, ["env", "pip", "dataset/step0/rank0/dataset.json", "weights/step0/rank0/weight.json",
                                     "random/rank0.json", "dataset/step1/rank0/dataset.json",
                                     "weights/step1/rank0/weight.json"])
            load = lambda name: json.loads(archive.read(name))
            self.assertEqual(load("env")["MSPROBE_TEST_API_KEY"], "******")
            self.assertEqual(load("env")["torch.get_default_dtype()"], "torch.float32")
            self.assertEqual(load("env")["torch.backends.cudnn.benchmark"], str(torch.backends.cudnn.benchmark))
            self.assertIn("numpy=", archive.read("pip").decode().lower())
            dataset = load("dataset/step0/rank0/dataset.json")
            self.assertEqual(list(dataset["args"]["0"]), ["max", "min", "mean", "norm"])
            self.assertAlmostEqual(dataset["args"]["0"]["max"], float(x.max()), places=6)
            weights = load("weights/step1/rank0/weight.json")
            self.assertEqual(list(weights), [name for name, _ in net.named_parameters()])
            draws = load("random/rank0.json")["torch.rand"]
            self.assertEqual([draw["count"] for draw in draws], [2])
            self.assertIn("torch.rand(3)", draws[0]["stack"][-1])
            self.assertEqual(archive.getinfo("env").date_time, (1980, 1, 1, 0, 0, 0))

    def test_a_link_is_replaced_and_not_what_it_leads_to(self):
        target, path = (os.path.join(self.folder, name) for name in ("target", "pack.zip"))
        with open(target, "w", encoding="utf-8") as file:
            file.write("mine")
        os.symlink(target, path)
        ConfigChecker(output_zip_path=path)
        with zipfile.ZipFile(path) as archive:
            self.assertEqual(archive.namelist(), ["env", "pip"])
            self.assertEqual(archive.comment, b"msprobe pack 1")
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    def test_wrong_arguments(self):
        for keys in ({"model": 3}, {"shell_path": "a.sh"}, {"fmk": "other"}, {"fmk": None}, {"output_zip_path": "pack.tar"}):
            keys.setdefault("output_zip_path", os.path.join(self.folder, "pack.zip"))
            with self.assertRaises(MsprobeException, msg=str(keys)):
                ConfigChecker(**keys)


if __name__ == "__main__":
    unittest.main()

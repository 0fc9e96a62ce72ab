# SPDX-License-Identifier: Apache-2.0
"""Paths by which programs import from releases of the Python tool: each name is there, or says when it is used why not."""

import importlib
import json
import shutil
import tempfile

from helpers import *

import msprobe

with open(os.path.join(os.path.dirname(msprobe.__file__), "old_paths.json"), encoding="utf-8") as file:
    TABLE = json.load(file)


class OldPaths(unittest.TestCase):
    def test_each_name_is_there(self):
        for path, names in TABLE.items():
            if path.startswith("msprobe.mindspore"):
                continue  # those need MindSpore
            module = importlib.import_module(path)
            for name, found in names.items():
                value = getattr(module, name)
                if isinstance(found, dict) and "refuses" in found:
                    with self.assertRaisesRegex(NotImplementedError, "^%s is not there: ." % name):
                        value(1, key=2)
                elif isinstance(found, str):
                    self.assertTrue(callable(value), name)

    def test_they_are_the_same_objects(self):
        from msprobe.pytorch.debugger.precision_debugger import PrecisionDebugger as of_8
        from msprobe.pytorch.dump.debugger.precision_debugger import PrecisionDebugger as of_26
        self.assertIs(of_8, PrecisionDebugger)
        self.assertIs(of_26, PrecisionDebugger)
        from msprobe.core import SingleComparator, SingleSave
        self.assertEqual((SingleSave.__name__, SingleComparator.__name__), ("SingleSave", "SingleComparator"))

    def test_a_class_that_is_replaced_names_what_replaces_it(self):
        from msprobe.pytorch.online_dispatch import PtdbgDispatch
        with self.assertRaisesRegex(NotImplementedError, "^PtdbgDispatch is not there: task acc_check of PrecisionDebugger .*"):
            with PtdbgDispatch(dump_mode="auto", dump_path="dump"):
                pass

    def test_what_nobody_knows(self):
        for path in ("msprobe.nothing", "msprobe.pytorch.nothing", "msprobe.pytorch.debugger.nothing"):
            with self.assertRaises(ModuleNotFoundError):
                importlib.import_module(path)
        with self.assertRaises(ImportError):
            from msprobe.core import nothing  # noqa: F401
        with self.assertRaises(AttributeError):
            importlib.import_module("msprobe.core.common.const").nothing

    def test_importing_msprobe_imports_nothing_else(self):
        script = "import sys, msprobe\nprint(sorted(m for m in sys.modules if m.startswith(('msprobe', 'torch', 'numpy'))))"
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run_script(script, folder, fresh=True).stdout.strip(),
                             "['msprobe', 'msprobe.old_paths', 'msprobe.side_by_side']")

    def test_the_python_tool_in_the_same_folder(self):
        package = os.path.dirname(msprobe.__file__)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(package, os.path.join(folder, "msprobe"))
            script = "import sys\nsys.path.insert(0, sys.argv[1])\nimport msprobe"
            self.assertEqual(run_script(script, folder, folder, fresh=True).stderr, "")
            os.mkdir(os.path.join(folder, "mindstudio_probe-26.2.0.dist-info"))
            lines = run_script(script, folder, folder, fresh=True).stderr.splitlines()
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].startswith("msprobe: warning: mindstudio-probe is installed in the same place (%s)" % folder))


class SingleSaving(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="msprobe-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def files(self):
        return sorted(os.path.relpath(os.path.join(place, name), self.folder)
                      for place, _, names in os.walk(self.folder) for name in names)

    def test_files_as_the_python_tool_writes_them(self):
        from msprobe.core import SingleSave
        SingleSave._instance = None
        saver = SingleSave(self.folder)
        self.assertIs(SingleSave("elsewhere"), saver)
        saver.save({"a": torch.arange(4.0), "l": [torch.ones(2, dtype=torch.bfloat16), torch.zeros(3)]})
        saver.save({"a": torch.arange(4)})
        saver.save({"d": {"x": torch.tensor(2.5), "y": torch.tensor([True, False])}})
        saver.save_ex({"whole": torch.ones(2, requires_grad=True)})
        saver.save_ex({"third": torch.ones(2)}, micro_batch=3)
        saver.step()
        saver.save({"a": torch.zeros(0)})
        saver.save_config({"lr": 0.1})
        step0, step1 = "step0/rank0/", "step1/rank0/"
        self.assertEqual(self.files(), sorted([
            "configurations.json",
            "data/a/" + step0 + "micro_step0/a.json", "data/a/" + step0 + "micro_step0/a.npy",
            "data/a/" + step0 + "micro_step1/a.json", "data/a/" + step0 + "micro_step1/a.npy",
            "data/a/" + step1 + "micro_step0/a.json", "data/a/" + step1 + "micro_step0/a.npy",
            "data/d/" + step0 + "micro_step0/d.json", "data/d/" + step0 + "micro_step0/d.x.npy",
            "data/d/" + step0 + "micro_step0/d.y.npy",
            "data/l/" + step0 + "micro_step0/l.0.npy", "data/l/" + step0 + "micro_step0/l.1.npy",
            "data/l/" + step0 + "micro_step0/l.json",
            "data/third/" + step0 + "micro_step3/third.json", "data/third/" + step0 + "micro_step3/third.npy",
            "data/whole/" + step0 + "whole.json", "data/whole/" + step0 + "whole.npy"]))
        with open(os.path.join(self.folder, "data/a", step0, "micro_step1/a.json"), encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith('{\n    "data": {\n        "max": 3.0,\n        "min": 0.0,\n        "mean": 1.5,\n'), text)
        self.assertEqual(json.loads(text)["data"]["shape"], [4])
        with open(os.path.join(self.folder, "data/d", step0, "micro_step0/d.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["data"]["y"], {"max": 1.0, "min": 0.0, "mean": 0.5, "norm": 1.0, "shape": [2]})
        import numpy
        for name in ("data/l/%smicro_step0/l.0.npy" % step0, "data/d/%smicro_step0/d.x.npy" % step0):
            self.assertEqual(numpy.load(os.path.join(self.folder, name)).dtype, numpy.float32)

    def test_methods_of_the_class(self):
        """As in the documents: the object is made once, and the class is called."""
        from msprobe.core import SingleSave
        SingleSave._instance = None
        SingleSave(self.folder, fmk="pytorch")
        SingleSave.save({"response": torch.arange(3.0)})
        SingleSave.save({"response": [torch.arange(3.0)]})
        SingleSave.save_ex({"x": torch.arange(3.0)}, micro_batch=1)
        SingleSave.save_ex({"x": torch.arange(3.0)})
        SingleSave.save_config({"lr": 0.1})
        SingleSave.step()
        SingleSave.save({"response": torch.arange(3.0)})
        # The Python tool 26.2 writes these.
        self.assertEqual(self.files(), [
            "configurations.json",
            "data/response/step0/rank0/micro_step0/response.json", "data/response/step0/rank0/micro_step0/response.npy",
            "data/response/step0/rank0/micro_step1/response.0.npy", "data/response/step0/rank0/micro_step1/response.json",
            "data/response/step1/rank0/micro_step0/response.json", "data/response/step1/rank0/micro_step0/response.npy",
            "data/x/step0/rank0/micro_step1/x.json", "data/x/step0/rank0/micro_step1/x.npy",
            "data/x/step0/rank0/x.json", "data/x/step0/rank0/x.npy"])

    def test_without_an_object_one_line_says_so(self):
        script = """
import torch
from msprobe.core import SingleSave
for _ in range(2):
    SingleSave.save({"response": torch.ones(1)})
    SingleSave.save_ex({"response": torch.ones(1)})
    SingleSave.step()
SingleSave.save_config({})
"""
        self.assertEqual(run_script(script, self.folder).stderr.splitlines(), [
            "msprobe: warning: SingleSave: SingleSave(dump_path) must be called first",
            "msprobe: warning: SingleSave: configurations.json cannot be written: SingleSave(dump_path) must be called first"])

    def test_what_cannot_be_saved_disturbs_nothing(self):
        from msprobe.core import SingleSave
        SingleSave._instance = None
        saver = SingleSave(self.folder)
        for wrong in (3, {3: torch.ones(1)}, {"../up": torch.ones(1)}, {"n": None}, {"n": [torch.ones(1), 3]},
                      {"n": torch.ones(1, dtype=torch.complex64)}, {"n": {"a/b": torch.ones(1)}},
                      {"n": torch.ones(2).to_sparse()}, {"n": torch.ones(2, device="meta")}):
            saver.save(wrong)
        saver.save_config(object())
        self.assertEqual(self.files(), [])
        saver.save({"../up": torch.ones(1), "meta": torch.ones(2, device="meta"), "good": torch.ones(1)})
        self.assertEqual([os.path.basename(name) for name in self.files()], ["good.json", "good.npy"])


if __name__ == "__main__":
    unittest.main()

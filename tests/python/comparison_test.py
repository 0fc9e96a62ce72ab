# SPDX-License-Identifier: Apache-2.0
"""msprobe.compare(), `python -m msprobe` and what else the package itself has."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

import msprobe
from msprobe.core import command

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLES = os.path.join(ROOT, "data", "samples")
TILE, GOLDEN = (os.path.join(SAMPLES, name) for name in ("tile", "golden"))

if command.find() is None:
    print("SKIPPED: the command was not built")
    sys.exit(77)


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="msprobe-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def dump(self, name, entries, task="statistics"):
        """A dump with these outputs: {entry: maximum, or None for one without statistics}."""
        rank = os.path.join(self.folder, name, "step0", "rank0")
        os.makedirs(rank)
        data = {}
        for entry, value in entries.items():
            tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": value, "Min": value, "Mean": value,
                      "Norm": value, "requires_grad": False}
            data[entry] = {"input_args": [], "input_kwargs": {}, "output": [tensor]}
        with open(os.path.join(rank, "dump.json"), "w", encoding="utf-8") as file:
            json.dump({"task": task, "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}, file)
        return os.path.join(self.folder, name)

    def test_culprit(self):
        found = msprobe.compare(TILE, GOLDEN)
        self.assertFalse(found)
        self.assertEqual(found.culprit.entry, "Functional.linear.6.forward")
        self.assertEqual((found.culprit.step, found.culprit.rank, found.culprit.confidence), ("step0", "rank1", "certain"))
        self.assertIs(found.findings[0], found.culprit)
        self.assertTrue(repr(found).startswith("culprit"), repr(found))
        self.assertIn("recomputed in float64", repr(found))
        self.assertIn("210 rows", str(found))
        self.assertNotIn("written:", repr(found))
        shown = found._repr_html_()
        self.assertIn("culprit:</span> Functional.linear.6.forward, step 0, rank 1", shown)
        self.assertEqual(shown.count("<div"), shown.count("</div>"))

    def test_warnings_of_the_command_are_shown(self):
        ask = command.ask

        def warned(arguments):
            status, out, err = ask(arguments)
            return status, out, err + "".join("msprobe: warning: number %d\n" % number for number in range(50))
        self.addCleanup(setattr, command, "ask", ask)
        command.ask = warned
        found = msprobe.compare(TILE, GOLDEN)
        self.assertIn("pass\n\nmsprobe: warning: number 0\n", repr(found))
        self.assertTrue(repr(found).endswith("number 39\n10 more lines in .text"), repr(found))
        self.assertIn("number 49", found.text)

    def test_agreement(self):
        found = msprobe.compare(GOLDEN, GOLDEN)
        self.assertTrue(found)
        self.assertIsNone(found.culprit)
        self.assertEqual(found.findings, [])
        self.assertTrue(repr(found).startswith("no culprit: all 210 rows"), repr(found))
        self.assertIn("#1a7f37\">no culprit:", found._repr_html_())

    def test_what_was_not_compared_is_no_agreement_and_is_shown(self):
        both = {"Torch.relu.0.forward": 1.0, "Torch.exp.0.forward": 2.0}
        target, golden = self.dump("a", both), self.dump("b", both)
        self.assertTrue(msprobe.compare(target, golden))
        os.rename(os.path.join(target, "step0"), os.path.join(target, "step1"))
        more = self.dump("c", both)
        os.rename(os.path.join(more, "step0"), os.path.join(target, "step0"))
        found = msprobe.compare(target, golden)
        self.assertIsNone(found.culprit)
        self.assertFalse(found)
        self.assertIn("#9a6700\">no culprit:", found._repr_html_())
        self.assertIn("not compared: ", repr(found))
        self.assertIn("step1", repr(found))

    def test_a_step_without_entries_is_no_agreement(self):
        target, golden = (self.dump(name, {"Torch.relu.0.forward": 1.0}) for name in "ab")
        for side, name in ((target, "c"), (golden, "d")):
            os.rename(os.path.join(self.dump(name, {}), "step0"), os.path.join(side, "step1"))
        found = msprobe.compare(target, golden)
        self.assertIsNone(found.culprit)
        self.assertFalse(found)
        self.assertIn("msprobe: error: not judged: step1/", found.text)

    def test_nothing_compared(self):
        target, golden = (self.dump(name, {"Torch.relu.0.forward": None}) for name in "ab")
        with self.assertRaises(msprobe.NothingCompared):
            msprobe.compare(target, golden)
        structure = [self.dump(name, {}, "structure") for name in "cd"]
        with self.assertRaises(msprobe.NothingCompared) as raised:
            msprobe.compare(*structure)
        self.assertNotIn("\n", str(raised.exception))

    def test_errors(self):
        with self.assertRaises(msprobe.ComparisonError) as raised:
            msprobe.compare("/nowhere/a", GOLDEN)
        self.assertEqual(str(raised.exception), "[msprobe] /nowhere/a: No such file or directory")
        with self.assertRaises(msprobe.MsprobeException) as raised:
            msprobe.compare(self.dump("odd", {"Torch.relu.0.forward": 1.0}, "free_benchmark"), GOLDEN)
        self.assertIn("task 'free_benchmark' cannot be compared", str(raised.exception))
        with self.assertRaises(msprobe.ComparisonError):
            msprobe.compare(TILE, GOLDEN, options=["--no-such-option"])
        with self.assertRaises(TypeError):
            msprobe.compare(TILE, GOLDEN, colour="red")

    def test_rows(self):
        found = msprobe.compare(TILE, GOLDEN)
        rows = found.rows()
        first = next(rows)
        self.assertEqual((first["Step"], first["Rank"]), ("step0", "rank0"))
        self.assertNotIn("kind", first)
        self.assertEqual(len(list(rows)), 209)
        self.assertEqual(list(rows), [])
        self.assertEqual(len([row for row in found.rows() if row["Origin"] == "introduced"]), 1)
        rows = found.rows()
        del found  # they keep the file
        self.assertEqual(len(list(rows)), 210)

    @unittest.skipIf(importlib.util.find_spec("pandas") is None, "pandas is not installed (python3-pandas)")
    def test_pandas(self):
        table = msprobe.compare(TILE, GOLDEN).rows().to_pandas()
        self.assertEqual(len(table), 210)
        self.assertEqual(str(table["MaxAbsErr"].dtype), "float64")
        self.assertEqual(table.loc[table["Error"].idxmax(), "NPU Name"].split(".output")[0], "Functional.linear.7.forward")
        statistics = self.dump("a", {"Torch.relu.0.forward": 1.5}), self.dump("b", {"Torch.relu.0.forward": 1.0})
        self.assertEqual(list(msprobe.compare(*statistics).rows().to_pandas()["MaxRelativeErr"]), [0.5])

    @unittest.skipIf(importlib.util.find_spec("polars") is None, "Polars is not installed")
    def test_polars(self):
        table = msprobe.compare(TILE, GOLDEN).rows().to_polars()
        self.assertEqual(table.shape[0], 210)
        self.assertEqual(str(table["MaxAbsErr"].dtype), "Float64")
        self.assertGreater(table["Error"].null_count(), 0)

    def test_report(self):
        path = os.path.join(self.folder, "report.html")
        found = msprobe.compare(TILE, GOLDEN)
        self.assertEqual(found.report(path), path)
        with open(path, encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("<!doctype html>"))
        with self.assertRaises(msprobe.ComparisonError):
            found.report(os.path.join(path, "below-a-file.html"))

    def test_options(self):
        self.assertTrue(msprobe.compare(TILE, GOLDEN, first=True, replay="never").culprit)
        self.assertNotEqual(msprobe.compare(TILE, GOLDEN, replay="never").culprit.kind, "replay")
        mapping = os.path.join(self.folder, "map.yaml")
        with open(mapping, "w", encoding="utf-8") as file:
            file.write("Torch.relu.0.forward.output.0: Torch.clamp.0.forward.output.0\n")
        dumps = self.dump("a", {"Torch.relu.0.forward": 1.0}), self.dump("b", {"Torch.clamp.0.forward": 1.0})
        row = next(msprobe.compare(*dumps, data_mapping=mapping).rows())
        self.assertEqual(row["Bench Name"], "Torch.clamp.0.forward.output.0")

    def test_temporary_files_are_removed(self):
        temporary = os.path.join(self.folder, "tmp")
        os.mkdir(temporary)
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = temporary
        found = msprobe.compare(GOLDEN, GOLDEN)
        self.assertEqual(len(os.listdir(temporary)), 1)
        del found
        self.assertEqual(os.listdir(temporary), [])


class Package(unittest.TestCase):
    def run_python(self, *arguments, **keys):
        return subprocess.run([sys.executable, "-W", "ignore"] + list(arguments), check=False, capture_output=True,
                              text=True, **keys)

    def test_import_is_light(self):
        done = self.run_python("-c", "import sys, msprobe; before = set(sys.modules); msprobe.compare; msprobe.__version__\n"
                               "print([name for name in ('torch', 'numpy', 'pandas', 'pytest') if name in sys.modules])")
        self.assertEqual((done.stdout, done.stderr), ("[]\n", ""))

    def test_version(self):
        told = subprocess.run([command.find(), "--version"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(told.stdout.split("\n")[0], "msprobe " + msprobe.__version__)

    def test_names(self):
        self.assertIn("compare", dir(msprobe))
        for name in msprobe.__all__:
            getattr(msprobe, name)
        with self.assertRaises(AttributeError):
            msprobe.no_such_name
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(msprobe.__file__), "py.typed")))

    def test_command_of_the_module(self):
        done = self.run_python("-m", "msprobe", "compare", "-tp", TILE, "-gp", GOLDEN, "-o", "-", "--format", "jsonl",
                               "--fail-on", "culprit")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len([line for line in done.stdout.splitlines() if '"kind": "row"' in line]), 210)
        self.assertEqual(self.run_python("-m", "msprobe", "compare", "-tp", "/nowhere", "-gp", GOLDEN).returncode, 2)
        self.assertEqual(self.run_python("-m", "msprobe", "--version").stdout.split()[:2], ["msprobe", msprobe.__version__])


if __name__ == "__main__":
    unittest.main()

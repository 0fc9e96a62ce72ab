# SPDX-License-Identifier: Apache-2.0
"""Python names of offline work: they call the command of this package, and no other one of its name."""

import csv
import glob
import json
import shutil
import stat
import subprocess
import sys
import zipfile
from unittest import mock

from helpers import *
from msprobe.core import command, session
from msprobe.core.common import log
from msprobe.core.common.exceptions import FileCheckException, MsprobeException
from msprobe.core.config_check import ConfigChecker
from msprobe.core.single_save.single_comparator import SingleComparator
from msprobe.pytorch import compare, compare_distributed
from msprobe.pytorch.monitor.csv2tb import csv2tensorboard_by_step

if command.find() is None:
    print("SKIPPED: the command was not built")
    sys.exit(77)


class Command(Case):
    def setUp(self):
        super().setUp()
        self.out = os.path.join(self.folder, "out")

    def dump(self, name, value, step=1):
        path = os.path.join(self.folder, name)
        session._rank[0] = None
        debugger = self.open("L1", dump_path=path)
        for _ in range(step):
            debugger.start(rank_id=0)
            torch.relu(torch.tensor([value, 2.0]))
            debugger.stop()
            debugger.step()
        self.close()
        return path

    def rows(self, pattern="*.csv"):
        tables = glob.glob(os.path.join(self.out, "**", pattern), recursive=True)
        self.assertEqual(len(tables), 1, tables)
        with open(tables[0], encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))

    def test_compare(self):
        paths = [os.path.join(self.dump(name, value), "step0", "rank0", "dump.json")
                 for name, value in (("target", 1.0), ("golden", 1.5))]
        expected = {"Torch.relu.0.forward.input.0": "2.0", "Torch.relu.0.forward.output.0": "2.0"}
        listed = os.path.join(self.folder, "compare.json")
        with open(listed, "w", encoding="utf-8") as file:
            json.dump({"npu_path": paths[0], "bench_path": paths[1], "is_print_compare_log": False}, file)
        for input_param in ({"npu_json_path": paths[0], "bench_json_path": paths[1],
                             "stack_json_path": paths[0].replace("dump.json", "stack.json"),
                             "is_print_compare_log": True},
                            {"npu_path": paths[0], "bench_path": paths[1]}, listed):
            compare(input_param, self.out, auto_analyze=False, fuzzy_match=True, format="csv,xlsx")
            self.assertEqual(len(glob.glob(os.path.join(self.out, "*.xlsx"))), 1)
            rows = self.rows()
            self.assertEqual([row["NPU Name"] for row in rows], list(expected))
            self.assertEqual([float(row["NPU min"]) for row in rows], [1.0, 1.0])
            self.assertEqual([float(row["Bench min"]) for row in rows], [1.5, 1.5])
            shutil.rmtree(self.out)

    def test_compare_distributed(self):
        paths = [self.dump(name, value, 2) for name, value in (("target", 1.0), ("golden", 1.5))]
        compare_distributed(os.path.join(paths[0], "step1"), os.path.join(paths[1], "step1"), output_path=self.out)
        (name,) = os.listdir(self.out)
        self.assertRegex(name, r"^compare_result_rank0_\d{14}\.xlsx$")  # as release 8.1.1 calls it
        with zipfile.ZipFile(os.path.join(self.out, name)) as workbook:
            self.assertIn("Torch.relu.0.forward.input.0", "".join(
                workbook.read(part).decode() for part in workbook.namelist()))
        for choice in ({"xlsx": False}, {"format": "csv"}):
            shutil.rmtree(self.out)
            compare_distributed(os.path.join(paths[0], "step1"), os.path.join(paths[1], "step1"), self.out, **choice)
            self.assertEqual(len(self.rows()), 2)
            self.assertEqual(glob.glob(os.path.join(self.out, "*.xlsx")), [])

    def test_wrong_arguments(self):
        for call in (lambda: compare({"npu_path": "a"}, self.out), lambda: compare(3, self.out),
                     lambda: compare({"npu_path": "/nowhere/a", "bench_path": "/nowhere/b"}, self.out),
                     lambda: SingleComparator.compare(".", ".", self.out, num_processes=0)):
            with self.assertRaises(MsprobeException):
                call()
        with self.assertRaises(TypeError):
            compare({"npu_path": "a", "bench_path": "b"}, self.out, colour="red")
        with self.assertRaises(FileCheckException):
            SingleComparator.compare(self.folder, self.folder, self.out)
        self.assertFalse(os.path.exists(self.out))

    def test_saved_arrays(self):
        import numpy
        folders = []
        for name, value in (("one", 1.0), ("two", 1.0005)):
            folders.append(os.path.join(self.folder, name))
            rank = os.path.join(folders[-1], "data", "tag", "step0", "rank0")
            os.makedirs(rank)
            numpy.save(os.path.join(rank, "x_0.npy"), numpy.array([1.0, value], dtype=numpy.float32))
        SingleComparator.compare(*folders, output_path=self.out, num_processes=2)
        tables = os.listdir(self.out)
        self.assertEqual([name.split(".")[0] for name in tables], ["tag"])

    def test_files_of_a_monitor(self):
        tree = os.path.join(self.folder, "run", "Jan01_00-00-00-rank0-00000000")
        os.makedirs(tree)
        with open(os.path.join(tree, "actv_0-0.csv"), "w", encoding="utf-8") as file:
            file.write("vpp_stage,name,step,micro_step,norm,shape,dtype\n0,a.input,0,0,1.5,[2],torch.float32\n")
        csv2tensorboard_by_step(os.path.dirname(tree), data_type_list=["actv"], output_dirpath=self.out)
        self.assertEqual(len(glob.glob(os.path.join(self.out, "rank0", "actv", "events.out.tfevents.*"))), 1)
        for error, keys in ((RuntimeError, {"time_start": "2024-01-01"}), (ValueError, {"process_num": 0}),
                            (ValueError, {"time_start": "Jan02_00-00-00", "time_end": "Jan01_00-00-00"}),
                            (ValueError, {"data_type_list": ["other"]})):
            with self.assertRaises(error):
                csv2tensorboard_by_step(os.path.dirname(tree), output_dirpath=self.out, **keys)

    def test_alerts_of_a_monitor(self):
        folder = os.path.join(self.folder, "anomaly_detected", "rank0")
        os.makedirs(folder)
        alerts = {"late": {"step": 3, "tag_name": "0:a/rank0/actv", "message": "late"},
                  "early": {"step": 1, "tag_name": "0:a/rank0/actv", "message": "early"}}
        with open(os.path.join(folder, "anomaly.json"), "w", encoding="utf-8") as file:
            json.dump(alerts, file)
        words = [sys.executable, "-m", "msprobe.core.monitor.anomaly_processor", "-d", os.path.dirname(folder)]
        self.assertEqual(subprocess.call(words + ["-o", self.out, "-k", "1"], stderr=subprocess.DEVNULL), 0)
        with open(os.path.join(self.out, "anomaly_analyse.json"), encoding="utf-8") as file:
            self.assertEqual([one["message"] for one in json.load(file).values()], ["early"])
        self.assertEqual(subprocess.call(words + ["-k", "0"], stderr=subprocess.DEVNULL), 2)

    def test_packs(self):
        script = os.path.join(self.folder, "train.sh")
        packs = []
        for rate in ("0.1", "0.2"):
            with open(script, "w", encoding="utf-8") as file:
                file.write("python train.py --lr %s\nif a; then b; fi\n" % rate)
            packs.append(os.path.join(self.folder, "pack%s.zip" % rate))
            told = []
            with mock.patch.object(log, "_write", lambda kind, text: told.append(kind + text)):
                ConfigChecker(shell_path=[script], output_zip_path=packs[-1])
            self.assertEqual([line.partition(script)[2] for line in told if script in line], [": not understood: line 2"])
            with zipfile.ZipFile(packs[-1]) as archive:
                self.assertIn("0.%s" % rate[-1], archive.read("hyperparameters/hyperparameters_static.json").decode())
        ConfigChecker.compare(packs[0], packs[1], self.out)
        self.assertTrue(os.listdir(self.out))

    def test_another_command_of_that_name_is_left_alone(self):
        """Such as the Python tool's, beside the interpreter."""
        own = command.find()
        beside = os.path.join(self.folder, "bin")
        os.mkdir(beside)
        other = os.path.join(beside, "msprobe")
        with open(other, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\ntouch '%s/was-run'\necho 'msprobe 26.2.0'\n" % self.folder)
        os.chmod(other, stat.S_IRWXU)
        strange = os.path.join(self.folder, "msprobe")
        shutil.copy("/bin/true", strange)
        self.addCleanup(setattr, sys, "executable", sys.executable)
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ.get("PATH", ""))
        self.addCleanup(setattr, command, "__file__", command.__file__)
        sys.executable = os.path.join(beside, "python3")
        os.environ["PATH"] = os.pathsep.join([self.folder, os.path.dirname(own)])
        command.__file__ = os.path.join(self.folder, "lib", "msprobe", "core", "command.py")  # installed elsewhere
        self.assertEqual([os.path.dirname(path) for path in command._candidates()][-3:],
                         [beside, self.folder, os.path.dirname(own)])
        self.assertEqual(command.find(), own)
        os.environ["PATH"] = self.folder
        self.assertIsNone(command.find())
        with self.assertRaises(MsprobeException) as raised:
            compare({"npu_path": "a", "bench_path": "b"})
        self.assertIn("is not installed", str(raised.exception))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "was-run")))


class Installed(unittest.TestCase):
    """Where `meson install` puts the package."""

    def folder_for(self, prefix):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "find_folder.py")
        return subprocess.run([sys.executable, script, prefix], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()

    def test_python_looks_there(self):
        where = "import os, site, sys; print(os.linesep.join(sys.path + [site.getusersitepackages()]))"
        looks = subprocess.run([sys.executable, "-c", where], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.splitlines()
        prefixes = {sys.prefix, "/usr/local", os.path.join(os.path.expanduser("~"), ".local")}
        found = [(prefix, folder) for prefix in prefixes for folder in [self.folder_for(prefix)] if folder]
        self.assertTrue(found)
        for prefix, folder in found:
            self.assertTrue(folder.startswith(prefix + "/lib/"), folder)
            # Python leaves out those that do not exist yet.
            self.assertTrue(folder in looks or not os.path.exists(folder), folder)

    def test_elsewhere_meson_decides(self):
        self.assertEqual(self.folder_for("/opt/nowhere"), "")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""scripts/check-gpu: says that there is no GPU; its parts run with a stand-in for one, and notice what is wrong."""

import pathlib
import subprocess
import sys

from helpers import *

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-gpu"


def check_gpu(*arguments, package=None, **environment):
    package = package or os.environ["PYTHONPATH"].split(os.pathsep)[0]
    done = subprocess.run([str(SCRIPT), "--package", package, *arguments], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=dict(os.environ, PYTHON=sys.executable, **environment))
    return done.returncode, done.stdout


class CheckGpu(Case):
    def results(self, output):
        """{part: result}"""
        lines = output.splitlines()
        self.assertEqual(lines[1].split(), ["part", "result", "seconds", "detail"])
        return {line[:48].strip(): line[49:57].strip() for line in lines[2:-1]}

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_without_a_gpu(self):
        status, output = check_gpu()
        self.assertEqual((status, output), (77, "check-gpu: no GPU: PyTorch %s sees none, so nothing was checked\n"
                                            % torch.__version__))

    def test_parts_with_a_stand_in(self):
        names = ["statistics", "synchronisation", "md5", "tensors", "streams", "equality", "graphs",
                 "own kernel"]
        status, output = check_gpu("--double", "--only", ",".join(names))
        self.assertEqual(status, 0, output)
        expected = {name: "skipped" if name in ("streams", "graphs", "own kernel") else "passed" for name in names}
        self.assertEqual(self.results(output), expected, output)
        self.assertTrue(output.splitlines()[-1].startswith("nothing failed; "))

    def test_parts_notice_what_is_wrong(self):
        """A device part that gives wrong numbers, waits for each tensor, and saves other elements."""
        wrong = os.path.join(self.folder, "sitecustomize.py")
        with open(wrong, "w", encoding="utf-8") as file:
            file.write("""
import importlib.abc, importlib.util, sys

class Spoiling(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "msprobe.pytorch.device":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            measure, to_host, add = module.measure, module._to_host, module._Results.add
            module.measure = lambda tensor: measure(tensor + 1)
            module._to_host = lambda tensor: to_host(tensor * 2)
            def adding(results, *rest):
                add(results, *rest)
                results.fetch()
            module._Results.add = adding

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Spoiling())
""")
        package = os.environ["PYTHONPATH"].split(os.pathsep)[0]
        names = ["statistics", "synchronisation", "md5", "tensors"]
        status, output = check_gpu("--double", "--only", ",".join(names), package=self.spoilt(package))
        self.assertEqual(status, 1, output)
        self.assertEqual(self.results(output), dict.fromkeys(names, "FAILED"), output)
        self.assertTrue(output.splitlines()[-1].startswith("4 failed; "))

    def spoilt(self, package):
        """The package, behind the module above."""
        os.symlink(os.path.join(os.path.abspath(package), "msprobe"), os.path.join(self.folder, "msprobe"))
        return self.folder

    def test_wrong_arguments(self):
        status, output = check_gpu("--double", "--only", "nothing")
        self.assertEqual(status, 2)
        self.assertIn("nothing is no part; there are statistics, ", output)
        status, output = check_gpu("--double", package=self.folder)
        self.assertEqual(status, 2)
        self.assertIn("holds no package msprobe", output)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""The plugin for pytest, in a separate pytest."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

from msprobe.core import command

if importlib.util.find_spec("pytest") is None:
    print("SKIPPED: pytest is not installed (python3-pytest)")
    sys.exit(77)
if command.find() is None:
    print("SKIPPED: the command was not built")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTS = """
import os
from msprobe.pytest_plugin import assert_same_run as imported

SAMPLES = %r

def test_same(assert_same_run):
    assert assert_same_run(SAMPLES + "/golden", SAMPLES + "/golden")

def test_other(assert_same_run):
    assert_same_run(SAMPLES + "/tile", SAMPLES + "/golden")

def test_imported():
    imported(SAMPLES + "/tile", SAMPLES + "/golden", noise=SAMPLES + "/golden")

def test_not_comparable(assert_same_run):
    assert_same_run(SAMPLES + "/nowhere", SAMPLES + "/golden")
""" % os.path.join(ROOT, "data", "samples")


class Plugin(unittest.TestCase):
    def pytest(self, *arguments, **keys):
        with tempfile.TemporaryDirectory(prefix="msprobe-test-") as folder:
            with open(os.path.join(folder, "test_runs.py"), "w", encoding="utf-8") as file:
                file.write(TESTS)
            return subprocess.run([sys.executable, "-W", "ignore", "-m", "pytest", "-p", "no:cacheprovider", "-q"] +
                                  list(arguments), check=False, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, **keys)

    def test_failure_is_the_answer_of_compare(self):
        done = self.pytest("-p", "msprobe.pytest_plugin")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("3 failed, 1 passed", done.stdout)
        lines = done.stdout.splitlines()
        failed = [line for line in lines if line.startswith("E ")]
        self.assertTrue(any(line[1:].strip().startswith("culprit") for line in failed), done.stdout)
        self.assertTrue(any("recomputed in float64" in line for line in failed), done.stdout)
        self.assertTrue(any("ComparisonError" in line and "No such file or directory" in line for line in failed), done.stdout)
        self.assertNotIn("found = msprobe.compare", done.stdout)  # of the plugin nothing is shown

    def test_fixtures(self):
        self.assertIn("which fails unless two dumps agree", self.pytest("-p", "msprobe.pytest_plugin", "--fixtures").stdout)

    def test_installed(self):
        """As pip does it: by the entry point in pyproject.toml, and -p for the same plugin does no harm."""
        with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
            name, target = re.search(r'^\[project.entry-points.pytest11\]\n"(.*?)" = "(.*?)"', file.read(), re.M).groups()
        with tempfile.TemporaryDirectory(prefix="msprobe-test-") as folder:
            info = os.path.join(folder, "msprobe_native-1.0.dist-info")
            os.mkdir(info)
            for file_name, text in (("METADATA", "Metadata-Version: 2.1\nName: msprobe-native\nVersion: 1.0\n"),
                                    ("entry_points.txt", "[pytest11]\n%s = %s\n" % (name, target))):
                with open(os.path.join(info, file_name), "w", encoding="utf-8") as file:
                    file.write(text)
            path = os.pathsep.join([folder] + [one for one in sys.path if one])
            for arguments in ([], ["-p", "msprobe.pytest_plugin"]):
                done = self.pytest(*arguments, env=dict(os.environ, PYTHONPATH=path))
                self.assertIn("3 failed, 1 passed", done.stdout)


if __name__ == "__main__":
    unittest.main()

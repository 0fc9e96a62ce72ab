# SPDX-License-Identifier: Apache-2.0
"""The code blocks of docs/python.md run, and say what the text around them promises."""

import importlib.util
import re
import shlex
import subprocess
import sys

from helpers import *
from msprobe.core import command

if command.find() is None:
    print("SKIPPED: the command was not built")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as document:
    TEXT = document.read()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


class Document(Case):
    def setUp(self):
        super().setUp()
        for name in ("data", "docs"):
            os.symlink(os.path.join(ROOT, name), os.path.join(self.folder, name))

    def run_block(self, word, *needed):
        """Runs the block with this word in it, and returns what it prints. Skips where a library is missing: one that
        it imports, or one of those `needed`."""
        blocks = [block for block in BLOCKS if word in block]
        self.assertEqual(len(blocks), 1, word)
        BLOCKS_RUN.add(blocks[0])
        for name in [*needed, *re.findall(r"^(?:import|from) (\w+)", blocks[0], re.MULTILINE)]:
            if importlib.util.find_spec(name) is None:
                self.skipTest(name + " is not installed")
        script = os.path.join(self.folder, "block.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(blocks[0])
        return self.finished([sys.executable, "-W", "ignore", script])

    def finished(self, arguments):
        done = subprocess.run(arguments, check=False, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def steps(self, name):
        return sorted(os.listdir(os.path.join(self.folder, name)))

    def test_compare(self):
        self.assertTrue(self.run_block("found.report(").startswith("Functional.linear.6.forward rank1 certain\nculprit"))
        self.assertTrue(os.path.exists(os.path.join(self.folder, "report.html")))

    def test_pandas(self):
        self.assertIn("propagated", self.run_block("to_pandas"))

    def test_record(self):
        self.assertIn("argument approximate is 'tanh'", self.run_block("dump_exact"))
        self.assertEqual(self.steps("dump_exact"), ["step0", "step1"])

    def test_blocks_and_functions(self):
        self.run_block("dump_of_a_function")
        self.assertEqual(self.steps("dump"), ["step0", "step1"])
        self.assertEqual(self.steps("dump_of_a_function"), ["step0"])

    def test_transformers(self):
        self.run_block("import transformers")
        self.assertEqual(self.steps("dump"), ["step0", "step1"])

    def test_lightning(self):
        self.run_block("import lightning")
        self.assertEqual(self.steps("dump"), ["step0", "step1"])

    def test_accelerate(self):
        self.run_block("import accelerate")
        self.assertEqual(self.steps("dump"), ["step0", "step1"])

    def test_check(self):
        self.assertIn("argument approximate is 'tanh'", self.run_block("import check"))

    def test_bisect(self):
        line = re.search(r"^\$ python (-m msprobe bisect .*)$", TEXT, re.MULTILINE).group(1)
        words = [sys.executable if word == "python" else word for word in shlex.split(line)]
        self.assertIn("argument approximate is 'tanh'", self.finished([sys.executable] + words))
        self.assertEqual(self.steps("out"), ["report.html", "statistics"])

    def test_pytest(self):
        self.run_block("def test_training", "pytest")
        self.assertIn("1 passed", self.finished([sys.executable, "-W", "ignore", "-m", "pytest", "-p", "msprobe.pytest_plugin",
                                                 "-p", "no:cacheprovider", "block.py"]))

    def test_z_every_block_was_run(self):
        self.assertEqual([block for block in BLOCKS if block not in BLOCKS_RUN], [])


BLOCKS_RUN = set()

if __name__ == "__main__":
    unittest.main()

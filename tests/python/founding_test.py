# SPDX-License-Identifier: Apache-2.0
"""The programs in the documents on recording PyTorch and MSAdapter from which msprobe was begun, as they print them. The documents are
not part of the repository; without them the test is skipped. The test defines what a program leaves to its reader, such as
`data_loader`. MSPROBE_PEER_MSADAPTER names a Python that has MSAdapter; without it the programs for that are left out."""

import csv
import glob
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

DOCUMENTS = pathlib.Path(__file__).resolve().parents[3] / "shared" / "seed-docs"
if not DOCUMENTS.is_dir():
    print(f"SKIPPED: the documents are not there: {DOCUMENTS}")
    sys.exit(77)
try:
    import torch  # noqa: F401 - the programs need it
except ImportError:
    print("SKIPPED: PyTorch is not installed (python3-torch)")
    sys.exit(77)


def lines_of(document):
    return (DOCUMENTS / document).read_text(encoding="utf-8").split("\n")


LINES = lines_of("pytorch_data_collection.txt")
# The lines of a program begin with a blank or, where the document marks them, with a plus sign.
CODE = re.compile(r"[ +](.*)|$")
# A model, its data and an optimizer, which the programs leave to their reader.
TRAINING = """
import torch
model = torch.nn.Linear(4, 2)
data_loader = [(torch.ones(3, 4), None)] * 2
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
class Loss:
    def backward(self):
        output.sum().backward()
loss = Loss()
"""
# A generation of five tokens, each by one call of the model.
VLLM = """
import types, torch
SamplingParams = dict
class LLM:
    def __init__(self, model):
        runner = types.SimpleNamespace(get_model=lambda: self.network)
        worker = types.SimpleNamespace(worker=types.SimpleNamespace(model_runner=runner))
        self.network = torch.nn.Linear(2, 2)
        self.llm_engine = types.SimpleNamespace(model_executor=types.SimpleNamespace(driver_worker=worker))
    def generate(self, prompts, sampling_params):
        for token in range(5):
            self.network(torch.full((1, 2), float(token)))
"""


def place_of(begin):
    """The first line that begins so."""
    return next(i for i, line in enumerate(LINES) if line.startswith(begin))


def program(begin):
    """The program that begins with the line, or below it, up to the next line of text."""
    at = place_of(begin)
    while not re.match(r"[ +](import|from|#)", LINES[at]):
        at += 1
    code = []
    while CODE.fullmatch(LINES[at]):
        code.append(LINES[at][1:])
        at += 1
    return "\n".join(code) + "\n"


def configuration(lines, at):
    """The JSON text behind a line."""
    text = "\n".join(lines[at + 1:])
    config, _ = json.JSONDecoder().raw_decode(text[text.index("{"):])
    return config


class Programs(unittest.TestCase):
    python = [sys.executable]

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="msprobe-test-")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        path = pathlib.Path(self.folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_program(self, text, before=""):
        self.write("train.py", before + text)
        done = subprocess.run([*self.python, "train.py"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.told = done.stderr
        return done.stdout

    def dump(self, step=0, dump_path=None):
        [path] = glob.glob(os.path.join(dump_path or self.dump_path, "step%d" % step, "proc*", "dump.json"))
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def entries(self, step=0, dump_path=None):
        return list(self.dump(step, dump_path)["data"])


class Founding(Programs):
    def setUp(self):
        super().setUp()
        at = next(i for i, line in enumerate(LINES) if line.endswith("simple example of the config.json file:"))
        self.dump_path = os.path.join(self.folder, "home", "data_dump")
        self.write("config.json", json.dumps({**configuration(LINES, at), "dump_path": self.dump_path}))

    def test_the_quick_start(self):
        self.run_program(program("Quick Start"))
        self.assertEqual(self.entries(), ["Functional.linear.0.forward", "Functional.relu.0.forward", "Tensor.sum.0.forward",
                                          "Tensor.sum.0.backward", "Functional.relu.0.backward", "Functional.linear.0.backward"])

    def test_the_basic_dump(self):
        self.run_program(program("Basic Data Dump"), TRAINING)
        for step in range(2):
            self.assertIn("Functional.linear.0.backward", self.entries(step))

    def test_a_module_dump(self):
        self.run_program(program("Module Data Dump"))
        names = self.entries()
        self.assertIn("Module.MyModuleOP.ModuleOP.forward.0", names)
        self.assertIn("Tensor.sum.0.forward", names)
        self.assertEqual([name for name in names if "linear" in name.lower() or "relu" in name], [])

    def test_a_dump_across_files(self):
        self.write("module.py", program("module.py:"))
        self.run_program(program("train.py:"))
        forward = [name for name in self.entries() if name.endswith(".forward")]
        self.assertEqual(forward, ["Functional.linear.0.forward"])  # the first of two

    def test_a_range_of_tokens(self):
        self.write("vllm.py", VLLM)
        self.run_program(program("token_range Specified"))
        forward = [name for name in self.entries(dump_path=os.path.join(self.folder, "dump_path")) if name.endswith("forward")]
        self.assertEqual(len(forward), 3)  # calls 1 to 3 of 0 to 4

    def test_random_calls(self):
        self.run_program(program("Collecting Randomness APIs"))
        [path] = glob.glob(os.path.join(self.folder, "output", "random_proc*.csv"))
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["api_name", "stack"])
        self.assertIn("torch_random.randn.0", {row["api_name"] for row in rows})

    def test_an_operator_of_ones_own(self):
        self.write("module_a.py", "def compute(x):\n    return x * 2\n")
        code = program("+# Import the custom operator module.").replace("output = model(data)", "output = module_a.compute(model(data))")
        self.run_program(code, TRAINING)
        self.assertIn("module_a.compute.0.forward", self.entries())

    def test_random_numbers(self):
        for call, second in (("+seed_all(seed=1234, mode=True)", "0.2038"),
                             ("+seed_all(seed=1234, mode=True, is_enhanced=True)", "-0.0866")):
            at = place_of(call)
            numbers = self.run_program("\n".join(line[1:] for line in LINES[at - 4:at + 5]))
            self.assertEqual(numbers.split(), ["tensor(-0.0866)", "tensor(%s)" % second])


class MSAdapter(Programs):
    """Where `torch` is MSAdapter's, as mindtorch makes it."""

    LAYERS = ["Module.linear1.Linear.forward.0", "Module.linear2.Linear.forward.0", "Module.linear2.Linear.backward.0",
              "Module.linear1.Linear.backward.0"]

    @classmethod
    def setUpClass(cls):
        given = os.environ.get("MSPROBE_PEER_MSADAPTER", "")
        if given == "1":  # where tests/peer/msadapter.sh installs it
            given = os.path.join(os.environ["PYTHONPATH"].split(os.pathsep)[0], "..", "msadapter-peer", "bin", "python")
        given = shutil.which(given)
        if not given or subprocess.run([given, "-c", "import mindtorch"], capture_output=True, check=False).returncode != 0:
            print("skipped: the programs for MSAdapter: MSPROBE_PEER_MSADAPTER names no Python that has mindtorch")
            raise unittest.SkipTest("no MSAdapter")
        cls.python = [given, "-W", "ignore", "-c", "import mindtorch, runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"]

    def run_example(self, number):
        """The program and the configuration of the document's example of this number."""
        lines = lines_of("msadapter_data_collection.txt")
        at = [i for i, line in enumerate(lines) if line.endswith("The file content is as follows:")][number]
        config = configuration(lines, at)
        self.write("config.json", json.dumps(config))
        self.dump_path = os.path.join(self.folder, config["dump_path"])
        at = [i for i, line in enumerate(lines) if line.strip() == "import mindspore as ms"][number]
        indent = re.match(" *", lines[at]).group()
        code = list(itertools.takewhile(lambda line: not line.strip() or line.startswith(indent), lines[at:]))
        self.run_program(textwrap.dedent("\n".join(code)))
        return sorted(os.listdir(self.dump_path))

    def test_the_quick_start(self):
        self.assertEqual(self.run_example(0), ["step0", "step1"])
        self.assertEqual(self.dump()["framework"], "mindtorch")
        for step in range(2):
            self.assertEqual(self.entries(step), self.LAYERS)
            self.assertRegex(self.told, r"dump\.json is at .*/output/step%d\n" % step)

    def test_the_usage_example(self):
        self.assertEqual(self.run_example(1), ["step0", "step1", "step2"])
        self.assertEqual([self.entries(step) for step in range(3)], [self.LAYERS] * 3)
        weights = self.dump()["data"][self.LAYERS[0]]["parameters"]
        shutil.rmtree(self.dump_path)
        self.run_example(1)
        # seed_all() fixes them. What torch.randn draws nothing fixes on a CPU: MSAdapter gives its operator no seed there.
        self.assertEqual(self.dump()["data"][self.LAYERS[0]]["parameters"], weights)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Files of tensors: what is saved again unchanged is one file under several names, and copies of a dump are as good."""

import glob
import os
import shutil
import subprocess
import tarfile
import tempfile

from helpers import *
from msprobe.core import command, session

BINARY = command.find()


class Layer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(self.norm(x))))


def names_of(folder):
    """{name: inode} of its tensors' files."""
    data = os.path.join(folder, "dump_tensor_data")
    return {name: os.stat(os.path.join(data, name)).st_ino for name in sorted(os.listdir(data))}


def tensors_of(folder):
    return {name: torch.load(os.path.join(folder, "dump_tensor_data", name)) for name in names_of(folder)}


class SavedFiles(Case):
    def record(self, body, **keys):
        """The tree of a step of `body()`."""
        session._rank[0] = None
        debugger = self.open("mix", "tensor", **keys)
        model = Layer()
        debugger.start(model, rank_id=0)
        body(model)
        debugger.stop()
        debugger.step()
        self.close()
        return find_tree(self.dump_path, rank=0)

    def train(self, change=0.0):
        def body(model):
            torch.manual_seed(1)
            for parameter in model.parameters():
                nn.init.uniform_(parameter, -0.2, 0.2)
            x = torch.rand(4, 32) + change
            model(x).square().sum().backward()

        return body

    def test_same_tensors_are_one_file(self):
        linked = self.record(self.train())
        single = self.record(self.train(), hard_links=False)
        inodes = names_of(linked.folder)
        self.assertEqual(list(inodes), list(names_of(single.folder)))
        self.assertEqual(len(set(names_of(single.folder).values())), len(inodes))
        self.assertLess(len(set(inodes.values())), 0.7 * len(inodes))
        self.assertEqual(inodes["Module.up.Linear.forward.0.output.0.pt"], inodes["Functional.gelu.0.forward.input.0.pt"])
        expected = tensors_of(single.folder)
        for name, tensor in tensors_of(linked.folder).items():
            self.assertTrue(torch.equal(tensor, expected[name]), name)
        self.assertEqual(linked.data, single.data)
        self.assertFalse(linked.errors)

    def test_writes_that_nobody_counts(self):
        def body(model):
            x = torch.zeros(1000)
            alias, detached = x.numpy(), x.data
            torch.relu(x)
            torch.relu(x)
            alias[3] = 1
            torch.relu(x)
            detached[4] = 2
            torch.relu(x)
            x[5] = 3
            torch.relu(x)
            with torch.inference_mode():
                y = torch.zeros(1000)
                torch.relu(y)
                y[6] = 4
                torch.relu(y)

        tree = self.record(body)
        saved = tensors_of(tree.folder)
        sums = [float(saved["Torch.relu.%d.forward.input.0.pt" % call].sum()) for call in range(7)]
        self.assertEqual(sums, [0, 0, 1, 3, 6, 0, 4])
        inodes = names_of(tree.folder)
        self.assertEqual(inodes["Torch.relu.0.forward.input.0.pt"], inodes["Torch.relu.1.forward.input.0.pt"])

    def test_memory_that_another_tensor_gets(self):
        def body(model):
            for value in range(50):
                torch.relu(torch.full((64,), float(value)))

        saved = tensors_of(self.record(body).folder)
        for value in range(50):
            for part in ("input", "output"):
                self.assertEqual(float(saved["Torch.relu.%d.forward.%s.0.pt" % (value, part)][63]), value)

    def test_tensors_on_a_device(self):
        """Copies are made of them: what they are copies of tells that they are the same."""
        class OnDevice(torch.Tensor):
            is_cpu = False

        def body(model):
            x = torch.zeros(1000).as_subclass(OnDevice)
            torch.relu(x)
            torch.relu(x)
            x.as_subclass(torch.Tensor)[5] = 3
            torch.relu(x)

        tree = self.record(body)
        inodes = names_of(tree.folder)
        first, again, changed = (inodes["Torch.relu.%d.forward.input.0.pt" % call] for call in range(3))
        self.assertEqual(first, again)
        self.assertNotEqual(first, changed)
        self.assertEqual(float(tensors_of(tree.folder)["Torch.relu.2.forward.input.0.pt"].sum()), 3)

    def test_copies_compare_equal(self):
        if BINARY is None:
            self.skipTest("the command was not built")
        golden = os.path.join(self.folder, "golden")
        shutil.copytree(self.record(self.train()).folder, os.path.join(golden, "rank0"))  # copies of all names
        self.assertEqual(len(set(names_of(os.path.join(golden, "rank0")).values())),
                         len(names_of(os.path.join(golden, "rank0"))))
        target = os.path.dirname(self.record(self.train(change=1e-3)).folder)
        expected = self.compare(target, golden)
        self.assertGreater(len(expected), 20)
        copies = {"cp": ["cp", "-r", target, os.path.join(self.folder, "cp")],
                  "rsync": ["rsync", "-r", target + "/", os.path.join(self.folder, "rsync")]}
        for name, arguments in copies.items():
            if shutil.which(name) is None:
                print("skipped: %s is not installed" % name)
                continue
            subprocess.run(arguments, check=True)
            self.assertEqual(self.compare(arguments[-1], golden), expected, name)
        packed = os.path.join(self.folder, "dump.tar")
        with tarfile.open(packed, "w") as archive:
            archive.add(target, "unpacked")
        with tarfile.open(packed) as archive:
            archive.extractall(self.folder)
        unpacked = os.path.join(self.folder, "unpacked")
        self.assertEqual(self.compare(unpacked, golden), expected)
        self.assertLess(len(set(names_of(os.path.join(unpacked, "rank0")).values())),
                        len(names_of(os.path.join(unpacked, "rank0"))))  # tar knows links

    def compare(self, target, golden):
        """The lines of the result."""
        out = tempfile.mkdtemp(dir=self.folder)
        subprocess.run([BINARY, "compare", "-tp", target, "-gp", golden, "-o", out], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tables = glob.glob(os.path.join(out, "**", "*.csv"), recursive=True)
        self.assertEqual(len(tables), 1, tables)
        with open(tables[0], encoding="utf-8") as file:
            return file.read().splitlines()


if __name__ == "__main__":
    unittest.main()

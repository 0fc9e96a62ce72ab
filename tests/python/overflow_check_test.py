# SPDX-License-Identifier: Apache-2.0
"""`msprobe run_overflow_check` on what was recorded: the operations whose outputs are NaN or infinite, by PyTorch itself."""

import os
import subprocess
import sys
import unittest

import helpers
import torch

MSPROBE = os.path.join(os.path.dirname(os.environ["PYTHONPATH"]), "src", "msprobe")


def overflows(tensor):
    return tensor.is_floating_point() and not torch.isfinite(tensor).all()


class OverflowCheck(helpers.Case):
    def test_the_operations_that_overflow_are_listed(self):
        debugger = self.open("L1", task="tensor")
        debugger.start()
        outputs = {
            "Torch.add.0": torch.add(torch.tensor([600.0], dtype=torch.float16), 65000.0),  # too large for float16 alone
            "Torch.exp.0": torch.exp(torch.tensor([100.0, 1.0])),
            "Torch.div.0": torch.div(torch.tensor([0.0]), torch.tensor([0.0])),
            "Torch.mul.0": torch.mul(torch.tensor([3.0e38]), 1.0),
            "Torch.sum.0": torch.sum(torch.tensor([1, 2])),
        }
        debugger.stop()
        debugger.step()
        dump = os.path.join(self.tree().folder, "dump.json")
        done = subprocess.run([MSPROBE, "run_overflow_check", "-api_info", dump, "--python", sys.executable, "-d", "cpu"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        first, *rest = done.stderr.splitlines()
        self.assertRegex(first, "^5 operations on cpu, PyTorch .*: 3 overflow, 0 of them abnormal, 0 not called$")
        self.assertEqual(sorted(rest), ["  overflow  %s  on the CPU" % name for name in sorted(outputs)
                                        if overflows(outputs[name])])


if __name__ == "__main__":
    unittest.main()

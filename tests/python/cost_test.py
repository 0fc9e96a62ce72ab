# SPDX-License-Identifier: Apache-2.0
"""Bounds on what recording costs, wide enough for a busy machine; benchmarks/ has the exact figures."""

import resource
import time

from helpers import *


def fastest(function, repeat=7):
    best = float("inf")
    for _ in range(repeat):
        begin = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begin)
    return best


class Cost(Case):
    def test_not_recording(self):
        x = torch.ones(2)
        original = torch.sigmoid

        def call(function, count=2000):
            for _ in range(count):
                function(x)

        plain = fastest(lambda: call(original))
        self.open("L1")
        self.assertIsNot(torch.sigmoid, original)
        wrapped = fastest(lambda: call(torch.sigmoid))
        self.assertLess((wrapped - plain) / 2000, 2e-6)

    def test_recording(self):
        x = torch.ones(64)
        debugger = self.open("L1")
        debugger.start()
        took = fastest(lambda: [torch.sigmoid(x) for _ in range(300)], 3) / 300
        debugger.stop()
        self.assertLess(took, 300e-6)

    def test_memory_of_many_steps(self):
        debugger = self.open("mix", step=[0])
        net = make_net()

        def train(count):
            for _ in range(count):
                debugger.start(model=net)
                net(make_input()).sum().backward()
                debugger.stop()
                debugger.step()

        train(5)
        self.open("mix")
        debugger = PrecisionDebugger()
        train(20)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        train(80)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.assertLess(after - before, 8 * 1024)  # KiB


if __name__ == "__main__":
    unittest.main()

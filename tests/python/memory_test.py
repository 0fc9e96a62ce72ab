# SPDX-License-Identifier: Apache-2.0
"""Recording for long takes no more memory than recording for a while."""

import resource

from helpers import *


class Memory(Case):
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

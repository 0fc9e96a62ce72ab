#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: msadapter_unchanged.py OURS

Losses, gradients and buffers of trainings under MSAdapter are the same, bit for bit, while our collector (OURS: the folder
of the package) records them.
"""
import json
import os
import sys
import tempfile

sys.path.insert(0, sys.argv[1])

import msadapter_scenarios as scenarios

import mindspore as ms
import numpy as np

from msprobe.mindspore import PrecisionDebugger

def residual_decoder():
    return scenarios.Decoder(residual=True)


NETWORKS = [(scenarios.Documented, (10, 8)), (scenarios.Keywords, (3, 4)), (scenarios.InPlace, (3, 4)),
            (scenarios.InPlaceUnused, (3, 4)), (scenarios.Dropping, (3, 4)), (scenarios.Residuals, (2, 3, 6, 6)),
            (residual_decoder, (2, 6))]


def step(kind, shape, debugger=None):
    model = scenarios.filled(kind())
    given = (scenarios.words if kind is residual_decoder else scenarios.floats)(*shape)
    if debugger:
        debugger.start(model)
    loss, gradients = ms.value_and_grad(lambda x: scenarios.square(model(x)), None, list(model.parameters()))(given)
    if debugger:
        debugger.stop()
        debugger.step()
    return [np.array(value.asnumpy()) for value in (loss, *gradients, *model.buffers())]


def check(level):
    expected = [step(*network) for network in NETWORKS]
    with tempfile.TemporaryDirectory(prefix="msprobe_unchanged_") as folder:
        config = os.path.join(folder, "config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"task": "statistics", "dump_path": folder, "level": level, "statistics": {}}, file)
        debugger = PrecisionDebugger(config)
        found = [step(*network, debugger) for network in NETWORKS]
        recorded = len([name for name in os.listdir(folder) if name.startswith("step")])
    changed = [kind.__name__ for (kind, _), one, other in zip(NETWORKS, expected, found)
               if len(one) != len(other) or not all(map(np.array_equal, one, other))]
    assert recorded == len(NETWORKS), recorded
    print(f"{level}: recording changes {', '.join(changed) if changed else 'nothing'}")
    return bool(changed)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(check(sys.argv[2]))
    # There is one debugger in a process.
    sys.exit(any([os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-W", "ignore", __file__, sys.argv[1], level])
                  for level in ("L0", "L1", "mix")]))

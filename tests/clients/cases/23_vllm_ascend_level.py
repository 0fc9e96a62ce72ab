# SPDX-License-Identifier: Apache-2.0
"""vllm-ascend 0.11 to 0.13: the level of the configuration decides whether start() gets the model."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config(os.path.join(out, "c.json"), os.path.join(out, "d"), level=sys.argv[2] if len(sys.argv) > 2 else "mix"))
model = Tiny()
settings = getattr(debugger, "config", None)
level = str(getattr(settings, "level", "L1")).upper() if settings is not None else "L1"
print("    level", level)
for _ in range(2):
    debugger.start(model=model) if level in ("L0", "MIX") else debugger.start()
    forward(model)
    debugger.stop(); debugger.step()
tree(os.path.join(out, "d"))

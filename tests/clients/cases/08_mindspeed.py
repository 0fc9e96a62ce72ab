# SPDX-License-Identifier: Apache-2.0
"""mindspeed/functional/npu_datadump/npu_datadump.py: at import; the model is a list; wrapped train_step."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger
MSTT_DEBUGGER = PrecisionDebugger(config_path=config(os.path.join(out, "c.json"), os.path.join(out, "d"), level="mix", rank=[], step=[0]))
def train_step(forward_step, data, model): return train(model[0])
def wrapped(*args):
    MSTT_DEBUGGER.start(model=args[2]); return train_step(*args)
model = [Tiny()]
for _ in range(2):
    wrapped(None, None, model); MSTT_DEBUGGER.stop(); MSTT_DEBUGGER.step()
tree(os.path.join(out, "d"))

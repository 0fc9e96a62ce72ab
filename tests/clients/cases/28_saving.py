# SPDX-License-Identifier: Apache-2.0
"""MindSpeed-LLM, reinforcement learning: values by name at level debug, and SingleSave with its own micro batches."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger
from msprobe.core import SingleSave
debugger = PrecisionDebugger(config_path=config(os.path.join(out, "c.json"), os.path.join(out, "d"), level="debug"))
saver = SingleSave(os.path.join(out, "s"))
saver.save_config({"lr": 0.1})
for _ in range(2):
    x = torch.ones(3, requires_grad=True)
    y = x * 2.0
    debugger.save({"logits": y, "scale": 2.0}, "actor")
    saver.save_ex({"advantages": y.detach()}, micro_batch=1)
    saver.save({"rewards": {"mean": y.detach().mean(), "all": y.detach()}})
    y.sum().backward()
    debugger.step(); saver.step()
tree(os.path.join(out, "s"))
folder = os.path.join(out, "d", "step1")
print("   ", *json.load(open(os.path.join(folder, os.listdir(folder)[0], "debug.json")))["data"])

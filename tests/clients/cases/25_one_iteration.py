# SPDX-License-Identifier: Apache-2.0
"""A guide for migrating models: start() in the first iteration only, stop() and step() in each; the model is a list."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path=config(os.path.join(out, "c.json"), os.path.join(out, "d"), level="L1"))
model = [Tiny()]
for iteration in range(3):
    if iteration == 0:
        debugger.start(model=model[0])
    train(model[0])
    if iteration == 0:
        debugger.stop(); debugger.step()
tree(os.path.join(out, "d"))

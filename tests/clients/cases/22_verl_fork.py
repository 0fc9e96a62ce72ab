# SPDX-License-Identifier: Apache-2.0
"""A fork of verl: a debugger for each folder by _instance = None, verbs of the class, step() before stop()."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
cfg = config(os.path.join(out, "c.json"))
from msprobe.pytorch import PrecisionDebugger
actor, ref = Tiny(), Tiny(layers=1)
for global_step in (1, 2):
    for stage, model, work in (("old_log_prob", actor, forward), ("ref", ref, forward), ("update_actor", actor, train)):
        folder = os.path.join(out, "d", str(global_step), stage)
        os.makedirs(folder, exist_ok=True)
        PrecisionDebugger._instance = None
        PrecisionDebugger(config_path=cfg, dump_path=folder)
        PrecisionDebugger.start(model=model)
        work(model)
        PrecisionDebugger.step()
        PrecisionDebugger.stop()
tree(os.path.join(out, "d"))

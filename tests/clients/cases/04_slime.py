# SPDX-License-Identifier: Apache-2.0
"""msprobe's guide for slime: three stages by service.config.dump_path, one step() at the end; the model is a list of chunks."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger, seed_all
seed_all(mode=True)
debugger = PrecisionDebugger(config_path=config(os.path.join(out, "c.json"), os.path.join(out, "d")))
prefix = attempt("debugger.config.dump_path", lambda: debugger.config.dump_path)
if prefix is None: sys.exit(0)
model = [Tiny()]
for rollout in range(2):
    for stage, work in (("ref_compute_log_prob", forward), ("old_log_prob", forward), ("actor_train", train)):
        debugger.service.config.dump_path = os.path.join(prefix, stage)
        debugger.start(model=model); work(model[0]); debugger.stop()
    debugger.step()
tree(os.path.join(out, "d"))

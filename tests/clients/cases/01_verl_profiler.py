# SPDX-License-Identifier: Apache-2.0
"""verl/utils/profiler/precision_debugger_profile.py: one PrecisionDebugger, a folder for each global step and stage, no step()."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
cfg = config(os.path.join(out, "c.json"))           # verl's docs: no dump_path in it
from msprobe.pytorch import PrecisionDebugger
root = os.path.join(out, "profile")
debugger = None
actor, ref = Tiny(), Tiny(layers=1)
for global_step in (1, 2):
    for stage, model, work in (("actor_compute_log_prob", actor, forward), ("ref_compute_log_prob", ref, forward),
                               ("actor_update", actor, train)):
        dump_path = os.path.join(root, "step_%d" % global_step, stage)
        os.makedirs(dump_path, exist_ok=True)
        if debugger is None:
            debugger = PrecisionDebugger(config_path=cfg, dump_path=dump_path)
        if hasattr(debugger, "service") and hasattr(debugger.service, "config"):
            debugger.service.config.dump_path = dump_path
        debugger.start(model)
        work(model)
        debugger.stop()
        service = getattr(debugger, "service", None)
        if service is not None:
            reset = getattr(service, "reset_status", None)
            if callable(reset): reset()
            else:
                reset = getattr(service, "_reset_status", None)
                if callable(reset): reset()
tree(root)

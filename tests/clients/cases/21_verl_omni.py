# SPDX-License-Identifier: Apache-2.0
"""A skill for verl-omni: a path of 8.x first, the folder of the process kept in config and in service.config, a log beside it."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
try:
    from msprobe.pytorch.debugger.precision_debugger import PrecisionDebugger
    from msprobe.pytorch.common.utils import seed_all
except Exception:
    from msprobe.pytorch import PrecisionDebugger, seed_all
seed_all(mode=True)
debugger = PrecisionDebugger(config_path=config(os.path.join(out, "c.json"), os.path.join(out, "d")))
folder = os.path.join(str(debugger.config.dump_path), str(os.getpid()))
debugger.config.dump_path = folder
if getattr(debugger, "service", None) is not None:
    debugger.service.config.dump_path = folder
model = Tiny()
os.makedirs(debugger.config.dump_path, exist_ok=True)
for micro_batch in range(2):
    debugger.start(model=model); train(model); debugger.stop(); debugger.step()
    with open(os.path.join(debugger.config.dump_path, "log.jsonl"), "a") as log:
        log.write("%d\n" % debugger.service.current_iter)
tree(os.path.join(out, "d"))
print("    log", open(os.path.join(out, "d", str(os.getpid()), "log.jsonl")).read().split())

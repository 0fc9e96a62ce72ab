# SPDX-License-Identifier: Apache-2.0
"""mindspeed_rl/utils/utils.py, class MsProbe."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]
try:
    from msprobe.core import SingleSave
    from msprobe.pytorch import PrecisionDebugger
except Exception as e:
    print("import msprobe error, msprobe not enabled   <- what MindSpeed-RL prints; the training goes on without:", repr(e))
    sys.exit(0)
saver = SingleSave(out)
debugger = PrecisionDebugger(task="statistics", level="L0", step=["0-1"], dump_path=out)
hooked = []
def start(model, tag):
    debugger.service.first_start = model not in hooked
    debugger.service.config.dump_path = os.path.join(out, tag)
    if tag == "actor_generate_sequences":
        debugger.start(model=model, token_range=[0, 0])
    else:
        debugger.start(model=model)
    if not debugger.service.first_start and model not in hooked:
        hooked.append(model)
def stop():
    debugger.stop()
    attempt("service.reset_status()", lambda: debugger.service.reset_status())
actor, infer = Tiny(), Tiny()
for step in range(2):
    start(infer, "actor_generate_sequences"); forward(infer); forward(infer); stop()
    start(actor, "actor_compute_log_prob"); forward(actor); stop()
    saver.save({"responses": torch.arange(4.0), "prompts": [torch.arange(3.0), torch.arange(2.0)]})
    start(actor, "actor_update"); train(actor); stop()
    saver.step(); debugger.step()
tree(out)

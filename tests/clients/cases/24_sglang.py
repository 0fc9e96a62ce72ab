# SPDX-License-Identifier: Apache-2.0
"""SGLang: two model runners (target and draft) construct a debugger each and share one; rank_id=gpu_id with several ranks, else None."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger, seed_all
cfg = config(os.path.join(out, "c.json"), os.path.join(out, "d"), step=[1])
class Runner:
    def __init__(self, model):
        seed_all(mode=True)
        self.model, self.debugger = model, PrecisionDebugger(config_path=cfg)
    def forward(self, rank_id):
        if self.debugger is not None:
            self.debugger.start(model=self.model, rank_id=rank_id)
        forward(self.model)
        if self.debugger is not None:
            self.debugger.stop(); self.debugger.step()
target, draft = Runner(Tiny()), Runner(Tiny(layers=1))
print("one instance" if target.debugger is draft.debugger else "two instances")
for _ in range(2):
    draft.forward(3); target.forward(3)
tree(os.path.join(out, "d"))

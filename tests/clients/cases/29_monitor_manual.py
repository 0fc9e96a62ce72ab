# SPDX-License-Identifier: Apache-2.0
"""The manual of the monitor: set_monitor() with the sizes of Megatron, an iteration to begin with."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(out, "m")
from msprobe.pytorch import TrainerMon
cfg = os.path.join(out, "m.json")
json.dump({"targets": {}, "wg_distribution": True, "ops": ["norm", "mean"], "format": "csv", "step_interval": 1}, open(cfg, "w"))
model = Tiny(); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
monitor = TrainerMon(cfg, params_have_main_grad=False)
attempt("set_monitor", lambda: monitor.set_monitor(model, grad_acc_steps=1, optimizer=optimizer, dp_group=None, tp_group=None, start_iteration=5))
for _ in range(2):
    model(torch.randn(4, 8)).square().mean().backward(); optimizer.step(); optimizer.zero_grad()
for r, _, n in sorted(os.walk(os.path.join(out, "m"))):
    for f in sorted(n): print("  ", f, sum(1 for _ in open(os.path.join(r, f))), "lines")

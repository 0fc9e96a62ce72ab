# SPDX-License-Identifier: Apache-2.0
"""dlrover/atorch, megatron trainer: the monitor by its old calls."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(out, "m")
from msprobe.pytorch import TrainerMon
cfg = os.path.join(out, "m.json")
json.dump({"targets": {}, "wg_distribution": True, "xy_distribution": True, "mv_distribution": True, "ops": ["norm", "min", "max"], "format": "csv"}, open(cfg, "w"))
model = [Tiny()]; optimizer = torch.optim.Adam(model[0].parameters())
monitor = TrainerMon(config_file_path=cfg, process_group=None, params_have_main_grad=True, opt_ty=None)
attempt("set_wrapped_optimizer", lambda: monitor.set_wrapped_optimizer(optimizer))
attempt("monitor_gnorm_with_ad", lambda: monitor.monitor_gnorm_with_ad(model, grad_acc_steps=1, optimizer=None, dp_group=None, tp_group=None))
for _ in range(2):
    model[0](torch.randn(4, 8)).square().mean().backward(); optimizer.step(); optimizer.zero_grad()
for r, _, n in sorted(os.walk(os.path.join(out, "m"))):
    for f in sorted(n): print("  ", f, sum(1 for _ in open(os.path.join(r, f))), "lines")

# SPDX-License-Identifier: Apache-2.0
"""A public TorchTitan harness (tests/glm5_2_mindstudio/capture_training.py): four modes."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
def config_check():
    from msprobe.core.config_check import ConfigChecker
    ConfigChecker.apply_patches("pytorch")
    sh = os.path.join(out, "run.sh"); open(sh, "w").write("torchrun --nproc_per_node 1 train.py --lr 1e-3\n")
    m = torch.nn.ModuleList([Tiny()])
    class P(torch.nn.Module):
        def __init__(s): super().__init__(); s.m = Tiny()
        def forward(s, x): return s.m(x)
    p = P(); ConfigChecker(p, [sh], os.path.join(out, "config_check_rank0.zip"), "pytorch"); forward(p)
    return os.path.getsize(os.path.join(out, "config_check_rank0.zip")) > 0
attempt("config-check", config_check)
def seed():
    from msprobe.pytorch import seed_all
    seed_all(seed=61, mode=True, rm_dropout=False)
attempt("seed", seed)
def dump():
    from msprobe.pytorch import PrecisionDebugger
    d = PrecisionDebugger(config_path=config(os.path.join(out, "c.json"), os.path.join(out, "d"), extra_info=True))
    parts = [Tiny()]
    d.start(model=parts); train(parts[0]); d.stop(); d.step()
    tree(os.path.join(out, "d"))
attempt("dump", dump)
def monitor():
    from msprobe.core.monitor_v2.trainer import TrainerMonitorV2
    cfg = os.path.join(out, "v2.json")
    json.dump({"framework": "pytorch", "output_dir": os.path.join(out, "v2"), "rank": [], "start_step": 0, "step_interval": 1, "step_count_per_record": 1,
               "collect_times": 10, "format": "csv", "patch_optimizer_step": False, "monitors": {"weight_grad": {"enabled": True, "ops": ["min", "max", "norm"], "monitor_mbs_grad": False}}}, open(cfg, "w"))
    m = Tiny(); o = torch.optim.SGD(m.parameters(), lr=0.1)
    mon = TrainerMonitorV2(cfg, fr="pytorch"); mon.start(model=m, optimizer=o, grad_acc_steps=1)
    m(torch.randn(4, 8)).square().mean().backward(); o.step(); mon.step(); mon.stop()
    return sorted(f for r, _, n in os.walk(os.path.join(out, "v2")) for f in n)
attempt("monitor", monitor)
def compiled():
    from msprobe.pytorch.compile_accuracy_checker.precision_checker import PrecisionChecker
    c = PrecisionChecker(backend="aot_eager", dump_graphs=False, graph_dir=out, capture_input=True, single_pass=True)
    m = Tiny(); c.wrap_by_policy(m, (Block,)); c.install(m)
    loss = m(torch.randn(4, 8)).square().mean(); loss.backward()
    r = c.collect(loss); c.report(r, csv_path=os.path.join(out, "p.csv"))
    return "all_pass=%s" % r.all_pass
attempt("compile", compiled)

# SPDX-License-Identifier: Apache-2.0
"""verl's profiler (01) in two ranks: two models, three stages, three rounds."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
import torch.distributed as dist
def work(rank, out):
    dist.init_process_group("gloo", init_method="file://" + os.path.join(out, "meeting"), rank=rank, world_size=2)
    cfg = config(os.path.join(out, "c%d.json" % rank), level="mix")
    from msprobe.pytorch import PrecisionDebugger
    torch.manual_seed(0)
    actor, ref = Tiny(), Tiny(layers=1)
    debugger = None
    def update(model):
        train(model)
        total = torch.ones(2)
        dist.all_reduce(total)
    for step in (1, 2, 3):
        for stage, model, run in (("actor_compute_log_prob", actor, forward), ("ref_compute_log_prob", ref, forward),
                                  ("actor_update", actor, update)):
            path = os.path.join(out, "profile", "step_%d" % step, stage)
            os.makedirs(path, exist_ok=True)
            if debugger is None:
                debugger = PrecisionDebugger(config_path=cfg, dump_path=path)
            debugger.service.config.dump_path = path
            debugger.start(model)
            run(model)
            debugger.stop()
            debugger.service.reset_status()
    dist.barrier()
    os._exit(0)  # PyTorch may abort where a thread of gloo outlives the interpreter
if __name__ == "__main__":
    out = os.path.abspath(sys.argv[1]); os.makedirs(out, exist_ok=True)
    torch.multiprocessing.spawn(work, (out,), 2)
    tree(os.path.join(out, "profile"))

# SPDX-License-Identifier: Apache-2.0
"""config.json section `load` of 26.2: inputs of a module taken from a dump (the manual's example in short)."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
if len(sys.argv) == 2:
    import subprocess
    for which in "ab":
        r = subprocess.run([sys.executable, __file__, out, which]); 
    sys.exit(0)
from msprobe.pytorch import PrecisionDebugger
c = {"task": "tensor", "dump_path": os.path.join(out, sys.argv[2]), "rank": [], "step": [], "level": "L0", "tensor": {"scope": [], "list": [], "data_mode": ["all"]}}
if sys.argv[2] == "b":
    c["load"] = {"path": os.path.join(out, "a"), "modules": ["Module.layers.1.Block.forward.0"], "step": [], "rank": [], "dump_after_load": True}
path = os.path.join(out, "c_%s.json" % sys.argv[2]); json.dump(c, open(path, "w"))
torch.manual_seed(0); model = Tiny()
torch.manual_seed(1 if sys.argv[2] == "a" else 2); x = torch.randn(4, 8)
d = attempt("PrecisionDebugger with load" if sys.argv[2] == "b" else "PrecisionDebugger", lambda: PrecisionDebugger(config_path=path))
if d is None: sys.exit(0)
d.start(model); y = forward(model, x); d.stop(); d.step()
print("   ", sys.argv[2], "output sum %.6f" % y.sum().item())

# SPDX-License-Identifier: Apache-2.0
"""vllm_ascend/worker/model_runner_v1.py."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger
cfg = config(os.path.join(out, "c.json"), os.path.join(out, "d"), level="mix")
c = json.load(open(cfg)); c["statistics"]["request_id"] = "req-1"; json.dump(c, open(cfg, "w"))
debugger = PrecisionDebugger(cfg)
model = Tiny()
for tokens in ({"req-0": 3, "req-1": 1}, {"req-0": 4}, {"req-1": 4}):
    debugger.start(model, scheduled_tokens=tokens)
    forward(model)
    assert hasattr(debugger, "stop")
    debugger.stop(); debugger.step()
tree(os.path.join(out, "d"))
for f in sorted(os.listdir(os.path.join(out, "d"))):
    p = [os.path.join(r, "dump.json") for r, _, n in os.walk(os.path.join(out, "d", f)) if "dump.json" in n]
    d = json.load(open(p[0]))["data"] if p else {}
    k = next((k for k in d if k.startswith("Functional.linear.0")), None)
    if k: print("   ", f, k, d[k]["input_args"][0]["shape"])
def graph():
    from msprobe.pytorch import AclGraphDumper
    AclGraphDumper(cfg)
attempt("AclGraphDumper(config)", graph)

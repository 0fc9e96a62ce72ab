# SPDX-License-Identifier: Apache-2.0
"""vllm-ascend, dumper: what seems ill switches the dump on in the configuration file, for the next forward alone."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
cfg = config(os.path.join(out, "c.json"), os.path.join(out, "d"), dump_enable=False)
from msprobe.pytorch import PrecisionDebugger
def switch(on):
    settings = json.load(open(cfg))
    settings["dump_enable"] = on
    with open(cfg, "w", encoding="utf-8") as file:
        json.dump(settings, file, indent=2)
    debugger._maybe_reload_config(force=True)
debugger = PrecisionDebugger(cfg)
model = Tiny()
on = False
for iteration in range(8):
    debugger.start(model)
    forward(model)
    debugger.stop()
    debugger.step(**{})
    if on:
        switch(False)
    on = iteration in (1, 2, 5)
    if on:
        switch(True)
    print("  iteration %d: current_iter %d" % (iteration, debugger.service.current_iter))
tree(os.path.join(out, "d"))

# SPDX-License-Identifier: Apache-2.0
"""The manual: an own function by register_custom_api, a module by module_dump, set_init_step after a restart, break in a window."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
import types
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger, module_dump, module_dump_end
debugger = PrecisionDebugger(config_path=config(os.path.join(out, "c.json"), os.path.join(out, "d"), level="L1"))
kernels = types.ModuleType("kernels"); kernels.scale = lambda x, by: x * by
debugger.register_custom_api(kernels, "scale", "Kernels")
debugger.set_init_step(100)
model = Tiny()
for number in range(3):
    debugger.start()
    kernels.scale(torch.ones(2), 3.0)
    module_dump(model.layers[0], "first")
    forward(model)
    module_dump_end()
    debugger.stop()
    if number == 1:
        break
    debugger.step()
debugger.restore_custom_api(kernels, "scale")
tree(os.path.join(out, "d"))
for step in (100, 101):
    folder = os.path.join(out, "d", "step%d" % step)
    data = json.load(open(os.path.join(folder, os.listdir(folder)[0], "dump.json")))["data"]
    print("   ", step, *sorted(k for k in data if k.startswith(("Kernels", "Module.first"))))

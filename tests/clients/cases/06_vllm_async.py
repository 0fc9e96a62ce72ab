# SPDX-License-Identifier: Apache-2.0
"""msprobe's guide for asynchronous verl with vllm-ascend: DispatchLogger (should_stop_service, current_iter, a folder a process)."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config(os.path.join(out, "c.json"), os.path.join(out, "d"), step=[0, 1]))
def redirect(): debugger.service.config.dump_path = os.path.join(debugger.config.dump_path, str(os.getpid()))
attempt("service.config.dump_path = config.dump_path/pid", redirect)
model = Tiny(); log = []
for _ in range(4):
    debugger.start(model); forward(model)
    try:
        if not debugger.service.should_stop_service:
            log.append(debugger.service.current_iter)
    except Exception as e:
        print("FAIL", repr(e)); break
    debugger.stop(); debugger.step()
print("logged steps", log)
tree(os.path.join(out, "d"))

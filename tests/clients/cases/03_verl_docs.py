# SPDX-License-Identifier: Apache-2.0
"""msprobe's own guide for verl (megatron, fsdp): dump_path_prefix, two folders, _reset_status()."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]
from msprobe.pytorch import PrecisionDebugger, seed_all
seed_all(mode=True)
debugger = PrecisionDebugger(task="tensor", level="L0", step=[0], dump_path=out)
prefix = attempt("debugger.config.dump_path", lambda: debugger.config.dump_path)
if prefix is None: sys.exit(0)
infer, actor = Tiny(), Tiny()
debugger.service.config.dump_path = os.path.join(prefix, "generate_sequences")
debugger.start(model=infer, token_range=[0, 0]); forward(infer); forward(infer); debugger.stop()
debugger.service._reset_status()
debugger.service.config.dump_path = os.path.join(prefix, "update_actor")
debugger.start(model=actor); forward(actor); debugger.stop(); debugger.step()
tree(out)

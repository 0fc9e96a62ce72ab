# SPDX-License-Identifier: Apache-2.0
"""support_wrap_ops.yaml: functions that a user adds to those that are recorded, or takes away."""

import subprocess
import sys

from helpers import *
from msprobe.core.common.exceptions import FileCheckException
from msprobe.core.lists import read_lists
from msprobe.core.operation_table import read_own

SCRIPT = """
import json, sys, torch
from msprobe.pytorch import PrecisionDebugger
with open("own.py", "w") as file:
    file.write("import torch\\ndef fused(x): return torch.relu(x) + 1\\n")
with open("ops.yaml", "w") as file:
    file.write("# mine\\ntensor:\\n  - view_as_complex_of_nobody\\n  - size\\ntorch:\\n- -sigmoid # not this one\\n"
               "own:\\n  - fused\\n  - missing\\nnever_imported:\\n  - f\\naten:\\n  - add.Tensor\\n")
with open("config.json", "w") as file:
    json.dump({"dump_path": "dump", "risk_level": "ALL", "support_wrap_ops": "ops.yaml"}, file)
debugger = PrecisionDebugger("config.json")
sys.path.insert(0, ".")
for step in range(2):
    debugger.start()
    x = torch.sigmoid(torch.ones(2))
    x.size()
    torch.relu(x)
    if step:
        own.fused(x)
    debugger.stop()
    debugger.step()
    import own
"""


FOREACH = """
import json, torch
from msprobe.pytorch import PrecisionDebugger
with open("ops.yaml", "w") as file:
    file.write("torch.foreach:\\n  - mul\\n")
with open("config.json", "w") as file:
    json.dump({"dump_path": "dump", "risk_level": "ALL", "support_wrap_ops": "ops.yaml"}, file)
debugger = PrecisionDebugger("config.json")
debugger.start()
for function in (torch.foreach.mul, torch.foreach.add):
    function([torch.ones(2, requires_grad=True)], 2.0)[0].sum().backward()
torch.foreach.norm([torch.ones(4)])
debugger.stop()
debugger.step()
"""


NPU = """
import os, sys, types, torch
for path, functions in {"torch_npu": ["npu_swiglu", "_npu_rotary_embedding", "_npu_unknown", "get_device_limit"],
                        "torch_npu.atb": ["npu_mla_preprocess", "_npu_flash_attention_v2"],
                        "mindspeed": [], "mindspeed.ops": [], "mindspeed.ops.gmm": ["npu_gmm"],
                        "mindspeed.ops.quant_gmm": ["npu_quant_gmm"], "mindspeed.ops.own": ["fused"]}.items():
    sys.modules[path] = module = types.ModuleType(path)
    parent, _, name = path.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, module)
    for function in functions:
        setattr(module, function, lambda x: torch.relu(x) + 1)
later = sys.modules.pop("mindspeed.ops.quant_gmm")
with open("ops.yaml", "w") as file:
    file.write("mindspeed.ops.own:\\n  - fused\\n")
from msprobe.pytorch import PrecisionDebugger
import json
with open("config.json", "w") as file:
    json.dump({"dump_path": "dump", "risk_level": "CORE", "support_wrap_ops": "ops.yaml"}, file)
debugger = PrecisionDebugger("config.json")
npu, x = sys.modules["torch_npu"], torch.ones(2)
for step in range(2):
    debugger.start()
    for function in (npu.npu_swiglu, npu._npu_rotary_embedding, npu.atb.npu_mla_preprocess, npu.atb._npu_flash_attention_v2,
                     sys.modules["mindspeed.ops.gmm"].npu_gmm, sys.modules["mindspeed.ops.own"].fused, later.npu_quant_gmm):
        function(x)
    debugger.stop()
    debugger.step()
    sys.modules["mindspeed.ops.quant_gmm"] = later
"""


ROWS = """
import json, sys, torch
from msprobe.pytorch import PrecisionDebugger
with open("own.py", "w") as file:
    file.write("import torch\\ndef norm(x): return torch.relu(x) + 1\\ndef turn(x): return x.T\\ndef other(x): return x * 2\\n")
with open("rows.yaml", "w") as file:
    file.write("# mine\\nown_norm: {kind: norm, risk: core, # of each token\\n  signature: \\"input * eps=1e-06\\", recorded: [own.norm]}\\n"
               "turn:\\n  kind: move\\n  risk: low\\n  recorded:\\n    - own.turn\\n"
               "other: {kind: pointwise, recorded: [own.other, own.missing, never.imported]}\\n")
sys.path.insert(0, ".")
import own
for level in ("CORE", "FOCUS", "ALL"):
    with open("config.json", "w") as file:
        json.dump({"dump_path": level, "risk_level": level, "operations": "rows.yaml"}, file)
    debugger = PrecisionDebugger("config.json")
    debugger.start()
    for function in (own.norm, own.turn, own.other):
        function(torch.ones(2, 2))
    debugger.stop()
    debugger.step()
    PrecisionDebugger._instance = None
"""


class Lists(Case):
    def read(self, text):
        path = os.path.join(self.folder, "list.yaml")
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return read_lists(path)

    def test_read(self):
        self.assertEqual(self.read("# a list\n---\nfunctional:\n  - relu # b\n  - 'linalg.norm'\n\ntensor: []\na.b:\n- -c\n"),
                         {"functional": ["relu", "linalg.norm"], "tensor": [], "a.b": ["-c"]})

    def test_what_is_no_list_is_refused_with_its_line(self):
        for text, reason in (("- relu\n", "line 1"), ("torch:\n  - a b\n", "line 2"), ("torch: {a: b}\n", "line 1"),
                             ("torch:\n  - !!python/object:os.system\n", "line 2"), ("a\n", "line 1"),
                             (b"\xff:\n", "decode"), ("a:\n" + "- b\n" * (1 << 19), "larger")):
            with self.assertRaises(FileCheckException, msg=text[:30]) as raised:
                self.read(text)
            self.assertIn(reason, str(raised.exception))
            self.assertIn("list.yaml", str(raised.exception))

    @unittest.skipIf(VERSION < (2, 15), "this PyTorch has no torch.foreach")
    def test_functions_of_foreach(self):
        run_script("import os\nos.chdir(%r)\n" % self.folder + FOREACH, self.folder)
        names = find_tree(os.path.join(self.folder, "dump")).names
        self.assertEqual([name for name in names if "foreach" in name],
                         ["torch.foreach.mul.0.forward", "torch.foreach.mul.0.backward", "Torch._foreach_norm.0.forward"])

    def test_functions_are_added_and_taken_away(self):
        result = run_script("import os\nos.chdir(%r)\n" % self.folder + SCRIPT, self.folder)
        self.assertIn("own has no function missing: it is not recorded", result.stderr)
        self.assertEqual(result.stderr.splitlines()[-1], "msprobe: warning: support_wrap_ops: operators of aten are not "
                         "recorded (nor does the Python tool record them on a CPU); nothing has imported never_imported; "
                         "there is no tensor.view_as_complex_of_nobody")
        dump = os.path.join(self.folder, "dump")
        self.assertEqual(find_tree(dump, 0).names, ["Tensor.size.0.forward", "Torch.relu.0.forward"])
        self.assertEqual(find_tree(dump, 1).names, ["Tensor.size.0.forward", "Torch.relu.0.forward",
                                                    "own.fused.0.forward"])

    def test_rows_of_own_operations(self):
        result = run_script("import os\nos.chdir(%r)\n" % self.folder + ROWS, self.folder)
        recorded = {level: find_tree(os.path.join(self.folder, level)).names for level in ("CORE", "FOCUS", "ALL")}
        norm, turn, other = ("own.%s.0.forward" % name for name in ("norm", "turn", "other"))
        self.assertEqual(recorded, {"CORE": [norm], "FOCUS": [norm, other], "ALL": [norm, turn, other]})
        self.assertIn("own has no function missing: it is not recorded", result.stderr)
        self.assertEqual(result.stderr.count("msprobe: warning: operations: nothing has imported never"), 3)

    def test_rows_that_are_wrong_are_refused_with_their_line(self):
        path = os.path.join(self.folder, "rows.yaml")
        for text, reason in (("a: {kind: norm}\na: {kind: norm}\n", "rows.yaml:2: a: appears twice"),
                             ("\na: {}\n", "rows.yaml:2: a: } where a word should be"),
                             ("a: {risk: core}\n", "needs a kind"), ("a: {kind: norm, size: 3}\n", "unknown key size"),
                             ("a: {kind: norm, risk: high}\n", "risk must be core or low"),
                             ("a: {kind: norm, risk: [core]}\n", "risk must be core or low"),
                             ("a: {kind: norm, recorded: own.a}\n", "recorded must be a list"),
                             ("a: {kind: norm, recorded: [a]}\n", "a is not a function with its module"),
                             ("a:\n  kind: norm\n  recorded:\n    - own.a\n    - os.system()\n", "rows.yaml:1: a: recorded: os"),
                             ("a: {kind: norm\n", "the end where"), ("a: &b {kind: norm}\n", "&b where { should be"),
                             ("- a\n", "rows.yaml:1"), ("  a\n", "rows.yaml:1"), ("a\n", "where : should be"),
                             ("a: {kind: 'norm}\n", "cannot be read"), ("# " + "x" * (1 << 20), "larger")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            with self.assertRaises(FileCheckException, msg=text[:40]) as raised:
                read_own(path)
            self.assertIn(reason, str(raised.exception))
        with self.assertRaises(FileCheckException):
            read_own(path + ".missing")

    def test_operators_of_npus_and_of_mindspeed(self):
        result = run_script("import os\nos.chdir(%r)\n" % self.folder + NPU, self.folder)
        self.assertNotIn("no function", result.stderr)
        self.assertNotIn("support_wrap_ops", result.stderr)
        dump = os.path.join(self.folder, "dump")
        names = ["NPU.npu_swiglu.0.forward", "NPU._npu_rotary_embedding.0.forward", "NPU.npu_mla_preprocess.0.forward",
                 "NPU._npu_flash_attention_v2.0.forward", "MindSpeed.npu_gmm.0.forward", "MindSpeed.fused.0.forward"]
        self.assertEqual(find_tree(dump, 0).names, names)
        self.assertEqual(find_tree(dump, 1).names, names + ["MindSpeed.npu_quant_gmm.0.forward"])

    def test_all_are_printed_as_a_list(self):
        done = subprocess.run([sys.executable, "-m", "msprobe.pytorch.api_list"], capture_output=True,
                              text=True, check=True)
        self.assertNotIn("RuntimeWarning", done.stderr)
        groups = self.read(done.stdout)
        from msprobe.pytorch import apis
        found = apis.find_functions()
        self.assertEqual(groups["tensor"], found["tensor"])
        self.assertEqual(groups["_VF"], found["vf"])
        self.assertIn("relu", groups["functional"])


if __name__ == "__main__":
    unittest.main()

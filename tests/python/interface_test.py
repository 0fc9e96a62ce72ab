# SPDX-License-Identifier: Apache-2.0
"""The interface for scripts: arguments and their errors, save(), module_dump, custom functions, seeds, random_save."""

import contextlib
import io
import json
import random
import sys
import types

import numpy

from helpers import *
from msprobe.pytorch import debugger as debugger_module
from msprobe.core.common.exceptions import FileCheckException, MsprobeException
from msprobe.pytorch import (AclGraphDumper, acl_save, module_dump, module_dump_end, seed_all,
                             set_fx_dump_config, set_ge_dump_config)


class Arguments(Case):
    def test_before_construction(self):
        with self.assertRaisesRegex(Exception, "PrecisionDebugger instance is not created."):
            PrecisionDebugger.start()
        with self.assertRaises(MsprobeException):
            module_dump(nn.ReLU(), "name")

    def test_singleton(self):
        debugger = self.open("L1")
        self.assertIs(PrecisionDebugger(config_path="/nowhere.json", level="no"), debugger)

    def test_wrong_constructor_arguments(self):
        for keys, kind in (({"task": "no"}, MsprobeException), ({"level": "L9"}, MsprobeException),
                           ({"dump_path": 3}, MsprobeException), ({"step": 3}, MsprobeException),
                           ({"step": ["2-1"]}, MsprobeException), ({"config_path": 3}, FileCheckException),
                           ({"config_path": "a.txt"}, FileCheckException),
                           ({"config_path": "/nowhere/a.json"}, FileCheckException)):
            with self.assertRaises(kind, msg=str(keys)):
                PrecisionDebugger(**keys)
            self.assertIsNone(PrecisionDebugger._instance)

    def test_wrong_keys_of_the_file(self):
        for keys in ({"extra_info": 3}, {"rank": "0"}, {"precision": "medium"}, {"risk_level": "NONE"}):
            with self.assertRaises(MsprobeException, msg=str(keys)):
                self.open("L1", **keys)

    def test_a_file_that_is_not_utf_8(self):
        path = os.path.join(self.folder, "config.json")
        for text, byte in ((b'{"dump_path": "\xff"}', "byte 16 is 0xff"), (b'{"\xe4": 1}', "byte 3 is 0xe4"),
                           ('{"task": "tensor"}'.encode("utf-16-le"), "line 1, column 2"),
                           ('{"task": "tensor"}'.encode("utf-16"), "byte 1 is 0xff")):
            with open(path, "wb") as file:
                file.write(text)
            with self.assertRaises(MsprobeException) as raised:
                PrecisionDebugger(config_path=path)
            self.assertIn(path + ": not valid JSON: ", str(raised.exception))
            self.assertIn(byte, str(raised.exception))

    def test_a_file_whose_long_name_is_not_ascii(self):
        with self.assertRaises(FileCheckException):
            PrecisionDebugger(config_path=os.path.join("/", *["x" * size + "\u00e4" * 60 for size in range(9)], "a.json"))

    def test_wrong_start_arguments(self):
        debugger = self.open("L0")
        for keys in ({}, {"model": 3}, {"model": [nn.ReLU(), 3]}, {"model": torch.jit.script(nn.ReLU())},
                     {"model": nn.ReLU(), "token_range": [2, 1]}, {"model": nn.ReLU(), "token_range": [1]},
                     {"model": nn.ReLU(), "rank_id": -1}, {"model": nn.ReLU(), "rank_id": True}):
            with self.assertRaises(MsprobeException, msg=str(keys)):
                debugger.start(**keys)
        for step in (-1, True, "1"):
            with self.assertRaises(MsprobeException):
                debugger.set_init_step(step)

    def test_rank_and_init_step(self):
        debugger = self.open("L1")
        debugger.set_init_step(5)
        PrecisionDebugger.start(rank_id=3)
        torch.sigmoid(torch.ones(1))
        PrecisionDebugger.stop()
        self.assertEqual(find_tree(self.dump_path, 5, 3).names, ["Torch.sigmoid.0.forward"])

    def test_rank_filter(self):
        debugger = self.open("L1", rank=[1])
        debugger.start(rank_id=0)
        torch.sigmoid(torch.ones(1))
        debugger.stop()
        self.assertEqual(self.steps(), [])

    def test_token_range(self):
        debugger = self.open("L1")
        net = make_net()
        debugger.start(model=net, token_range=[1, 2])
        for _ in range(5):
            net(make_input())
        debugger.stop()
        names = self.tree().names
        self.assertEqual(sum("relu" in name for name in names), 4)
        self.assertEqual(names[0], "Functional.linear.0.forward")

    def test_names_that_are_not_supported(self):
        for function in (set_fx_dump_config, set_ge_dump_config):
            with self.assertRaisesRegex(NotImplementedError, "is not supported"):
                function()

    def test_names_that_are_none_without_torch_npu(self):
        # Programs ask so before they use them.
        self.assertIsNone(AclGraphDumper)
        self.assertIsNone(acl_save)
        with open(os.path.join(self.folder, "torch_npu.py"), "w", encoding="utf-8"):
            pass
        run_script("""
from msprobe.pytorch import AclGraphDumper, acl_save
for function in (AclGraphDumper, acl_save):
    try:
        function()
    except NotImplementedError as error:
        assert "is not supported" in str(error), error
    else:
        raise AssertionError(function)
""", self.folder)

    def test_deprecated_end(self):
        debugger = self.open("L1")
        debugger.start()
        torch.sigmoid(torch.ones(1))
        debugger.forward_backward_dump_end()
        self.assertEqual(self.tree().names, ["Torch.sigmoid.0.forward"])


class Custom(Case):
    def test_custom_function(self):
        library = types.ModuleType("library")
        library.scale = lambda x, factor: x * factor
        original = library.scale
        debugger = self.open("L1")
        debugger.register_custom_api(library, "scale")
        debugger.register_custom_api(library, "scale", "Other")
        x = torch.ones(2, requires_grad=True)
        debugger.start()
        library.scale(x, 3.0).sum().backward()
        debugger.restore_custom_api(library, "scale")
        debugger.restore_custom_api(library, "scale")
        self.assertIs(library.scale, original)
        library.scale(x, 3.0)
        debugger.stop()
        names = self.tree().names
        self.assertEqual(names[:2], ["library.scale.0.forward", "Tensor.sum.0.forward"])
        self.assertIn("library.scale.0.backward", names)
        self.assertIn("Tensor.__mul__.0.forward", names)
        for arguments in ((library, "missing"), (library, "scale", 3)):
            with self.assertRaises(MsprobeException):
                debugger.register_custom_api(*arguments)

    def test_function_that_is_recorded_anyway(self):
        """The Python tool 26.2 gives these names, too."""
        holder = types.ModuleType("holder")  # a program that has imported the function
        holder.matmul = matmul = torch.matmul
        sys.modules["holder"] = holder
        self.addCleanup(sys.modules.pop, "holder")
        debugger = self.open("L1")
        debugger.register_custom_api(torch, "matmul")
        debugger.register_custom_api(torch, "logcumsumexp", "MyTorch")
        self.assertIs(torch.matmul, matmul)  # it is wrapped only while something is recorded
        x = torch.ones(2, 2)

        def calls():
            torch.matmul(x, x)
            holder.matmul(x, x)
            torch.logcumsumexp(x, 0)
        debugger.start()
        calls()
        debugger.restore_custom_api(torch, "logcumsumexp")
        calls()
        debugger.register_custom_api(torch, "logcumsumexp", "Again")
        calls()
        debugger.restore_custom_api(torch, "logcumsumexp")
        debugger.restore_custom_api(torch, "matmul")
        self.assertIsNot(torch.matmul, matmul)
        calls()
        debugger.stop()
        self.assertIs(torch.matmul, matmul)
        self.assertEqual([name[:-len(".forward")] for name in self.tree().names], [
            "torch.matmul.0", "torch.matmul.1", "MyTorch.logcumsumexp.0",
            "torch.matmul.2", "torch.matmul.3", "Torch.logcumsumexp.0",
            "torch.matmul.4", "torch.matmul.5", "Again.logcumsumexp.0",
            "Torch.matmul.0", "Torch.matmul.1", "Torch.logcumsumexp.1"])

    def test_function_that_returns_its_input_has_no_backward(self):
        debugger = self.open("L1")
        x = torch.ones(2, requires_grad=True)
        debugger.start()
        y = torch.sigmoid(x)
        y = y.float()
        y.sum().backward()
        debugger.stop()
        debugger.step()
        names = self.tree().names
        self.assertIn("Tensor.float.0.forward", names)
        self.assertNotIn("Tensor.float.0.backward", names)
        self.assertIn("Torch.sigmoid.0.backward", names)

    def test_triton_kernels(self):
        import sys
        jit = types.ModuleType("triton.runtime.jit")

        class JITFunction:
            __name__ = "scale_kernel"

            def run(self, x, factor, grid=None):
                x.mul_(factor)

        jit.JITFunction = JITFunction
        original = JITFunction.run
        sys.modules["triton"], sys.modules["triton.runtime.jit"] = types.ModuleType("triton"), jit
        try:
            debugger = self.open("L1")
            debugger.start()
            JITFunction().run(torch.ones(2), 3.0, grid=(1,))
            debugger.stop()
        finally:
            del sys.modules["triton"], sys.modules["triton.runtime.jit"]
            debugger_module.triton_kernels.remove()
        self.assertIs(JITFunction.run, original)
        entry = self.tree().data["Triton.scale_kernel.0.forward"]
        self.assertEqual([entry["input_args"][0]["Max"], entry["output"][0]["Max"]], [1.0, 3.0])

    def test_lstm(self):
        debugger = self.open("L1")
        model = nn.LSTM(4, 5)
        debugger.start()
        model(torch.ones(2, 3, 4))
        debugger.stop()
        self.assertIn("VF.lstm.0.forward", self.tree().names)

    def test_module_dump(self):
        original = torch.sigmoid
        for level in ("L1", "L0"):
            debugger = self.open(level)
            net = make_net()
            debugger.start(model=nn.Identity())
            recorded = torch.sigmoid
            self.assertEqual(recorded is original, level == "L0")
            module_dump(net.b1, "first")
            self.assertIs(torch.sigmoid, original)
            net(make_input().requires_grad_()).sum().backward()
            module_dump_end()
            self.assertIs(torch.sigmoid, recorded)
            debugger.stop()
            debugger.step()
            names = self.tree().names
            self.assertEqual(names, ["Module.first.Block.forward.0", "Module.first.Block.backward.0"])
        for arguments in ((3, "name"), (nn.ReLU(), 3)):
            with self.assertRaises(MsprobeException):
                module_dump(*arguments)


class Save(Case):
    def load(self):
        with open(os.path.join(self.tree().folder, "debug.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_values_and_gradients(self):
        for task in ("statistics", "tensor"):
            debugger = self.open("debug", task=task)
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            y = x * 3.0
            debugger.save({"key1": y, "key2": [1, 2.5, y * 1.0]}, "d")
            debugger.save(x.detach(), "plain", save_backward=False)
            debugger.save(x.detach(), "plain", save_backward=False)
            debugger.save(object(), "odd")
            (y * 2.0).sum().backward()
            debugger.step()
            written = self.load()
            self.assertEqual(written["level"], "debug")
            data = written["data"]
            self.assertEqual(list(data), ["d.0.debug", "d_grad.0.debug", "plain.0.debug", "plain.1.debug"])
            self.assertEqual(data["d.0.debug"]["key1"]["Max"], 6.0)
            self.assertEqual(data["d.0.debug"]["key2"][0], {"type": "int", "value": 1})
            self.assertEqual(data["d_grad.0.debug"]["key1"]["Max"], 2.0)
            self.assertEqual(data["d_grad.0.debug"]["key2"][0], None)
            self.assertEqual(data["d_grad.0.debug"]["key2"][2], None)
            folder = os.path.join(self.tree().folder, "dump_tensor_data")
            if task == "tensor":
                saved = torch.load(os.path.join(folder, "d_grad.0.debug.key1.pt"))
                self.assertEqual(saved.tolist(), [2.0, 2.0])
                self.assertTrue(os.path.exists(os.path.join(folder, "d.0.debug.key2.2.pt")))

    def test_what_cannot_be_saved_is_named_and_the_rest_saved(self):
        debugger = self.open("debug")
        told = io.StringIO()
        y = torch.ones(2, requires_grad=True) * 3.0
        with contextlib.redirect_stderr(told):
            debugger.save({"n": None, "y": y, 3: y, "rest": [{1, 2}, y * 1.0]}, "d")
            debugger.save({"n": None}, "empty")
            debugger.save(object(), "odd")
        (y * 2.0).sum().backward()
        debugger.step()
        self.assertEqual(told.getvalue().splitlines(), [
            "msprobe: warning: save('d'): n (NoneType), 3 (a key that is not a string), rest.0 (set) cannot be saved; "
            "the rest is",
            "msprobe: warning: save('empty'): n (NoneType) cannot be saved",
            "msprobe: warning: save('odd'): a value of type object cannot be saved"])
        data = self.load()["data"]
        self.assertEqual(list(data), ["d.0.debug", "d_grad.0.debug"])
        self.assertEqual(list(data["d.0.debug"]), ["y", "rest"])
        self.assertEqual(data["d.0.debug"]["rest"][0], None)
        self.assertEqual(data["d.0.debug"]["rest"][1]["Max"], 3.0)
        self.assertEqual(data["d_grad.0.debug"]["y"]["Max"], 2.0)

    def test_nothing_at_other_levels(self):
        debugger = self.open("L1")
        debugger.save(torch.ones(2), "x")
        self.assertEqual(self.steps(), [])

    def test_constructor_task_counts(self):
        self.close()
        path = os.path.join(self.folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"task": "structure", "level": "debug", "dump_path": self.folder + "/d"}, file)
        debugger = PrecisionDebugger(config_path=path, task="tensor")
        debugger.save(torch.ones(2), "x")
        debugger.step()
        self.assertTrue(os.path.exists(find_tree(self.folder + "/d").folder + "/debug.json"))


class Seeds(Case):
    def test_seed_all(self):
        def draw():
            return random.random(), float(numpy.random.rand()), float(torch.rand(1))

        seed_all(7)
        first = draw()
        seed_all(seed=7, mode=False)
        self.assertEqual(first, draw())
        self.assertEqual(os.environ["PYTHONHASHSEED"], "7")
        for keys in ({"seed": -1}, {"seed": 2 ** 32}, {"seed": True}, {"seed": 1.5}, {"mode": 1}, {"rm_dropout": 1}):
            with self.assertRaises(MsprobeException, msg=str(keys)):
                seed_all(**keys)

    def test_changes_of_functions(self):
        # In a separate process, since replaced functions stay replaced.
        run_script("""
import csv, glob, os, sys, torch, random
import torch.nn.functional as F
from msprobe.pytorch import random_save, seed_all
random_save(sys.argv[1])
random_save(sys.argv[1] + "/other")
random.random(); torch.randn(2); torch.randn(2); torch.empty(2).normal_()
files = glob.glob(sys.argv[1] + "/random_proc%d_*.csv" % os.getpid())
rows = list(csv.reader(open(files[0], encoding="utf-8-sig")))
assert rows[0] == ["api_name", "stack"], rows[0]
assert [row[0] for row in rows[1:]] == ["python_random.random.0", "torch_random.randn.0", "torch_random.randn.1",
                                        "tensor_random.normal_.0"], rows
assert rows[1][1].startswith("File ") and "random.random(); torch.randn(2)" in rows[1][1], rows[1][1]
seed_all(3, rm_dropout=True, is_enhanced=True)
x = torch.ones(100)
assert torch.equal(F.dropout(input=x, p=0.9), x) and torch.equal(F.dropout(x), x)
p = torch.ones(50)
assert torch.equal(p.multinomial(20), p.multinomial(20)) and torch.equal(p.multinomial(20), torch.multinomial(p, 20))
assert torch.equal(torch.rand(3), torch.rand(3)) and random.random() == random.random()
""", self.folder, self.folder)

    def test_generators_of_an_npu_are_restored_around_every_call(self):
        """A stand-in: what of torch.npu is asked for, and that each call finds the states of the beginning."""
        run_script("""
import types, torch
from msprobe.pytorch import seed_all
states, kept = [torch.tensor([5])], []
def draw(*args):
    kept.append(int(states[0]))
    states[0] = states[0] + 1
    return torch.zeros(1)
torch.rand = draw
torch.npu = types.SimpleNamespace(
    is_available=lambda: True, manual_seed_all=lambda seed: states.__setitem__(0, torch.tensor([seed])), manual_seed=lambda seed: None,
    get_rng_state_all=lambda: [states[0].clone()], set_rng_state_all=lambda told: states.__setitem__(0, told[0].clone()))
seed_all(3, is_enhanced=True)
torch.rand(1), torch.rand(1)
assert kept == [3, 3] and int(states[0]) == 3, (kept, states)
""", self.folder, self.folder)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Section load: calls of modules get the inputs that another run recorded, all of them or none."""

import shutil

from helpers import *
from msprobe.core.common import log


class Scale(nn.Module):
    """A tensor, tensors in a list, and one by keyword."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, more, factor=None):
        y = self.linear(x) + more[0]
        return y if factor is None else y * factor


class Model(nn.Module):
    def __init__(self, by_keyword):
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Linear(8, 8)
        self.scale = Scale()
        self.by_keyword = by_keyword

    def forward(self, x):
        y = self.first(x)
        return self.scale(y, [y * 2], factor=y) if self.by_keyword else self.scale(y, [y * 2])


class Loading(Case):
    def run_steps(self, model, seed, steps=2, calls=2, **start):
        """The results of the calls of each step."""
        debugger = PrecisionDebugger._instance
        torch.manual_seed(seed)
        results = []
        for _ in range(steps):
            debugger.start(model=model, **start)
            results.append([model(torch.randn(4, 8)).sum() for _ in range(calls)])
            debugger.stop()
            debugger.step()
        return results

    def golden(self, by_keyword=False, task="tensor"):
        self.open("L0", task=task)
        results = self.run_steps(Model(by_keyword), 1)
        self.close()
        return self.dump_path, results

    def load(self, path, modules=("Module.scale.Scale.forward.0",), level="L0", **keys):
        told = []
        written = log._write
        self.addCleanup(setattr, log, "_write", written)
        log._said.clear()
        log._write = lambda kind, text: told.append(kind + text)
        self.open(level, task="tensor", load=dict({"path": path, "modules": list(modules)}, **keys))
        return told

    def end(self):
        PrecisionDebugger._instance._end()

    def test_inputs_are_those_of_the_other_run(self):
        path, golden = self.golden()
        told = self.load(path)
        results = self.run_steps(Model(False), 2)
        for step in range(2):
            self.assertEqual(results[step][0], golden[step][0])
            self.assertNotEqual(results[step][1], golden[step][1])
        self.end()
        self.assertEqual(told, ["inputs are loaded from " + path, "loaded the inputs of 2 calls from " + path])
        self.assertEqual(self.steps(), [])

    @unittest.skipIf(VERSION < (2, 0), "hooks see no keywords")
    def test_arguments_by_keyword(self):
        path, golden = self.golden(True)
        self.load(path)
        self.assertEqual(self.run_steps(Model(True), 2)[0][0], golden[0][0])

    def test_steps_calls_and_a_dump_of_what_was_loaded(self):
        path, golden = self.golden()
        self.load(path, ["Module.scale.Scale.forward.0", "Module.scale.Scale.forward.1"], step=[1],
                  dump_after_load=True)
        results = self.run_steps(Model(False), 2)
        self.assertNotEqual(results[0][0], golden[0][0])
        self.assertEqual(results[1], golden[1])
        # The recording has the loaded values.
        recorded = self.tree(1)
        theirs = find_tree(path, 1)
        name = "Module.scale.Scale.forward.1"
        self.assertEqual(recorded.data[name]["input_args"][0]["Max"], theirs.data[name]["input_args"][0]["Max"])
        self.assertEqual(recorded.data[name]["output"][0]["Norm"], theirs.data[name]["output"][0]["Norm"])

    def test_gradients_flow_to_the_module_and_end_there(self):
        path, _ = self.golden()
        self.load(path, level="L1", dump_after_load=True)
        model = Model(False)
        self.run_steps(model, 2, steps=1, calls=1)[0][0].backward()
        self.assertIsNotNone(model.scale.linear.weight.grad)
        self.assertIsNone(model.first.weight.grad)

    def test_one_that_does_not_fit_changes_nothing(self):
        path, _ = self.golden()
        plain = Model(False)
        torch.manual_seed(2)
        expected = [plain(torch.randn(4, 8)).sum() for _ in range(2)]
        data = os.path.join(find_tree(path).folder, "dump_tensor_data")
        nested = os.path.join(data, "Module.scale.Scale.forward.0.input.1.0.pt")

        def broken():
            with open(nested, "wb") as file:
                file.write(b"nothing")

        for change, reason in (
                (lambda: torch.save(torch.ones(4, 9), nested), "input.1.0 is torch.float32 [4, 9] there and "
                                                               "torch.float32 [4, 8] here"),
                (lambda: torch.save(torch.ones(4, 8).double(), nested), "input.1.0 is torch.float64 [4, 8] there and "
                                                                        "torch.float32 [4, 8] here"),
                (broken, ""),
                (lambda: os.remove(nested), nested + " does not exist")):
            change()
            told = self.load(path)
            self.assertEqual(self.run_steps(Model(False), 2, steps=1)[0], expected)
            self.assertEqual(len(told), 1)
            begin = "warning: load: Module.scale.Scale.forward.0 keeps its inputs: "
            self.assertTrue(told[0].startswith(begin + reason), told)

    def test_what_is_not_there_is_told(self):
        path, _ = self.golden()
        told = self.load(path, ["Module.scal.Scale.forward.0", "Module.scale.Scale.forward.7"])
        self.run_steps(Model(False), 2)
        self.end()
        self.assertEqual(told, [
            "warning: load: the model has no Module.scal.Scale: did you mean Module.scale.Scale?",
            "loaded the inputs of 0 calls from " + path,
            "warning: load: never called: Module.scal.Scale.forward.0, Module.scale.Scale.forward.7"])
        numbers, _ = self.golden(task="statistics")
        for folder, line in ((os.path.join(path, "no"), "holds no dump: nothing is loaded in step 0"),
                             (numbers, "has no tensors (task tensor dumps them): nothing is loaded")):
            told = self.load(folder)
            self.run_steps(Model(False), 2, steps=1)
            self.assertTrue(told[0].endswith(line), told)
            self.end()
            self.assertEqual(told[-1], "warning: load: path must be a dump_path of task tensor with the steps that run: "
                             + told[0][len("warning: load: "):].partition(": nothing is loaded")[0])
        shutil.copytree(find_tree(path).folder, os.path.join(path, "step0", "proc1"))
        told = self.load(path)
        self.run_steps(Model(False), 2, steps=1)
        self.assertIn("holds 2 processes: nothing is loaded in step 0", told[0])
        told = self.load(path, rank=[3])
        self.run_steps(Model(False), 2, steps=1, rank_id=2)
        self.assertEqual(told, [])

    def test_the_configuration_may_change(self):
        path, golden = self.golden()
        self.open("L0", task="tensor", dump_enable=True)
        plain = self.run_steps(Model(False), 2)
        self.assertNotEqual(plain[0][0], golden[0][0])
        load = {"path": path, "modules": ["Module.scale.Scale.forward.1"], "dump_after_load": True}
        PrecisionDebugger.set_init_step(0)
        for first, second in ((False, True), (False, False)):
            self.write_config(dict(self.config, load=load) if second else {
                key: value for key, value in self.config.items() if key != "load"})
            PrecisionDebugger.set_init_step(0)
            results = self.run_steps(Model(False), 2)
            self.assertEqual((results[0][0] == golden[0][0], results[0][1] == golden[0][1]), (first, second))

    def test_a_program_that_goes_to_another_folder(self):
        path, golden = self.golden()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        load = {"path": os.path.basename(path), "modules": ["Module.scale.Scale.forward.0"]}
        self.open("L0", task="tensor", dump_enable=True, load=load)
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        os.chdir(other)
        self.assertEqual(self.run_steps(Model(False), 2, steps=1)[0][0], golden[0][0])
        load["modules"] = ["Module.scale.Scale.forward.1"]
        self.write_config(dict(self.config, load=load))  # is read again
        PrecisionDebugger.set_init_step(0)
        results = self.run_steps(Model(False), 2, steps=1)
        self.assertEqual((results[0][0] == golden[0][0], results[0][1] == golden[0][1]), (False, True))

    def test_names_drive_no_terminal(self):
        path, _ = self.golden()
        told = self.load(path, ["Module.\x1b[31m.A.forward.0"])
        self.run_steps(Model(False), 2, steps=1)
        self.end()
        self.assertEqual(["\x1b" in line for line in told], [False] * 3)

    def test_wrong_sections(self):
        for section, reason in (
                ([], "must hold an object"), ({"modules": ["Module.a.A.forward.0"]}, "path: is missing"),
                ({"path": "x"}, "modules: is missing"), ({"path": "x", "modules": "a"}, "modules: must be a list"),
                ({"path": "x", "modules": ["Module.a.A.backward.0"]}, "is not a call of a module"),
                ({"path": "x", "modules": ["Functional.relu.0.forward"]}, "is not a call of a module"),
                ({"path": "x", "modules": ["Module.a.A.forward.0"] * 2}, "names a call twice"),
                ({"path": "x", "modules": ["Module.a.A.forward.0"], "step": "1"}, "step: must be a list"),
                ({"path": "x", "modules": ["Module.a.A.forward.0"], "dump_after_load": 1}, "must be true or false")):
            with self.assertRaisesRegex(Exception, "load.*" + reason):
                self.open("L0", load=section)
        self.open("L1", load={"path": self.folder, "modules": ["Module.a.A.forward.0"], "steps": [1]})
        with self.assertRaisesRegex(Exception, "section load"):
            PrecisionDebugger.start()
        self.assertEqual(PrecisionDebugger._instance.config.task, "statistics")


if __name__ == "__main__":
    unittest.main()

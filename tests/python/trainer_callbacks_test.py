# SPDX-License-Identifier: Apache-2.0
"""Recording in the training loops of transformers, Lightning and accelerate. Each case needs its library."""

import importlib
import importlib.util
import warnings

from helpers import *
import msprobe
from msprobe.core import command
from msprobe.pytorch.recording import Recording

ABSENT = {name: importlib.util.find_spec(name) is None
          for name in ("transformers", "lightning", "pytorch_lightning", "accelerate")}
if all(ABSENT.values()):
    print("SKIPPED: none of transformers, lightning and accelerate is installed")
    raise SystemExit(77)

warnings.simplefilter("ignore")
os.environ.setdefault("ACCELERATE_USE_CPU", "true")


def inputs(count=8):
    torch.manual_seed(5)
    return torch.randn(count, 8), torch.randn(count, 3)


class Items(torch.utils.data.Dataset):
    """Batches of these inputs and targets."""

    def __init__(self, count=8):
        self.inputs, self.targets = inputs(count)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return {"x": self.inputs[index], "labels": self.targets[index]}


class Training:
    """Tests of each library: train(recorded, accumulate, **settings) returns the parameters after four optimizer steps
    of batches of two, and records into self.path if wanted."""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "dump")

    def tearDown(self):
        Recording._current = None
        super().tearDown()

    def names(self, step):
        """Without those of the optimizer, which may do something else in its first step."""
        return [name for name in find_tree(self.path, step).names if name.startswith(("Module.", "Functional."))]

    def test_steps(self):
        plain = self.train(None)
        recorded = self.train(self.path)
        for one, other in zip(plain, recorded):
            self.assertTrue(torch.equal(one, other))
        self.assertEqual(sorted(os.listdir(self.path)), ["step0", "step1"])
        names = self.names(0)
        self.assertEqual(self.names(1), names)
        self.assertIn("Module.b1.l1.Linear.forward.0", names)
        self.assertIn("Module.b1.l1.Linear.backward.0", names)
        self.assertNotIn("Module.b1.l1.Linear.forward.1", names)

    def test_accumulation(self):
        self.train(self.path, accumulate=2)
        names = self.names(0)
        self.assertIn("Module.b1.l1.Linear.forward.1", names)
        self.assertNotIn("Module.b1.l1.Linear.forward.2", names)
        self.assertEqual(self.names(1), names)

    def test_comparison(self):
        if command.find() is None:
            self.skipTest("the command was not built")
        self.train(self.path)
        other = os.path.join(self.folder, "other")
        self.train(other, double=True)
        found = msprobe.compare(other, self.path)
        self.assertFalse(found)
        self.assertIn("b2.l1", found.culprit.module + found.culprit.entry + found.culprit.text)
        again = os.path.join(self.folder, "again")
        self.train(again)
        self.assertTrue(msprobe.compare(again, self.path))


def changed(net, double):
    if double:
        with torch.no_grad():
            net.b2.l1.weight.mul_(2)
    return net


@unittest.skipIf(ABSENT["transformers"] or ABSENT["accelerate"], "transformers with accelerate is not installed")
class Transformers(Training, Case):
    def train(self, path, accumulate=1, double=False, items=8, resume=None, **settings):
        import transformers
        from msprobe.integrations.transformers import RecordCallback

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                net = changed(make_net(), double)
                self.b1, self.b2, self.out = net.b1, net.b2, net.out

            def forward(self, x, labels=None):
                return {"loss": (self.out(self.b2(self.b1(x))) - labels).square().mean()}

        options = transformers.TrainingArguments(
            self.folder, per_device_train_batch_size=2, num_train_epochs=1, report_to=[], use_cpu=True, disable_tqdm=True,
            save_strategy="steps" if resume else "no", save_steps=2, gradient_accumulation_steps=accumulate, seed=1,
            logging_strategy="no")
        trainer = transformers.Trainer(Model(), options, train_dataset=Items(items))
        if path:
            trainer.add_callback(RecordCallback(path, **settings))
        trainer.train(resume_from_checkpoint=resume if isinstance(resume, str) else None)
        self.model = trainer.model
        return [one.detach().clone() for one in trainer.model.parameters()]

    def test_named_steps(self):
        self.train(self.path, step=[1, 3], task="tensor", list=["b1.l1"])
        self.assertEqual(sorted(os.listdir(self.path)), ["step1", "step3"])
        self.assertIn("Module.b1.l1.Linear.forward.0", self.names(3))
        self.assertNotIn("Module.b2.l1.Linear.forward.0", self.names(3))
        self.assertTrue(os.listdir(os.path.join(find_tree(self.path, 3).folder, "dump_tensor_data")))

    def test_a_training_that_goes_on(self):
        self.train(None, resume=True)
        self.train(self.path, resume=os.path.join(self.folder, "checkpoint-2"))
        self.assertEqual(sorted(os.listdir(self.path)), ["step2", "step3"])

    def test_it_raises_nothing_into_the_training(self):
        plain = self.train(None)
        blocked = os.path.join(self.folder, "file")
        with open(blocked, "w", encoding="utf-8") as file:
            file.write("no folder")
        for one, other in zip(plain, self.train(os.path.join(blocked, "dump"))):
            self.assertTrue(torch.equal(one, other))
        self.close()
        debugger = self.open("L1")  # which records already, or could
        from msprobe.integrations.transformers import RecordCallback
        with self.assertRaises(msprobe.MsprobeException):
            RecordCallback(self.path)
        self.assertIs(PrecisionDebugger._instance, debugger)
        with self.assertRaises(msprobe.MsprobeException):
            RecordCallback(self.path, task="nothing")
        with self.assertRaises(TypeError):
            RecordCallback(self.path, colour="red")


@unittest.skipIf(ABSENT["lightning"], "lightning is not installed")
class Lightning(Training, Case):
    package = "lightning.pytorch"

    def train(self, path, accumulate=1, double=False, items=8, **settings):
        library = importlib.import_module(self.package)
        from msprobe.integrations.lightning import RecordCallback

        class Model(library.LightningModule):
            def __init__(self):
                super().__init__()
                net = changed(make_net(), double)
                self.b1, self.b2, self.out = net.b1, net.b2, net.out

            def training_step(self, batch, index):
                return (self.out(self.b2(self.b1(batch["x"]))) - batch["labels"]).square().mean()

            def validation_step(self, batch, index):
                self.training_step(batch, index)

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

        loader = torch.utils.data.DataLoader(Items(items), batch_size=2)
        model = Model()
        trainer = library.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                                  enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=accumulate,
                                  callbacks=[RecordCallback(path, **settings)] if path else [], val_check_interval=1)
        trainer.fit(model, loader, torch.utils.data.DataLoader(Items(2), batch_size=2))
        return [one.detach().clone() for one in model.parameters()]

    def test_named_steps(self):
        self.train(self.path, step=[1, 3])
        self.assertEqual(sorted(os.listdir(self.path)), ["step1", "step3"])


@unittest.skipIf(ABSENT["accelerate"], "accelerate is not installed")
class Accelerate(Training, Case):
    def train(self, path, accumulate=1, double=False, items=8, **settings):
        from accelerate import Accelerator
        from msprobe.integrations.accelerate import record
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
        net = changed(make_net(), double)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        loader = torch.utils.data.DataLoader(Items(items), batch_size=2)
        model, optimizer, loader = accelerator.prepare(net, optimizer, loader)

        def loop():
            for batch in loader:
                with accelerator.accumulate(model):
                    loss = (model(batch["x"]) - batch["labels"]).square().mean()
                    accelerator.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
        if path:
            with record(accelerator, model, path, **dict({"step": [0, 1]}, **settings)) as recording:
                loop()
            recording.close()
        else:
            loop()
        return [one.detach().clone() for one in net.parameters()]

    def test_the_last_step_is_not_an_empty_one(self):
        self.train(self.path, step=None)
        self.assertEqual(sorted(os.listdir(self.path)), ["step0", "step1", "step2", "step3"])

    def test_which_optimizer(self):
        from accelerate import Accelerator
        from msprobe.integrations.accelerate import record
        with self.assertRaises(msprobe.MsprobeException) as raised:
            record(Accelerator(cpu=True), make_net(), self.path)
        self.assertIn("0 optimizers", str(raised.exception))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Recorded pairs of small trainings, right ones and the mistakes beside them, and what compare() answers."""

import contextlib
import copy

import msprobe
from helpers import *
from msprobe.core import command

if command.find() is None:
    print("SKIPPED: the command was not built")
    sys.exit(77)

LAYERS = 5


class Layer(nn.Module):
    def __init__(self, inverted):
        super().__init__()
        self.inverted = inverted
        self.query, self.key, self.value = (nn.Linear(16, 16, bias=False) for _ in range(3))
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        scores = torch.matmul(self.query(x), self.key(x).transpose(-1, -2)) * 0.25
        hidden = torch.triu(torch.ones(x.shape[1], x.shape[1]), 1) == (0 if self.inverted else 1)
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), -1)
        return x + self.out(functional.gelu(self.norm(torch.matmul(weights, self.value(x)).float())))


class Net(nn.Module):
    def __init__(self, layers, inverted):
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.layers = nn.ModuleList(Layer(inverted and i == layers - 1) for i in range(layers))
        self.head = nn.Linear(16, 32)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def cross_entropy(logits, labels):
    return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


class Answers(Case):
    def train(self, name, layers=1, steps=1, change=None, inverted=False, loss=cross_entropy, average=None, bfloat16=False,
              **settings):
        """Records a training into a folder of this name. `change` is called with the model before, `average` with copies of the
        parameters, the parameters and the number of the step after each step."""
        torch.manual_seed(0)
        net = Net(layers, inverted)
        if change:
            change(net)
        parameters = list(net.parameters())
        optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        averages = copy.deepcopy(parameters)
        numbers = torch.Generator().manual_seed(5)
        recording = msprobe.record(net, os.path.join(self.folder, name), **settings)
        for step in range(steps):
            tokens, labels = (torch.randint(0, 32, (4, 8), generator=numbers) for _ in range(2))
            with recording:
                with torch.autocast("cpu", dtype=torch.bfloat16) if bfloat16 else contextlib.nullcontext():
                    value = loss(net(tokens), labels)
                value.backward()
                optimizer.step()
                optimizer.zero_grad()
                if average:
                    with torch.no_grad():
                        average(averages, parameters, step)

    def compared(self, target, golden):
        return msprobe.compare(os.path.join(self.folder, target), os.path.join(self.folder, golden))

    def assert_silent(self, found):
        self.assertIsNone(found.culprit, found.text)
        self.assertTrue(found.text.startswith("no culprit"), found.text)

    def assert_culprit(self, found, entry, *texts):
        """The first lines, which say what and why, have these texts."""
        self.assertIsNotNone(found.culprit, found.text)
        self.assertEqual(found.culprit.entry, entry, found.text)
        for text in texts:
            self.assertIn(text, found.culprit.text, found.text)


class Averages(Answers):
    @staticmethod
    def average(decay, exchanged=()):
        """An average that equals the parameter after the first step, as that of diffusers' EMAModel. Two may be `exchanged`."""
        def update(averages, parameters, step):
            order = list(range(len(parameters)))
            for i, other in zip(exchanged, reversed(exchanged)):
                order[i] = other
            for mean, i in zip(averages, order):
                mean.sub_((1 - (decay if step else 0)) * (mean - parameters[i]))
        return update

    def test_of_another_precision(self):
        self.train("float32", steps=3, average=self.average(0.999))
        for name, decay, exchanged in (("right", 0.999, ()), ("decay", 0.9, ()), ("parameter", 0.999, (1, 2))):
            self.train(name, steps=3, average=self.average(decay, exchanged), bfloat16=True)
        self.assert_silent(self.compared("right", "float32"))
        self.assert_silent(self.compared("float32", "right"))
        for golden in ("float32", "right"):
            found = self.compared("decay", golden)
            self.assert_culprit(found, "Tensor.__rmul__.0.forward", "argument input.1 is 0.09999999999999998, golden 0.001")
            self.assertEqual(found.culprit.step, "step1")
            found = self.compared("parameter", golden)
            self.assert_culprit(found, "Tensor.__sub__.1.forward", "input.1")


class NotANumber(Answers):
    def test_of_an_inverted_mask(self):
        self.train("right", layers=2)
        self.train("wrong", layers=2, inverted=True)
        self.assert_culprit(self.compared("wrong", "right"), "Tensor.__eq__.1.forward",
                            "this run has NaN from Torch.softmax.1.forward on, golden none")
        self.assert_culprit(self.compared("right", "wrong"), "Tensor.__eq__.1.forward",
                            "golden has NaN from Torch.softmax.1.forward on, this run none")
        self.assertNotIn("NaN from", self.compared("wrong", "wrong").text)

    def test_of_golden_alone(self):
        """A parameter with NaN, which the run under test has not."""
        def spoil(net):
            with torch.no_grad():
                net.layers[1].out.weight[3, 2] = float("nan")
        self.train("right", layers=2)
        self.train("spoilt", layers=2, change=spoil)
        self.assert_culprit(self.compared("right", "spoilt"), "Functional.linear.7.forward",
                            "input.1 is a parameter and has no NaN, golden has, before it is used")
        self.assert_culprit(self.compared("spoilt", "right"), "Functional.linear.7.forward",
                            "input.1 is a parameter and has NaN, golden none, before it is used")
        self.assert_silent(self.compared("spoilt", "spoilt"))


class Lists(Answers):
    def test_of_golden(self):
        """Golden was recorded with a list; this run in full."""
        self.train("full", layers=LAYERS)
        self.train("wrong", layers=LAYERS, inverted=True)
        last = "layers.%d" % (LAYERS - 1)
        for names in ([last], ["linear"], ["embedding", "softmax"], ["layers.2", "head"]):
            with self.subTest(list=names):
                golden = "-".join(names)
                self.train(golden, layers=LAYERS, list=names)
                for pair in (("full", golden), (golden, "full")):
                    found = self.compared(*pair)
                    self.assert_silent(found)
                    self.assertNotIn("the code differs", found.text)
        found = self.compared("wrong", last)
        self.assert_culprit(found, "Tensor.__eq__.%d.forward" % (LAYERS - 1), "this run has NaN from")
        self.assertIn("the other recording was asked for some calls alone", found.text)


class Advice(Answers):
    LOSSES = {
        "part": lambda logits, labels: cross_entropy(logits[:, :-1], labels[:, :-1]),
        "shifted": lambda logits, labels: cross_entropy(logits, labels.flip(0)),
        "scaled": lambda logits, labels: 0.5 * cross_entropy(logits, labels),
        "squares": lambda logits, labels: functional.mse_loss(logits, functional.one_hot(labels, 32).float()),
    }

    def test_for_a_loss(self):
        """No tensor was recorded that could not be read; no setting of the optimizer shows more of a loss."""
        for level in ("mix", "L0"):
            self.train(level, level=level)
            self.train(level + "-again", level=level)
            self.assert_silent(self.compared(level + "-again", level))
            for name, loss in self.LOSSES.items():
                with self.subTest(level=level, loss=name):
                    self.train(level + name, level=level, loss=loss)
                    found = self.compared(level + name, level)
                    self.assertIsNotNone(found.culprit, found.text)
                    for text in ("could not read", "record optimizer"):
                        self.assertNotIn(text, found.text)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.skip, self.inner = nn.Identity(), nn.Linear(8, 8)

    def forward(self, x):
        return torch.div(torch.add(self.skip(x), functional.silu(self.inner(x))), 1.5)


class Skipping(nn.Module):
    """A step down, a block with a way around it, and a step up that takes what came down once more; and a projection of what a
    module hands on. One of the two is `detached`."""

    def __init__(self, detached):
        super().__init__()
        self.detached = detached
        self.down, self.block, self.last = Block(), Block(), nn.Dropout(0.0)
        self.up, self.project = nn.Linear(16, 8), nn.Linear(8, 8)

    def given(self, name, value):
        return value.detach() if self.detached == name else value

    def forward(self, x):
        down = self.down(x)
        middle = self.last(self.block(down))
        up = self.up(torch.cat([middle, self.given("skip", down)], -1))
        return up.square().mean() + self.project(self.given("hidden", middle)).square().mean()


class Detached(Answers):
    """A tensor is cut off from its gradient on one of its two ways."""

    def record(self, name, detached=None):
        torch.manual_seed(0)
        net = Skipping(detached)
        x = torch.randn(4, 8)
        with msprobe.record(net, os.path.join(self.folder, name)):
            net(x).backward()

    def test_the_first_wrong_gradient_or_the_call_is_named(self):
        self.record("right")
        self.record("again")
        self.assert_silent(self.compared("again", "right"))
        self.record("skip", "skip")
        self.assert_culprit(self.compared("skip", "right"), "Torch.div.0.backward", "the gradient of its output arrives")
        self.record("hidden", "hidden")
        self.assert_culprit(self.compared("hidden", "right"), "Functional.linear.3.forward",
                            "requires_grad of input.0 is False, golden True")


if __name__ == "__main__":
    unittest.main()

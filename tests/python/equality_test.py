# SPDX-License-Identifier: Apache-2.0
"""Recording changes nothing: losses are the same bits with L1, and nearly so with modules hooked."""

from helpers import *


def train(debugger, model_for_start):
    torch.manual_seed(7)
    net = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        if debugger is not None:
            debugger.start(model=net if model_for_start else None)
        loss = functional.cross_entropy(net(torch.randn(8, 16)), torch.randint(0, 4, (8,)))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        losses.append(loss.detach().clone())
    return torch.stack(losses)


class Equality(Case):
    def test_functions(self):
        expected = train(None, False)
        for section in ({}, {"summary_mode": "md5"}):
            self.assertTrue(torch.equal(expected, train(self.open("L1", section=section), False)))
        self.assertTrue(torch.equal(expected, train(self.open("L1", task="tensor"), False)))

    def test_modules(self):
        expected = train(None, False)
        for level in ("L0", "mix"):
            self.assertTrue(torch.allclose(expected, train(self.open(level), True), rtol=1e-5, atol=0))

    def test_random_state_is_untouched(self):
        debugger = self.open("mix")
        net = make_net()
        before = torch.get_rng_state()
        debugger.start(model=net)
        net(torch.ones(4, 8)).sum().backward()
        debugger.stop()
        debugger.step()
        self.assertTrue(torch.equal(before, torch.get_rng_state()))


if __name__ == "__main__":
    unittest.main()

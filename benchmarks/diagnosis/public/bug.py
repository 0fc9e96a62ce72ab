# SPDX-License-Identifier: Apache-2.0
"""Code that public bugs share: a wrong and a right side of one program, and a small decoder."""

import re

import torch
from torch import nn
from torch.nn import functional as F

from models import Bench
from planting import Fault

WORDS, WIDTH, HEADS, LENGTH = 50, 32, 4, 12
SIZE = WIDTH // HEADS

PUBLIC_BENCHES, PUBLIC_FAULTS = {}, []


def reported(source, kind, *expect, held_out=False):
    """Names a bug by its class, and tells the thread it was reported in and what has to be named for it."""
    def add(bug):
        bug.name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", bug.__name__).lower()
        bug.held_out = held_out
        PUBLIC_BENCHES[bug.name] = bug
        PUBLIC_FAULTS.append(Fault(bug.name, "wrong", kind, "", _be_wrong, expect, source=source))
        return bug
    return add


def _be_wrong(run):
    """Builds the wrong side, from the same seed; the optimizer is made anew for other parameters."""
    run.bench.wrong = True
    torch.manual_seed(torch.initial_seed())
    run.model = run.bench.distribute(run.bench.build()).to(run.bench.device)


class Bug(Bench):
    """A program that computes as it was reported where `wrong` is set, and as it was repaired where it is not. Parts of
    the decoder are methods, which one bug or another overrides."""

    set_name = "public"
    seeds = (31,)
    wrong = False
    groups = HEADS
    start = 0  # position of the first token

    def build(self):
        model = Decoder(self)
        return model.bfloat16() if self.dtype == "bfloat16" else model

    def batch(self, generator):
        tokens = torch.randint(1, WORDS, (3, LENGTH + 1), generator=generator)
        return {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["tokens"]).flatten(0, 1), batch["labels"].flatten())

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)

    def embedded(self, model, tokens):
        return model.tokens(tokens) + model.places(torch.arange(self.start, self.start + tokens.shape[1]))

    def hidden(self, tokens):
        """Per token, which tokens it does not see."""
        end = self.start + tokens.shape[1]
        return torch.arange(end) > torch.arange(self.start, end)[:, None]

    def attention(self):
        return Attention(self)

    def placed(self, at, query, key, value):
        return query, key, value

    def biased(self, scores):
        return scores

    def mixed(self, query, key, value, hidden):
        scores = self.biased(torch.matmul(query, key.transpose(-2, -1)) / SIZE**0.5)
        return torch.matmul(F.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1), value)

    def feed(self):
        return nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def norm(self):
        return nn.LayerNorm(WIDTH)


class Attention(nn.Module):
    def __init__(self, bug):
        super().__init__()
        self.bug = bug
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, bug.groups * SIZE, bias=False)
        self.value = nn.Linear(WIDTH, bug.groups * SIZE, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH)

    def parts(self, x):
        return [part(x).unflatten(-1, (-1, SIZE)) for part in (self.query, self.key, self.value)]

    def forward(self, x, hidden):
        query, key, value = self.bug.placed(self, *(part.transpose(1, 2) for part in self.parts(x)))
        return self.out(self.bug.mixed(query, key, value, hidden).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, bug):
        super().__init__()
        self.norm1, self.attention, self.norm2, self.feed = bug.norm(), bug.attention(), bug.norm(), bug.feed()

    def forward(self, x, hidden):
        x = x + self.attention(self.norm1(x), hidden)
        return x + self.feed(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, bug):
        super().__init__()
        self.bug = bug
        self.tokens = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(bug), Block(bug)])
        self.norm = bug.norm()
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        x = self.bug.embedded(self, tokens)
        hidden = self.bug.hidden(tokens)
        for block in self.blocks:
            x = block(x, hidden)
        return self.head(self.norm(x))


def padded_left(batch):
    batch["tokens"][0, :4] = batch["tokens"][1, :1] = 0
    return batch

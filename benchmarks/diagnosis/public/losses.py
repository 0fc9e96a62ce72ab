# SPDX-License-Identifier: Apache-2.0
"""Losses and their denominators, and what is sampled from logits."""

import torch
from torch.nn import functional as F

from planting import Where
from public.bug import Bug, reported

_IGNORED = -100


@reported("huggingface/transformers#47394", "code", Where("", "cross_entropy"), Where("", "pad", side="target"))
class ShiftedTwice(Bug):
    """The model shifts the labels, and so does the loss that it calls."""

    def loss(self, model, batch):
        logits = model(batch["tokens"])[:, :-1].flatten(0, 1)
        labels = batch["tokens"][:, 1:].flatten()
        if self.wrong:
            labels = F.pad(labels, (0, 1), value=_IGNORED)[1:]
        return F.cross_entropy(logits, labels)


@reported("huggingface/trl#2175", "code", Where("", "cross_entropy", 0))
class MeanOfMeans(Bug):
    """Parts of a batch have different numbers of tokens, and their means are averaged."""

    def gradients(self, model, batch):
        batch["labels"][0, 3:] = _IGNORED
        count = (batch["labels"] != _IGNORED).sum()
        for tokens, labels in zip(batch["tokens"].split(1), batch["labels"].split(1)):
            logits = model(tokens).flatten(0, 1)
            if self.wrong:
                loss = F.cross_entropy(logits, labels.flatten()) / 3
            else:
                loss = F.cross_entropy(logits, labels.flatten(), reduction="sum") / count
            loss.backward()


@reported("karpathy/nanoGPT#206", "code", Where("", "__truediv__", side="golden"), held_out=True)
class NotDivided(Bug):
    """Gradients of several batches are added without dividing the loss by their number."""

    def gradients(self, model, batch):
        for tokens, labels in zip(batch["tokens"].split(1), batch["labels"].split(1)):
            loss = self.loss(model, {"tokens": tokens, "labels": labels})
            (loss if self.wrong else loss / 3).backward()


@reported("pytorch/pytorch#73205", "kernel", Where("", "cross_entropy"))
class SmoothedPadding(Bug):
    """Label smoothing in the kernel counts the labels that are to be ignored."""

    def build(self):
        if self.wrong:
            F.cross_entropy = _smoothing_all
        return super().build()

    def loss(self, model, batch):
        batch["labels"][0, 3:] = _IGNORED
        return F.cross_entropy(model(batch["tokens"]).flatten(0, 1), batch["labels"].flatten(), label_smoothing=0.1)


def _smoothing_all(logits, labels, label_smoothing):
    chances = F.log_softmax(logits, dim=-1)
    uniform = -chances.mean(-1).sum() / (labels != _IGNORED).sum()
    return (1 - label_smoothing) * F.nll_loss(chances, labels) + label_smoothing * uniform


@reported("huggingface/trl#6369", "code", Where("", "sum", 0), Where("", "__mul__", 0, side="golden"), held_out=True)
class TruncatedCount(Bug):
    """Truncated answers are left out of the sum of the loss, but not of the number it is divided by."""

    def loss(self, model, batch):
        chances = F.log_softmax(model(batch["tokens"]), dim=-1)
        chances = chances.gather(-1, batch["labels"][..., None]).squeeze(-1)
        answer = torch.ones_like(chances)
        answer[:, :3] = 0
        whole = torch.tensor([[1.0], [0.0], [1.0]])
        count = (answer if self.wrong else answer * whole).sum()
        return -(chances * torch.tensor([[1.0], [0.5], [-0.7]]) * answer * whole).sum() / count


@reported("fishaudio/fish-speech#1171", "code", Where("", "__sub__", side="golden"), Where("", "__gt__"),
          Where("", "masked_fill", around=True))
class NucleusEdge(Bug):
    """Nucleus sampling drops the token that crosses the threshold."""

    def gradients(self, model, batch):
        with torch.no_grad():
            chances, _ = F.softmax(3 * model(batch["tokens"])[:, -1], dim=-1).sort(descending=True)
            total = torch.cumsum(chances, dim=-1)
            removed = (total if self.wrong else total - chances) > 0.8
            torch.multinomial(chances.masked_fill(removed, 0.0), 1)

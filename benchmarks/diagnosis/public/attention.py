# SPDX-License-Identifier: Apache-2.0
"""Masks, positions, heads and scales of attention."""

import torch
from torch import nn
from torch.nn import functional as F

from planting import Where
from public.bug import HEADS, LENGTH, SIZE, WIDTH, Attention, Bug, padded_left, reported

_AT = "blocks.0.attention"
_FUSED = Where(_AT, "scaled_dot_product_attention")


@reported("huggingface/transformers#46634", "argument", _FUSED)
class PackedMask(Bug):
    """A mask of all ones makes the library take packed texts for one: tokens see the text before theirs."""

    def hidden(self, tokens):
        text = torch.arange(LENGTH) // 7
        return super().hidden(tokens) | (text != text[:, None])

    def mixed(self, query, key, value, hidden):
        if self.wrong:
            return F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=~hidden)


@reported("huggingface/transformers#39408", "argument", Where("", "__gt__", 1), Where(_AT, "masked_fill", around=True),
          held_out=True)
class SlidingWindow(Bug):
    """The width of a window is passed where the kernel expects the distance of the farthest token."""

    def hidden(self, tokens):
        steps = torch.arange(LENGTH)
        farthest = 4 if self.wrong else 3
        return (steps > steps[:, None]) | (steps[:, None] - steps > farthest)


@reported("unslothai/unsloth#4078", "code", Where("places", "embedding"), Where("", "__ne__", side="golden"),
          Where("", "cumsum", side="golden"))
class LeftPadding(Bug):
    """All sequences of a batch get the positions of the longest."""

    def batch(self, generator):
        return padded_left(super().batch(generator))

    def embedded(self, model, tokens):
        if self.wrong:
            positions = torch.arange(LENGTH).expand_as(tokens)
        else:
            positions = (torch.cumsum(tokens != 0, dim=-1) - 1).clamp(min=0)
        return model.tokens(tokens) + model.places(positions)

    def hidden(self, tokens):
        # A token sees itself: a row without any is no number.
        return (super().hidden(tokens) | (tokens == 0)[:, None, None]) & ~torch.eye(LENGTH, dtype=torch.bool)


def rotated(x, angles):
    one, two = x.chunk(2, dim=-1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)


def frequencies(base):
    return base ** (-torch.arange(SIZE // 2) / (SIZE // 2))


@reported("sgl-project/SpecForge#265", "argument", Where(_AT, "__rpow__"))
class RotaryBase(Bug):
    """The base of the configuration is not read: rotary embeddings keep the default."""

    def placed(self, at, query, key, value):
        angles = torch.outer(torch.arange(LENGTH).float(), frequencies(10000.0 if self.wrong else 500000.0))
        return rotated(query, angles), rotated(key, angles), value


@reported("EleutherAI/gpt-neox#1003", "precision", Where(_AT, "outer"))
class RotaryInHalf(Bug):
    """The model's type is also that of the angles, where large positions lose their last digits."""

    dtype = "bfloat16"

    def placed(self, at, query, key, value):
        steps, turns = torch.arange(700, 700 + LENGTH).float(), frequencies(10000.0)
        if self.wrong:
            steps, turns = steps.to(query.dtype), turns.to(query.dtype)
        angles = torch.outer(steps, turns)
        return rotated(query, angles), rotated(key, angles), value


@reported("pytorch/executorch#2010", "code", Where(_AT, "cos", 2), Where(_AT, "__mul__", 8))
class CachePosition(Bug):
    """With a cache of keys, the table of angles is read from its beginning instead of from the token's position."""

    def gradients(self, model, batch):
        self.kept = {}
        with torch.no_grad():
            for self.start, end in ((0, 8), (8, 9), (9, 10)):
                model(batch["tokens"][:, self.start:end])

    def placed(self, at, query, key, value):
        begin = 0 if self.wrong else self.start
        angles = torch.outer(torch.arange(LENGTH).float(), frequencies(10000.0))[begin:begin + query.shape[2]]
        query, key = rotated(query, angles), rotated(key, angles)
        if at in self.kept:
            key, value = (torch.cat(pair, dim=2) for pair in zip(self.kept[at], (key, value)))
        self.kept[at] = key, value
        return query, key, value


@reported("meta-pytorch/attention-gym#86", "code", Where(_AT, "__sub__"))
class BiasSign(Bug):
    """ALiBi with key and query exchanged: far tokens are preferred."""

    def biased(self, scores):
        steps = torch.arange(LENGTH)
        distance = steps[:, None] - steps if self.wrong else steps - steps[:, None]
        return scores + distance * 2.0 ** -torch.arange(1, HEADS + 1)[:, None, None]


@reported("onnx/onnx#7274", "code", Where(_AT, "repeat_interleave"), Where(_AT, "repeat"), Where(_AT, "matmul", 0),
          held_out=True)
class GroupOrder(Bug):
    """Grouped keys and values are repeated as a whole, not each beside itself."""

    groups = 2

    def placed(self, at, query, key, value):
        if self.wrong:
            return query, key.repeat(1, 2, 1, 1), value.repeat(1, 2, 1, 1)
        return query, key.repeat_interleave(2, dim=1), value.repeat_interleave(2, dim=1)


@reported("mlc-ai/mlc-llm#3426", "argument", _FUSED)
class NoScale(Bug):
    """The fallback of an attention kernel does not divide by the root of the head's size."""

    def mixed(self, query, key, value, hidden):
        scale = 1.0 if self.wrong else SIZE**-0.5
        return F.scaled_dot_product_attention(query, key, value, attn_mask=~hidden, scale=scale)


@reported("sgl-project/sglang#33915", "code", Where(_AT, "tanh", side="golden"),
          Where(_AT, "__truediv__", 1, side="golden"), Where(_AT, "__mul__", side="golden"), Where(_AT, "masked_fill"),
          held_out=True)
class NoCap(Bug):
    """The cap of the scores is passed to a function that ignores it."""

    def biased(self, scores):
        return scores if self.wrong else torch.tanh(scores / 2.0) * 2.0


@reported("awslabs/slapo#46", "code", Where(_AT, "matmul", 0))
class FusedOrder(Bug):
    """Rows of the fused projection are head by head, and are read part by part."""

    def attention(self):
        return FusedAttention(self)


class FusedAttention(Attention):
    def __init__(self, bug):
        super().__init__(bug)
        self.query = self.key = self.value = None
        self.fused = nn.Linear(WIDTH, 3 * WIDTH, bias=False)

    def parts(self, x):
        x = self.fused(x)
        if self.bug.wrong:
            return x.unflatten(-1, (3, HEADS, SIZE)).unbind(2)
        return x.unflatten(-1, (HEADS, 3, SIZE)).unbind(3)


@reported("NVIDIA-NeMo/Automodel#2658", "code", Where("", "__add__", 1), Where("", "minimum"), Where(_AT, "__add__"))
class MaskTwice(Bug):
    """Two masks of the lowest number are added: where both hide a token, the sum is infinite."""

    dtype = "bfloat16"

    def batch(self, generator):
        return padded_left(super().batch(generator))

    def hidden(self, tokens):
        lowest = torch.finfo(torch.bfloat16).min
        later, padding = (torch.zeros(hidden.shape, dtype=torch.bfloat16).masked_fill(hidden, lowest)
                          for hidden in (super().hidden(tokens), (tokens == 0)[:, None, None]))
        return later + padding if self.wrong else torch.minimum(later, padding)

    def mixed(self, query, key, value, hidden):
        scores = torch.matmul(query, key.transpose(-2, -1)) / SIZE**0.5 + hidden
        return torch.matmul(F.softmax(scores, dim=-1), value)


@reported("huggingface/pytorch-image-models#1978", "argument", _FUSED)
class DropoutInEval(Bug):
    """Fused attention is a function: it drops in evaluation, too, unless its caller asks the mode."""

    def gradients(self, model, batch):
        with torch.no_grad():
            self.loss(model.eval(), batch)

    def mixed(self, query, key, value, hidden):
        dropped = 0.1 if self.wrong else 0.0
        return F.scaled_dot_product_attention(query, key, value, attn_mask=~hidden, dropout_p=dropped)

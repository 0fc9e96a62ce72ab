# SPDX-License-Identifier: Apache-2.0
"""Small models of torch.nn, for training_families.py: by what makes their inputs, by name, what builds them."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Around(nn.Module):
    """A module between two linear layers, given one tensor `count` times."""

    def __init__(self, inner, count=1, width=16):
        super().__init__()
        self.first = linear()
        self.inner = inner
        self.last = nn.Linear(width, 4)
        self.count = count

    def forward(self, x):
        output = self.inner(*[self.first(x)] * self.count)
        return self.last(output if isinstance(output, torch.Tensor) else output[0])


class Function(nn.Module):
    """A module that calls a function with its children."""

    def __init__(self, function, **children):
        super().__init__()
        self.function = function
        for name, child in children.items():
            setattr(self, name, child)

    def forward(self, *args, **kwargs):
        return self.function(self, *args, **kwargs)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def linear():
    return nn.Linear(16, 16)


def many_paths(self, x):
    hidden = self.a(x)
    return self.b(hidden) + self.c(hidden) * self.b(self.same(hidden)) + hidden.sin() + self.same(hidden + x.mean())


def structures(self, x):
    def inner(_, pair, *, scale, named):
        return {"sum": pair[0] + pair[1] * scale, "list": [named["x"].tanh(), pair[0]], "none": None}

    self.inner.function = inner
    first = self.a(x)
    result = self.inner((first, self.b(x)), scale=first.sigmoid(), named={"x": first})
    return self.c(result["sum"] + result["list"][0]), result["list"][1]


def in_place(self, x):
    hidden = self.a(x)
    hidden += self.b(x)
    hidden[:, :2].mul_(3)
    return self.c(self.relu(hidden)).add_(self.relu(self.b(hidden)))


def recomputed(self, x):
    for _ in range(2):
        x = x + checkpoint(self.block, x, use_reentrant=False)
    return checkpoint(self.block, x, use_reentrant=True)


def cells(self, x):
    hidden, state = x.new_zeros(x.shape[1], 16), None
    for row in x:
        state = self.lstm(row, state)
        hidden = self.gru(state[0], hidden)
    return hidden


def u_net(self, x):
    small = self.down(x)
    return self.last(torch.cat((self.up(self.middle(small) + small), x), 1))


def unpooled(self, x):
    values, places = self.pool(self.a(x))
    return self.b(self.unpool(values, places))


def connectionist(self, x):
    likely = functional.log_softmax(self.a(x), -1)
    return self.loss(likely, torch.tensor([[1, 2], [3, 1]]), torch.full((2,), len(x)), torch.tensor([2, 1]))


def routed(self, x):
    weights, chosen = self.router(x).softmax(-1).topk(2)
    output = torch.zeros_like(x)
    for number, expert in enumerate(self.experts):
        row, place = torch.where(chosen == number)
        output.index_add_(0, row, expert(x[row]) * weights[row, place, None])
    return output


def automatic(self, x):
    with torch.autocast("cpu", torch.bfloat16):
        return self.b(self.norm(self.a(x)).relu())


def penalty(self, x):
    x = x.requires_grad_()
    output = self.b(self.a(x).tanh())
    gradient, = torch.autograd.grad(output.sum(), x, create_graph=True)
    return output, gradient


def rows(draw, model):
    return (draw.numbers(8, 16),)


def sequence(draw, model):
    return (draw.numbers(6, 2, 16),)


def words(draw, model):
    return (draw.tokens(2, 8, below=40),)


def of_type(kind):
    return lambda draw, model: (draw.numbers(8, 16).to(kind),)


def volume(*shape):
    return lambda draw, model: (draw.numbers(*shape),)


PICTURE = volume(2, 3, 16, 16)


def convolutions(kind, norm, pool, *more):
    return nn.Sequential(kind(3, 8, 3, padding=1), norm(8), nn.SiLU(), pool(2), kind(8, 8, 3, padding=1, groups=4),
                         *more)


def tied():
    embedding, head = nn.Embedding(40, 16), nn.Linear(16, 40, bias=False)
    head.weight = embedding.weight
    return nn.Sequential(embedding, linear(), nn.GELU(), head)


def shared():
    layer, act = linear(), nn.Tanh()
    return nn.Sequential(layer, act, layer, act, layer)


def adaptive(self, x):
    return self.loss(self.a(x), torch.arange(8) * 4)


ACTIVATIONS = (nn.ReLU, nn.ELU, nn.SELU, nn.CELU, nn.Hardswish, nn.Mish, nn.Softplus, nn.PReLU, nn.Softsign,
               nn.Tanhshrink)
# Families by the function that makes their inputs.
TORCH = {
    rows: {
        "perceptron": lambda: nn.Sequential(linear(), nn.GELU(), linear(), nn.LeakyReLU(), linear()),
        "activations": lambda: nn.Sequential(*[nn.Sequential(linear(), activation()) for activation in ACTIVATIONS]),
        "many_paths": lambda: Function(many_paths, a=linear(), b=linear(), c=linear(), same=nn.Identity()),
        "structures": lambda: Function(structures, a=linear(), b=linear(), c=linear(), inner=Function(None)),
        "in_place": lambda: Function(in_place, a=linear(), b=linear(), c=linear(), relu=nn.ReLU(inplace=True)),
        "checkpoint": lambda: Function(recomputed, block=nn.Sequential(linear(), nn.Tanh(), linear())),
        "shared_layer": shared,
        "autograd_function": lambda: nn.Sequential(linear(), Function(lambda self, x: Doubled.apply(x)), linear()),
        "dropout": lambda: nn.Sequential(linear(), nn.Dropout(0.3), linear(), nn.AlphaDropout(0.2), nn.RReLU(),
                                         linear()),
        "second_derivative": lambda: Function(penalty, a=linear(), b=linear()),
        "autocast": lambda: Function(automatic, a=linear(), b=linear(), norm=nn.LayerNorm(16)),
        "weight_norm": lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(linear()), nn.Tanh(),
                                             nn.utils.parametrizations.spectral_norm(linear())),
        "experts": lambda: Function(routed, router=nn.Linear(16, 4),
                                    experts=nn.ModuleList(linear() for _ in range(4))),
        "nn.Bilinear": lambda: Around(nn.Bilinear(16, 16, 8), 2, 8),
        "nn.AdaptiveLogSoftmaxWithLoss": lambda: Function(adaptive, a=linear(), loss=nn.AdaptiveLogSoftmaxWithLoss(
            16, 40, [8, 20])),
    },
    of_type(torch.float64): {"float64": lambda: nn.Sequential(linear(), nn.Tanh(), linear()).double()},
    of_type(torch.bfloat16): {
        "bfloat16": lambda: nn.Sequential(linear(), nn.LayerNorm(16), nn.GELU(), linear()).bfloat16()},
    words: {
        "nn.Embedding": tied,
        "nn.Embedding_sparse": lambda: nn.Sequential(nn.Embedding(40, 16, sparse=True), linear()),
        "nn.EmbeddingBag": lambda: nn.Sequential(nn.EmbeddingBag(40, 16), linear()),
    },
    sequence: {
        "nn.CTCLoss": lambda: Function(connectionist, a=linear(), loss=nn.CTCLoss()),
        "nn.MultiheadAttention": lambda: Around(nn.MultiheadAttention(16, 4), 3),
        "nn.TransformerEncoder": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, 0.0), 2),
        "nn.TransformerEncoder_dropout": lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 4, 32, 0.2, norm_first=True), 2, enable_nested_tensor=False),
        "nn.TransformerDecoder": lambda: Around(
            nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, 0.0), 2), 2),
        "nn.Transformer": lambda: Around(nn.Transformer(16, 4, 1, 2, 32, 0.0), 2),
        "nn.RNN": lambda: Around(nn.RNN(16, 8, 2), width=8),
        "nn.LSTM": lambda: Around(nn.LSTM(16, 16, 2, bidirectional=True, proj_size=4), width=8),
        "nn.GRU": lambda: Around(nn.GRU(16, 16, 2, batch_first=True)),
        "cells": lambda: Function(cells, lstm=nn.LSTMCell(16, 16), gru=nn.GRUCell(16, 16)),
    },
    volume(2, 3, 16): {
        "nn.Conv1d": lambda: convolutions(nn.Conv1d, nn.BatchNorm1d, nn.MaxPool1d, nn.AdaptiveMaxPool1d(2))},
    volume(2, 3, 8, 8, 8): {"nn.Conv3d": lambda: convolutions(nn.Conv3d, nn.InstanceNorm3d, nn.AvgPool3d)},
    PICTURE: {
        "nn.Conv2d": lambda: convolutions(nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d, nn.GroupNorm(2, 8), nn.Flatten(),
                                          nn.Linear(512, 4)),
        "norms": lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.LocalResponseNorm(2), nn.Conv2d(8, 8, 1), nn.GroupNorm(4, 8),
            nn.InstanceNorm2d(8, affine=True), nn.RMSNorm(14), nn.BatchNorm2d(8)),
        "nn.ConvTranspose2d": lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(True),
                                                    nn.ConvTranspose2d(8, 4, 3, 2)),
        "u_net": lambda: Function(u_net, down=nn.Conv2d(3, 8, 4, 2, 1), middle=nn.Conv2d(8, 8, 3, padding=1),
                                  up=nn.ConvTranspose2d(8, 8, 2, 2), last=nn.Conv2d(11, 3, 1)),
        "nn.MaxUnpool2d": lambda: Function(unpooled, a=nn.Conv2d(3, 4, 3, padding=1), unpool=nn.MaxUnpool2d(2),
                                           pool=nn.MaxPool2d(2, return_indices=True), b=nn.Conv2d(4, 3, 1)),
        "nn.PixelShuffle": lambda: nn.Sequential(
            nn.Conv2d(3, 12, 3), nn.PixelShuffle(2), nn.Conv2d(3, 3, 1), nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.ReflectionPad2d(1), nn.Conv2d(3, 2, 3), nn.AdaptiveAvgPool2d(4)),
        "nn.Unfold": lambda: nn.Sequential(nn.Conv2d(3, 2, 1), nn.Unfold(4, stride=4), nn.Conv1d(32, 32, 1),
                                           nn.Fold((16, 16), 4, stride=4), nn.Conv2d(2, 2, 1)),
    },
}

# SPDX-License-Identifier: Apache-2.0
"""The calls that replay_pytorch.py records: operations over dtypes, odd shapes, broadcasting and arguments."""

import torch
from torch import nn
from torch.nn import functional

FLOATS = (torch.float32, torch.float64, torch.bfloat16)


class Case:
    def __init__(self, api, function, args, kwargs, status="computed", parameters=None, corruptible=True):
        self.api = api
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.status = status
        self.parameters = parameters
        self.corruptible = corruptible
        self.note = ", ".join([describe(value) for value in args]
                              + ["%s=%s" % (key, describe(value)) for key, value in kwargs.items()])


def describe(value):
    if isinstance(value, torch.Tensor):
        return "%s%s" % (str(value.dtype).replace("torch.", ""), list(value.shape))
    return repr(value) if not isinstance(value, (list, tuple)) else "[%s]" % ", ".join(map(describe, value))


class Maker:
    def __init__(self):
        self.cases = []

    def add(self, api, *args, function=None, status="computed", corruptible=True, **kwargs):
        """A call of the function that the name of an entry stands for."""
        space, name = api.split(".")
        function = function or getattr({"Functional": functional, "Torch": torch, "Tensor": torch.Tensor}[space], name)
        self.cases.append(Case(api, function, args, kwargs, status, None, corruptible))

    def module(self, module, *args, status="computed", corruptible=True):
        parameters = {name: value for name, value in module.named_parameters(recurse=False)}
        self.cases.append(Case("Module.layer." + type(module).__name__, module, args, {}, status, parameters,
                               corruptible))


def randn(*shape, dtype=torch.float32, scale=1.0, shift=0.0):
    return (torch.randn(shape, dtype=torch.float64) * scale + shift).to(dtype)


def linear(make):
    for dtype in FLOATS:
        for rows, inputs, outputs in ((7, 33, 19), (1, 1, 1), (64, 300, 40)):
            x, w, b = (randn(rows, inputs, dtype=dtype), randn(outputs, inputs, dtype=dtype, scale=inputs ** -0.5),
                       randn(outputs, dtype=dtype))
            make.add("Functional.linear", x, w, b)
            make.add("Functional.linear", x, w)
            make.add("Functional.linear", x, weight=w, bias=None)
        make.add("Functional.linear", randn(2, 3, 5, 17, dtype=dtype), randn(11, 17, dtype=dtype))
        make.add("Functional.linear", randn(17, dtype=dtype), randn(11, 17, dtype=dtype), randn(11, dtype=dtype))
    # Large ones are not computed but multiplied by vectors.
    make.add("Functional.linear", randn(260, 256), randn(300, 256), randn(300))
    make.add("Torch.matmul", randn(3, 200, 256), randn(3, 256, 200))
    make.add("Tensor.__matmul__", randn(2, 2, 180, 256), randn(200, 256).t())
    # Rows whose products nearly cancel.
    make.add("Functional.linear", randn(40, 512, shift=3.0), randn(20, 512) - 0.0)


def matmul(make):
    for dtype in FLOATS:
        def r(*shape):
            return randn(*shape, dtype=dtype)
        for a, b in (((4, 5), (5, 3)), ((5,), (5,)), ((5,), (5, 3)), ((4, 5), (5,)), ((2, 4, 5), (5, 3)),
                     ((2, 4, 5), (5,)), ((5,), (2, 5, 3)), ((6, 1, 4, 5), (2, 5, 3)), ((4, 5), (3, 2, 5, 7))):
            make.add("Torch.matmul", r(*a), r(*b))
        make.add("Tensor.__matmul__", r(4, 5), r(5, 6))
        make.add("Tensor.matmul", r(4, 6).t(), other=r(4, 6))
        make.add("Torch.mm", r(9, 31), r(31, 8))
        make.add("Torch.mm", r(9, 31), mat2=r(31, 8))
        make.add("Torch.bmm", r(3, 9, 31), r(3, 31, 8))
        make.add("Torch.addmm", r(8), r(9, 31), r(31, 8))
        make.add("Torch.addmm", r(9, 8), r(9, 31), r(31, 8), beta=0.5, alpha=2.0)
        make.add("Tensor.addmm_", r(9, 8), r(9, 31), r(31, 8), beta=0.0)
        make.add("Torch.baddbmm", r(3, 9, 8), r(3, 9, 31), r(3, 31, 8), beta=-1.5, alpha=0.25)
        make.add("Torch.baddbmm", r(1, 9, 1), r(3, 9, 31), r(3, 31, 8))
        make.add("Torch.addmv", r(9), r(9, 31), r(31), alpha=0.5)
        make.add("Torch.mv", r(9, 31), r(31))
        make.add("Torch.outer", r(9), r(31))
        for equation, a, b in (("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
                               ("ij,jk", (3, 4), (4, 5)), ("i,j->ij", (3,), (4,)), ("...d,de->...e", (2, 3, 4), (4, 5)),
                               ("ij, ij -> i", (3, 4), (3, 4)), ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
                               ("ijk,kl->li", (2, 3, 4), (4, 5)), ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
                               ("ij,ij->", (3, 4), (3, 4)), ("ba,cb", (3, 4), (5, 3))):
            make.add("Torch.einsum", equation, r(*a), r(*b))
        make.add("Torch.einsum", "ij,jk->ik", [r(3, 4), r(4, 5)])
        make.add("Torch.einsum", "ii,ij->j", r(3, 3), r(3, 5), status="unknown argument")
        make.add("Torch.einsum", "ij,jk,kl->il", r(3, 3), r(3, 5), r(5, 2), status="unknown argument")


def binary(make):
    for dtype in FLOATS:
        def r(*shape):
            return randn(*shape, dtype=dtype)
        for name in ("add", "sub", "mul", "div"):
            for a, b in (((5, 7), (5, 7)), ((5, 1, 3), (4, 3)), ((3,), (6, 1)), ((), (3, 2))):
                make.add("Torch." + name, r(*a), r(*b))
            make.add("Torch." + name, r(5, 7), 0.3)
            make.add("Tensor." + name, r(5, 7), other=r(7))
            make.add("Tensor.%s_" % name, r(5, 7), r(7))
            dunder = "truediv" if name == "div" else name
            make.add("Tensor.__%s__" % dunder, r(5, 7), 3)
        for name in ("iadd", "isub", "imul", "idiv"):
            make.add("Tensor.__%s__" % name, r(5, 7), r(5, 7))
            make.add("Tensor.__%s__" % name, r(5, 7), 1.7)
        for name in ("radd", "rsub", "rmul", "rdiv"):
            make.add("Tensor.__%s__" % name, r(5, 7), 1.7)
        for name in ("add", "sub"):
            make.add("Torch." + name, r(5, 7), r(5, 1), alpha=0.37)
            make.add("Torch." + name, r(5, 7), 2, alpha=3)
            make.add("Torch." + name, r(5, 7), r(5, 7), out=r(5, 7))
        make.add("Torch.rsub", r(5, 7), r(5, 7), alpha=0.37)
        make.add("Torch.add", r(5, 7), 2, r(5, 7), status="unknown argument",
                 function=lambda a, alpha, b: torch.add(a, b, alpha=alpha))
        for mode in ("floor", "trunc", None):
            make.add("Torch.div", r(50), r(50), rounding_mode=mode, corruptible=mode is None)
        make.add("Torch.pow", r(5, 7).abs(), 2.5)
        make.add("Torch.pow", r(5, 7), 3)
        make.add("Torch.pow", 2.0, r(5, 7))
        make.add("Torch.pow", r(5, 7).abs(), r(7))
        make.add("Tensor.__pow__", r(5, 7), 2)
        make.add("Tensor.__rpow__", r(5, 7), 2.0)
        make.add("Torch.maximum", r(5, 7), r(7))
        make.add("Torch.addcmul", r(5, 7), r(5, 1), r(7), value=0.5)
        make.add("Torch.addcdiv", r(5, 7), r(5, 1), r(7).abs() + 1, value=0.5)
        make.add("Torch.lerp", r(5, 7), r(5, 7), 0.3)
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            make.add("Torch." + name, r(5, 7), r(5, 7))
            make.add("Tensor.__%s__" % name, r(5, 7), 0.1)
    make.add("Torch.add", randn(5, 7), randn(5, 7, dtype=torch.bfloat16))
    make.add("Torch.add", torch.arange(6), torch.arange(6).view(6, 1))
    make.add("Torch.mul", torch.arange(6), 2.5)
    make.add("Torch.mul", torch.arange(6, dtype=torch.int32), torch.arange(6, dtype=torch.int32))
    make.add("Torch.mul", torch.full((3,), 100, dtype=torch.int8), 2, status="unknown argument")
    make.add("Torch.div", torch.arange(1, 7), torch.arange(2, 8))
    make.add("Torch.floor_divide", torch.arange(1, 7), 3)
    make.add("Torch.add", torch.tensor([True, False]), torch.tensor([True, True]))
    make.add("Torch.add", torch.full((3,), 1 << 60), 1, status="unknown argument")
    make.add("Torch.add", randn(3).to(torch.complex64), 1, status="unknown argument")
    make.add("Torch.mul", torch.full((4,), 300.0, dtype=torch.float16), 300.0)
    make.add("Torch.add", torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0]), 1.0)
    make.add("Torch.add", randn(0, 3), randn(3))
    make.add("Torch.mul", randn(4, 4).t(), randn(4, 8)[:, ::2])


def unary(make):
    for dtype in FLOATS + (torch.float16,):
        x = randn(9, 13, dtype=dtype)
        half = dtype == torch.float16
        for name in ("neg", "abs", "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "square", "reciprocal", "expm1",
                     "log1p", "log2", "sin", "cos", "erf", "floor", "sign"):
            if half and name not in ("neg", "abs"):
                continue  # no such kernel on the host in every version
            make.add("Torch." + name, x.abs() + 0.01 if name in ("sqrt", "rsqrt", "log", "log1p", "log2") else x)
        if half:
            continue
        make.add("Torch.log", x)  # with NaN
        make.add("Tensor.exp_", x)
        make.add("Tensor.neg", x)
        make.add("Tensor.__neg__", x, function=lambda value: -value)
        make.add("Torch.log", 1 + x * 1e-3)
        for name in ("relu", "relu6", "silu", "leaky_relu", "elu", "softplus", "hardtanh", "hardswish",
                     "hardsigmoid", "selu", "celu", "logsigmoid", "softsign", "gelu", "tanh", "sigmoid", "glu"):
            make.add("Functional." + name, randn(6, 14, dtype=dtype, scale=3.0))
        if dtype != torch.bfloat16:
            make.add("Functional.mish", x)
        make.add("Functional.relu", x, inplace=True)
        make.add("Functional.silu", x, True)
        make.add("Functional.gelu", x, approximate="tanh")
        make.add("Functional.gelu", x, approximate="none")
        make.add("Functional.leaky_relu", x, 0.2)
        make.add("Functional.leaky_relu", x, negative_slope=0.3, inplace=True)
        make.add("Functional.elu", x, alpha=0.7)
        make.add("Functional.celu", x, alpha=0.7)
        make.add("Functional.softplus", x * 10, beta=2, threshold=5)
        make.add("Functional.hardtanh", x, -0.3, 0.6)
        make.add("Functional.threshold", x, 0.1, 20.0)
        make.add("Functional.glu", randn(6, 4, 3, dtype=dtype), dim=1)
        make.add("Torch.clamp", x, min=-0.5, max=0.7)
        make.add("Torch.clamp", x, min=0.1)
        make.add("Torch.clamp", x, None, 0.1)
        make.add("Torch.clamp", x, randn(13, dtype=dtype), randn(9, 1, dtype=dtype))
        make.add("Tensor.clamp_", x, -1, 1)
    make.add("Torch.logical_not", torch.tensor([0.0, 1.0]))
    make.add("Functional.relu", torch.arange(-3, 3))


def softmax(make):
    for dtype in FLOATS:
        def r(*shape):
            return randn(*shape, dtype=dtype, scale=4.0)
        for name in ("softmax", "log_softmax"):
            make.add("Functional." + name, r(5, 7), -1)
            make.add("Functional." + name, r(5, 7, 3), dim=1)
            make.add("Functional." + name, r(5, 1), dim=0)
            make.add("Functional." + name, r(64), dim=0)
            make.add("Torch." + name, r(2, 5, 7), 0)
            make.add("Tensor." + name, r(2, 5, 7), -2)
        make.add("Functional.softmax", r(5, 7), dim=-1, dtype=torch.float32)
        make.add("Functional.softmax", r(5, 7), -1, 3, torch.float64, function=lambda x, d, _, t: functional.softmax(x, d, 3, t))
    masked = randn(6, 6).masked_fill(torch.ones(6, 6, dtype=torch.bool).triu(1), -float("inf"))
    make.add("Functional.softmax", masked, dim=-1)
    make.add("Functional.log_softmax", masked, dim=-1)
    make.add("Functional.softmax", torch.full((2, 5), -float("inf")), dim=-1)
    make.add("Functional.softmax", randn(6, 6, shift=-1e9, scale=1e9), dim=-1)
    make.add("Functional.log_softmax", torch.tensor([[30.0, 0.0, 1.0]]), dim=-1)


def normalization(make):
    for dtype in FLOATS:
        def r(*shape, **keys):
            return randn(*shape, dtype=dtype, **keys)
        make.add("Functional.layer_norm", r(4, 33), [33], r(33), r(33))
        make.add("Functional.layer_norm", r(4, 3, 5), (3, 5), r(3, 5), r(3, 5), 1e-3)
        make.add("Functional.layer_norm", r(4, 33, scale=1e-3), [33], eps=1e-6)
        make.add("Functional.layer_norm", r(4, 33), normalized_shape=[33], weight=r(33), bias=None)
        make.add("Functional.layer_norm", r(4, 64, shift=10.0), [64], r(64), r(64))
        if dtype != torch.bfloat16:
            make.add("Functional.layer_norm", r(4, 64, shift=1000.0), [64], r(64), r(64))
            make.add("Functional.layer_norm", r(2, 7, 1), [1], r(1), r(1), corruptible=False)


def embedding(make):
    for dtype in FLOATS:
        weight = randn(20, 6, dtype=dtype)
        make.add("Functional.embedding", torch.randint(0, 20, (3, 5)), weight)
        make.add("Functional.embedding", torch.randint(0, 20, (3, 5), dtype=torch.int32), weight, padding_idx=0)
        make.add("Functional.embedding", torch.tensor(3), weight=weight, scale_grad_by_freq=True)
        make.add("Torch.embedding", weight, torch.randint(0, 20, (4,)))
    make.add("Functional.embedding", torch.tensor([1, 2]), randn(20, 6), max_norm=1.0, status="unknown argument")


def modules(make):
    for dtype in FLOATS:
        x = randn(4, 9, dtype=dtype)
        make.module(nn.Linear(9, 13).to(dtype), x)
        make.module(nn.Linear(9, 13, bias=False).to(dtype), x)
        make.module(nn.Embedding(11, 5).to(dtype), torch.randint(0, 11, (3, 4)))
        for activation in (nn.ReLU(), nn.SiLU(), nn.Tanh(), nn.Sigmoid(), nn.ReLU6(), nn.LogSigmoid(), nn.Identity()):
            make.module(activation, x)
    make.module(nn.LayerNorm(9), randn(4, 9), status="unknown operation")


def make():
    torch.manual_seed(11)
    maker = Maker()
    for group in (linear, matmul, binary, unary, softmax, normalization, embedding, modules):
        group(maker)
    return maker.cases

# SPDX-License-Identifier: Apache-2.0
"""The calls that replay_pytorch.py records: operations over dtypes, odd shapes, broadcasting and arguments."""

import torch
from torch import nn
from torch.nn import functional

MODERN = int(torch.__version__.split(".")[0]) >= 2
# Kernels of the host for float16 came late.
FLOATS = (torch.float32, torch.float64, torch.bfloat16) + ((torch.float16,) if MODERN else ())
HALVES = (torch.bfloat16, torch.float16)
# Before, many sums of half types were made in these types on the host.
SUMMED = FLOATS if MODERN else (torch.float32, torch.float64)


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
        parameters = dict(module.named_parameters(recurse=False))
        self.cases.append(Case("Module.layer." + type(module).__name__, module, args, {}, status, parameters,
                               corruptible))


def randn(*shape, dtype=torch.float32, scale=1.0, shift=0.0):
    return (torch.randn(shape, dtype=torch.float64) * scale + shift).to(dtype)


def linear(make):
    for dtype in SUMMED:
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
    for dtype in SUMMED:
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
    for dtype in FLOATS if MODERN else FLOATS + (torch.float16,):
        x = randn(9, 13, dtype=dtype)
        half = dtype == torch.float16 and not MODERN
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
        if dtype not in HALVES:
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
        if MODERN or dtype not in HALVES:
            make.add("Functional.layer_norm", r(4, 64, shift=10.0), [64], r(64), r(64))
        if dtype not in HALVES:
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
    for dtype in SUMMED:
        x = randn(4, 9, dtype=dtype)
        make.module(nn.Linear(9, 13).to(dtype), x)
        make.module(nn.Linear(9, 13, bias=False).to(dtype), x)
        make.module(nn.Embedding(11, 5).to(dtype), torch.randint(0, 11, (3, 4)))
        for activation in (nn.ReLU(), nn.SiLU(), nn.Tanh(), nn.Sigmoid(), nn.ReLU6(), nn.LogSigmoid(), nn.Identity(), nn.Mish(),
                           nn.SELU(), nn.Softsign(), nn.Hardswish(), nn.Hardsigmoid()):
            make.module(activation, x)
    make.module(nn.LayerNorm(9), randn(4, 9), status="unknown operation")


def more_normalization(make):
    for dtype in FLOATS:
        def r(*shape, **keys):
            return randn(*shape, dtype=dtype, **keys)
        for shape in ((6, 5), (3, 4, 7), (2, 6, 3, 5), (2, 3, 2, 3, 4)):
            channels = shape[1]
            mean, var, w, b = r(channels), r(channels).abs() + 0.5, r(channels), r(channels)
            make.add("Functional.batch_norm", r(*shape), mean, var, w, b)
            make.add("Functional.batch_norm", r(*shape), mean, var, weight=w, bias=b, training=True, eps=1e-3)
            make.add("Functional.batch_norm", r(*shape), None, None, None, None, True, 0.2, 1e-2)
            make.add("Functional.batch_norm", r(*shape), mean, var)
        make.add("Functional.group_norm", r(3, 6, 5), 2, r(6), r(6))
        make.add("Functional.group_norm", r(3, 6, 4, 3), 6, weight=r(6), bias=r(6), eps=1e-2)
        make.add("Functional.group_norm", r(3, 8), 2)
        if dtype not in HALVES:
            make.add("Functional.instance_norm", r(3, 6, 5), None, None, r(6), r(6))
            make.add("Functional.instance_norm", r(3, 6, 5, 4))
        if hasattr(functional, "rms_norm"):
            make.add("Functional.rms_norm", r(4, 33), [33], r(33), 1e-5)
            make.add("Functional.rms_norm", r(4, 3, 5), (3, 5), eps=1e-2)
            make.add("Functional.rms_norm", r(4, 33), [33], r(33),
                     status="unknown argument" if dtype in HALVES else "computed")


def attention(make):
    if not hasattr(functional, "scaled_dot_product_attention"):
        return
    gqa = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2])) >= (2, 5)
    for dtype in FLOATS:
        def r(*shape, **keys):
            return randn(*shape, dtype=dtype, **keys)
        name = "Functional.scaled_dot_product_attention"
        make.add(name, r(2, 3, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 5))
        make.add(name, r(2, 3, 7, 8), r(2, 3, 7, 8), r(2, 3, 7, 8), is_causal=True)
        make.add(name, r(2, 3, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 8), attn_mask=torch.rand(7, 9) > 0.3)
        make.add(name, r(2, 3, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 8), torch.rand(2, 1, 7, 9) > 0.3)
        make.add(name, r(2, 3, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 8), attn_mask=r(2, 1, 1, 9))
        make.add(name, r(2, 3, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 8), attn_mask=r(3, 7, 9), scale=0.7)
        make.add(name, r(5, 7, 8), r(5, 9, 8), r(5, 9, 8))
        make.add(name, r(2, 3, 7, 8), r(2, 3, 9, 8), r(2, 3, 9, 8), dropout_p=0.5, status="random")
        make.add(name, r(2, 3, 7, 8), r(2, 3, 5, 8), r(2, 3, 5, 8), torch.arange(7)[:, None] > torch.arange(5))
        if gqa:
            make.add(name, r(2, 6, 7, 8), r(2, 2, 9, 8), r(2, 2, 9, 8), enable_gqa=True)


def convolution(make):
    for dtype in (torch.float32, torch.float64):
        def r(*shape, **keys):
            return randn(*shape, dtype=dtype, **keys)
        make.add("Functional.conv2d", r(2, 3, 9, 8), r(4, 3, 3, 3), r(4))
        make.add("Functional.conv2d", r(2, 3, 9, 8), r(4, 3, 3, 2), None, 2, 1)
        make.add("Functional.conv2d", r(2, 4, 9, 8), r(6, 2, 3, 3), r(6), stride=(2, 1), padding=(1, 0), dilation=(1, 2),
                 groups=2)
        make.add("Functional.conv2d", r(2, 4, 9, 8), r(4, 1, 3, 3), r(4), padding=1, groups=4)
        make.add("Functional.conv2d", r(2, 3, 9, 8), r(4, 3, 2, 3), r(4), padding="same")
        make.add("Functional.conv2d", r(2, 3, 9, 8), r(4, 3, 4, 3), padding="same", dilation=2)
        make.add("Functional.conv2d", r(2, 3, 9, 8), r(4, 3, 2, 3), r(4), padding="valid")
        make.add("Functional.conv2d", r(3, 9, 8), r(4, 3, 2, 3), r(4))
        make.add("Torch.conv1d", r(2, 3, 19), r(4, 3, 5), r(4), 3, 2)
        make.add("Functional.conv1d", r(2, 3, 19), r(4, 3, 5), padding="same")
        make.add("Functional.conv3d", r(2, 3, 5, 4, 6), r(4, 3, 2, 3, 2), r(4), stride=(1, 2, 1), padding=1)
        make.module(nn.Conv2d(3, 5, 1).to(dtype), r(2, 3, 4, 5))
        make.module(nn.Conv2d(3, 5, 3, padding=1).to(dtype), r(2, 3, 4, 5), status="argument not recorded")
    make.add("Functional.conv2d", randn(4, 32, 40, 40), randn(64, 32, 3, 3), randn(64), padding=1)  # a large one
    make.add("Functional.conv2d", randn(2, 3, 9, 8).bfloat16(), randn(4, 3, 3, 3).bfloat16(), randn(4).bfloat16())


def losses(make):
    for dtype in SUMMED:
        def r(*shape, **keys):
            return randn(*shape, dtype=dtype, **keys)
        labels = torch.randint(0, 5, (17,))
        for reduction in ("mean", "sum", "none"):
            make.add("Functional.cross_entropy", r(17, 5), labels, reduction=reduction)
            make.add("Functional.cross_entropy", r(17, 5), labels, r(5).abs() + 0.1, reduction=reduction)
            make.add("Functional.cross_entropy", r(17, 5), labels, ignore_index=2, reduction=reduction)
            make.add("Functional.cross_entropy", r(17, 5), labels, label_smoothing=0.1, reduction=reduction)
            make.add("Functional.cross_entropy", r(17, 5), labels, weight=r(5).abs() + 0.1, ignore_index=1,
                     label_smoothing=0.2, reduction=reduction)
            make.add("Functional.cross_entropy", r(3, 5, 4, 2), torch.randint(0, 5, (3, 4, 2)), reduction=reduction)
            if dtype not in HALVES:
                make.add("Functional.cross_entropy", r(17, 5), torch.softmax(r(17, 5), 1), reduction=reduction)
                make.add("Functional.cross_entropy", r(17, 5), torch.softmax(r(17, 5), 1), r(5).abs(),
                         label_smoothing=0.3, reduction=reduction)
                make.add("Functional.nll_loss", torch.log_softmax(r(17, 5), 1), labels, reduction=reduction)
                make.add("Functional.nll_loss", torch.log_softmax(r(3, 5, 4, 2), 1), torch.randint(0, 5, (3, 4, 2)),
                         r(5).abs(), None, 3, None, reduction)
            if MODERN or dtype not in HALVES:
                make.add("Functional.mse_loss", r(17, 5), r(17, 5), reduction=reduction)
            make.add("Functional.l1_loss", r(17, 5), r(17, 5), reduction=reduction)
            if dtype not in HALVES:
                make.add("Functional.smooth_l1_loss", r(17, 5), r(17, 5), reduction=reduction, beta=0.4)
                make.add("Functional.huber_loss", r(17, 5), r(17, 5), reduction=reduction, delta=0.4)
            make.add("Functional.binary_cross_entropy_with_logits", r(17, 5), torch.rand(17, 5).to(dtype),
                     reduction=reduction)
            make.add("Functional.binary_cross_entropy_with_logits", r(17, 5), torch.rand(17, 5).to(dtype),
                     r(5).abs(), pos_weight=r(5).abs(), reduction=reduction)
            if dtype not in HALVES:
                make.add("Functional.kl_div", torch.log_softmax(r(17, 5), 1), torch.softmax(r(17, 5), 1),
                         reduction=reduction)
                make.add("Functional.kl_div", torch.log_softmax(r(17, 5), 1), torch.log_softmax(r(17, 5), 1),
                         reduction="batchmean", log_target=True)
        make.add("Functional.cross_entropy", r(17, 5), labels, None, True)
        make.add("Functional.cross_entropy", r(17, 5), labels, None, False)
        make.add("Functional.cross_entropy", r(5), torch.tensor(3))
    sure = torch.full((9, 5), -12.0)
    sure[:, 1] = randn(9)
    make.add("Functional.cross_entropy", sure, torch.full((9,), 1))
    make.add("Functional.cross_entropy", randn(4, 5), torch.full((4,), -100), reduction="mean")
    make.add("Functional.mse_loss", randn(17, 5), randn(17, 5), False)


def reductions(make):
    for dtype in FLOATS:
        def r(*shape, **keys):
            return randn(*shape, dtype=dtype, **keys)
        for name in ("sum", "mean"):
            make.add("Torch." + name, r(4, 5, 6))
            make.add("Torch." + name, r(40, 5, 6), 1)
            make.add("Torch." + name, r(4, 5, 6), dim=(0, -1), keepdim=True)
            make.add("Tensor." + name, r(4, 5, 6), -1, True)
            make.add("Tensor." + name, r(4, 5, 6), (0, 1, 2))
            make.add("Torch." + name, r(4, 5, 6), dim=[1], dtype=torch.float64)
            make.add("Torch." + name, torch.tensor(3.0, dtype=dtype))
            make.add("Torch." + name, r(3, 0))
        if dtype not in HALVES:
            make.add("Torch.mean", r(100, 300))
            make.add("Torch.sum", r(100, 300), 0)
        for name in ("var", "std"):
            make.add("Torch." + name, r(4, 5, 6))
            make.add("Torch." + name, r(40, 5, 6), 0)
            make.add("Torch." + name, r(4, 5, 6), False)
            make.add("Torch." + name, r(4, 5, 6), dim=(0, -1), unbiased=False, keepdim=True)
            make.add("Torch." + name, r(4, 5, 6), 1, True, True)
            make.add("Torch." + name, r(40, 5, shift=30.0), 0)
            make.add("Torch.%s_mean" % name, r(4, 5, 6), 1, unbiased=False)
            if MODERN:
                make.add("Torch." + name, r(4, 5, 6), dim=1, correction=0)
        for name in ("max", "min"):
            make.add("Torch." + name, r(4, 5, 6))
            make.add("Torch." + name, r(40, 5, 6), 1)
            make.add("Tensor." + name, r(4, 5, 6), dim=-1, keepdim=True)
            make.add("Torch." + name, r(4, 5, 6), r(5, 6))
            make.add("Torch." + name, r(4, 5, 6), other=r(6))
            make.add("Torch.a" + name, r(4, 5, 6), (0, 2))
            make.add("Torch.arg" + name, r(4, 5, 6))
            make.add("Torch.arg" + name, r(4, 5, 6), 1, keepdim=True)
        make.add("Torch.logsumexp", r(4, 5, 6), 1, True)
        make.add("Torch.logsumexp", r(4, 5, 6) * 30, (0, 2))
        make.add("Torch.max", torch.ones(3, 4, dtype=dtype), 1)
        make.add("Torch.max", torch.tensor([[1.0, float("nan"), 3.0]], dtype=dtype), 1)
        make.add("Torch.cumsum", r(5, 40), 1)
        make.add("Torch.cumsum", r(5, 7, 3), dim=1, dtype=torch.float64)
        make.add("Tensor.cumsum", r(5, 7), 0)
        if MODERN or dtype not in HALVES:
            make.add("Torch.prod", r(4, 5), 1)
    make.add("Torch.sum", torch.randint(0, 50, (4, 6)), 1)
    make.add("Torch.sum", torch.rand(4, 6) > 0.5)
    make.add("Torch.cumsum", torch.rand(4, 6) > 0.5, 1)
    make.add("Torch.max", torch.randint(0, 3, (4, 6)), 1)


def indexing(make):
    for dtype in FLOATS:
        def r(*shape, **keys):
            return randn(*shape, dtype=dtype, **keys)
        make.add("Torch.index_select", r(4, 5, 6), 1, torch.tensor([4, 0, 0, 2, 3, 1, 1]))
        make.add("Tensor.index_select", r(4, 5), dim=-1, index=torch.tensor([3, 1], dtype=torch.int32))
        make.add("Torch.gather", r(4, 5, 6), 1, torch.randint(0, 5, (4, 3, 6)))
        make.add("Tensor.gather", r(4, 5), -1, index=torch.randint(0, 5, (3, 7)))
        mask = torch.rand(4, 5) > 0.5
        make.add("Torch.masked_fill", r(4, 5), mask, -1e4)
        make.add("Tensor.masked_fill_", r(3, 4, 5), mask, float("-inf"))
        make.add("Tensor.masked_fill", r(4, 5), mask[0], torch.tensor(0.1, dtype=dtype))
        make.add("Torch.where", mask, r(4, 5), r(5))
        make.add("Torch.where", mask, r(4, 1), r(3, 1, 5))
        make.add("Tensor.where", r(4, 5), mask, r(5))
        make.add("Torch.index_add", r(4, 5, 6), 1, torch.tensor([4, 0, 0, 2]), r(4, 4, 6))
        make.add("Tensor.index_add_", r(4, 5), 0, torch.tensor([3, 3, 1]), r(3, 5), alpha=0.5)
        make.add("Torch.scatter_add", r(4, 5, 6), 1, torch.randint(0, 5, (4, 3, 6)), r(4, 3, 6))
        make.add("Torch.cat", [r(4, 5), r(4, 2), r(4, 1)], 1)
        make.add("Torch.cat", (r(4, 5), r(2, 5)))
        make.add("Torch.stack", [r(4, 5), r(4, 5), r(4, 5)], dim=-1)
        make.add("Torch.stack", [r(4, 5), r(4, 5)], 1)
        make.add("Torch.tril", r(4, 5, 6), diagonal=1)
        make.add("Torch.triu", r(5, 4), -1)
        make.add("Tensor.float", r(4, 5))
        make.add("Tensor.bfloat16", r(4, 5))
        make.add("Tensor.to", r(4, 5), torch.float16, function=lambda x, _: x.to(torch.float16))
        make.add("Functional.dropout", r(30, 20), 0.3)
        make.add("Functional.dropout", r(30, 20), p=0.0)
        make.add("Functional.dropout", r(30, 20), 0.4, False)
        make.add("Functional.dropout", r(30, 20), 0.4, training=False, inplace=True)
        make.add("Functional.dropout", r(30, 20), p=1.0, training=True)
        make.add("Torch.dropout", r(30, 20), 0.25, True)
    make.add("Functional.dropout2d", randn(2, 3, 4, 4), status="unknown operation")
    make.add("Torch.topk", randn(4, 5), 2, status="unknown operation")


def autocast(make):
    """Inputs of one type and outputs of another."""
    def under_autocast(function):
        def call(*args, **kwargs):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return function(*args, **kwargs)
        return call
    x, w, b = randn(9, 30), randn(20, 30), randn(20)
    make.add("Functional.linear", x, w, b, function=under_autocast(functional.linear))
    make.add("Torch.matmul", x, w.t(), function=under_autocast(torch.matmul))
    if MODERN:
        make.add("Torch.bmm", randn(2, 3, 40), randn(2, 40, 9).bfloat16(), function=under_autocast(torch.bmm))
    make.add("Functional.conv2d", randn(2, 3, 9, 8), randn(4, 3, 3, 3), function=under_autocast(functional.conv2d))
    make.add("Functional.softmax", x.bfloat16(), -1, function=under_autocast(functional.softmax))
    make.add("Functional.layer_norm", x.bfloat16(), [30], function=under_autocast(functional.layer_norm))


def make(seed):
    torch.manual_seed(seed)
    maker = Maker()
    for group in (linear, matmul, binary, unary, softmax, normalization, embedding, modules, more_normalization,
                  attention, convolution, losses, reductions, indexing, autocast):
        group(maker)
    return maker.cases

# SPDX-License-Identifier: Apache-2.0
"""The part of MindSpore that the front ends need, over NumPy: tensors, gradients, and borders that report them."""

import sys
import types

import numpy

from . import common, nn, ops
from .common.api import jit
from .tape import Number, Parameter, Tensor, bfloat16, bool_, float16, float32, float64, int64, value_and_grad

GRAPH_MODE, PYNATIVE_MODE = 0, 1
mint = types.SimpleNamespace()
communication = types.SimpleNamespace(GlobalComm=types.SimpleNamespace(INITED=False))
_c_expression = types.SimpleNamespace()
train = types.ModuleType("mindspore.train")
train.Callback = object
sys.modules["mindspore.train"] = train


def jit_class(kind):
    return kind


def get_context(name):
    return {"mode": PYNATIVE_MODE, "device_target": "CPU"}[name]


def set_context(**settings):
    pass


def set_seed(seed):
    numpy.random.seed(seed)

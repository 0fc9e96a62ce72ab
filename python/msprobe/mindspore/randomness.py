# SPDX-License-Identifier: Apache-2.0
"""seed_all() fixes the sources of randomness."""

import functools
import os
import random
import sys

import mindspore

from msprobe.core import msadapter, seeds


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False) -> None:
    """Seeds random, numpy and mindspore.

    Args:
        seed: a whole number from 0 to 2**32 - 1.
        mode: use deterministic algorithms only.
        rm_dropout: dropout drops nothing from now on.

    Raises MsprobeException if an argument is invalid.
    """
    seeds.check_arguments(seed, mode=mode, rm_dropout=rm_dropout)
    os.environ["PYTHONHASHSEED"] = str(seed)
    os.environ["HCCL_DETERMINISTIC"] = str(mode)
    random.seed(seed)
    mindspore.set_seed(seed)  # NumPy's, too
    if msadapter.is_torch():
        sys.modules["torch"].manual_seed(seed)  # MindSpore's seed leaves its generator as it is
    _set_deterministic(mode)
    if rm_dropout:
        _remove_dropout()


def _set_deterministic(mode):
    try:
        mindspore.set_context(deterministic="ON" if mode else "OFF")
    except RuntimeError:  # too late: operators have run
        if mode:
            raise


def _remove_dropout():
    """Dropout keeps everything from now on: the classes of operators and cells, and the functions of mint and ops."""
    from mindspore import mint, ops
    for name in ("Dropout", "Dropout2D", "Dropout3D"):
        kind = _keeping(getattr(ops, name))
        setattr(ops, name, kind)
        setattr(ops.operations, name, kind)
    functional = getattr(getattr(mint, "nn", None), "functional", None)
    if functional is not None:
        mint.nn.Dropout = _never_dropping_cell(mint.nn.Dropout)
        functional.dropout = _never_dropping(functional.dropout)
    if msadapter.is_torch():
        _remove_dropout_of_msadapter()


def _remove_dropout_of_msadapter():
    from msprobe.mindtorch import framework
    functional = framework.space(".nn.functional")
    for name in ("dropout", "dropout2d", "dropout3d"):
        if hasattr(functional, name):
            setattr(functional, name, _never_dropping(getattr(functional, name)))


def _keeping(kind):
    def __init__(self, keep_prob=0.5, *args, **kwargs):
        kind.__init__(self, 1.0, *args, **kwargs)
    return type(kind.__name__, (kind,), {"__init__": __init__, "__module__": kind.__module__})


def _never_dropping_cell(kind):
    def __init__(self, p=0.5, *args, **kwargs):
        kind.__init__(self, 0.0, *args, **kwargs)
    return type(kind.__name__, (kind,), {"__init__": __init__, "__module__": kind.__module__})


def _never_dropping(dropout):
    @functools.wraps(dropout)  # the recorder finds functions by the module that wrote them
    def wrapper(input, p=0.5, training=True, *args, **kwargs):
        return dropout(input, 0.0, training, *args, **kwargs)
    return wrapper

# SPDX-License-Identifier: Apache-2.0
"""Measures how far apart two results of one call are, and how far apart they may be."""

import math

import torch

from msprobe.core.free_benchmark import limits
from msprobe.core.free_benchmark.limits import FLIPPED

_CPU_LIMITS = {torch.float32: 2.0 ** -14, torch.float64: 2.0 ** -14, torch.float16: 2.0 ** -11,
               torch.bfloat16: 2.0 ** -8}
_CPU_MEAN = 1e-4
_PIECE = 1 << 22  # elements that are compared together: the computation takes a few times their memory

def limit_of(mode, dtype):
    return limits.limit_of(mode, _name_of(dtype))


def floor_of(dtype, backward):
    return limits.floor_of(_name_of(dtype), backward)


def _name_of(dtype):
    return str(dtype).split(".")[-1]


def _pieces(first, second):
    """Both as doubles if one of them is, else as single precision; piece by piece."""
    wide = torch.float64 if torch.float64 in (first.dtype, second.dtype) else torch.float32
    second = second.to(first.device)
    first, second = first.reshape(-1), second.reshape(-1)
    for begin in range(0, first.numel(), _PIECE):
        yield first[begin:begin + _PIECE].to(wide), second[begin:begin + _PIECE].to(wide)


def ratio(first, second, floor):
    """The largest ratio of elements of two tensors of the same shape: 1 if they are equal, infinite if only one is
    NaN. FLIPPED if a sign changes beyond the floor."""
    parts = []
    with torch.no_grad():
        for one, other in _pieces(first, second):
            product = torch.nan_to_num(one * other, nan=0.0)
            quotient = one.abs().clamp_min_(floor) / other.abs().clamp_min_(floor)
            quotient = torch.where(torch.isnan(quotient), torch.ones_like(quotient), quotient)
            alone = (torch.isnan(one) != torch.isnan(other)).any()
            low, high = torch.aminmax(quotient)
            parts.append(torch.stack([product.min().double(), low.double(), high.double(), alone.double()]))
        if not parts:
            return 1.0
        rows = torch.stack(parts).tolist()
    least, low, high, alone = (choose(row[at] for row in rows) for at, choose in enumerate((min, min, max, max)))
    if least < -floor * floor:
        return FLIPPED
    if alone or low == 0:
        return math.inf
    return max(high, 1.0 / low)


def as_number(found):
    return math.inf if found == FLIPPED else found


def agrees_with_host(result, reference):
    """Whether a result is as close to the host's single-precision result as its dtype allows."""
    limit = _CPU_LIMITS.get(result.dtype, _CPU_LIMITS[torch.float32])
    parts = []
    with torch.no_grad():
        for one, other in _pieces(result, reference):
            error = (one - other).abs() / other.abs().clamp_min(1.0)
            parts.append(torch.stack([error.max().double(), error.double().sum(),
                                      (~torch.isfinite(other)).any().double()]))
        if not parts:
            return True
        rows = torch.stack(parts).tolist()
    if any(row[2] for row in rows):
        return True
    # A NaN fails: it is not below a limit.
    total = sum(row[1] for row in rows)
    return all(row[0] <= limit for row in rows) and total / result.numel() <= _CPU_MEAN

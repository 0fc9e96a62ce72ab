# SPDX-License-Identifier: Apache-2.0
"""Gradients in the buckets of DeepSpeed's ZeRO 1 and 2: complete when the bucket is averaged."""

from msprobe.core.monitor.engine import guarded
from msprobe.core.monitor.replacing import Replaced

ZERO = "DeepSpeedZeroOptimizer"


def find_buckets(optimizer, parameters, told):
    """The gradient source for parameters of such an optimizer, which are removed from `parameters`."""
    if type(optimizer).__name__ != ZERO:
        return []
    for group in optimizer.bit16_groups:
        for tensor in group:
            parameters.pop(tensor, None)

    def tell(tensor):
        told(tensor, optimizer.get_gradient_for_reduction(tensor))

    def before(*unused, **more):
        for tensor in guarded("a bucket of gradients", _tensors_in, optimizer) or ():
            guarded("a gradient in a bucket", tell, tensor)

    return [Replaced(optimizer, name, before=before) for name in ("average_tensor", "buffered_reduce_fallback")
            if hasattr(optimizer, name)]


def _tensors_in(optimizer):
    """Entries are (group, tensor, number); newer versions have a bucket for each type of element."""
    buckets = getattr(optimizer, "ipg_buckets", None)
    entries = optimizer.params_in_ipg_bucket if buckets is None else [
        entry for bucket in buckets.values() for entry in bucket.params]
    return [entry[1] for entry in entries]

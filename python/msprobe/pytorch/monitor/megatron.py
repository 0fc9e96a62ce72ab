# SPDX-License-Identifier: Apache-2.0
"""Gradients in Megatron's buffers: complete when the reduction of their bucket begins. The criterion is whether
parameters are in such buffers, not whether Megatron can be imported."""

import sys

from msprobe.core.monitor.engine import guarded
from msprobe.core.monitor.replacing import Replaced

_MODULE = "megatron.core.distributed.param_and_grad_buffer"
_CLASSES = ("_ParamAndGradBucketGroup", "Bucket", "_ParamAndGradBucket")  # the newest first


def find_buckets(parameters, told):
    """The gradient source for parameters with a main gradient, which are removed from `parameters`."""
    module = sys.modules.get(_MODULE)
    kinds = [getattr(module, name, None) for name in _CLASSES]
    kind = next((kind for kind in kinds if hasattr(kind, "start_grad_sync")), None)
    taken = [tensor for tensor in parameters if getattr(tensor, "main_grad", None) is not None]
    if kind is None or not taken:
        return []
    for tensor in taken:
        del parameters[tensor]

    def before(bucket, *unused, **more):
        for tensor in guarded("a bucket of gradients", _parameters_of, bucket) or ():
            guarded("a gradient in a bucket", told, tensor)

    return [Replaced(kind, "start_grad_sync", before=before)]


def _parameters_of(group):
    if hasattr(group, "params"):
        return list(group.params)
    return [tensor for bucket in group.buckets for tensor in bucket.params]

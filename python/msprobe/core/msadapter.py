# SPDX-License-Identifier: Apache-2.0
"""MSAdapter (MindTorch): the API of PyTorch over the tensors of MindSpore, under the name `torch`."""

import sys


def is_torch():
    """Whether `torch` is imported and belongs to MSAdapter."""
    kind = _tensor_of("torch")
    base = _tensor_of("mindspore")
    return isinstance(kind, type) and isinstance(base, type) and issubclass(kind, base)


def _tensor_of(name):
    # A program may use the name for something else, and a module that is being imported has no Tensor yet.
    return getattr(sys.modules.get(name), "Tensor", None)

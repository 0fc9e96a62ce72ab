# SPDX-License-Identifier: Apache-2.0
"""Settings of PyTorch that affect the numbers, for dump.json and packs of config_check."""

import functools
import operator
import sys
import warnings

import torch

# The names that programs use. Each version has only some of them, and may refuse to return one.
_NAMES = (
    "torch.get_default_dtype()",
    "torch.get_num_threads()",
    "torch.get_float32_matmul_precision()",
    "torch.are_deterministic_algorithms_enabled()",
    "torch.backends.cpu.get_cpu_capability()",
    "torch.backends.mkldnn.enabled",
    "torch.backends.mkldnn.matmul.fp32_precision",
    "torch.backends.cuda.matmul.allow_tf32",
    "torch.backends.cuda.matmul.allow_fp16_accumulation",
    "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
    "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
    "torch.backends.cuda.flash_sdp_enabled()",
    "torch.backends.cuda.mem_efficient_sdp_enabled()",
    "torch.backends.cuda.math_sdp_enabled()",
    "torch.backends.cuda.cudnn_sdp_enabled()",
    "torch.backends.cudnn.enabled",
    "torch.backends.cudnn.allow_tf32",
    "torch.backends.cudnn.benchmark",
    "torch.backends.cudnn.deterministic",
)
# Newer names of the same settings. After a program has used these, PyTorch refuses to return the old ones.
_INSTEAD = {
    "torch.get_float32_matmul_precision()": ("torch.backends.cuda.matmul.fp32_precision",),
    "torch.backends.cuda.matmul.allow_tf32": ("torch.backends.cuda.matmul.fp32_precision",),
    "torch.backends.cudnn.allow_tf32": ("torch.backends.cudnn.conv.fp32_precision",
                                        "torch.backends.cudnn.rnn.fp32_precision"),
}
_OF_NPU = ("torch.npu.matmul.allow_hf32", "torch.npu.conv.allow_hf32")


def read():
    """Returns {name: boolean, number or text} of the settings that this PyTorch has."""
    flags = {}
    with warnings.catch_warnings():  # some versions warn that they are old
        warnings.simplefilter("ignore")
        for name in _NAMES + (_OF_NPU if "torch_npu" in sys.modules else ()):
            if not _add(flags, name, _reader(name)):
                for other in _INSTEAD.get(name, ()):
                    _add(flags, other, _reader(other))
        for kind in ("cpu", "cuda"):
            _add(flags, "torch.autocast for %s" % kind, functools.partial(_autocast, kind))
    return flags


def _add(flags, name, reader):
    """Adds the setting. Returns False if this PyTorch does not return it."""
    try:
        value = reader()
    except Exception:
        return False
    flags[name] = value if isinstance(value, (bool, int, str)) else str(value)
    return True


@functools.lru_cache(maxsize=None)
def _reader(name):
    path = name.split(".", 1)[1]
    if path.endswith("()"):
        get = operator.attrgetter(path[:-2])
        return lambda: get(torch)()
    get = operator.attrgetter(path)
    return lambda: get(torch)


def _autocast(kind):
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else "off"
    if kind == "cuda":  # before 2.4
        return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else "off"
    return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else "off"

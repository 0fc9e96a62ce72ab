# SPDX-License-Identifier: Apache-2.0
"""The size of perturbations, and how far apart two results may be, by the name of the dtype."""

# The noise that is added. A number below its root counts as zero.
NOISE = {"bfloat16": 1e-4, "float16": 1e-6, "float32": 1e-8, "float64": 1e-16}

GRADIENT_FLOOR = 1e-3
FLIPPED = "symbol_flipping"

_LIMITS = {"float16": 1.002, "bfloat16": 1.004}
_OTHER_LIMIT = 1.0002


def root_of_noise(dtype):
    return NOISE.get(dtype, NOISE["float32"]) ** 0.5


def limit_of(mode, dtype):
    """The largest ratio of both results that passes."""
    return 1.0 if mode == "no_change" else _LIMITS.get(dtype, _OTHER_LIMIT)


def floor_of(dtype, backward):
    """Smaller elements are raised to this value."""
    return GRADIENT_FLOOR if backward else root_of_noise(dtype)

# SPDX-License-Identifier: Apache-2.0
"""An import path of older scripts."""

from ..randomness import seed_all

__all__ = ["seed_all"]

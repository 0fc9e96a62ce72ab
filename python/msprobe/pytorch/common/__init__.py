# SPDX-License-Identifier: Apache-2.0
"""A path by which older scripts import."""

from ..randomness import seed_all

__all__ = ["seed_all"]

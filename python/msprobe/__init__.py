# SPDX-License-Identifier: Apache-2.0
"""Records what a training run computes: `from msprobe.pytorch import PrecisionDebugger`."""

from . import old_paths, side_by_side

side_by_side.warn()
old_paths.install()

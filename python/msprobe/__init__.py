# SPDX-License-Identifier: Apache-2.0
"""Records what a training run computes: `from msprobe.pytorch import PrecisionDebugger`."""

from . import old_paths

old_paths.install()

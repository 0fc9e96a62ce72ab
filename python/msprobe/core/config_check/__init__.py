# SPDX-License-Identifier: Apache-2.0
"""Collects, inside a training run, the input of `msprobe config_check`: a pack of the run's configuration."""

from .checker import ConfigChecker

__all__ = ["ConfigChecker"]

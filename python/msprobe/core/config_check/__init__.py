# SPDX-License-Identifier: Apache-2.0
"""Collects, inside a training run, what `msprobe config_check` compares: a pack of the run's configuration."""

from .checker import ConfigChecker

__all__ = ["ConfigChecker"]

# SPDX-License-Identifier: Apache-2.0
"""Task acc_check: calls are judged while the training runs, by a process beside it."""

from .task import Task

task = Task()

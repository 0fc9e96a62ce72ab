# SPDX-License-Identifier: Apache-2.0
"""Task free_benchmark: repeats each call with perturbed inputs and compares the results."""

from .task import Task

task = Task()

# SPDX-License-Identifier: Apache-2.0
"""Task free_benchmark: each call is made once more with perturbed inputs, and what comes of it is compared."""

from .task import Task

task = Task()

# SPDX-License-Identifier: Apache-2.0
"""Task free_benchmark in any framework: its settings, its calls, its table."""

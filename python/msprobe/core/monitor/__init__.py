# SPDX-License-Identifier: Apache-2.0
"""Code shared by the monitors of all frameworks: the native engine as used by hooks, names, targets."""

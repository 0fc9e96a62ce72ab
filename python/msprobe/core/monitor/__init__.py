# SPDX-License-Identifier: Apache-2.0
"""What the monitors of all frameworks share: the native engine as hooks use it, names, targets."""

# SPDX-License-Identifier: Apache-2.0
"""Bugs of training and inference code that were reported in public, each rebuilt in a model of a few layers."""

from public import attention, data, gradients, layers, losses, parallel, updates  # each adds its bugs
from public.bug import PUBLIC_BENCHES, PUBLIC_FAULTS

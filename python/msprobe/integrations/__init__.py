# SPDX-License-Identifier: Apache-2.0
"""Recording in the training loops of other libraries: transformers, lightning and accelerate, one module each.

They import their library when they are imported.
"""

# SPDX-License-Identifier: Apache-2.0
"""The front end for MSAdapter: programs written for PyTorch whose `torch` runs on MindSpore. It stands behind
msprobe.mindspore, which takes it where such a `torch` is.
"""

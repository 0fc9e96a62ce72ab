# SPDX-License-Identifier: Apache-2.0
"""The front end for MSAdapter: programs written for PyTorch whose `torch` runs on MindSpore. msprobe.mindspore uses
it if such a `torch` is imported."""

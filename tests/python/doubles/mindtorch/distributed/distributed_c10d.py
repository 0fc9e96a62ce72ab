# SPDX-License-Identifier: Apache-2.0


def is_initialized():
    return False


def get_rank():
    return 0


def all_reduce(tensor, async_op=False):
    tensor.assign_value(tensor * 2.0)

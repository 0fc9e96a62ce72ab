# SPDX-License-Identifier: Apache-2.0
from . import distributed_c10d
from .distributed_c10d import all_reduce, get_rank, is_initialized

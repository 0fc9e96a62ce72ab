# SPDX-License-Identifier: Apache-2.0
"""`python -m msprobe.pytorch.api_list` prints the functions that are recorded."""

from msprobe.core import torch_apis
from msprobe.pytorch import apis

if __name__ == "__main__":
    torch_apis.print_listed(apis.find_functions())

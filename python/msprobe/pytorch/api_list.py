# SPDX-License-Identifier: Apache-2.0
"""`python -m msprobe.pytorch.api_list` prints the functions that are recorded."""

from msprobe.pytorch import apis

if __name__ == "__main__":
    apis.print_listed()

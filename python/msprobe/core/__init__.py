# SPDX-License-Identifier: Apache-2.0
from msprobe.old_paths import names_of

__getattr__ = names_of(__name__)

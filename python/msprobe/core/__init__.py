# SPDX-License-Identifier: Apache-2.0
from typing import TYPE_CHECKING

from msprobe.old_paths import names_of

if TYPE_CHECKING:
    from .single_save.single_comparator import SingleComparator as SingleComparator
    from .single_save.single_saver import SingleSave as SingleSave

__getattr__ = names_of(__name__)

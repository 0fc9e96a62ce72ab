# SPDX-License-Identifier: Apache-2.0
"""Compares arrays saved one by one in two runs, with `msprobe compare`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .. import command
from ..common.exceptions import FileCheckException, MsprobeException

if TYPE_CHECKING:
    from ..files import Path


class SingleComparator:
    """Compares what SingleSave wrote in two runs."""

    @classmethod
    def compare(cls, dir1: Path, dir2: Path, output_path: Path = "./msprobe_compare_output", num_processes: int = 8) -> None:
        """Writes a table for each tag of `data/` that both folders have.

        Args:
            dir1: the run under test, a folder that SingleSave wrote.
            dir2: the reference run, likewise.
            output_path: the folder for the tables.
            num_processes: the number of threads, 1 or more.

        Raises FileCheckException if a folder has no `data`; MsprobeException if num_processes is invalid or the command
        fails.
        """
        if isinstance(num_processes, bool) or not isinstance(num_processes, int) or num_processes < 1:
            raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR,
                                   "SingleComparator: num_processes must be a whole number, 1 or more")
        for folder in (dir1, dir2):
            if not os.path.isdir(os.path.join(folder, "data")):
                raise FileCheckException(FileCheckException.ILLEGAL_PATH_ERROR,
                                         "%s has no folder data with saved arrays" % folder)
        command.run(["compare", "-tp", dir1, "-gp", dir2, "-o", output_path, "-j", num_processes])

# SPDX-License-Identifier: Apache-2.0
"""Gradient signs of two runs, recorded by task grad_probe; `msprobe grad_compare` compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import command

if TYPE_CHECKING:
    from ..files import Path


class GradComparator:
    """Compares the gradient signs of two runs."""

    @classmethod
    def compare_distributed(cls, path1: Path, path2: Path, output_dir: Path) -> None:
        """Compares the folder path1 with the reference path2: writes rank<R>/similarities.csv into output_dir for each rank that
        both have, and similarities.html. Raises MsprobeException if the command fails."""
        command.run(["grad_compare", path1, path2, "-o", output_dir])

# SPDX-License-Identifier: Apache-2.0
"""Gradient signs of two runs, recorded by task grad_probe; `msprobe grad_compare` compares them."""

from .. import command


class GradComparator:
    @classmethod
    def compare_distributed(cls, path1, path2, output_dir):
        """Writes rank<R>/similarities.csv for each rank that both runs have, and similarities.html."""
        command.run(["grad_compare", path1, path2, "-o", output_dir])

# SPDX-License-Identifier: Apache-2.0
"""The arguments of seed_all()."""

from __future__ import annotations

from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException


def check_arguments(seed: int, **switches: bool) -> None:
    wrong = None
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= 2 ** 32 - 1:
        wrong = "seed must be a whole number from 0 to 2**32 - 1"
    for name, value in switches.items():
        if not isinstance(value, bool):
            wrong = "%s must be a bool" % name
    if wrong:
        log.warn("seed_all: " + wrong)
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "seed_all: " + wrong)

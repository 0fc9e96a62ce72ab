# SPDX-License-Identifier: Apache-2.0
"""Names that scripts import and that belong to other modes of MindSpore: using one reports that it is unsupported."""

from __future__ import annotations

from typing import Any

from msprobe.core.common.exceptions import MsprobeException


class MsprobeInitStep:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR, "MsprobeInitStep is not supported: it counts steps "
                               "of kernel dumps, which need the runtime of an NPU")

# SPDX-License-Identifier: Apache-2.0
"""Names that scripts import and that belong to other modes of MindSpore: using one reports that it is unsupported."""

from msprobe.core.common.exceptions import MsprobeException


class MsprobeInitStep:
    def __init__(self, *args, **kwargs):
        raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR, "MsprobeInitStep is not supported: it counts steps "
                               "of kernel dumps, which need the runtime of an NPU")

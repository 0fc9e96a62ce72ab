# SPDX-License-Identifier: Apache-2.0
"""Names that scripts import and that are of other modes of MindSpore: they tell so when they are used."""

from msprobe.core.common.exceptions import MsprobeException


def _refuse(name, reason):
    raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR, "%s is not supported: %s" % (name, reason))


def save(*args, **kwargs):
    _refuse("save", "it saves from within compiled graphs; in the dynamic graph there is PrecisionDebugger.save()")


def save_grad(*args, **kwargs):
    _refuse("save_grad", "it saves from within compiled graphs; in the dynamic graph there is PrecisionDebugger.save()")


def step(*args, **kwargs):
    _refuse("step", "it counts steps of compiled graphs; in the dynamic graph there is PrecisionDebugger.step()")


class MsprobeInitStep:
    def __init__(self, *args, **kwargs):
        _refuse("MsprobeInitStep", "it counts steps of kernel dumps, which need the runtime of an NPU")

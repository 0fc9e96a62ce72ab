# SPDX-License-Identifier: Apache-2.0
"""module_dump() and module_dump_end(): record a single module, independent of the model in start()."""

from __future__ import annotations

from typing import Any, List

from msprobe import _native
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException

from . import session
from .arguments import invalid


class ModuleDump:
    """The two calls for one kind of debugger."""

    def __init__(self, debugger: Any, prefix: str) -> None:
        self._debugger = debugger
        self._prefix = prefix
        self._dumped: List[Any] = []  # the modules

    def begin(self, module: Any, dump_name: str) -> None:
        hooks = self._debugger.hooks
        if not hooks.is_supported(module):
            raise invalid("module_dump: the module must be a %s, not %s" % (hooks.kind, type(module)))
        if not isinstance(dump_name, str):
            raise invalid("module_dump: the name must be a string")
        self._need_debugger()
        if hooks.is_hooked(module):
            log.info("module_dump: the module is recorded already, since it was given to start()")
            return
        self._debugger.registry.remove()
        hooks.hook(module, "%s.%s.%s" % (self._prefix, dump_name, type(module).__name__))
        self._dumped.append(module)

    def end(self) -> None:
        self._need_debugger()
        if not self._dumped:
            return
        for module in self._dumped:
            self._debugger.hooks.unhook(module)
        self._dumped.clear()
        if session.forward_switch[0] and _native.info()["records_apis"]:
            self._debugger.registry.install()

    def active(self) -> bool:
        return bool(self._dumped)

    def _need_debugger(self) -> None:
        if self._debugger._instance is None:
            raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR,
                                   "module_dump needs a PrecisionDebugger that was created before")

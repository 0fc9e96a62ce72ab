# SPDX-License-Identifier: Apache-2.0
"""debugger.config, debugger.service and debugger.service.config: values that programs read are correct; values that
they write take effect at the next start(), or a message says that they have none.

Programs that call the Python tool use these objects. Only the attributes that such programs use exist here.
"""

from __future__ import annotations

import os
from typing import Any, Optional

from msprobe import _native
from msprobe.core.common import log

from . import closing, session

_OF_SECTION = ("scope", "list", "data_mode", "summary_mode", "tensor_list", "request_id", "bench_path", "diff_nums")
_DEFAULTS = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics", "tensor_list": [],
             "diff_nums": 1, "rank": [], "extra_info": True, "async_dump": False, "precision": "low",
             "risk_level": "FOCUS"}
_SETTINGS = ("task", "level", "dump_path", "step", "rank", "extra_info", "async_dump", "precision", "risk_level",
             "dump_enable", "custom_op_namespaces") + _OF_SECTION


class _Told:
    """An object whose attributes are written in vain unless a setter says otherwise."""

    _path = ""  # as a program writes it

    def _set_without_effect(self, name, value, advice=""):
        try:
            same = getattr(self, name) == value
        except Exception:
            same = False
        if not same:
            log.warn_once("%s.%s = %r has no effect%s" % (self._path, name, value, advice), self._path + "." + name)


class Settings(_Told):
    """debugger.config: the configuration after defaults, as the debugger was constructed with it."""

    _path = "debugger.config"

    def __init__(self, framework):
        object.__setattr__(self, "framework", framework)
        self.follow(session.setting("dump_path"))

    @property
    def dump_path(self):
        return self._dump_path

    def __getattr__(self, name):
        if name not in _SETTINGS:
            raise AttributeError("%s has no attribute %r" % (self._path, name))
        value = session.setting("section." + name if name in _OF_SECTION else name)
        if value is None:
            value = _DEFAULTS.get(name)
        return closing.numbers(value) or [] if name in ("step", "rank") else value

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(_SETTINGS))

    def __setattr__(self, name, value):
        if name != "dump_path":
            self._set_without_effect(name, value)
            return
        if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
            raise TypeError("%s.dump_path must name a folder, not %r" % (self._path, value))
        self.follow(os.fspath(value))

    def follow(self, dump_path):
        object.__setattr__(self, "_dump_path", dump_path)
        object.__setattr__(self, "folder", os.path.abspath(dump_path))  # the same, wherever the program goes to


class _LiveSettings(Settings):
    """debugger.service.config: dump_path is where the next start() records to. That of debugger.config is a place where a
    program keeps it."""

    _path = "debugger.service.config"


class Service(_Told):
    """debugger.service."""

    _path = "debugger.service"

    config: Any  # a _LiveSettings: each key of the configuration is an attribute
    first_start: bool

    def __init__(self, debugger: Any, framework: str) -> None:
        object.__setattr__(self, "_debugger", debugger)
        object.__setattr__(self, "config", _LiveSettings(framework))
        # Whether start() has yet to come. A model that start() has not seen gets its hooks in any case.
        object.__setattr__(self, "first_start", True)

    def __setattr__(self, name, value):
        if name == "first_start":
            object.__setattr__(self, name, bool(value))
        else:
            self._set_without_effect(name, value)

    # ------------------------------------------------------------------ attributes to read

    @property
    def current_iter(self) -> int:
        """The number of the step of the last start(), also after its step()."""
        last = self._debugger.last_step
        return _native.info()["step"] if last is None else last

    @property
    def init_step(self) -> int:
        return self._debugger.init_step

    @property
    def loop(self) -> int:
        """Steps since set_init_step()."""
        return _native.info()["step"] - self.init_step

    @property
    def current_rank(self) -> Optional[int]:
        rank = _native.info()["rank"]
        return rank if rank >= 0 else None

    @property
    def current_pid(self) -> int:
        return os.getpid()

    @property
    def should_stop_service(self) -> bool:
        """Whether all requested steps are over."""
        return bool(_native.info()["finished"])

    # ------------------------------------------------------------------ methods to call

    def reset_status(self) -> None:
        """Restarts the call numbers; the step number stays."""
        self._debugger.restart_step()

    _reset_status = reset_status

    def start(self, *args: Any, **kwargs: Any) -> None:
        self._debugger.start(*args, **kwargs)

    def stop(self) -> None:
        self._debugger.stop()

    def step(self) -> None:
        self._debugger.step()

    def save(self, *args: Any, **kwargs: Any) -> None:
        self._debugger.save(*args, **kwargs)

# SPDX-License-Identifier: Apache-2.0
"""Level L2 and task exception_dump: MindSpore's runtime dumps kernels by a file of settings, which it finds through an
environment variable.

This was not run on hardware; the tests have a stand-in for MindSpore.
"""

import json
import os
import re

import mindspore

from msprobe import _native
from msprobe.core import kernels, session
from msprobe.core.arguments import invalid
from msprobe.core.closing import numbers
from msprobe.core.common import log
from msprobe.core.files import whole_file

from . import framework

_REGEX = re.compile(r"name-regex\((.*)\)", re.DOTALL)
# How operators are executed: a graph as a whole, or one after the other, as in the dynamic graph.
_WHOLE, _ONE_BY_ONE = "O2", "O0 or O1"
_OF_WHOLE = {"max", "min", "mean", "l2norm", "md5"}
_DEBUG_MODES = {"aicore": 1, "atomic": 2, "all": 3}
_OF_EXCEPTIONS = 4


def is_there():
    """Whether the runtime is that of an NPU."""
    return mindspore.get_context("device_target") == "Ascend"


def opened():
    """For the session that has been opened; None at other levels. Raises if a setting is wrong."""
    return Kernels() if session.LEVELS[_native.info()["level"]] == "L2" else None


class Kernels:
    def __init__(self):
        for name in session.setting("section.list") or []:
            _check(name)
        self._task = session.TASKS[_native.info()["task"]]
        self._files = None  # set after the runtime has its settings
        self._failed = None  # why it cannot be
        self._steps = set()
        self._at = 0  # the step that the runtime counts
        self._call("_dump_set_dynamic")

    def start(self):
        try:
            if not session.dumps_kernels() or session.setting("dump_enable") is False or self._failed:
                return
            info = _native.info()
            if self._files is None:
                self._begin(info["step"])
            steps, ranks = numbers(session.setting("step")), numbers(session.setting("rank"))
            if self._with_steps() and steps is not None and info["step"] not in steps:
                return
            if ranks is not None and info["rank"] >= 0 and info["rank"] not in ranks:
                return
            self._steps.add(info["step"])
            self._call("_dump_start")
        except Exception as error:
            self._failed = str(error)
            log.warn("level L2: no kernels are dumped: " + self._failed)

    def stop(self):
        if self._files is not None:
            self._attempt(mindspore.runtime.synchronize)
            self._attempt(self._call, "_dump_stop")

    def step(self):
        """A step has ended, or has begun anew."""
        now = _native.info()["step"]
        if self._files is not None and now > self._at:
            self._attempt(self._call, "_dump_step", now - self._at)
            self._at = now

    def told(self):
        """The files of the runtime, in words: (lines of information, warnings)."""
        if self._files is None or not self._steps:
            return ([], []) if self._failed else (["no kernels were dumped: start() was not called in a requested step"], [])
        found = self._files.told()
        if found:
            return ["the runtime has dumped " + found], []
        return ([], [self._files.none()]) if self._with_steps() else ([self._files.none()], [])

    def _with_steps(self):
        """Whether it dumps all kernels in some steps, instead of faulty ones in all steps."""
        return self._task in ("statistics", "tensor")

    # ------------------------------------------------------------------ the runtime

    @staticmethod
    def _call(name, *args):
        """Versions of MindSpore that cannot begin and end while the program runs do not have these functions."""
        function = getattr(mindspore._c_expression, name, None)
        if function is not None:
            function(*args)

    @staticmethod
    def _attempt(work, *args):
        try:
            work(*args)
        except Exception as error:
            log.warn_once("level L2: %s" % error)

    def _begin(self, step):
        execution = _execution()
        name, settings = self._settings(execution)
        folder = settings["common_dump_settings"]["path"]
        os.makedirs(folder, exist_ok=True)
        files = kernels.Files(folder)
        path = os.path.join(folder, name)
        with whole_file(path, encoding="utf-8") as file:
            json.dump(settings, file, indent=4)
        os.environ["MINDSPORE_DUMP_CONFIG"] = path
        if execution == _WHOLE and self._with_steps() and not settings["common_dump_settings"]["kernels"]:
            os.environ["MS_ACL_DUMP_CFG_PATH"] = path
        else:
            os.environ.pop("MS_ACL_DUMP_CFG_PATH", None)
        self._call("_set_init_iter", step)
        self._at = step
        self._files = files
        log.info("MindSpore's runtime dumps kernels as %s says" % path)

    def _settings(self, execution):
        """The name and the content of the file for the runtime."""
        def of(key, otherwise):
            return session.setting("section." + key) or otherwise

        wanted = {"overflow_check": _WHOLE, "exception_dump": _ONE_BY_ONE}.get(self._task, execution)
        if execution != wanted:
            raise ValueError("task %s is for %s with jit_level %s, not %s" % (
                self._task, "graphs" if wanted == _WHOLE else "the dynamic graph, and graphs", wanted, execution))
        steps = numbers(session.setting("step")) or []
        if steps and not self._with_steps():
            log.warn("step has no effect with task %s: it dumps in all steps" % self._task)
        common = {
            "op_debug_mode": 0,
            "dump_mode": 1 if of("list", []) else 0,
            "path": os.path.abspath(session.setting("dump_path")),
            "net_name": "Net",
            "iteration": "|".join(map(str, steps)) if steps and self._with_steps() else "all",
            "saved_data": "tensor" if self._task in ("tensor", "exception_dump") else "statistic",
            "input_output": {"input": 1, "output": 2}.get(of("data_mode", ["all"])[0], 0),
            "kernels": of("list", []),
            "support_device": numbers(session.setting("rank")) or list(range(8)),
        }
        if self._task == "statistics":
            common["statistic_category"] = _categories(of("summary_mode", "statistics"), execution)
        if self._task == "overflow_check":
            common.update(_ALL, op_debug_mode=_DEBUG_MODES[of("check_mode", "all")], saved_data="full", file_format="npy")
            return "kernel_graph_overflow_check.json", {"common_dump_settings": common}
        if execution == _WHOLE:
            common["file_format"] = of("file_format", "npy") if self._task == "tensor" else "npy"
            return "kernel_graph_dump.json", {"common_dump_settings": common}
        each = {"enable": not session.setting("async_dump"), "trans_flag": True}
        if self._task == "exception_dump":
            common.update(_ALL, op_debug_mode=_OF_EXCEPTIONS, file_format="npy")
            name = "kernel_graph_exception_dump.json"
        else:
            name = "kernel_kbyk_dump.json"
        if self._task == "statistics":
            each["stat_calc_mode"] = of("device", "host")
            each["device_stat_precision_mode"] = of("precision", session.setting("precision") or "high")
        return name, {"common_dump_settings": common, "e2e_dump_settings": each}


# An overflow or an exception is dumped wherever it occurs.
_ALL = {"dump_mode": 0, "kernels": [], "input_output": 0}


def _check(name):
    pattern = _REGEX.fullmatch(name)
    if pattern is None:
        return
    try:
        re.compile(pattern.group(1))
    except (re.error, OverflowError, RecursionError) as error:
        raise invalid("list: %r holds no regular expression: %s" % (name, error)) from None


def _execution():
    """How the program executes operators: by its mode and by jit_level, whose default depends on the processor."""
    if not framework.is_graph_mode() or os.environ.get("GRAPH_OP_RUN") == "1":
        return _ONE_BY_ONE
    level = mindspore.context.get_jit_config().get("jit_level") or mindspore.get_context("jit_level")
    if not level:
        processor = mindspore._c_expression.MSContext.get_instance().get_ascend_soc_version()
        level = "O2" if processor == "ascend910" else "O0"
    return _WHOLE if level == "O2" else _ONE_BY_ONE


def _categories(summary_mode, execution):
    """summary_mode in the runtime's words."""
    if summary_mode == "statistics":
        summary_mode = ["max", "min", "mean", "l2norm"]
    elif isinstance(summary_mode, str):
        summary_mode = [summary_mode]
    if execution == _WHOLE and not _OF_WHOLE.issuperset(summary_mode):
        raise ValueError("summary_mode: with jit_level O2 the runtime has only %s" % ", ".join(sorted(_OF_WHOLE)))
    # Up to 2.7.0 its hash is MD5; later ones have others, too.
    version = tuple(map(int, re.findall(r"\d+", mindspore.__version__)[:3]))
    old = version <= (2, 7, 0) or execution == _WHOLE
    words = {"mean": "avg", "md5": "md5" if old else "hash:md5", "hash": "md5" if old else "hash"}
    return list(dict.fromkeys(words.get(one, one) for one in summary_mode))

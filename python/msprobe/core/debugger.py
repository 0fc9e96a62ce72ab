# SPDX-License-Identifier: Apache-2.0
"""The framework-independent part of PrecisionDebugger, and module_dump()."""

from __future__ import annotations

import functools
import os
import threading
import time
from typing import Any, Callable, List, Mapping, Optional, Sequence, TypeVar, cast

from msprobe import _native
from msprobe.core.common import log

from . import closing, overriding, session, surface
from .arguments import check_constructor, check_rank, check_token_range, invalid, models_in
from .closing import counted, numbers
from .token_range import TokenRange

_DEFAULT_CONFIGURATION = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "config.json")
_Method = TypeVar("_Method", bound=Callable[..., Any])


def verb(method: _Method) -> _Method:
    """Serializes the public calls. In a forked child of the process with the session they have no effect."""
    @functools.wraps(method)
    def serialised(*args, **kwargs):
        if session.in_child():
            return None
        with session.lock:
            return method(*args, **kwargs)
    return cast(_Method, serialised)


class Debugger:
    """Records a training run. There is one per process; its class methods find it themselves.

    A front end supplies `hooks` (see hooks.py), `registry` (see wrapping.py), `saved` (see saving.py), `free_benchmark` (see
    free_benchmark/task.py) and the methods below whose default does nothing.
    """

    hooks = None
    registry = None
    saved = None
    free_benchmark = None
    _framework = None  # the framework's name in the configuration
    _instance = None
    _told = None  # the part of the result that was reported already
    _creation = threading.Lock()

    def __new__(cls, config_path: Optional[str] = None, task: Optional[str] = None, dump_path: Optional[str] = None,
                level: Optional[str] = None, step: Optional[List[Any]] = None) -> Any:
        with cls._creation:
            if cls._instance is None:
                made = object.__new__(cls._kind())
                made._create(config_path, task, dump_path, level, step)
                cls._instance = made
            return cls._instance

    def __init__(self, config_path: Optional[str] = None, task: Optional[str] = None, dump_path: Optional[str] = None,
                 level: Optional[str] = None, step: Optional[List[Any]] = None) -> None:
        pass  # the arguments of a second construction are ignored

    @classmethod
    def made_from(cls, text: str) -> Any:
        """Creates the debugger with the configuration text, in JSON. No debugger may exist. Raises MsprobeException if a setting
        is invalid."""
        with cls._creation:
            made = object.__new__(cls._kind())
            made._create(None, None, None, None, None, text)
            cls._instance = made
        return made

    @classmethod
    def close(cls) -> None:
        """Ends the recording and prints the result. Afterwards another debugger can be created, with other settings. Raises
        nothing."""
        if cls._instance is None or session.in_child():
            return
        with session.lock:
            self, cls._instance = cls._instance, None
            self._pause()
            self.hooks.detach_all()
            session.end()

    def _create(self, config_path, task, dump_path, level, step, text=None):
        check_constructor(config_path, task, dump_path, level, step)
        self._has_default_path = config_path is None and text is None and dump_path is None and (
            "dump_path" not in overriding.wanted())
        if config_path is None and text is None:
            with open(_DEFAULT_CONFIGURATION, encoding="utf-8") as file:
                text = file.read()
        config_path, text, arguments = overriding.applied(
            config_path, text, {"task": task, "dump_path": dump_path, "level": level, "step": step})
        with session.lock:
            # A debugger that a program dropped by `PrecisionDebugger._instance = None` ends here.
            self.registry.remove()
            self._open_session(config_path, text, arguments)
            if self._is_task("free_benchmark"):
                self.free_benchmark.begin(session.setting("dump_path"))
        self.config = surface.Settings(self._framework)
        self.service = surface.Service(self, self._framework)
        self.init_step = 0
        self._first_path = self._dump_path = self.config.folder  # _dump_path: of the current recording
        self._folders = set()   # folders with recorded data
        self._of_step = set()   # those that hold the current step
        self._restarted = set()  # those from before the step numbers began anew
        self.last_step = None  # the step of the last start()
        self.may_go_on = False  # in a step: start() may come again before step()
        self._started = set()   # folders into which start() has begun to record the current step
        self._announced = False
        self._token_range = None
        self._began = None  # the time when the current recording began
        self._took = 0.0    # seconds between start() and stop()
        self._why_not = "start() was not called"
        session.at_end(self._end)
        self._apply_settings()

    def _apply_settings(self):
        """Prepares what the settings require; called again after they have changed."""
        for line in session.setting("warnings"):
            log.warn_once(line)
        if session.setting("dump_path") != self._dump_path:
            self._dump_path = session.setting("dump_path")
            self.service.config.follow(self._dump_path)
        self._info = _native.info()
        if self._info["enabled"] and self._info["records_apis"]:
            self.registry.prepare()
        self._pause()
        if self._is_task("free_benchmark"):
            self.free_benchmark.configure()
        self._follow_settings()
        if not self._info["records_modules"]:
            self.hooks.detach_all()

    # ------------------------------------------------------------------ what a framework adds

    @classmethod
    def _kind(cls):
        """The class of the debugger that is made: this one, or one derived from it."""
        return cls

    def _open_session(self, config_path, text, overrides):
        raise NotImplementedError

    def _follow_settings(self):
        """Called after the settings changed: wraps functions, or stops wrapping them."""

    def _before_start(self, model):
        """Called at start(), whether or not the step is recorded."""

    def _stopping(self):
        """Called at stop()."""

    def _why_nothing(self):
        """Returns the reason why steps may have no entries, if the front end knows it; else None."""

    def _told_at_end(self):
        """Returns further lines for the end of the run: (plain lines, warnings)."""
        return [], []

    def _starting(self, model):
        """Called at start() with this model if the step may be recorded."""

    @staticmethod
    def _is_task(name):
        return session.TASKS[_native.info()["task"]] == name

    def _follows_optimizers(self):
        """Whether an optimizer's steps count as steps: start(), stop() and step() then do nothing."""
        return self._is_task("grad_probe")

    def _dumps_module(self):
        """Whether module_dump() is active: functions are then not recorded."""
        return False

    def _count_processes(self):
        """Returns the number of processes; None if it is unknown."""
        return None

    def _watch_steps(self, watched, kind, rule, watch):
        """Implements monitor(). Only task grad_probe uses it; it follows the steps of a `kind` by watch(watched,
        steps)."""
        if not self._is_task("grad_probe"):
            return
        if not isinstance(watched, kind):
            raise invalid("monitor: %s, not %s" % (rule, type(watched)))
        if self._info["enabled"]:
            watch(watched, numbers(session.setting("step")))
            self._why_not = "no optimizer took one of the requested steps"
            self._began = time.monotonic()

    @property
    def _unit(self):
        return ("gradient", "gradients") if self._is_task("grad_probe") else ("entry", "entries")

    def _prepare(self):
        """Called before functions are wrapped."""

    def _begins_recording(self, model):
        """Called when recording begins."""

    def _pauses_recording(self):
        """Called when recording pauses."""

    def _finish_pending(self):
        """Called before files are written."""

    def _ending_step(self):
        """Called before a step ends: later events belong to the next step."""

    def _step_ended(self):
        """Called after a step has ended; all numbers begin anew."""
        if self._is_task("free_benchmark"):
            self.free_benchmark.end_step()

    # ------------------------------------------------------------------ verbs

    @classmethod
    def _get_instance(cls):
        if cls._instance is None:
            raise Exception("PrecisionDebugger instance is not created.")
        return cls._instance

    @classmethod
    @verb
    def start(cls, model: Any = None, token_range: Optional[Sequence[int]] = None, rank_id: Optional[int] = None,
              scheduled_tokens: Optional[Mapping[Any, int]] = None) -> None:
        """Begins to record, if this step is to be recorded.

        Args:
            model: the model, or a list of models; needed for levels "L0" and "mix", token_range and the section load.
            token_range: [first, last], counted from 0: record only these calls of the model, one for each token.
            rank_id: the rank of this process, 0 or more; by default that of torch.distributed or MindSpore.
            scheduled_tokens: {request: number of its tokens in this batch}, in the order of the batch; only the rows of the
                configuration's request_id are recorded.

        Raises MsprobeException if an argument is invalid. A failure to record is reported, not raised.
        """
        self = cls._get_instance()
        if self._follows_optimizers():
            return
        self._reload()
        check_token_range(token_range)
        check_rank(rank_id)
        self._check_model(model, token_range)
        session.know_rank(rank_id)
        session.discover_rank()
        self._before_start(model)
        self.last_step = _native.info()["step"]
        if not self._info["enabled"]:
            session.update_switches(False)
            return
        if session.LEVELS[self._info["level"]] == "debug":
            return
        if self._info["records_modules"] and model is not None:
            self.hooks.attach(model)
        self._starting(model)
        self._set_tokens(scheduled_tokens)
        self._redirect()
        self.service.first_start = False
        earlier = [] if self._announced else self._steps_of_earlier_run()
        decision, first_time = session.attempted(_native.start) or (_native.NOT_NOW, 0)
        if decision == _native.ALL_DONE and first_time:
            self._tell_result("all requested steps are over: ")
        if decision == _native.RECORDING:
            self._began = time.monotonic()
            self._note_folder()
            self._begin(model)
            self._install_token_range(model, token_range)
            self._announce(earlier)
            if self._dump_path in self._started and not self.may_go_on:
                log.warn_once("start() was called again without step(): the calls that follow belong to step %d, too; call "
                              "step() where a step ends" % self.last_step, "start() without step()")
            self._started.add(self._dump_path)
        else:
            self._note_why_not(decision)
            self._pause()
            reason = session.failure[0]
            if reason:
                self._why_not = reason if reason.startswith("bench_path: ") else (
                    "dump_path must be a folder that can be written to: " + reason)
        session.update_switches(backward=decision == _native.RECORDING)

    @classmethod
    @verb
    def stop(cls) -> None:
        """Ends recording and writes the files. Backwards of recorded calls are still recorded until step(). Raises nothing
        but an Exception if no debugger was made."""
        self = cls._get_instance()
        if self._follows_optimizers():
            return
        session.discover_rank()
        session.forward_switch[0] = False
        self._stopping()
        self._pause()
        self._finish()
        session.attempted(_native.stop)
        session.update_switches()
        self._clock()
        self._reload()

    @classmethod
    def forward_backward_dump_end(cls) -> None:
        """The former name of stop(), which raises the same."""
        cls.stop()

    @classmethod
    @verb
    def step(cls) -> None:
        """Ends the step: files are complete, and calls are counted from 0 again. Raises nothing but an Exception if no
        debugger was made."""
        self = cls._get_instance()
        if not self._follows_optimizers():
            self._leave_step(_native.step)

    @classmethod
    @verb
    def restart_step(cls) -> None:
        """Finishes the recording and counts calls from 0 again, in the same step, for service.reset_status(). Raises nothing but
        an Exception if no debugger was made."""
        self = cls._get_instance()
        self._ending_step()
        self._pause()
        self._finish()
        session.attempted(_native.restart_step)
        self._clock()
        self._restarted |= self._of_step
        self._of_step.clear()
        self._started.clear()
        self.hooks.forget_calls()
        self._step_ended()
        session.update_switches(backward=False)

    @classmethod
    @verb
    def drop_step(cls) -> None:
        """Like step(), for a step in which nothing ran: removes its folder and uses its number again. Raises the same."""
        self = cls._get_instance()
        number = _native.info()["step"]
        self._of_step.clear()  # there is no place to report
        self._leave_step(_native.drop_step)
        self.last_step = number - 1 if number else None

    @classmethod
    @verb
    def save(cls, variable: Any, name: str, save_backward: bool = True) -> None:
        """Records a value at level "debug", in debug.json; at other levels it does nothing.

        Args:
            variable: a tensor of any shape and dtype, a number or a string, or these in dicts, lists and tuples.
            name: the name of the value; its number counts the calls with this name in a step.
            save_backward: also record the gradients of the tensors, when the backward computes them.

        Raises nothing but an Exception if no debugger was made: what cannot be saved is reported and left out.
        """
        self = cls._get_instance()
        self._reload()
        if self._info["enabled"] and session.LEVELS[self._info["level"]] == "debug":
            if session.TASKS[self._info["task"]] in ("tensor", "statistics"):
                self._redirect()
                self._note_folder()
                self.saved.save(variable, name, save_backward)

    @classmethod
    @verb
    def set_init_step(cls, step: int) -> None:
        """Continues to count steps from the number step, as after a restart. Raises MsprobeException unless it is a whole
        number, 0 or more."""
        self = cls._get_instance()
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise invalid("set_init_step: the step must be a whole number, 0 or more")
        if "step" in overriding.wanted():
            return  # the requested steps count from the first step of the run
        session.checked(_native.set_init_step, step)
        self.init_step = step
        self.last_step = None

    @classmethod
    @verb
    def register_custom_api(cls, module: Any, api: str, api_prefix: Optional[str] = None) -> None:
        """Records the function with the name api of a module or class, as <api_prefix>.<api>.<number>.

        api_prefix is by default the name of module. Raises MsprobeException if module has no attribute api, or if api_prefix is
        not a string.
        """
        self = cls._get_instance()
        if not hasattr(module, str(api)):
            raise invalid("register_custom_api: %r has no attribute %r" % (module, api))
        if api_prefix is None:
            api_prefix = getattr(module, "__name__", "Custom")
        if not isinstance(api_prefix, str):
            raise invalid("register_custom_api: api_prefix must be a string")
        if self._info["enabled"]:
            self.registry.add_custom(module, api, api_prefix)

    @classmethod
    @verb
    def restore_custom_api(cls, module: Any, api: str) -> None:
        """Ends register_custom_api() for the function api of module. Raises MsprobeException if there is no such attribute."""
        self = cls._get_instance()
        if not hasattr(module, str(api)):
            raise invalid("restore_custom_api: %r has no attribute %r" % (module, api))
        self.registry.remove_custom(module, api)

    # ------------------------------------------------------------------ parts of the calls above

    def _leave_step(self, leave):
        session.discover_rank()
        self._ending_step()
        self._pause()
        self._finish()
        info = _native.info()
        session.attempted(leave)
        self._tell_places(info)
        self._clock()
        self._of_step.clear()
        self._restarted.clear()
        self._started.clear()
        self.hooks.forget_calls()
        self._step_ended()
        # Gradients of this step that arrive later belong to the next one.
        session.update_switches(backward=session.backward_switch[0])
        self._reload()

    def _begin(self, model):
        """Wraps functions while something is recorded."""
        self._prepare()
        if self._info["records_apis"] and not self._dumps_module():
            self.registry.install()
        self.hooks.resume()
        self._begins_recording(model)

    def _pause(self):
        self.registry.remove()
        self.hooks.pause()
        self._pauses_recording()

    def _redirect(self):
        """Changes to the folder that a program set by service.config.dump_path."""
        wanted = self.service.config.folder
        if self.config.folder not in (self._first_path, wanted):
            log.warn_once("debugger.config.dump_path = %r has no effect: write debugger.service.config.dump_path" % (
                self.config.dump_path), "debugger.config.dump_path")
        if wanted == self._dump_path:
            return
        self._finish()
        session.attempted(_native.set_dump_path, wanted)
        self._dump_path = wanted
        if self._is_task("free_benchmark"):
            self.free_benchmark.move(wanted)

    def _note_folder(self):
        folder = self._dump_path
        if folder in self._restarted:
            log.warn_once("after reset_status() step %d is recorded into %s again, replacing what was recorded "
                          "there: give it a separate folder with service.config.dump_path" % (
                              _native.info()["step"], folder), "reset_status")
            self._restarted.discard(folder)
        self._folders.add(folder)
        self._of_step.add(folder)

    def _maybe_reload_config(self, force=False):
        """Every verb reads the configuration again, because a program may change it in between."""
        with session.lock:
            self._reload()

    def _clock(self):
        if self._began is not None:
            self._took += time.monotonic() - self._began
            self._began = None

    def _note_why_not(self, decision):
        """Notes why start() records nothing, so that a run without any recording can report the reason."""
        if decision == _native.ALL_DONE:
            self._why_not = "step counting began after the last requested step"
            return
        info = _native.info()
        ranks = numbers(session.setting("rank"))
        if ranks is None or info["rank"] in ranks:
            self._why_not = None  # the end reports which steps did not occur
        elif info["rank"] < 0:
            self._why_not = ("rank %s is requested, but the rank of this process is unknown: pass it to "
                             "start(rank_id=...) or initialise the communication" % session.setting("rank"))
            log.warn_once(self._why_not, "rank")
        else:
            self._why_not = "rank %d is not one of those requested" % info["rank"]
            processes = self._count_processes()
            if processes is not None and min(ranks) >= processes:
                log.warn_once("rank %s is requested, but there are %d processes: nothing is recorded" % (
                    session.setting("rank"), processes), "rank")

    def _tell_places(self, info):
        """Reports the folders of the step to which `info` belongs."""
        for folder in sorted(self._of_step) if self._tells(info) else ():
            own = _folder_of_rank(folder, info)
            if os.path.exists(os.path.join(own, "dump.json")):
                log.info("dump.json is at " + os.path.dirname(own))

    def _tell_result(self, begin=""):
        """Prints one line: how much was recorded, where, and how long it took."""
        info = _native.info()
        lost = session.setting("lost")
        self._told = info["entries"], info["steps"], lost
        info.update(session.setting("kept"))  # the part of the recording that is on the disk
        losses = closing.losses(lost, self._unit)
        if not self._tells(info) and not losses:
            return
        if session.LEVELS[info["level"]] == "debug" and not info["steps"]:
            self._why_not = None if losses else "save() was not called (level debug records only what it saves)"
        if info["steps"]:
            told = self._outcome(info, counted(info["steps"], "step", "steps"))
            (log.warn if losses else log.info)("%s%s in %.1f s%s" % (
                begin, told, self._took, losses and "; " + losses))
            if info["rank"] < 0:
                for folder in sorted(self._folders)[:16]:  # only the first of very many
                    closing.warn_of_other_runs(folder)
        elif info["enabled"]:
            all_lost = losses if lost["entries"] or not self._why_not else None
            (log.warn if all_lost else log.info)("%snothing was recorded: %s" % (
                begin, all_lost or self._why_not or closing.steps_that_never_came(info, self.last_step) or
                "start() was not called in any of the requested steps"))

    @staticmethod
    def _tells(info):
        """Whether this process is the one that reports the result."""
        return info["rank"] <= 0 or info["rank"] == min(numbers(session.setting("rank")) or [0])

    def _outcome(self, info, steps):
        """Describes what was recorded, and where."""
        return "recorded %s of %s to %s" % (self._recorded(info), steps, self._where())

    def _where(self):
        if len(self._folders) < 2:
            return self._dump_path
        return "%d folders in %s" % (len(self._folders), os.path.commonpath(self._folders))

    def _recorded(self, info):
        """Describes how much was recorded."""
        if self._is_task("free_benchmark"):
            return "%d repeated calls (%d of them unstable)" % self.free_benchmark.counts()
        return "the structure" if self._is_task("structure") else counted(info["entries"], *self._unit)

    def _end(self):
        self._finish()
        self._clock()
        if _native.info()["steps"]:
            session.attempted(_native.stop)  # writes pending data
        info = _native.info()
        self._tell_places(info)
        if self._told != (info["entries"], info["steps"], session.setting("lost")):
            self._tell_result()
        if self._tells(info):
            told, wrong = self._told_at_end()
            for line in told:
                log.info(line)
            for line in wrong + closing.lines(info, self.last_step, self._count_processes(), self._why_nothing()):
                log.warn(line)

    def _finish(self):
        try:
            self._finish_pending()
        except Exception:
            session.guard("fetching pending results")

    def _reload(self):
        if not self._info["reloads"]:
            return
        status, changed, text = session.checked(_native.reload)
        if not changed:
            return
        if status < 0:
            log.warn("the changed configuration cannot be used, nothing is recorded: " + text)
        self._apply_settings()
        session.update_switches(backward=session.backward_switch[0] and bool(self._info["enabled"]))

    def _check_model(self, model, token_range):
        needs_model = self._info["records_modules"] or token_range is not None or session.setting("load") is not None
        if model is None:
            if needs_model:
                raise invalid("start: a model is needed for level L0 or mix, for token_range and for the section load")
            return
        for one in models_in(model):
            if not self.hooks.is_supported(one):
                raise invalid("start: the model must be a %s or a list of them, not %s" % (
                    self.hooks.kind, type(one)))
        if isinstance(model, (list, tuple)) and not model and needs_model:
            raise invalid("start: the list of models is empty")

    def _set_tokens(self, scheduled_tokens):
        if scheduled_tokens is None:
            return
        wanted = session.setting("section.request_id")
        if not wanted:
            return
        begin = 0
        for request, count in scheduled_tokens.items():
            if str(request) == wanted:
                session.checked(_native.set_tokens, begin, begin + int(count))
                return
            begin += int(count)
        session.checked(_native.set_tokens, -1, -1)

    def _install_token_range(self, model, token_range):
        """Counts calls from this start() on."""
        if self._token_range is not None:
            self._token_range.remove()
            self._token_range = None
        if token_range is None:
            return
        if isinstance(model, (list, tuple)):
            if len(model) > 1:
                log.warn("token_range counts the calls of the first model only")
            model = model[0]
        self._token_range = self.hooks.count_calls(model, TokenRange(token_range))
        _native.set_recording(0)

    def _announce(self, earlier):
        if not self._announced:
            self._announced = True
            log.info("recording %s at level %s to %s%s" % (
                session.TASKS[self._info["task"]], session.LEVELS[self._info["level"]], self._dump_path,
                ", as no dump_path was given" if self._has_default_path else ""))
            if earlier and self._tells(_native.info()):
                log.warn_once("%s holds %s of an earlier run: those that are recorded now are replaced" % (
                    self._dump_path, closing.some(earlier)), "an earlier run in " + self._dump_path)

    def _steps_of_earlier_run(self):
        """Returns the names of functions that this run can replace."""
        info = _native.info()
        wanted = numbers(session.setting("step"))
        try:
            there = [int(name[4:]) for name in os.listdir(self._dump_path) if name[:4] == "step" and name[4:].isdecimal()]
        except OSError:
            return []
        return ["step%d" % step for step in sorted(there)
                if step >= info["step"] and (wanted is None or step in wanted)
                and os.path.isdir(_folder_of_rank(self._dump_path, dict(info, step=step)))]


def _folder_of_rank(folder, info):
    return os.path.join(folder, "step%d" % info["step"],
                        "proc%d" % os.getpid() if info["rank"] < 0 else "rank%d" % info["rank"])

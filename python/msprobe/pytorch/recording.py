# SPDX-License-Identifier: Apache-2.0
"""msprobe.record(): records what runs in a `with` block or in a decorated function."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Union

import torch

from msprobe import _native
from msprobe.core import overriding, session
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException
from msprobe.core.arguments import invalid, models_in

from .debugger import PrecisionDebugger

if TYPE_CHECKING:
    Path = Union[str, os.PathLike[str]]
    Model = Union[torch.nn.Module, Sequence[torch.nn.Module]]

# Keys of the configuration in addition to the arguments of record(): first those in the task's section, then the others.
_OF_TASK = ("scope", "data_mode", "summary_mode", "tensor_list", "slice", "overflow_nums")
_OF_ALL = ("rank", "extra_info", "async_dump", "precision", "risk_level", "support_wrap_ops", "operations",
           "custom_op_namespaces", "hard_links", "write_buffer_mb", "load", "python_compatible")


class Recording(contextlib.ContextDecorator):
    """The result of msprobe.record(): a context manager, which can be entered repeatedly, and a decorator.

    Each time it is entered a step begins, and each time it is left the step ends; step() ends the current step and begins
    the next one. It raises no exception into the training: failures are reported once. Used as a path it is its dump_path, so
    two recordings can be passed to msprobe.compare().
    """

    _current: Optional[Recording] = None  # the recording whose settings the session of the process has
    _next: Dict[str, int] = {}  # folder -> number of the next step in it

    def __init__(self, model: Optional[Model], text: str, optimizer: Any = None) -> None:
        self._text = text
        self._model: Any = None  # set while it records
        self._optimizer: Any = None
        self._recall: Callable[[], Any] = lambda: (model, optimizer)
        self._idle = 0           # number of blocks that were entered while another recorder was active
        self._steps = 0          # number of finished steps, as far as another recording must continue from them
        self._entries = None     # number of entries when step() began the current step; None if the step began otherwise
        self._running = False
        self._wrapped: Optional[Callable[..., Any]] = None
        self._replaced: Optional[Callable[..., Any]] = None
        self._debugger: Any = None
        self._dump_path: str = json.loads(text)["dump_path"]

    @property
    def dump_path(self) -> str:
        """The folder of the recording."""
        return self._dump_path

    def __fspath__(self) -> str:
        return self._dump_path

    def __enter__(self) -> Recording:
        """Raises MsprobeException if a setting is invalid. Inside another recording it reports that nothing is
        recorded; inside one with the same folder, that one continues.
        """
        who = self._who_records()
        if who is None:
            self.open()
            self.start()
            return self
        self._idle += 1
        other = Recording._current
        if other is None or not other._running or other._dump_path != self._dump_path:
            log.warn_once("record: nothing is recorded to %s, as %s records already in this process" % (self._dump_path, who))
        elif self._recall()[1] is not None and self._recall()[1] is not other._optimizer:
            log.warn_once("record: the step() of this optimizer ends no step: the recording to %s that is still running defines "
                          "where steps end" % self._dump_path)
        return self

    def __exit__(self, *raised: Any) -> None:
        if self._idle:
            self._idle -= 1
            return
        self.stop()
        if self._entries is not None and self._quietly(self._count) == self._entries:
            self._entries = None
            self._quietly(PrecisionDebugger.drop_step)
        else:
            self._end_step()
        self._let_go()

    def open(self) -> None:
        """Prepares the recording. Entering does so, too. Raises MsprobeException if a setting is invalid, or if another
        recorder is active.
        """
        who = self._who_records()
        if who is not None:
            raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR,
                                   "record: %s records already in this process" % who)
        if PrecisionDebugger._instance is not None and Recording._current is not None:
            if Recording._current is self:
                return
            Recording._current.close()
        self._debugger = PrecisionDebugger.made_from(self._text)
        self._debugger.may_go_on = True
        self._dump_path = self._debugger.config.dump_path
        Recording._current = self
        if os.path.isdir(self._dump_path):
            self._steps = max(self._steps, Recording._next.get(self._dump_path, 0))
        if self._steps:
            session.checked(_native.set_init_step, self._steps)

    def start(self, model: Optional[Model] = None) -> None:
        """Begins to record, or continues in the same step after stop(). model: instead of that of record()."""
        if not self._running:
            self._running = True
            self._model, self._optimizer = self._recall()
            self._quietly(PrecisionDebugger.start, model if model is not None else self._model)
            self._quietly(self._watch_optimizer)

    def stop(self) -> None:
        """Pauses until start()."""
        if self._running:
            self._running = False
            self._quietly(self._leave_optimizer)
            self._quietly(PrecisionDebugger.stop)

    def step(self) -> None:
        """Ends the step, and begins the next one if recording continues."""
        going_on = self._running
        if going_on:
            self._running = False
            self._quietly(PrecisionDebugger.stop)
        self._end_step()
        if going_on:
            self._running = True
            self._quietly(PrecisionDebugger.start, self._model)
            self._entries = self._quietly(self._count)

    def set_init_step(self, step: int) -> None:
        """Continues counting from this step, as after a restart."""
        self._quietly(PrecisionDebugger.set_init_step, step)
        self._steps = self._quietly(lambda: _native.info()["step"]) or 0

    def close(self) -> None:
        """Ends the recording and reports how much was recorded. The end of the process does so, too."""
        self.stop()
        self._let_go()
        if Recording._current is self:
            if PrecisionDebugger._instance is self._debugger:
                self._quietly(PrecisionDebugger.close)
            Recording._current = None

    # ------------------------------------------------------------------ their parts

    def _who_records(self) -> Optional[str]:
        """Returns a description of the recorder that prevents this one from beginning; None if nothing prevents it."""
        current = Recording._current
        if PrecisionDebugger._instance is None:
            return None
        if current is None or current._debugger is not PrecisionDebugger._instance:
            return "a PrecisionDebugger"
        if not current._running:
            return None
        return "this recording" if current is self else "another recording"

    def _let_go(self) -> None:
        """Releases the model and the optimizer between the blocks, so that the recording does not keep them alive."""
        model, optimizer = self._recall()
        models = [weakref.ref(one) for one in models_in(model)]
        optimizers = [] if optimizer is None else [_weakly(optimizer)]
        listed = isinstance(model, (list, tuple))

        def recall() -> Any:
            there = [one() for one in models if one() is not None]
            return there if listed else there[0] if there else None, optimizers[0]() if optimizers else None
        self._recall = recall
        self._model = self._optimizer = None

    def _end_step(self) -> None:
        self._entries = None
        if Recording._current is self:
            self._quietly(PrecisionDebugger.step)
            self._steps += 1
            Recording._next[self._dump_path] = self._steps

    @staticmethod
    def _count() -> Any:
        return _native.info()["entries"]

    def _quietly(self, call: Callable[..., Any], *arguments: Any) -> Any:
        if Recording._current is not self:  # close() was called, or another recording has begun
            return None
        try:
            return call(*arguments)
        except Exception as error:
            log.warn_once("recording fails: %s" % error, "recording fails")
            session.guard("recording")
            return None

    def _watch_optimizer(self) -> None:
        """Makes the optimizer's step() end a step, through an attribute of the object, which all versions of PyTorch
        and wrappers allow."""
        optimizer = self._optimizer
        if optimizer is None or self._wrapped is not None:
            return
        step = optimizer.step

        @functools.wraps(step)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = step(*args, **kwargs)
            # If accelerate accumulates gradients, most calls do nothing.
            state = getattr(optimizer, "gradient_state", None)
            if self._running and getattr(state, "sync_gradients", True):
                self.step()
            return result
        self._replaced = optimizer.__dict__.get("step")
        self._wrapped = optimizer.step = wrapper

    def _leave_optimizer(self) -> None:
        wrapped, self._wrapped = self._wrapped, None
        replaced, self._replaced = self._replaced, None
        if wrapped is None or self._optimizer.__dict__.get("step") is not wrapped:
            return  # another program has wrapped it since: the wrapper stays, but does nothing
        if replaced is None:
            del self._optimizer.step
        else:
            self._optimizer.step = replaced


def _weakly(value: Any) -> Callable[[], Any]:
    """Returns a weak reference to the value if the value allows it; otherwise a function that returns it."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def record(model: Optional[Model] = None, dump_path: Optional[Path] = None, *, task: str = "statistics",
           level: Optional[str] = None, step: Optional[Sequence[Union[int, str]]] = None,
           list: Optional[Sequence[str]] = None, optimizer: Any = None, **settings: Any) -> Recording:
    """Records a PyTorch training: each time the `with` block or the decorated function runs, one step.

        with msprobe.record(model, "dump", optimizer=optimizer):    # a step ends with each optimizer.step()
            train()

        recording = msprobe.record(model, "dump")
        for batch in data:
            with recording:                                         # one step
                train_step(batch)

    Args:
        model: the model, or a list of models; needed for levels "L0" and "mix".
        dump_path: the folder to record into; `msprobe bisect` and msprobe.pytorch.check() replace it.
        task: "statistics", "tensor", "structure" or "overflow_check".
        level: "mix", "L0" or "L1"; by default "mix" if there is a model, and "L1" otherwise.
        step: the steps to record, such as [0, "5-7"]; by default all.
        list: parts of names: only entries with such a name are recorded, and all that is inside such a module.
        optimizer: if given, each of its step() calls ends a step while the block runs.
        settings: other keys of the configuration (docs/settings.md): risk_level, summary_mode, tensor_list, rank, ...

    Returns a Recording.

    Raises MsprobeException if a setting is invalid, here or when the recording is entered the first time; TypeError for
    an unknown key.
    """
    if not all(isinstance(one, torch.nn.Module) for one in models_in(model)):
        raise invalid("record: the model must be a torch.nn.Module or a list of them, not %s" % type(model))
    if optimizer is not None and not callable(getattr(optimizer, "step", None)):
        raise invalid("record: the optimizer must have a method step()")
    if level is None:
        level = "L1" if model is None else "mix"
    if level != "L1" and model is None:
        raise invalid("record: levels L0 and mix need the model")
    return Recording(model, configuration(dump_path, task, level, step, list, settings), optimizer)


def configuration(dump_path: Optional[Path], task: str, level: str, step: Optional[Sequence[Any]],
                  names: Optional[Sequence[str]], settings: Dict[str, Any]) -> str:
    """Returns the arguments of record() as the text of a configuration. Raises MsprobeException if one is invalid."""
    if task not in ("statistics", "tensor", "structure", "overflow_check"):
        raise invalid('record: task must be "statistics", "tensor", "structure" or "overflow_check"; '
                      "PrecisionDebugger has others")
    if level not in ("mix", "L0", "L1"):
        raise invalid('record: level must be "mix", "L0" or "L1"')
    if dump_path is None:
        dump_path = overriding.wanted().get("dump_path")
        if dump_path is None:
            raise invalid("record: dump_path is missing: the folder to record into")
    dump_path = os.path.abspath(os.fspath(dump_path))  # absolute, because the program may change its working directory
    config: Dict[str, Any] = {"task": task, "level": level, "dump_path": dump_path, "rank": [],
                              "step": _list(step, "step")}
    section: Dict[str, Any] = {"list": _list(names, "list")}
    for name, value in settings.items():
        if name in _OF_TASK:
            section[name] = value
        elif name in _OF_ALL:
            config[name] = value
        else:
            raise TypeError("unexpected keyword argument %r: it is not a key of the configuration%s"
                            % (name, '; "step" names the steps' if name == "steps" else ""))
    config[task] = section
    try:
        return json.dumps(config)
    except (TypeError, ValueError) as error:
        raise invalid("record: %s" % error) from None


def _list(value: Optional[Sequence[Any]], name: str) -> List[Any]:
    if value is None:
        return []
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise invalid("record: %s must be a list, not %r" % (name, value))
    return [*value]


class StepCallbacks:
    """The common part of the callbacks of training libraries. They record steps of a training; a step is one step of
    the optimizer, with all batches whose gradients it accumulates.

    Args:
        dump_path: the folder to record into.
        task: "statistics", "tensor", "structure" or "overflow_check".
        level: "mix", "L0" or "L1".
        steps: how many steps to record, from the first one of this training.
        step: instead of that, the numbers of the steps, such as [0, "100-102"]; a training that goes on from a
            checkpoint counts on from Trainer's global_step.
        list: parts of names: only entries with such a name are recorded, and all that is inside such a module.
        settings: other keys of the configuration, as for msprobe.record().

    Raises MsprobeException if a setting is invalid. It raises nothing into the training: what fails is reported once.
    """

    def __init__(self, dump_path: Path, *, task: str = "statistics", level: str = "mix", steps: int = 2,
                 step: Optional[Sequence[Union[int, str]]] = None, list: Optional[Sequence[str]] = None,
                 **settings: Any) -> None:
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise invalid("steps must be a whole number, 1 or more")
        self.recording = Recording(None, configuration(dump_path, task, level, step, list, settings))
        # Otherwise the recording knows which steps to record.
        self._left = None if step is not None or "step" in overriding.wanted() else steps
        self.recording.open()

    def _begin(self, first_step: int) -> None:
        """Called when the training begins, or continues with this step."""
        try:
            self.recording.open()
        except Exception as error:
            log.warn_once("recording fails: %s" % error, "recording fails")
            return
        if first_step:
            self.recording.set_init_step(first_step)

    def _start(self, model: torch.nn.Module) -> None:
        if self._left != 0:
            self.recording.start(model)

    def _stop(self) -> None:
        self.recording.stop()

    def _end_step(self) -> None:
        if self._left == 0:
            return
        self.recording.stop()
        self.recording.step()
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self.recording.close()

    def _end(self) -> None:
        self.recording.close()

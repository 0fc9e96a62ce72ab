# SPDX-License-Identifier: Apache-2.0
"""The task: decides which calls are sent to the judge and when, and how long the training waits for it.

It never affects the training: it reads tensors, and nothing is called again in this process. What fails is written to
dump_error_info.log.
"""

import functools
import os
import threading
import time

import torch

from msprobe import _native
from msprobe.core import session
from msprobe.core.common import log

from .. import gradients
from ..free_benchmark import structures, surroundings
from . import calls, entries, places, sampling
from .folder import SharedFolder
from .judge import Judge, Lost
from .sender import Server

# Limit for the bytes of calls that wait for their backward, not counting the first call.
_MOST_HELD = 512 << 20
# These functions do more than compute.
_NEVER = {"backward", "register_hook", "retain_grad", "pin_memory", "record_stream", "__deepcopy__", "__reduce_ex__"}
_KEYS = ("white_list", "black_list", "reference", "budget", "interval", "compare", "error_data_path", "nfs_path", "server",
         "host", "port", "tls_path")


class Task:
    def __init__(self):
        self.judge = None
        self._names = {}      # the extension's number of an operation -> (type, name)
        self._settings = None
        self._process = None  # the process that started the judge
        self._lock = threading.RLock()
        self._modules = places.Modules()

    def name(self, number, prefix, api):
        """Notes the operation to which the extension's `number` belongs."""
        self._names[number] = prefix, api

    # ------------------------------------------------------------------ from the debugger

    def configure(self):
        """Starts the judge. Raises MsprobeException if the settings are wrong."""
        settings = {key: session.setting("section." + key) for key in _KEYS}
        settings["dump_path"] = session.setting("dump_path")
        if self.judge is not None and settings == self._settings:
            return
        self.finish()
        self._settings = settings
        self._budget = sampling.Budget(settings["budget"])
        self._turns = sampling.Turns(settings["interval"])
        self._number = 0        # number of the last call that was sent
        self._held = {}         # numbers of calls that wait for their backward -> (bytes, operation, reserved time)
        self._known_places = {}
        self.judged = 0
        self._has_told = False
        folder = os.path.abspath(settings["dump_path"])
        begin = {"folder": folder, "cases": os.path.abspath(settings["error_data_path"] or folder),
                 "white_list": settings["white_list"] or [], "black_list": settings["black_list"] or [],
                 "device": self._device(settings["reference"]), "operations": sorted(set(self._names.values())),
                 "compare": settings["compare"]}
        self.judge = self._open(begin, settings)
        self._process = os.getpid()

    def server(self):
        """Returns the address of the server, if calls go to one: the server reports itself what is judged, and where
        the results are."""
        return self.judge.name if isinstance(self.judge, Server) else None

    @staticmethod
    def _open(begin, settings):
        host, _, port = settings["server"].rpartition(":")
        if not host and settings["host"] and settings["port"] >= 0:
            host, port = settings["host"], settings["port"]
        if host:
            return Server(begin, host.strip("[]"), int(port), settings["tls_path"])
        return SharedFolder(begin, settings["nfs_path"]) if settings["nfs_path"] else Judge(begin)

    @staticmethod
    def _device(reference):
        if reference == "cpu":
            return "cpu"
        for kind in ("npu", "cuda"):
            module = getattr(torch, kind, None)
            if module is not None and module.is_available():
                return "%s:%d" % (kind, module.current_device())
        return "cpu"

    def know(self, models):
        self._modules.know(models)

    def begin_step(self):
        if self._is_on():
            self._budget.begin_step()

    def end_step(self, step):
        """Has calls judged without their backward if it did not arrive in this step."""
        with self._lock:
            if not self._is_on():
                return
            self._turns.end_step()
            if self._held or not self.judge.answers:
                waiting = len(self._held)
                self._held.clear()
                self._timed(self._ask, {"step_ends": step}, step, None, waiting)

    def finish(self):
        with self._lock:
            if self.judge is not None and self._process == os.getpid():
                self._tell_left_out()
                self.judge.finish()

    def _tell_left_out(self):
        """Reports once, from one of many processes, how many operations were never judged."""
        left_out, count = self._turns.left_out()
        if 0 < left_out < count and not self._has_told and _native.info()["rank"] <= 0:
            self._has_told = True
            log.info("task acc_check: %d of %d operations of a step were never judged: a larger budget, or more steps, would "
                     "judge them" % (left_out, count))

    def _is_on(self):
        return self.judge is not None and self.judge.alive and self._process == os.getpid()

    # ------------------------------------------------------------------ calls

    def call(self, number, count, function, args, kwargs):
        """Called by the extension in place of a function."""
        call = number, count
        attempt = None
        if self.judge.alive and not self._turns.is_over(call):
            attempt = self._timed(self._attempt, call, args, kwargs or {})
        if attempt is None:
            return function(*args, **kwargs) if kwargs else function(*args)
        try:
            result = function(*args, **kwargs) if kwargs else function(*args)
        except BaseException:
            self._timed(self._drop, attempt)
            raise
        self._timed(self._send, attempt, result)
        return result

    def send_backward(self, number, name, grad_inputs, grad_outputs):
        self._timed(self._send_backward, number, name, grad_inputs, grad_outputs)

    def _timed(self, work, *arguments):
        """Runs `work` without raising an exception; its time counts for the budget."""
        began = time.monotonic()
        with self._lock:
            try:
                return self._quietly(work, *arguments)
            finally:
                self._budget.spend(time.monotonic() - began)

    def _quietly(self, work, *arguments):
        try:
            return work(*arguments)
        except Lost as reason:
            self.judge.lose(str(reason))
        except OSError as error:  # there is no room for its elements, or no descriptor
            log.warn_once("task acc_check: some calls are left out: %s" % (error.strerror or error), "task acc_check: left out")
            session.guard("judging a call")
        except Exception:
            session.guard("judging a call")
        return None

    def _attempt(self, call, args, kwargs):
        kind, name = operation = self._names.get(call[0], (None, None))
        if operation in self.judge.skipped or name in _NEVER:
            return self._refuse(call, None if operation in self.judge.skipped else "it does more than compute")
        if not self._turns.is_next(call):
            return None
        tensors = structures.tensors_in((args, kwargs))
        devices = {tensor.device for tensor in tensors}
        if surroundings.is_watched() or surroundings.is_captured(devices):
            return None
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        holds_too_much = self._held and sum(held for held, _, _ in self._held.values()) + size > _MOST_HELD
        if not self._budget.is_open() or holds_too_much or self.judge.is_full(size):
            return self._turns.leave()
        self._turns.take(call)
        self._wait_for(devices)
        attempt = calls.Attempt(self.judge.file, call, (kind, name, call[1]), args, kwargs, tensors)
        try:
            attempt.begin(args, kwargs)
            return attempt
        except entries.NotSent as reason:
            self._drop(attempt)
            return self._refuse(call, str(reason))

    def _wait_for(self, devices):
        """Waits for the devices, so that time for the training's own work does not count for the judge."""
        for device in devices:
            module = getattr(torch, device.type, None)
            if device.type != "cpu" and hasattr(module, "synchronize"):
                began = time.monotonic()
                module.synchronize(device)
                self._budget.spend(began - time.monotonic())

    def _refuse(self, call, reason):
        """From now on this call is never judged. Reports the reason to the judge, unless the judge knows it."""
        self._turns.never.add(call)
        message = self._heading("skipped", (*self._names[call[0]], call[1]))
        if reason is not None:
            message["reason"] = reason
        self.judge.tell(message)

    def _heading(self, kind, named):
        info = _native.info()
        leaf = "proc%d" % os.getpid() if info["rank"] < 0 else "rank%d" % info["rank"]
        self._number += 1
        return {kind: self._number, "type": named[0], "name": named[1], "number": named[2], "step": info["step"],
                "leaf": leaf}

    def _drop(self, attempt):
        """Called for a call that is not judged because it raised an exception or cannot be sent."""
        attempt.part.end()
        self.judge.tell({"unused": 0, "blocks": attempt.part.blocks})

    def _send(self, attempt, result):
        try:
            attempt.finish(result)
        except entries.NotSent as reason:
            self._drop(attempt)
            return self._refuse(attempt.call, str(reason))
        part = attempt.part
        node = attempt.node(result)
        message = dict(self._heading("call", attempt.named), follows=node is not None, **self.judge.described(part))
        self._add_place(message, attempt.call)
        number = self._number
        self.judged += 1
        if node is None:
            return self._ask(message, number, attempt.call)
        self.judge.tell(message)
        operation = attempt.named[:2]
        self._held[number] = part.size, operation, self._budget.reserve(operation)
        node.register_hook(gradients.OnceHook(functools.partial(self.send_backward, number, attempt.name),
                                              "judging %s.backward" % attempt.name))
        return None

    def _add_place(self, message, call):
        frame = places.caller()
        key = places.key(frame)
        if self._known_places.get(call) != key:
            self._known_places[call] = key
            message["place"], message["where"], message["frames"] = places.described(frame, self._modules)

    def _send_backward(self, number, name, grad_inputs, grad_outputs):
        held = self._held.pop(number, None)
        if held is None or not self._is_on():
            return None  # the step is over, or the call belongs to another judge
        _, operation, reserved = held
        tensors = structures.tensors_in((grad_inputs, grad_outputs))
        self._wait_for({tensor.device for tensor in tensors})
        began = time.monotonic()
        part = entries.Part(self.judge.file, name + ".backward")
        part.begin()
        try:
            part.add_list("input", grad_outputs, "input")
            part.add_list("output", grad_inputs, "output")
        except entries.NotSent:
            part.end()
            self._held[number] = held  # at the end of the step the call is judged without its backward
            return self.judge.tell({"unused": 0, "blocks": part.blocks})
        part.end()
        start = self._ask({"backward": number, **self.judge.described(part)}, number)
        return self._budget.release(operation, reserved, time.monotonic() - began - start)

    def _ask(self, message, number, call=None, calls_judged=1):
        """Sends a message and waits for the answer; the seconds in which the judge starts do not count."""
        answer, start = self.judge.ask(message, number, calls_judged)
        if start:
            self._budget.forgive(start)
            self._budget.spend(-start)
        if answer["refused"] and call is not None:
            self._turns.never.add(call)
        return start

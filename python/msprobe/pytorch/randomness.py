# SPDX-License-Identifier: Apache-2.0
"""Reproducible runs: seed_all() fixes every source of randomness, random_save() logs every draw of random numbers."""

import csv
import functools
import os
import random
import threading
import time

import numpy
import torch

from msprobe.core import seeds, stacks
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException

from . import framework

_TORCH = ("bernoulli", "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn",
          "randn_like", "randperm")
_TENSOR = ("bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial",
           "normal_", "random_", "uniform_")
_NOT_DRAWING = ("seed", "getstate", "setstate", "get_state", "set_state", "default_rng", "test", "get_bit_generator",
                "set_bit_generator")


def _groups():
    """(group, namespace, names) of all functions that draw random numbers."""
    python = [name for name in dir(random)
              if name[0].islower() and callable(getattr(random, name)) and callable(getattr(random.Random, name, None))]
    numbers = [name for name in dir(numpy.random)
               if name[0].islower() and callable(getattr(numpy.random, name))
               and not isinstance(getattr(numpy.random, name), type)]
    return (("python_random", random, [name for name in python if name not in _NOT_DRAWING]),
            ("numpy_random", numpy.random, [name for name in numbers if name not in _NOT_DRAWING]),
            ("torch_random", torch, _TORCH),
            ("tensor_random", torch.Tensor, _TENSOR))


def _replace_all(make):
    """Replaces each function by make(group, name, function)."""
    for group, namespace, names in _groups():
        for name in names:
            function = getattr(namespace, name, None)
            if function is None:
                continue
            wrapper = make(group, name, function)
            try:
                functools.update_wrapper(wrapper, function)
                setattr(namespace, name, wrapper)
            except (AttributeError, TypeError):
                continue


# ---------------------------------------------------------------------- seed_all


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False, is_enhanced: bool = False) -> None:
    """Seeds random, numpy and torch on all devices.

    Args:
        seed: a whole number from 0 to 2**32 - 1.
        mode: use deterministic algorithms only.
        rm_dropout: dropout drops nothing from now on.
        is_enhanced: every draw of random numbers starts from the present state of the generators.

    Raises MsprobeException if an argument is invalid.
    """
    seeds.check_arguments(seed, mode=mode, rm_dropout=rm_dropout, is_enhanced=is_enhanced)
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(mode)
    _seed_npu(seed)
    _seed_cuda(seed)
    if rm_dropout:
        _remove_dropout()
    if is_enhanced:
        _freeze_random_functions()


def _seed_npu(seed):
    npu = getattr(torch, "npu", None)
    if npu is None or not npu.is_available():
        return
    npu.manual_seed_all(seed)
    os.environ.update({"HCCL_DETERMINISTIC": "True", "LCCL_DETERMINISTIC": "1", "CLOSE_MATMUL_K_SHIFT": "1",
                       "ATB_LLM_LCOC_ENABLE": "0"})


def _seed_cuda(seed):
    if not torch.cuda.is_available():
        return
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    version = [int(part) for part in (torch.version.cuda or "0.0").split(".")[:2]]
    if version >= [10, 2]:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"


def _remove_dropout():
    functional = torch.nn.functional
    for name in ("dropout", "dropout2d", "dropout3d"):
        setattr(functional, name, _never_dropping(getattr(functional, name)))


def _never_dropping(dropout):
    @functools.wraps(dropout)
    def wrapper(input, p=0.5, training=True, inplace=False):
        return dropout(input, 0.0, training, inplace)
    return wrapper


def _freeze_random_functions():
    """Gives every call the generators in their present state, and restores that state afterwards."""
    python_state = random.getstate()
    numpy_state = numpy.random.get_state()
    torch_state = torch.get_rng_state()
    devices = [device for device in (torch.cuda, getattr(torch, "npu", None))
               if device is not None and device.is_available() and hasattr(device, "set_rng_state_all")]
    device_states = [device.get_rng_state_all() for device in devices]

    def restore():
        random.setstate(python_state)
        numpy.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)
        for device, states in zip(devices, device_states):
            device.set_rng_state_all(states)

    def make(group, name, function):
        def wrapper(*args, **kwargs):
            restore()
            try:
                return function(*args, **kwargs)
            finally:
                restore()
        return wrapper

    _replace_all(make)


# ---------------------------------------------------------------------- random_save


class _RandomLog:
    """The CSV file of all draws. Its name contains the rank as soon as the rank is known."""

    def __init__(self, folder):
        self._folder = folder
        self._begun = time.time()
        self._lock = threading.RLock()
        self._counts = {}
        self._process = os.getpid()
        self._rank = None
        os.makedirs(folder, exist_ok=True)
        self._path = self._claim("random_proc%d" % self._process)
        self._write_header(self._path)
        self._update_name()

    @staticmethod
    def _write_header(path):
        with open(path, "w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerow(["api_name", "stack"])

    def _claim(self, name):
        """Creates a new file with this name and the time; if another run has that name, with the next second."""
        while True:
            stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(self._begun))
            path = os.path.join(self._folder, "%s_%s.csv" % (name, stamp))
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
                return path
            except FileExistsError:
                self._begun += 1

    def _update_name(self):
        if self._rank is not None:
            return
        self._rank = framework.rank_of_process()
        if self._rank is None:
            return
        path = self._claim("random_rank%d" % self._rank)
        try:
            os.replace(self._path, path)
        except FileNotFoundError:  # the user removed it: its lines are lost, and the new file gets a header
            self._write_header(path)
        self._path = path

    def add(self, group, name, frame):
        if os.getpid() != self._process:
            return
        stack = "\n".join(stacks.format_stack(frame)[1])
        with self._lock:
            self._update_name()
            key = "%s.%s" % (group, name)
            number = self._counts.get(key, 0)
            self._counts[key] = number + 1
            with open(self._path, "a", encoding="utf-8", newline="") as file:
                csv.writer(file).writerow(["%s.%d" % (key, number), stack])


_random_log = None


def random_save(output_path: str = "./output") -> None:
    """Writes each draw of random numbers from now on to a CSV file in the folder output_path, with its call stack. Further
    calls have no effect. Raises MsprobeException if output_path is not a text."""
    global _random_log
    if _random_log is not None:
        return
    if not isinstance(output_path, str) or not output_path:
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "random_save: output_path must be a string")
    log_file = _RandomLog(output_path)
    _random_log = log_file
    inside = threading.local()

    def make(group, name, function):
        def wrapper(*args, **kwargs):
            if not getattr(inside, "yes", False):
                inside.yes = True
                try:
                    log_file.add(group, name, _caller())
                except Exception as error:
                    log.warn_once("random_save: %s" % error)
                finally:
                    inside.yes = False
            return function(*args, **kwargs)
        return wrapper

    _replace_all(make)


def _caller():
    import sys
    return sys._getframe(2)

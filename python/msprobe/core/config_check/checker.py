# SPDX-License-Identifier: Apache-2.0
"""ConfigChecker: hooks on the model's forward that add statistics of its inputs and weights to the pack."""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
import zipfile
from typing import TYPE_CHECKING, Any, List, Optional

from msprobe.core import command
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException

from . import randoms
from .pack import Pack, environment, packages

if TYPE_CHECKING:
    from msprobe.core.files import Path

_DEEPEST = 400
_STATISTICS = ("max", "min", "mean", "norm")


def _invalid(text):
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "ConfigChecker: " + text)


def _framework(name):
    if name not in ("pytorch", "mindspore"):
        raise _invalid("the framework %r is not supported" % (name,))
    return importlib.import_module("msprobe.core.config_check.of_" + name)


class ConfigChecker:
    """Writes a pack with the environment, packages, hyper-parameters, inputs and weights of a training. Create it after the
    model has been built.

    Args:
        model: the model, or a list whose first item is used; its inputs and weights are recorded at each forward.
        shell_path: a list of scripts and YAML files with hyper-parameters.
        output_zip_path: the pack, a .zip file.
        fmk: "pytorch" or "mindspore".

    Raises MsprobeException if an argument is invalid.
    """

    _arguments = None  # of Megatron
    _patched_arguments = False
    _step = 0
    _randoms_written = False

    def __init__(self, model: Any = None, shell_path: Optional[List[str]] = None,
                 output_zip_path: str = "./config_check_pack.zip", fmk: str = "pytorch") -> None:
        self._framework = _framework(fmk)
        if shell_path is not None and not isinstance(shell_path, list):
            raise _invalid("shell_path must be a list")
        if not isinstance(output_zip_path, str) or not output_zip_path.endswith(".zip"):
            raise _invalid("output_zip_path must name a .zip file")
        self._pack = Pack(output_zip_path)
        self._handle = None
        if self._framework.rank() in (None, 0):
            self._pack.create()
            self._pack.add_json("env", {**environment(), **self._framework.settings()})
            self._pack.add("pip", packages())
            self._add_parameters(shell_path)
        if model is not None:
            self._hook(model[0] if isinstance(model, list) and model else model)

    @staticmethod
    def apply_patches(fmk: str = "pytorch") -> None:
        """Call at the start of the program: counts calls for random numbers, and keeps Megatron's arguments. fmk is "pytorch" or
        "mindspore"; anything else raises MsprobeException."""
        randoms.patch(_framework(fmk).RANDOM)
        ConfigChecker._patch_arguments()

    @classmethod
    def _patch_arguments(cls):
        if cls._patched_arguments:
            return
        try:
            from megatron import training
        except Exception:
            return
        cls._patched_arguments = True
        get_args = training.get_args

        def wrapper(*args, **kwargs):
            found = get_args(*args, **kwargs)
            if cls._arguments is None:
                cls._arguments = found
            return found

        training.get_args = wrapper

    @staticmethod
    def compare(bench_zip_path: Path, cmp_zip_path: Path, output_path: Path = "./config_check_result") -> None:
        """Compares the pack cmp_zip_path with the reference bench_zip_path, and writes the tables to the folder output_path.
        Raises MsprobeException if the command fails."""
        command.run(["config_check", "-c", bench_zip_path, cmp_zip_path, "-o", output_path])

    def _add_parameters(self, scripts):
        if scripts:
            text = _static_parameters(scripts)
            if text is not None:
                self._pack.add("hyperparameters/hyperparameters_static.json", text)
        if isinstance(self._arguments, argparse.Namespace):
            self._pack.add_json("hyperparameters/hyperparameters_dynamic.json", _plain(vars(self._arguments)))

    def _hook(self, model):
        if not isinstance(model, self._framework.Model):
            raise _invalid("the model must be a %s, not %s" % (self._framework.MODEL, type(model)))
        self._handle = self._framework.hook_forward(model, _Forward(self))

    def remove(self) -> None:
        """Removes the hook from the model."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def collect(self, model: Any, args: Any, kwargs: Any) -> None:
        """Records the arguments args and kwargs of a call of the model, and its weights, as one step. Raises OSError if the pack
        cannot be written."""
        rank = self._framework.rank() or 0
        step = ConfigChecker._step
        ConfigChecker._step += 1
        place = "step%d/rank%d" % (step, rank)
        self._pack.add_json("dataset/%s/dataset.json" % place, {"args": self._tree(args, 0), "kwargs": self._tree(kwargs, 0)})
        self._pack.add_json("weights/%s/weight.json" % place, {
            name: self._statistics(weight, True) for name, weight in self._framework.named_parameters(model)})
        if rank == 0 and not ConfigChecker._randoms_written:
            ConfigChecker._randoms_written = True
            self._pack.add_json("random/rank0.json", randoms.calls())

    def _tree(self, value, depth):
        if depth > _DEEPEST:
            raise ValueError("a value is nested deeper than 400 levels")
        if isinstance(value, self._framework.Tensor):
            return self._statistics(value, False)
        if isinstance(value, (list, tuple)):
            return {str(position): self._tree(element, depth + 1) for position, element in enumerate(value)}
        if isinstance(value, dict):
            return {str(key): self._tree(element, depth + 1) for key, element in value.items()}
        return ""

    def _statistics(self, tensor, as_float32):
        return dict(zip(_STATISTICS, self._framework.statistics(tensor, as_float32) or (None,) * 4))


class _Forward:
    """The hook. A copy of the model does not take it along."""

    def __init__(self, checker):
        self._checker = checker

    def __reduce__(self):
        import contextlib
        return getattr, (contextlib.nullcontext(), "__exit__")

    def __call__(self, model, args, kwargs=None):
        try:
            self._checker.collect(model, args, kwargs or {})
        except Exception as error:
            log.warn_once("config_check: this step is not recorded: %s" % error)


def _plain(values):
    """Members that JSON knows; others are null, but dtypes and members of enumerations keep their names."""
    import enum
    plain = {}
    for name, value in values.items():
        if value is None or isinstance(value, (bool, int, float, str, list, tuple, dict)):
            plain[name] = value
        elif isinstance(value, enum.Enum) or type(value).__module__ == "torch":
            plain[name] = str(value)
        else:
            plain[name] = None
    return plain


def _static_parameters(scripts):
    """The hyper-parameters that the command finds in scripts: only the command reads scripts."""
    if command.find() is None:
        log.warn("config_check: the command msprobe of this package is not installed; scripts are skipped")
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pack.zip")
        try:
            told = command.run(["config_check", "-d"] + scripts + ["-o", path], quiet=True)
        except MsprobeException as error:
            log.warn("config_check: scripts cannot be read: %s" % error)
            return None
        for line in told.splitlines():
            if ": not understood: " in line:
                log.warn("config_check: " + line.partition("warning: ")[2])
        with zipfile.ZipFile(path) as archive:
            name = "hyperparameters/hyperparameters_static.json"
            return archive.read(name).decode() if name in archive.namelist() else None

# SPDX-License-Identifier: Apache-2.0
"""Section `load` of the configuration: module calls receive the tensors that another run recorded as their inputs, so
that a module is judged on that run's inputs. A call gets all of them or none."""

import difflib
import glob
import os

import torch

from msprobe import _native
from msprobe.core import session
from msprobe.core.closing import numbers, printable
from msprobe.core.common import log
from msprobe.core.hooks import Hook

from . import framework


class _Mismatch(Exception):
    """Why a call keeps its inputs."""


class _BeforeCall(Hook):
    """The hook on a module whose inputs are loaded."""

    __slots__ = ()

    def __call__(self, module, args, kwargs=None):
        loading, name = self.hooked
        if not loading.active or framework.is_compiling():
            return None
        return loading.before(name, args, kwargs)


class Loading:
    def __init__(self, settings):
        self.settings = settings
        self._path = os.path.abspath(settings["path"])
        self._steps = numbers(settings.get("step"))
        self._ranks = numbers(settings.get("rank"))
        self._wanted = {}   # name of a module -> numbers of its calls
        for call in settings["modules"]:
            name, _, number = call.rpartition(".forward.")
            self._wanted.setdefault(name, set()).add(int(number))
        self._met = set()    # calls that were
        self._counts = {}    # calls of the step so far, by name
        self._hooked = {}    # id(module) -> name
        self._folder = None  # of the tensors of this step
        self._found = False  # was there one in any step?
        self._why_none = "none of its steps and ranks ran"
        self.active = False
        self.loaded = 0      # calls

    # ------------------------------------------------------------------ verbs

    def start(self, models):
        """For a model or a list of models, as passed to start() of the debugger."""
        listed = isinstance(models, (list, tuple))
        known = {}
        for index, model in enumerate(models if listed else [models]):
            prefix = "Module.%d." % index if listed else "Module."
            for path, module in model.named_modules():
                if module is not model:
                    known["%s%s.%s" % (prefix, path, type(module).__name__)] = module
        for name in self._wanted:
            if name in known:
                self._hook(known[name], name)
            elif name not in self._hooked.values():
                near = difflib.get_close_matches(name, list(known), 1)
                log.warn_once("load: the model has no %s%s" % (printable(name), ": did you mean %s?" % near[0] if near else ""))
        info = _native.info()
        self._folder = self._find_folder(info["step"], info["rank"])
        self.active = self._folder is not None
        self._found = self._found or self.active

    def stop(self):
        self.active = False

    def end_step(self):
        self.active = False
        self._counts.clear()

    def told(self):
        """The messages for the end of the run."""
        missing = sorted("%s.forward.%d" % (name, number) for name, wanted in self._wanted.items() for number in wanted
                         if (name, number) not in self._met)
        lines = ["loaded the inputs of %d call%s from %s" % (self.loaded, "" if self.loaded == 1 else "s", self._path)]
        if not self._found:
            lines.append("load: path must be a dump_path of task tensor with the steps that run: %s" % self._why_none)
        elif missing:
            lines.append("load: never called: %s" % ", ".join(map(printable, missing[:5])) + (
                " and %d more" % (len(missing) - 5) if len(missing) > 5 else ""))
        return lines

    # ------------------------------------------------------------------ hooks

    def _hook(self, module, name):
        if self._hooked.get(id(module)) == name:
            return
        self._hooked[id(module)] = name
        hook = _BeforeCall((self, name), module)
        # Before all other hooks, so that the recorded tensors are the loaded ones.
        if framework.HAS_HOOKS_WITH_KWARGS:
            module.register_forward_pre_hook(hook, prepend=True, with_kwargs=True)
        else:
            handle = module.register_forward_pre_hook(hook)
            module._forward_pre_hooks.move_to_end(handle.id, last=False)

    def before(self, name, args, kwargs):
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        if number not in self._wanted[name]:
            return None
        self._met.add((name, number))
        call = "%s.forward.%d" % (name, number)
        try:
            made = _native.call_quietly(self._load, call, args, kwargs)
        except _Mismatch as reason:
            log.warn_once("load: %s keeps its inputs: %s" % (call, reason))
            return None
        except Exception as error:
            log.warn_once("load: %s keeps its inputs: %s" % (call, error))
            return None
        if self.loaded == 0:
            log.info("inputs are loaded from %s" % self._path)
        self.loaded += 1
        return made

    def _load(self, call, args, kwargs):
        with torch.no_grad():
            new_args = tuple(self._like(value, "%s.input.%d" % (call, index)) for index, value in enumerate(args))
            if kwargs is None:
                if glob.glob(os.path.join(glob.escape(self._folder), glob.escape(call) + ".kwargs.*")):
                    raise _Mismatch("this PyTorch does not show keyword arguments to hooks")
                return new_args
            return new_args, {key: self._like(value, "%s.kwargs.%s" % (call, key)) for key, value in kwargs.items()}

    def _like(self, value, name):
        if isinstance(value, torch.Tensor):
            return self._tensor(value, name)
        if type(value) in (list, tuple):
            return type(value)(self._like(one, "%s.%d" % (name, index)) for index, one in enumerate(value))
        if type(value) is dict:
            return {key: self._like(one, "%s.%s" % (name, key)) for key, one in value.items()}
        return value

    def _tensor(self, own, name):
        if os.sep in name:
            raise _Mismatch("%r is not a file name" % name)
        path = os.path.join(self._folder, name + ".pt")
        if not os.path.isfile(path):
            raise _Mismatch("%s does not exist" % path)
        other = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(other, torch.Tensor):
            raise _Mismatch("%s has no tensor" % path)
        if other.shape != own.shape or other.dtype != own.dtype:
            raise _Mismatch("%s is %s %s there and %s %s here" % (
                name.rpartition(".forward.")[2].partition(".")[2], other.dtype, list(other.shape), own.dtype,
                list(own.shape)))
        return other.to(own.device).requires_grad_(own.requires_grad)

    # ------------------------------------------------------------------ where the tensors are

    def _find_folder(self, step, rank):
        if self._steps is not None and step not in self._steps:
            return None
        if self._ranks is not None and rank not in self._ranks:
            return None
        place = os.path.join(self._path, "step%d" % step)
        found = [os.path.join(place, "rank%d" % rank)] if rank >= 0 else []
        if not any(map(os.path.isdir, found)):
            found = glob.glob(os.path.join(glob.escape(place), "proc*"))
            if rank < 0 and not found:
                found = glob.glob(os.path.join(glob.escape(place), "rank*"))
        if len(found) != 1:
            return self._refuse("%s holds %s" % (place, "%d processes" % len(found) if found else "no dump"),
                                " in step %d" % step)
        folder = os.path.join(found[0], "dump_tensor_data")
        if not os.path.isdir(folder):
            return self._refuse("%s has no tensors (task tensor dumps them)" % found[0])
        return folder

    def _refuse(self, reason, where=""):
        self._why_none = reason
        log.warn_once("load: %s: nothing is loaded%s" % (reason, where))


def followed(loading):
    """The loading that the configuration asks for now, possibly the same as before; None if it asks for none."""
    settings = session.setting("load")
    if loading is not None:
        if loading.settings == settings:
            return loading
        loading.stop()
    return Loading(settings) if settings else None

# SPDX-License-Identifier: Apache-2.0
"""How faults are planted in a run, and where they are to be found.

A run (`Run`) is a model, its optimizer and its batches before recording begins. What computes wrongly is put *below*
the recorder: functions are replaced before the collector wraps them, results are changed behind autograd's back, so
that no entry, argument or line of a stack tells of it.
"""

import contextlib
import types
from dataclasses import dataclass, field
from typing import Callable

import torch

from recorders import quietly


@dataclass(frozen=True)
class Where:
    """Entries by what is known before a run: operation `op`, call `nth`, in the module at `path` ("": in none, None:
    anywhere). Without `op`: the module itself. `around`: also all modules around it."""

    path: str | None
    op: str | None = None
    nth: int | None = None
    way: str = "forward"
    step: int | None = 0
    around: bool = False
    side: str | None = None  # target or golden only


@dataclass(frozen=True)
class Fault:
    bench: str
    name: str
    kind: str  # argument, code, parameter, input, precision, kernel, backward, update
    size: str
    plant: Callable
    expect: tuple
    rank: int | None = None  # where it is planted; None: on all
    since: int = 0  # the step from which on it is there
    source: str = ""  # where it was reported


@dataclass
class Run:
    bench: object
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    step: int = 0
    since: int = 0  # the step from which on it is faulty
    inside: list = field(default_factory=list)
    batch_changes: list = field(default_factory=list)
    update_changes: list = field(default_factory=list)

    def module(self, path):
        return self.model.get_submodule(path) if path else self.model

    def parameter(self, path, name):
        return getattr(self.module(path), name)

    def follow_modules(self):
        """Keeps in `inside` the paths of the modules that run."""
        if self.inside:
            return
        self.inside.append("")
        for path, module in self.model.named_modules():
            if module is not self.model:
                module.register_forward_pre_hook(lambda _, args, path=path: self.inside.append(path))
                module.register_forward_hook(lambda _, args, out: self.inside.pop() and None, always_call=True)


def waiting(plant):
    """One that is planted at the start and looks at `since` itself: below the recorder is not where it comes later."""
    plant.waits = True
    return plant


# ---------------------------------------------------------------------- what goes wrong in a tensor


def _grid(tensor):
    """A tensor as rows and columns that share its memory."""
    return tensor.view(-1, tensor.shape[-1]) if tensor.dim() > 1 else tensor.view(1, -1)


def scaled(factor):
    def change(tensor):
        tensor.mul_(factor)
    return change


def tile(rows, columns, factor):
    def change(tensor):
        if tensor.is_contiguous():
            _grid(tensor)[:rows, :columns].mul_(factor)
        else:
            tensor[..., :rows, :columns].mul_(factor)
    return change


def elements(count, factor):
    """The largest of every few: what a lost lane leaves behind."""
    def change(tensor):
        places = tensor.abs().flatten().topk(count).indices
        flat = tensor.flatten()
        flat[places] *= factor
        tensor.copy_(flat.view_as(tensor))
    return change


def last_rows_lost(count):
    def change(tensor):
        tensor[-count:] = 0
    return change


def rounded_to(dtype):
    def change(tensor):
        tensor.copy_(tensor.to(dtype).to(tensor.dtype))
    return change


def bits_lost(bits):
    """Keeps so many bits of the mantissa."""
    def change(tensor):
        mantissa, exponent = torch.frexp(tensor.float())
        tensor.copy_(torch.ldexp((mantissa * 2**bits).round() / 2**bits, exponent).to(tensor.dtype))
    return change


def noisy(size, seed=5):
    def change(tensor):
        noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(seed))
        tensor.add_((noise * size * tensor.float().square().mean().sqrt()).to(tensor.dtype))
    return change


# ---------------------------------------------------------------------- faults in the program


def setting(path, name, value):
    def plant(run):
        if not hasattr(run.module(path), name):
            raise AttributeError(f"{path} has no {name}")
        setattr(run.module(path), name, value(run) if callable(value) else value)
    return plant


def bench_setting(name, value):
    def plant(run):
        if not hasattr(run.bench, name):
            raise AttributeError(name)
        setattr(run.bench, name, value)
    return plant


def exchanged(path, make):
    def plant(run):
        parent, _, name = path.rpartition(".")
        run.module(path).register_forward_hook  # noqa: B018 - the path has to be there
        setattr(run.module(parent), name, make(run.module(path)))
    return plant


def method(path, function, name="forward"):
    def plant(run):
        setattr(run.module(path), name, types.MethodType(function, run.module(path)))
    return plant


def together(*plants):
    def plant(run):
        for one in plants:
            one(run)
    return plant


# ---------------------------------------------------------------------- faults in data


def changed_parameter(path, name, change):
    """change(tensor): in place, or a new one."""
    def plant(run):
        data = run.parameter(path, name).data
        new = change(data)
        if new is not None:
            data.copy_(new.clone())
    return plant


def changed_batch(change, from_step=0):
    def plant(run):
        def later(batch, step):
            if step >= max(from_step, run.since):
                change(batch)
        run.batch_changes.append(later)
    return waiting(plant)


# ---------------------------------------------------------------------- faults below the recorder


def kernel(owner, name, path, change, nth=0, from_step=0, position=None):
    """The function computes, and `change` spoils its result: the nth call in the module at `path` in a step."""
    return _below(owner, name, path, nth, from_step, lambda out: _spoil(out, change, position))


def kernel_backward(owner, name, path, change, nth=0, from_step=0, position=None):
    """As `kernel`, but only the gradients that the function's backward gives."""
    def hook(out):
        def spoil(grad_inputs, grad_outputs):
            spoiled = []
            for at, gradient in enumerate(grad_inputs):
                if gradient is not None and position in (None, at):
                    gradient = quietly(_spoiled_copy, gradient, change)
                spoiled.append(gradient)
            return tuple(spoiled)
        first = out[0] if isinstance(out, tuple) else out
        first.grad_fn.register_hook(spoil)
    return _below(owner, name, path, nth, from_step, hook)


def kernel_gradient(path, name, change, from_step=0):
    """The kernel of one parameter's gradient."""
    def plant(run):
        def spoil(gradient):
            if run.step < max(from_step, run.since):
                return None
            return quietly(_spoiled_copy, gradient, change)
        run.parameter(path, name).register_hook(spoil)
    return waiting(plant)


def _spoiled_copy(tensor, change):
    tensor = tensor.clone()
    change(tensor)
    return tensor


def _spoil(out, change, position):
    with torch.no_grad():
        data = out[position or 0].data if isinstance(out, (tuple, list)) else out.data
        quietly(change, data)


def _below(owner, name, path, nth, from_step, then):
    def plant(run):
        run.follow_modules()
        original = getattr(owner, name)
        seen = {"step": None, "calls": 0}

        def stands_in(*args, **kwargs):
            out = original(*args, **kwargs)
            if run.inside[-1] != path or run.step < max(from_step, run.since):
                return out
            if seen["step"] != run.step:
                seen.update(step=run.step, calls=0)
            if seen["calls"] == nth:
                then(out)
                run.spoiled = True
            seen["calls"] += 1
            return out

        run.spoiled = False
        setattr(owner, name, stands_in)
    return waiting(plant)


# ---------------------------------------------------------------------- faults of the update


def not_updated(path, *names):
    def change(run, before):
        for name in names:
            run.parameter(path, name).data.copy_(before[id(run.parameter(path, name))])
    return _changed_update(change)


def update_spoiled(path, name, change):
    """change(update) spoils w1 - w0 of one parameter."""
    def spoil(run, before):
        parameter = run.parameter(path, name)
        update = parameter.data - before[id(parameter)]
        change(update)
        parameter.data.copy_(before[id(parameter)] + update)
    return _changed_update(spoil)


def optimizer_setting(name, value):
    def plant(run):
        for group in run.optimizer.param_groups:
            if name not in group:
                raise AttributeError(name)
            group[name] = value
    return plant


def _changed_update(change):
    def plant(run):
        run.update_changes.append(change)
    return waiting(plant)


@contextlib.contextmanager
def spoiled_updates(run):
    """Around the optimizer's step."""
    before = {id(p): quietly(p.data.clone) for p in run.model.parameters()} if run.update_changes else {}
    yield
    for change in run.update_changes if run.step >= run.since else ():
        quietly(change, run, before)

# SPDX-License-Identifier: Apache-2.0
"""Calls of modules inside of what torch.compile() compiles.

The compiler traces the hooks of a module like the module. There they call an operator without a result, which stays in the
graph as a black box with an order (an effect), and which at run time hands its tensors to the recorder. Outputs pass through
a function whose backward does the same with the gradient. Whether anything is recorded is asked at run time, so start() and
stop() compile nothing anew.

The operator gets a copy, and one in float32 of a tensor in half precision: the compiler keeps such a value in float32 where
it can, and would round it earlier if the operator took the tensor itself. So results stay those of the model alone.
"""

import collections
import sys

import torch

from msprobe.core import session, stacks
from msprobe.core.hooks import After, Before, open_calls

from . import framework

_INPUT, _OUTPUT, _GRADIENT = range(3)  # a gradient's kind: _GRADIENT + the place of its output

_DEEPEST = 20   # structures inside of structures
_HALF = (torch.float16, torch.bfloat16)
_hooked = {}    # number of a module's name -> HookedModule
_sites = []     # each hook of a call that was traced: _Site
_reasons = []   # why nothing can be recorded


class _Site:
    __slots__ = ("number", "form", "stack", "calls", "arrived")

    def __init__(self, number, form):
        self.number = number
        self.form = form
        self.stack = stacks.texts_of(torch._guards.TracingContext.extract_stack())
        self.calls = collections.deque()  # whose gradients have not come, oldest first
        self.arrived = {}                 # place among the outputs -> gradient, of the oldest call


# ---------------------------------------------------------------------- while a compiler traces


def _constant(function):
    """The compiler calls the function while it traces, and takes what it returns as a constant."""
    compiler = getattr(torch, "compiler", None)
    mark = getattr(compiler, "assume_constant_result", None)
    return function if mark is None else mark(function)


@_constant
def _new_site(number, form):
    if _reasons or number not in _hooked:
        return -1
    _sites.append(_Site(number, form))
    return len(_sites) - 1


def _copy(tensor):
    return tensor.float() if tensor.dtype in _HALF else tensor.clone()


def _form_of(value, found, depth=0):
    """The structure of a value, whose tensors are appended to `found`; what is neither is None."""
    if isinstance(value, torch.Tensor):
        if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
            return None
        found.append(_copy(value))
        return ("tensor", len(found) - 1, value.dtype, value.requires_grad)
    if depth > _DEEPEST:
        return None
    if isinstance(value, (tuple, list)):
        return ("list" if isinstance(value, list) else "tuple",
                tuple([_form_of(part, found, depth + 1) for part in value]))
    if isinstance(value, dict):
        return ("dict", tuple([(str(key), _form_of(part, found, depth + 1)) for key, part in value.items()]))
    if value is True or value is False or isinstance(value, str):
        return ("value", value)
    return None


def trace_inputs(hooked, args, kwargs):
    found = []
    form = _form_of((args, kwargs if kwargs is not None else {}), found)
    site = _new_site(hooked.number, form)
    if site >= 0:
        _call(found, site, _INPUT)


def trace_output(hooked, output):
    """Returns what the module is to return instead."""
    found = []
    site = _new_site(hooked.number, _form_of(output, found))
    if site < 0:
        return None
    _call(found, site, _OUTPUT)
    if not hooked.with_backward or not torch.is_grad_enabled():
        return None
    return _watched(output, site, [0])


def _watched(value, site, place, depth=0):
    """The same structure, in which outputs that need a gradient pass through a function. place: [that of the next tensor]."""
    if isinstance(value, torch.Tensor):
        if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter:
            return value
        place[0] += 1
        return _Watched.apply(value, site, place[0] - 1) if value.requires_grad else value
    if depth > _DEEPEST:
        return value
    if isinstance(value, tuple):
        parts = [_watched(part, site, place, depth + 1) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [_watched(part, site, place, depth + 1) for part in value]
    if isinstance(value, dict):
        for key, part in list(value.items()):
            value[key] = _watched(part, site, place, depth + 1)
    return value


def _call(tensors, site, kind):
    # An operator needs a tensor to be called at all.
    torch.ops.msprobe.tap(tensors if tensors else [torch.empty(0)], site, kind)


class _Watched(torch.autograd.Function):
    """The identity, whose gradient is recorded. Around an output only: around an input it would change the order in which
    gradients are added."""

    @staticmethod
    def forward(ctx, tensor, site, place):
        ctx.site = site
        ctx.place = place
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx, gradient):
        torch.ops.msprobe.tap([_copy(gradient)], ctx.site, _GRADIENT + ctx.place)
        return gradient, None, None


# ---------------------------------------------------------------------- while the compiled code runs


def _tap(tensors, number, kind):
    switch = session.forward_switch if kind < _GRADIENT else session.backward_switch
    if not switch[0] or number >= len(_sites):
        return
    site = _sites[number]
    hooked = _hooked.get(site.number)
    if hooked is None or hooked.module() is None:
        return
    try:
        with torch.no_grad():
            if kind == _INPUT:
                stacks.compiled.texts = site.stack
                hooked.before(*_filled(site.form, tensors))
            elif kind == _OUTPUT:
                _leave(site, hooked, _filled(site.form, tensors))
            else:
                _arrived(site, kind - _GRADIENT, tensors[0])
    except Exception:
        session.guard("recording compiled code")
    finally:
        stacks.compiled.texts = ()


def _filled(form, tensors):
    if form is None:
        return None
    kind = form[0]
    if kind == "tensor":
        _, place, dtype, requires_grad = form
        tensor = framework.detach(tensors[place])
        if tensor.dtype != dtype:
            tensor = tensor.to(dtype)
        return tensor.requires_grad_() if requires_grad and tensor.is_floating_point() else tensor
    if kind == "value":
        return form[1]
    if kind == "dict":
        return {key: _filled(part, tensors) for key, part in form[1]}
    parts = [_filled(part, tensors) for part in form[1]]
    return parts if kind == "list" else tuple(parts)


def _leave(site, hooked, output):
    stack = open_calls()
    if not stack or stack[-1].hooked is not hooked:
        return  # began before recording did
    native = stack[-1].native
    hooked.after(stack, output)
    if native.wants_backward():
        site.calls.append(native)


def _watched_outputs(form):
    """{place: dtype} of the outputs that _watched() lets pass through a function."""
    if form is None or form[0] == "value":
        return {}
    if form[0] == "tensor":
        return {form[1]: form[2]} if form[3] else {}
    found = {}
    for part in form[1]:
        found.update(_watched_outputs(part[1] if form[0] == "dict" else part))
    return found


def _arrived(site, place, gradient):
    if not site.calls:
        return
    watched = _watched_outputs(site.form)
    if len(watched) > 1 and not site.arrived:
        torch.autograd.Variable._execution_engine.queue_callback(lambda: _finish(site))
    # A buffer of the compiled code is soon used for something else.
    site.arrived[place] = gradient.to(watched[place], copy=len(watched) > 1)
    if len(site.arrived) == len(watched):
        _finish(site)


def _finish(site):
    if site.arrived and site.calls:
        arrived, site.arrived = site.arrived, {}
        site.calls.popleft().end_backward(None, tuple(map(arrived.get, _watched_outputs(site.form))))


# ---------------------------------------------------------------------- making it ready


def _make_operator():
    try:
        from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
        library = torch.library.Library("msprobe", "DEF")
        library.define("tap(Tensor[] tensors, int site, int kind) -> ()")
        library.impl("tap", _tap, "CompositeExplicitAutograd")
        torch.library.register_fake("msprobe::tap", lambda tensors, site, kind: None, lib=library)
        _register_effectful_op(torch.ops.msprobe.tap.default, _EffectType.ORDERED)
        return library
    except Exception as error:
        _reasons.append("PyTorch %s has no operators with effects (%s)" % (torch.__version__, type(error).__name__))
        return None


_library = _make_operator() if framework.is_compiling is not None else None


def reason_against():
    """Why compiled code is not recorded; None if it is."""
    return _reasons[0] if _reasons else None


def refuse(reason):
    """From now on nothing that is compiled is recorded."""
    if _library is not None and not _reasons:
        _reasons.append(reason)


def know(hooked):
    _hooked[hooked.number] = hooked


def compile_anew():
    """What was compiled before the hooks were there does not know them, and would not look."""
    if "torch._dynamo" not in sys.modules:
        return
    torch._dynamo.reset()
    leave_hooks_alone()


def leave_hooks_alone():
    """A compiler that comes to our hooks from code that it does not compile lets them run. It still traces calls of them."""
    frames = torch._C._dynamo.eval_frame
    for hook in (Before.__call__, After.__call__):
        try:
            from torch._dynamo.types import FrameAction, FrameExecStrategy
            frames.set_code_exec_strategy(hook.__code__, FrameExecStrategy(FrameAction.SKIP, FrameAction.SKIP))
        except (ImportError, AttributeError):  # before 2.7
            frames.skip_code(hook.__code__)


def forget_calls():
    """The step is over."""
    for site in _sites:
        site.calls.clear()
        site.arrived.clear()

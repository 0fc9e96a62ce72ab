# SPDX-License-Identifier: Apache-2.0
"""Records calls of modules inside code that torch.compile() compiles.

The compiler traces the hooks of a module like the module. There they call an operator without a result, which stays in the
graph as a black box with an order (an effect), and which at run time hands its tensors to the recorder. A hook on an output
does the same with the gradient. Whether anything is recorded is asked at run time, so start() and stop() compile nothing
anew.

The operator gets a copy, and one in float32 of a tensor in half precision: the compiler keeps such a value in float32 where
it can, and would round it earlier if the operator took the tensor itself. So results stay those of the model alone.
"""

import collections
import functools
import sys
import threading
import weakref

import torch

from msprobe.core import session, stacks
from msprobe.core.hooks import After, Before, open_calls

from . import framework

_INPUT, _OUTPUT, _GRADIENT = range(3)  # the kind of a gradient is _GRADIENT + the index of its output

_DEEPEST = 20  # levels of nested structures
_HALF = (torch.float16, torch.bfloat16)
_CAN_WATCH = framework.VERSION >= (2, 13)  # gradients; not tested with earlier versions

_hooked = weakref.WeakValueDictionary()  # number of a module's name -> HookedModule
_sites = []       # one _Site for each hook of a call that was traced
_traced = set()   # the numbers of modules that were traced
_reasons = []     # why nothing can be recorded
_library = []     # keeps the operator alive
_left_alone = [Before.__call__.__code__, After.__call__.__code__]
_this_thread = threading.local()


class _Site:
    __slots__ = ("number", "form", "around", "open", "stack", "calls", "arrived")

    def __init__(self, number, form, around):
        self.number = number
        self.form = form
        self.around = around              # inputs: site of the enclosing call; outputs: site of their inputs; or None
        self.open = None                  # the call that these inputs began
        self.stack = stacks.texts_of(torch._guards.TracingContext.extract_stack())
        self.calls = collections.deque()  # calls whose gradients have not arrived, oldest first
        self.arrived = {}                 # index of the output -> gradient, for the oldest call


# ---------------------------------------------------------------------- while a compiler traces


def _new_site(number, form, is_output):
    if not _make_ready() or number not in _hooked:
        return -1
    around = _Tracing.around(number, is_output)
    _sites.append(_Site(number, form, around))
    _traced.add(number)
    if not is_output:
        _Tracing.calls.append(_sites[-1])
    return len(_sites) - 1


# The attribute has the same effect as torch.compiler.assume_constant_result(), which would load the compiler: the compiler
# calls the function while it traces, and takes the result as a constant.
_new_site._dynamo_marked_constant = True


class _Tracing:
    """The calls that the compiler is tracing at the moment: the sites of their inputs."""

    calls = []
    _context = None

    @classmethod
    def around(cls, number, is_output):
        context = torch._guards.TracingContext.get()
        if cls._context is None or cls._context() is not context:  # of another piece of code, or of a new trace
            cls._context = weakref.ref(context)
            cls.calls = []
        if not is_output:
            return cls.calls[-1] if cls.calls else None
        while cls.calls:
            site = cls.calls.pop()
            if site.number == number:
                return site
        return None


def _copy(tensor):
    return tensor.float() if tensor.dtype in _HALF else tensor.clone()


def _is_plain(tensor):
    return type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter


def _has_fields(value):
    return hasattr(value, "__dataclass_fields__") and not isinstance(value, type)


def _form_of(value, found, depth=0):
    """Returns the structure of a value, whose tensors are appended to `found`; anything else becomes None."""
    if isinstance(value, torch.Tensor):
        if not _is_plain(value):
            return None
        found.append(_copy(value))
        return ("tensor", len(found) - 1, value.dtype, value.requires_grad)
    if depth > _DEEPEST:
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return ("named", tuple([(name, _form_of(getattr(value, name), found, depth + 1)) for name in value._fields]))
    if isinstance(value, (tuple, list)):
        return ("list" if isinstance(value, list) else "tuple",
                tuple([_form_of(part, found, depth + 1) for part in value]))
    if _has_fields(value):
        return ("dict", tuple([(name, _form_of(getattr(value, name, None), found, depth + 1))
                               for name in value.__dataclass_fields__]))
    if isinstance(value, dict):
        return ("dict", tuple([(str(key), _form_of(part, found, depth + 1)) for key, part in value.items()]))
    if value is True or value is False or isinstance(value, str):
        return ("value", value)
    return None


def trace_inputs(hooked, args, kwargs):
    found = []
    form = _form_of((args, kwargs if kwargs is not None else {}), found)
    site = _new_site(hooked.number, form, False)
    if site >= 0:
        _call(found, site, _INPUT)


def trace_output(hooked, output):
    found = []
    site = _new_site(hooked.number, _form_of(output, found), True)
    if site < 0:
        return
    _call(found, site, _OUTPUT)
    if _CAN_WATCH and hooked.with_backward and torch.is_grad_enabled():
        _watch(output, site, [0])


def _watch(value, site, place, depth=0):
    """Puts hooks on the tensors that need a gradient. place: a list with the index of the next tensor."""
    if isinstance(value, torch.Tensor):
        if not _is_plain(value):
            return
        if value.requires_grad:
            _watch_tensor(value, site, _GRADIENT + place[0])
        place[0] += 1
    elif depth > _DEEPEST:
        return
    elif isinstance(value, (tuple, list)):
        for part in value:
            _watch(part, site, place, depth + 1)
    elif _has_fields(value):
        for name in value.__dataclass_fields__:
            _watch(getattr(value, name, None), site, place, depth + 1)
    elif isinstance(value, dict):
        for part in value.values():
            _watch(part, site, place, depth + 1)


def _watch_tensor(tensor, site, kind):
    """Returns a hook. It is made while autograd is traced, so that the traced graph contains its call."""
    def arrived(gradient):
        torch.ops.msprobe.tap([_copy(gradient)], site, kind)

    tensor.register_hook(arrived)


def _call(tensors, site, kind):
    # An operator is called only if it gets a tensor.
    torch.ops.msprobe.tap(tensors if tensors else [torch.empty(0)], site, kind)


# ---------------------------------------------------------------------- while the compiled code runs


def _tap(tensors, number, kind):
    switch = session.forward_switch if kind < _GRADIENT else session.backward_switch
    if not switch[0] or number >= len(_sites):
        return
    try:
        with torch.no_grad():
            waiting = _waiting()
            if kind >= _GRADIENT:
                _let_in(waiting, everything=True)
                _arrived(_sites[number], kind - _GRADIENT, tensors[0])
            elif waiting or not _is_next(_sites[number], waiting):
                # Clone the tensors: the compiled code soon uses this buffer for something else.
                waiting[number] = (kind, [tensor.clone() for tensor in tensors])
                _let_in(waiting)
            else:
                _record(_sites[number], kind, tensors)
    except Exception:
        session.guard("recording compiled code")


# The compiler keeps the order of dependent tensors, but may move independent calls, such as projections of one input. A
# tensor that arrives before its turn waits.


def _waiting():
    """Returns {number of the site: (kind, tensors)} for this thread."""
    try:
        return _this_thread.waiting
    except AttributeError:
        waiting = _this_thread.waiting = {}
        return waiting


def _is_next(site, waiting):
    around = site.around
    if any(_sites[number] is around for number in waiting):
        return False
    stack = open_calls()
    return around is None or around.open is None or not stack or around.open not in stack or stack[-1] is around.open


def _let_in(waiting, everything=False):
    """Records waiting tensors as far as it is their turn."""
    again = True
    while waiting and again:
        again = False
        for number in sorted(waiting):
            if everything or _is_next(_sites[number], waiting):
                _record(_sites[number], *waiting.pop(number))
                again = True


def _record(site, kind, tensors):
    hooked = _hooked.get(site.number)
    if hooked is None or hooked.module() is None:
        return
    if kind == _OUTPUT:
        _leave(site, hooked, _filled(site.form, tensors))
        return
    stacks.compiled.texts = site.stack
    try:
        before = len(open_calls() or ())
        hooked.before(*_filled(site.form, tensors))
        calls = open_calls() or ()
        site.open = calls[-1] if len(calls) > before else None
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
    if kind == "named":
        return _named(tuple(key for key, _ in form[1]))(*[_filled(part, tensors) for _, part in form[1]])
    parts = [_filled(part, tensors) for part in form[1]]
    return parts if kind == "list" else tuple(parts)


@functools.lru_cache(maxsize=None)
def _named(fields):
    return collections.namedtuple("Named", fields)


def _leave(site, hooked, output):
    stack = open_calls()
    if not stack or stack[-1].hooked is not hooked:
        return  # the call began before recording
    native = stack[-1].native
    hooked.after(stack, output)
    if native.wants_backward():
        site.calls.append(native)


def _watched_outputs(form):
    """Returns {index: dtype} of the outputs that _watch() watches."""
    if form is None or form[0] == "value":
        return {}
    if form[0] == "tensor":
        return {form[1]: form[2]} if form[3] else {}
    found = {}
    for part in form[1]:
        found.update(_watched_outputs(part[1] if form[0] in ("dict", "named") else part))
    return found


def _arrived(site, place, gradient):
    if not site.calls:
        return
    watched = _watched_outputs(site.form)
    if len(watched) > 1 and not site.arrived:
        torch.autograd.Variable._execution_engine.queue_callback(lambda: _finish(site))
    # Copy the tensor: the compiled code soon uses this buffer for something else.
    site.arrived[place] = gradient.to(watched[place], copy=len(watched) > 1)
    if len(site.arrived) == len(watched):
        _finish(site)


def _finish(site):
    if site.arrived and site.calls:
        arrived, site.arrived = site.arrived, {}
        site.calls.popleft().end_backward(None, tuple(map(arrived.get, _watched_outputs(site.form))))


# ---------------------------------------------------------------------- making it ready


def _make_ready():
    """Defines the operator, once. Returns whether compiled code can be recorded."""
    if not _library and not _reasons:
        try:
            from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
            library = torch.library.Library("msprobe", "DEF")
            library.define("tap(Tensor[] tensors, int site, int kind) -> ()")
            library.impl("tap", _tap, "CompositeExplicitAutograd")
            torch.library.register_fake("msprobe::tap", lambda tensors, site, kind: None, lib=library)
            _register_effectful_op(torch.ops.msprobe.tap.default, _EffectType.ORDERED)
            torch._dynamo.allow_in_graph(_watch_tensor)
            _library.append(library)
        except Exception as error:
            _reasons.append("PyTorch %s does not take the operator that it needs (%s: %s)" % (
                torch.__version__, type(error).__name__, error))
    return not _reasons


def reason_against():
    """Returns the reason why compiled code is not recorded; None if it is recorded. Loads the compiler."""
    return None if _make_ready() else _reasons[0]


def refuse(reason):
    """From now on, nothing that is compiled is recorded."""
    if not _reasons:
        _reasons.append(reason)


def know(hooked):
    _hooked[hooked.number] = hooked


def is_traced(hooked):
    return hooked.number in _traced


def compile_anew():
    """Discards all compiled code, because code compiled before the hooks existed does not call them."""
    if "torch._dynamo" not in sys.modules:
        return
    torch._dynamo.reset()
    leave_all_alone()


def leave_alone(function):
    """Makes a compiler run this function uncompiled if uncompiled code calls it. Calls in compiled code are still
    traced. Returns the function."""
    _left_alone.append(function.__code__)
    if "torch._dynamo" in sys.modules:
        leave_all_alone()
    return function


def leave_all_alone():
    """Repeats leave_alone() for all functions, because torch._dynamo.reset() forgets it."""
    frames = torch._C._dynamo.eval_frame
    for code in _left_alone:
        try:
            from torch._dynamo.types import FrameAction, FrameExecStrategy
            frames.set_code_exec_strategy(code, FrameExecStrategy(FrameAction.SKIP, FrameAction.SKIP))
        except (ImportError, AttributeError):  # before 2.7
            frames.skip_code(code)


def finish():
    """Called when nothing more arrives: records the waiting tensors."""
    _let_in(_waiting(), everything=True)


def forget_calls():
    """Called when the step is over."""
    _waiting().clear()
    for site in _sites:
        site.open = None
        site.calls.clear()
        site.arrived.clear()

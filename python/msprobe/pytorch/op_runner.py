# SPDX-License-Identifier: Apache-2.0
"""Calls recorded operations again: the runner of `msprobe acc_check`, one process per device or core.

The command starts it from its own copy of this file, and communicates as data/precheck/PROTOCOL.md describes. The
command decides what is called and in which types; the runner looks a function up once, calls it on the device and on
the CPU, and returns the results.
"""

import contextlib
import ctypes
import json
import mmap
import os
import signal
import sys
import types

REQUESTS, ANSWERS, INPUTS, OUTPUTS, PROGRAM = 3, 4, 5, 6, 7
ALIGNMENT = 64
MOST_TEXT = 4000
# Where functions with a dot in their names are.
PARTS = {"linalg", "fft", "special", "nested", "sparse"}
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
METHODS = (*FUNCTIONS, types.MethodDescriptorType, types.WrapperDescriptorType)
# These functions read memory that no argument holds.
NEVER = {"from_file", "from_blob", "set_", "data_ptr"}
OPERATORS = {
    *(f"__{prefix}{name}__" for prefix in ("", "i", "r") for name in (
        "add", "and", "div", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub", "truediv",
        "xor")),
    *(f"__{name}__" for name in ("abs", "bool", "contains", "eq", "float", "ge", "getitem", "gt", "int", "invert", "le",
                                 "len", "lt", "ne", "neg", "nonzero", "pos", "setitem")),
}
# A call that exceeds its time limit is ended after this many more seconds, even if the command no longer runs.
GRACE_S = 30


class Tag:
    """The kinds of values in requests and answers. The build makes the command's `enum class Tag` of these lines."""

    TENSOR = "tensor"
    LIST = "list"
    TUPLE = "tuple"
    MAPPING = "mapping"
    PLAIN = "plain"
    SIZE = "size"
    SLICE = "slice"
    ELLIPSIS = "ellipsis"
    DEVICE = "device"
    MEMORY_FORMAT = "memory_format"
    DTYPE = "dtype"
    NUMPY = "numpy"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    OTHER = "other"


class Refusal(Exception):
    """An error whose explanation msprobe wrote."""


class NoFunction(Refusal):
    """There is no function with this name."""


def limit_memory(share):
    """Limits the memory of one process, so that a call of absurd size only affects itself."""
    import resource

    page = os.sysconf("SC_PAGE_SIZE")
    with open("/proc/self/statm", encoding="ascii") as file:
        libraries = int(file.read().split()[5]) * page
    limit = max(int(os.sysconf("SC_PHYS_PAGES") * page * share), libraries + (2 << 30))
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    except (ValueError, OSError):
        pass


def go_first_if_memory_ends():
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("500")
    except OSError:
        pass


def choose_device(torch, wanted, jit):
    """Returns the device to use: by default the device that is present, otherwise a device type, with or without an
    index. With an empty text only the CPU, for references."""
    if not wanted:
        return "cpu"
    kind, _, number = wanted.partition(":")
    present = ["cpu"]
    if torch.cuda.is_available():
        present.insert(0, "cuda")
    if kind in ("auto", "npu"):
        try:
            import torch_npu  # noqa: F401

            if torch.npu.is_available():
                present.insert(0, "npu")
        except ImportError:
            pass
    if kind == "auto":
        kind = present[0]
    if kind not in present:
        raise Refusal(f"PyTorch {torch.__version__} has no device {kind} here, only {', '.join(present)}")
    if kind == "cpu":
        return "cpu"
    count = getattr(torch, kind).device_count()
    if int(number or 0) >= count:
        raise Refusal(f"there is no device {kind}:{number}, the number of devices is {count}")
    device = f"{kind}:{number or 0}"
    getattr(torch, kind).set_device(int(number or 0))
    if kind == "npu":
        torch.npu.set_compile_mode(jit_compile=jit)
    return device


def write_elements(tensor, file, end):
    """Writes the tensor's elements into the file, at or after `end`. Returns where they begin and where they end."""
    tensor = tensor.to("cpu").resolve_conj().resolve_neg().contiguous()
    size = tensor.numel() * tensor.element_size()
    begin = at = (end + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    if size:
        left = memoryview((ctypes.c_char * size).from_address(tensor.data_ptr())).cast("B")
        while left:
            done = os.pwrite(file, left[:1 << 30], at)
            left = left[done:]
            at += done
    return begin, begin + size


class Arguments:
    """The arguments of one call for one side."""

    def __init__(self, runner, request, side, grad):
        self.runner = runner
        self.request = request
        self.raised = request["raise"] if side == "reference" else {}
        self.narrow = request["narrow"] if side == "reference" else None
        self.raise_dtype = side == "reference" and request["raise_dtype"]
        on_host = side == "reference" and not request.get("reference_on_device")
        self.device = "cpu" if on_host else runner.device
        self.grad = grad
        self.leaves = []

    def value(self, told):
        if told is None:
            return None
        ((tag, content),) = told.items()
        return self.MAKERS[tag](self, content)

    def make_tensor(self, content):
        stored, shape, offset, dtype, requires_grad = content
        dtype = self.raised.get(dtype, dtype)
        tensor = self.runner.stored(stored, shape, offset)
        if self.narrow is not None and stored == "float32":
            tensor = tensor.to(self.runner.dtype(self.narrow))
        tensor = tensor.to(device=self.device, dtype=self.runner.dtype(dtype), copy=True)
        if not self.grad or not requires_grad or not (tensor.is_floating_point() or tensor.is_complex()):
            self.leaves.append(None)
            return tensor
        tensor.requires_grad_(True)
        self.leaves.append(tensor)
        return tensor.clone()  # a leaf does not allow operations in place

    def make_list(self, content):
        return [self.value(one) for one in content]

    def make_mapping(self, content):
        return {key: self.value(one) for key, one in content.items()}

    def make_memory_format(self, content):
        return self.attribute(content, self.runner.torch.memory_format)

    def make_dtype(self, content):
        library, _, name = content.partition(".")
        if library == "numpy":
            import numpy

            return numpy.dtype(name)
        if self.raise_dtype:
            name = {"float16": "float32", "half": "float32", "bfloat16": "float32", "float32": "float64",
                    "float": "float64"}.get(name, name)
        return self.attribute(name, self.runner.torch.dtype)

    def make_numpy(self, content):
        import numpy

        return getattr(numpy, content[0])(content[1])

    def attribute(self, name, kind):
        value = getattr(self.runner.torch, name, None)
        if not isinstance(value, kind):
            raise Refusal(f"this PyTorch has no {kind.__name__} {name}")
        return value

    MAKERS = {
        Tag.TENSOR: make_tensor,
        Tag.LIST: make_list,
        Tag.TUPLE: lambda self, content: tuple(self.make_list(content)),
        Tag.MAPPING: make_mapping,
        Tag.PLAIN: lambda self, content: content,
        Tag.SIZE: lambda self, content: self.runner.torch.Size(content),
        Tag.SLICE: lambda self, content: slice(*content),
        Tag.ELLIPSIS: lambda self, content: Ellipsis,
        Tag.DEVICE: lambda self, content: self.device,
        Tag.MEMORY_FORMAT: make_memory_format,
        Tag.DTYPE: make_dtype,
        Tag.NUMPY: make_numpy,
    }


def program_beside(name, place):
    """Returns one of the programs that the command appends to this one, as a module."""
    module = types.ModuleType(name)
    exec(compile(os.pread(PROGRAM, 1 << 20, 0).split(b"\0")[place], name + ".py", "exec"), vars(module))
    return module


def own_references(told):
    """Returns the functions of a user's file by the operators for which they are references."""
    if not told:
        return {}
    wanted = json.loads(told)
    module = types.ModuleType("references")
    module.__file__ = wanted["file"]
    sys.path.insert(0, os.path.dirname(wanted["file"]))
    try:
        with open(wanted["file"], encoding="utf-8") as file:
            exec(compile(file.read(), wanted["file"], "exec"), vars(module))
    except BaseException as error:  # the file may do anything
        raise Refusal(f"{wanted['file']} raised {type(error).__name__}: {error}") from None
    finally:
        sys.path.pop(0)
    references = {}
    for operator, name in wanted["functions"].items():
        references[operator] = getattr(module, name, None)
        if not callable(references[operator]):
            raise Refusal(f"{wanted['file']} has no function {name}, the reference of {operator}")
    return references


class Runner:
    def __init__(self, wanted, jit, references=""):
        import torch

        self.torch = torch
        self.tensor_types = torch.Tensor
        self.functions = {}
        self.can_cast = {}
        self.device = choose_device(torch, wanted, jit)
        self.references = own_references(references)
        self.fused = None
        self.inputs = None
        self.end = 0

    def hello(self):
        return {"hello": 1, "torch": self.torch.__version__, "device": self.device}

    # ------------------------------------------------------------------ tensors

    def dtype(self, name):
        dtype = getattr(self.torch, name, None)
        if not isinstance(dtype, self.torch.dtype):
            raise Refusal(f"PyTorch {self.torch.__version__} has no elements of the type {name}")
        return dtype

    def stored(self, name, shape, offset):
        dtype = self.dtype(name)
        count = 1
        for length in shape:
            count *= length
        if count == 0:
            return self.torch.empty(shape, dtype=dtype)
        if name.startswith("float8"):
            return self.torch.frombuffer(self.inputs, dtype=self.torch.uint8, count=count, offset=offset).view(
                dtype).reshape(shape)
        return self.torch.frombuffer(self.inputs, dtype=dtype, count=count, offset=offset).reshape(shape)

    def open_inputs(self):
        size = os.fstat(INPUTS).st_size
        self.inputs = mmap.mmap(INPUTS, size, access=mmap.ACCESS_COPY) if size else None

    def write_tensor(self, tensor):
        tensor = tensor.detach()
        if tensor.layout != self.torch.strided or tensor.is_quantized:
            return {Tag.OTHER: f"tensor of layout {tensor.layout}"}
        begin, self.end = write_elements(tensor, OUTPUTS, self.end)
        return {Tag.TENSOR: [str(tensor.dtype).split(".")[-1], list(tensor.shape), begin]}

    def as_torch(self, value):
        """Converts a tensor to the device's framework."""
        return value

    def told(self, value, depth=0):
        value = self.as_torch(value)
        if value is None:
            return None
        if isinstance(value, self.torch.Tensor):
            return self.write_tensor(value)
        if isinstance(value, bool):
            return {Tag.BOOLEAN: value}
        if isinstance(value, int):
            return {Tag.INTEGER: str(int(value))}
        if isinstance(value, float):
            return {Tag.REAL: repr(float(value))}
        if isinstance(value, str):
            return {Tag.TEXT: value[:MOST_TEXT]}
        if isinstance(value, (list, tuple)) and depth < 8:
            tag = Tag.TUPLE if isinstance(value, tuple) else Tag.LIST
            return {tag: [self.told(one, depth + 1) for one in value]}
        if isinstance(value, dict) and depth < 8:
            return {Tag.LIST: [self.told(one, depth + 1) for one in value.values()]}
        return {Tag.OTHER: str(type(value))}

    # ------------------------------------------------------------------ calls

    def function(self, kind, name):
        key = (kind, name)
        if key not in self.functions:
            self.functions[key] = self.look_up(kind, name)
        if self.functions[key] is None:
            if kind == "NPU" and "torch_npu" not in sys.modules:
                raise NoFunction(f"NPU.{name} is called by torch_npu, which this Python does not have; acc_check "
                                 "--recorded judges its recorded results")
            spaces = {"Tensor": self.torch.Tensor, "Functional": self.torch.nn.functional, "Torch": self.torch}
            if hasattr(spaces.get(kind), name):
                raise NoFunction(f"{kind}.{name} is not an operation that is called again")
            raise NoFunction(f"PyTorch {self.torch.__version__} has no {kind}.{name}")
        return self.functions[key]

    def reference(self, kind, name):
        """Returns the reference of an operation: the operation itself on the CPU, or for an NPU operator its formula."""
        if kind != "NPU":
            return self.function(kind, name)
        if self.fused is None:
            self.fused = program_beside("fused_references", 1).FUNCTIONS
        function = self.references.get(name) or self.fused.get(name)
        if function is None:
            raise NoFunction(f"NPU.{name} has no reference; --references may name one")
        return function

    def look_up(self, kind, name):
        """Looks up only operations: the name comes from a file, and modules contain more than operations."""
        torch = self.torch
        if name in NEVER or (kind != "Aten" and name.startswith("_") and name not in OPERATORS and
                             not (kind == "Torch" and name.startswith("_foreach_"))):
            return None
        first, _, rest = name.partition(".")
        if kind == "Tensor":
            method = getattr(torch.Tensor, name, None)
            return method if isinstance(method, METHODS) else None
        if kind == "Functional":
            function = vars(torch.nn.functional).get(name)
            return function if isinstance(function, FUNCTIONS) else None
        if kind == "Torch" and rest:
            function = getattr(getattr(torch, first, None), rest, None) if first in PARTS else None
            return function if isinstance(function, FUNCTIONS) and not rest.startswith("_") else None
        if kind == "Torch":
            if hasattr(torch._C._VariableFunctions, name) or name in torch.functional.__all__:
                return getattr(torch, name, None)
            # Recorders leave out the submodule of a function: torch.linalg.vector_norm is Torch.vector_norm.
            function = getattr(torch.linalg, name, None)
            return function if isinstance(function, FUNCTIONS) else None
        if kind == "Aten":
            packet = getattr(torch.ops.aten, first, None)
            return getattr(packet, rest, None) if rest and packet is not None else packet
        if kind == "NPU" and "torch_npu" in sys.modules:
            function = getattr(sys.modules["torch_npu"], name, None) if name.startswith("npu_") else None
            return function if callable(function) else None
        return None

    def call(self, request, side, function):
        torch = self.torch
        torch.manual_seed(0)
        grads = request.get("grads")
        arguments = Arguments(self, request, side, grads is not None)
        positional = [arguments.value(one) for one in request["args"]]
        keywords = {key: arguments.value(one) for key, one in request["kwargs"].items()}
        cast = request["autocast"] if side == "device" else None
        with self.casts(cast):
            result = function(*positional, **keywords)
        return result, arguments.leaves

    def casts(self, dtype):
        """Returns a context of automatic casts to a type; it does nothing if this PyTorch does not support them on this
        device."""
        if dtype is None:
            return contextlib.nullcontext()
        cast = {"device_type": self.device.partition(":")[0], "dtype": self.dtype(dtype)}
        if dtype not in self.can_cast:
            try:
                with self.torch.autocast(**cast):
                    self.can_cast[dtype] = True
            except (RuntimeError, ValueError):
                self.can_cast[dtype] = False
        return self.torch.autocast(**cast) if self.can_cast[dtype] else contextlib.nullcontext()

    def gradients(self, request, side, result, leaves):
        torch = self.torch
        arguments = Arguments(self, request, side, False)
        grads = [arguments.value(one) for one in request["grads"]]
        outputs = list(self.tensors(result))
        if len(grads) != len(outputs):
            outputs = [one for one in outputs if one.requires_grad]
            grads = [one for one in grads if one is not None]
            if len(grads) != len(outputs):
                raise Refusal(f"{len(grads)} gradients were recorded, but {len(outputs)} outputs have one")
        pairs = [(output, grad) for output, grad in zip(outputs, grads) if output.requires_grad and grad is not None]
        wanted = [leaf for leaf in leaves if leaf is not None]
        if not pairs or not wanted:
            raise Refusal("no output of the call depends on an input that requires gradients")
        for output, grad in pairs:
            if output.shape != grad.shape:
                raise Refusal(f"the recorded gradient has the shape {list(grad.shape)}, "
                              f"the output {list(output.shape)}")
        last = []
        hook = pairs[0][0].grad_fn.register_hook(lambda inputs, _: last.append(inputs))
        found = iter(torch.autograd.grad([output for output, _ in pairs], wanted,
                                         [grad.to(output.dtype) for output, grad in pairs], allow_unused=True))
        hook.remove()
        return [None if leaf is None else next(found) for leaf in leaves], list(last[0]) if last else []

    def tensors(self, value):
        if isinstance(value, self.tensor_types):
            yield value
        elif isinstance(value, (list, tuple)):
            for one in value:
                yield from self.tensors(one)
        elif isinstance(value, dict):
            for one in value.values():
                yield from self.tensors(one)

    def answer(self, request):
        os.ftruncate(OUTPUTS, 0)
        self.end = 0
        self.open_inputs()
        answer = {"id": request["id"]}
        stage = "lookup"
        try:
            functions = {"reference": self.reference(request["type"], request["name"])}
            if request["device"]:
                functions["device"] = self.function(request["type"], request["name"])
            results = {}
            for side, function in functions.items():
                stage = side
                results[side] = self.call(request, side, function)
                self.wait(side)
            answer["forward"] = {side: self.told(result) for side, (result, _) in results.items()}
            if "grads" in request:
                stage = "backward"
                gradients = {}
                for side, (result, leaves) in results.items():
                    gradients[side], last = self.gradients(request, side, result, leaves)
                    self.wait(side)
                    if not request["device"]:
                        gradients["last"] = last  # for an operation made of several, a dump has the gradients of the last one
                answer["backward"] = {side: {Tag.LIST: [self.told(one) for one in many]}
                                      for side, many in gradients.items()}
        except Exception as error:  # any error of a call belongs to its row
            ours = isinstance(error, Refusal) or type(error).__name__ == "NoReference"
            answer["error"] = {"stage": stage, "kind": type(error).__name__, "ours": ours,
                               "text": str(error)[:MOST_TEXT]}
            # After such an error, every further use of the device fails, too.
            answer["leave"] = self.device != "cpu" and "error" in str(error) and any(
                word in str(error) for word in ("CUDA error", "ACL", "device-side"))
        return answer

    def wait(self, side):
        if side == "device" and self.device != "cpu":
            getattr(self.torch, self.device.partition(":")[0]).synchronize()


def tell(answer):
    line = memoryview((json.dumps(answer) + "\n").encode())
    while line:
        line = line[os.write(ANSWERS, line):]


def main():
    wanted, share = sys.argv[1], float(sys.argv[2])
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    go_first_if_memory_ends()
    import warnings

    warnings.simplefilter("ignore")
    try:
        kind = Runner
        if sys.argv[5] == "mindspore":
            sys.modules["op_runner"] = sys.modules[__name__]
            kind = program_beside("mindspore_runner", 2).MindSporeRunner
        runner = kind(wanted, sys.argv[3] == "jit", sys.argv[4])
    except (ImportError, Refusal, RuntimeError, OSError) as error:
        tell({"fatal": f"{type(error).__name__}: {error}" if not isinstance(error, Refusal) else str(error)})
        return 1
    if runner.device == "cpu":
        runner.torch.set_num_threads(1)
        limit_memory(share)
    tell(runner.hello())
    with os.fdopen(REQUESTS, "rb") as requests:
        for line in requests:
            request = json.loads(line)
            signal.alarm(int(request["timeout"]) + GRACE_S if request["timeout"] else 0)
            answer = runner.answer(request)
            signal.alarm(0)
            tell(answer)
            if answer.get("leave"):
                return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())

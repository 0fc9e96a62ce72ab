# SPDX-License-Identifier: Apache-2.0
"""Calls recorded operations of MindSpore again: what the runner of `msprobe acc_check` adds for them.

A reference is the PyTorch function that means the same, on the CPU. op_runner.py calls it, and does all else.
"""

import op_runner
from op_runner import NoFunction, Refusal

# Where PyTorch has the functions of the same names, arguments and meaning.
COUNTERPARTS = {"Mint": "Torch", "MintFunctional": "Functional", "Tensor": "Tensor"}
# Methods with another meaning than PyTorch's of the same name, as found by calling both: std() divides by n.
OTHER_METHODS = set("""
    __invert__ aminmax cholesky_inverse count_nonzero diag equal median nanmedian norm resize sinc std svd type unique var
""".split())
# Functions of mindspore.ops that take the same arguments in the same order as PyTorch's, and give the same.
SAME_FUNCTIONS = set("""
    abs absolute acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d add
    addbmm addcdiv addcmul addmm addmv all amax amin any arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax
    argmin argsort argwhere asin asinh atan atan2 atanh baddbmm batch_norm bitwise_and bitwise_left_shift bitwise_or
    bitwise_right_shift bitwise_xor bmm broadcast_to cat ceil celu cholesky_solve chunk clamp clip concat copysign
    cos cosh cummax cummin cumprod cumsum deg2rad det diag_embed diagflat diagonal diagonal_scatter diff digamma
    dist div divide dot dsplit dstack einsum elu embedding eq erf erfc erfinv exp exp2 expm1 flip fliplr flipud
    float_power floor floor_divide fmax fmin fmod frac gcd ge gelu ger glu greater greater_equal group_norm gt
    hardshrink hardsigmoid hardswish hardtanh heaviside hsplit hstack hypot i0 igamma igammac index_select inner
    inverse isclose isfinite isinf isnan isneginf isposinf kron lcm ldexp le lerp less less_equal lgamma log log10
    log1p log2 logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit
    logsigmoid logsumexp lt masked_fill masked_select matmul matrix_power maximum mean minimum mish mm moveaxis
    movedim mul multiply mv nan_to_num nanmean nansum narrow ne neg negative nonzero not_equal outer pad permute
    pixel_shuffle pixel_unshuffle positive pow prelu prod rad2deg ravel reciprocal relu relu6 remainder
    repeat_interleave reshape roll round rsqrt scatter selu sgn sigmoid sign signbit silu sin sinh slice_scatter
    slogdet softplus softshrink softsign sort split sqrt square squeeze stack sub subtract sum swapaxes swapdims t
    tan tanh tanhshrink tensor_split threshold tile topk trace trapz tril triu true_divide trunc unbind
    unique_consecutive unsqueeze vsplit vstack where
""".split())
KEYWORDS = {"axis": "dim", "keep_dims": "keepdim", "keepdims": "keepdim"}


class Adapted:
    """A function of mindspore.ops that PyTorch has with other arguments: their names there, in MindSpore's order, those
    that MindSpore calls otherwise, and defaults that differ."""

    def __init__(self, names, theirs=(), defaults=(), function=None):
        self.names = names.split()
        self.theirs = {**KEYWORDS, **dict(theirs)}
        self.defaults = dict(defaults)
        self.function = function  # its name in PyTorch, if that is another one

    def __call__(self, function):
        def call(*positional, **keywords):
            if len(positional) > len(self.names):
                raise Refusal(f"{len(positional)} arguments were recorded, the reference has {len(self.names)}")
            named = {self.theirs.get(key, key): value for key, value in keywords.items()}
            given = {**self.defaults, **dict(zip(self.names, positional)), **named}
            return function(**given)

        return call


LOSS = {"logits": "input", "inputs": "input", "labels": "target"}
ADAPTED = {
    "binary_cross_entropy": Adapted("input target weight reduction", LOSS),
    "binary_cross_entropy_with_logits": Adapted("input target weight pos_weight reduction"),
    "cross_entropy": Adapted("input target weight ignore_index reduction label_smoothing"),
    "kl_div": Adapted("input target reduction", LOSS),
    "l1_loss": Adapted("input target reduction"),
    "layer_norm": Adapted("input normalized_shape weight bias eps"),
    "leaky_relu": Adapted("input negative_slope", {"alpha": "negative_slope"}, {"negative_slope": 0.2}),
    "log_softmax": Adapted("input dim", LOSS, {"dim": -1}),
    "mse_loss": Adapted("input target reduction"),
    "nll_loss": Adapted("input target weight ignore_index reduction", LOSS),
    "smooth_l1_loss": Adapted("input target beta reduction", (), {"reduction": "none"}),
    "softmax": Adapted("input dim dtype", (), {"dim": -1}),
    "softmin": Adapted("input dim dtype", {"x": "input"}, {"dim": -1}),
    "transpose": Adapted("input dims", {"input_perm": "dims"}, (), "permute"),
}
ATTENTION = Adapted(
    "query key value head_num pse drop_mask padding_mask atten_mask prefix actual_seq_qlen actual_seq_kvlen keep_prob "
    "scale pre_tockens next_tockens inner_precise input_layout sparse_mode",
    {"real_shift": "pse", "attn_mask": "atten_mask", "scalar_value": "scale", "pre_tokens": "pre_tockens",
     "next_tokens": "next_tockens"}, {"input_layout": "BSH"})
SPACES = {"Mint": "mint", "MintFunctional": "mint.nn.functional", "Tensor": "Tensor", "Functional": "ops"}
TARGETS = {"cpu": "CPU", "cuda": "GPU", "npu": "Ascend"}


class NoReference(NoFunction):
    def __init__(self, kind, name):
        super().__init__(f"{kind}.{name} has no reference; --references may name one")


def without_aliases(function):
    """The function under MindSpore's other names for PyTorch's arguments."""
    def call(*positional, **keywords):
        return function(*positional, **{KEYWORDS.get(key, key): value for key, value in keywords.items()})

    return call


class Arguments(op_runner.Arguments):
    """The arguments of a call of MindSpore. `given`: tensors in place of those of the request, or None in its place."""

    def __init__(self, runner, request, side, grad, given=None):
        super().__init__(runner, request, side, grad)
        self.given = given

    def make_tensor(self, content):
        given = next(self.given) if self.given is not None else None
        if given is not None:
            return given
        stored, shape, offset, dtype, _ = content
        tensor = self.runner.stored(stored, shape, offset).to(dtype=self.runner.dtype(dtype))
        made = self.runner.from_torch(tensor)
        wanted = self.grad and content[-1] and tensor.is_floating_point()
        # A copy, because operations in place change what they are called with.
        self.leaves.append(self.runner.from_torch(tensor) if wanted else None)
        return made

    def make_list(self, content):
        return tuple(super().make_list(content))  # some functions of MindSpore take no lists

    def make_dtype(self, content):
        library, _, name = content.partition(".")
        if library != "torch":
            return super().make_dtype(content)
        return self.runner.mindspore_dtype(name)

    MAKERS = {
        **op_runner.Arguments.MAKERS,
        op_runner.Tag.TENSOR: make_tensor,
        op_runner.Tag.LIST: make_list,
        op_runner.Tag.DTYPE: make_dtype,
    }


class MindSporeRunner(op_runner.Runner):
    def __init__(self, wanted, jit, references=""):
        super().__init__("", jit, references)
        self.called = {}  # the functions of MindSpore
        self.mindspore = None
        if wanted:
            self.start_mindspore(wanted)
            self.tensor_types = (self.torch.Tensor, self.mindspore.Tensor)
            self.floats = [self.mindspore_dtype(name) for name in ("float16", "bfloat16", "float32", "float64")]

    def start_mindspore(self, wanted):
        import mindspore

        self.mindspore = mindspore
        kind, _, number = wanted.partition(":")
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        default = mindspore.get_context("device_target")
        target = default if kind == "auto" else TARGETS[kind]
        try:
            mindspore.set_device(target, *([int(number)] if number and target != "CPU" else []))
            # Else an error comes with a later call.
            blocking = getattr(getattr(mindspore, "runtime", None), "launch_blocking", None)
            if blocking is not None:
                blocking()
            else:
                mindspore.set_context(pynative_synchronize=True)
            mindspore.Tensor([0.0]).asnumpy()
        except (RuntimeError, ValueError) as error:
            first = str(error).strip().partition("\n")[0]
            raise Refusal(f"MindSpore {mindspore.__version__} has no device {wanted} here: {first}") from None
        kind = next(ours for ours, theirs in TARGETS.items() if theirs == target)
        self.device = kind if kind == "cpu" else f"{kind}:{number or 0}"

    def hello(self):
        version = {"mindspore": self.mindspore.__version__} if self.mindspore else {}
        return {**super().hello(), **version}

    # ------------------------------------------------------------------ tensors

    def mindspore_dtype(self, name):
        dtype = getattr(self.mindspore, "bool_" if name == "bool" else name, None)
        if not isinstance(dtype, type(self.mindspore.float32).__mro__[1]):
            raise Refusal(f"MindSpore {self.mindspore.__version__} has no elements of the type {name}")
        return dtype

    def from_torch(self, tensor):
        dtype = self.mindspore_dtype(str(tensor.dtype).rpartition(".")[2])
        if tensor.dtype == self.torch.bfloat16:
            tensor = tensor.float()
        return self.mindspore.Tensor(tensor.numpy().copy()).astype(dtype)

    def as_torch(self, value):
        if not self.mindspore or not isinstance(value, self.mindspore.Tensor):
            return value
        if value.dtype == self.mindspore.bfloat16:
            return self.torch.from_numpy(value.astype(self.mindspore.float32).asnumpy()).to(self.torch.bfloat16)
        return self.torch.from_numpy(value.asnumpy().copy())

    # ------------------------------------------------------------------ calls

    def reference(self, kind, name):
        own = self.references.get(name)
        if own is not None:
            return own
        if kind == "Functional":
            return self.reference_of_function(name)
        if kind not in COUNTERPARTS or (kind == "Tensor" and name in OTHER_METHODS):
            raise NoReference(kind, name)
        try:
            return without_aliases(super().function(COUNTERPARTS[kind], name))
        except NoFunction as error:
            raise NoFunction(f"{kind}.{name} has no reference: {error}") from None

    def reference_of_function(self, name):
        if name == "flash_attention_score":
            return ATTENTION(self.attention)
        adapted = ADAPTED.get(name)
        if adapted is None and name not in SAME_FUNCTIONS:
            raise NoReference("Functional", name)
        searched = adapted.function if adapted and adapted.function else name
        kind = "Functional" if self.look_up("Functional", searched) else "Torch"
        found = super().function(kind, searched)
        return adapted(found) if adapted else without_aliases(found)

    def attention(self, drop_mask=None, **arguments):
        if drop_mask is not None:
            raise Refusal("its result is random: it has a drop_mask")
        return super().reference("NPU", "npu_fusion_attention")(**arguments)

    def function(self, kind, name):
        key = (kind, name)
        if key not in self.called:
            self.called[key] = self.look_up_mindspore(kind, name)
        if self.called[key] is None:
            raise NoFunction(f"MindSpore {self.mindspore.__version__} has no {kind}.{name}")
        return self.called[key]

    def look_up_mindspore(self, kind, name):
        """Only for what has a reference: the name comes from a file, and modules contain more than operations."""
        found = self.mindspore
        for part in f"{SPACES[kind]}.{name}".split("."):
            found = getattr(found, part, None)
        return found if callable(found) and not isinstance(found, type) else None

    def call(self, request, side, function):
        if side == "reference":
            return super().call(request, side, function)
        self.mindspore.set_seed(0)
        arguments = Arguments(self, request, side, "grads" in request)
        return self.call_with(arguments, request, function), arguments.leaves

    @staticmethod
    def call_with(arguments, request, function):
        positional = [arguments.value(one) for one in request["args"]]
        return function(*positional, **{key: arguments.value(one) for key, one in request["kwargs"].items()})

    def gradients(self, request, side, result, leaves):
        if side == "reference":
            found, last = super().gradients(request, side, result, leaves)
            # MindSpore gives zeros where the result does not depend on an argument.
            return [self.torch.zeros_like(leaf) if leaf is not None and one is None else one
                    for leaf, one in zip(leaves, found)], last
        wanted = [leaf for leaf in leaves if leaf is not None]
        arguments = Arguments(self, request, side, False)
        grads = [arguments.value(one) for one in request["grads"]]
        floating = [output.dtype in self.floats for output in self.tensors(result)]
        if len(grads) != len(floating):
            grads = [one for one in grads if one is not None]
            if len(grads) != sum(floating):
                raise Refusal(f"{len(grads)} gradients were recorded, but {sum(floating)} outputs have one")
            left = iter(grads)
            grads = [next(left) if is_float else None for is_float in floating]
        taken = [is_float and grad is not None for is_float, grad in zip(floating, grads)]
        if not any(taken) or not wanted:
            raise Refusal("no output of the call depends on an input that requires gradients")
        function = self.function(request["type"], request["name"])
        in_place = request["name"].endswith("_") and not request["name"].endswith("__")

        def outputs_of(*tensors):
            left = iter([one * 1 for one in tensors] if in_place else tensors)
            given = iter([None if leaf is None else next(left) for leaf in leaves])
            made = self.call_with(Arguments(self, request, side, False, given), request, function)
            chosen = tuple(one for one, is_taken in zip(self.tensors(made), taken) if is_taken)
            return chosen[0] if len(chosen) == 1 else chosen

        seeds = tuple(grad for grad, is_taken in zip(grads, taken) if is_taken)
        grad = self.mindspore.ops.GradOperation(get_all=True, sens_param=True)(outputs_of)
        found = iter(grad(*wanted, seeds[0] if len(seeds) == 1 else seeds))
        return [None if leaf is None else next(found) for leaf in leaves], []

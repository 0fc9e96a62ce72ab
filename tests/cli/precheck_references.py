#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`msprobe acc_check --recorded` on fused operators of an NPU: what they compute is written here once more, in another
way than the references are, and stands for what a kernel recorded. Own references, and what has none.

usage: precheck_references.py MSPROBE
"""

import csv
import json
import math

import harness
import numpy as np
import torch

generator = torch.Generator().manual_seed(7)


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


# --------------------------------------------------------------------------- what kernels compute


def rms_norm(x, gamma, epsilon):
    size = (x.double() ** 2).mean(-1, keepdim=True).add(epsilon).sqrt()
    return (x.double() / size * gamma.double()).to(x.dtype), (1 / size).float()


def swiglu(x):
    half = x.shape[-1] // 2
    a, b = x.double()[..., :half], x.double()[..., half:]
    return (a / (1 + (-a).exp()) * b).to(x.dtype)


def rotary(x, cos, sin):
    half = x.shape[-1] // 2
    out = torch.empty_like(x, dtype=torch.float64)
    for i in range(x.shape[-1]):
        other = -x[..., i + half] if i < half else x[..., i - half]
        out[..., i] = cos[..., i].double() * x[..., i].double() + sin[..., i].double() * other.double()
    return out.to(x.dtype)


def masked_softmax(x, mask, scale):
    score = np.where(mask.numpy(), -10000.0, x.double().numpy() * scale)
    score = np.exp(score - score.max(-1, keepdims=True))
    return torch.from_numpy(score / score.sum(-1, keepdims=True)).to(x.dtype)


def layer_norm(x, weight, bias, eps):
    x = x.double()
    mean, size = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True).add(eps).sqrt()
    return ((x - mean) / size * weight.double() + bias.double()).float()


def group_norm_silu(x, gamma, beta, groups, eps):
    out, means, scales = torch.empty_like(x, dtype=torch.float64), [], []
    width = x.shape[1] // groups
    for n in range(x.shape[0]):
        for group in range(groups):
            part = x[n, group * width:(group + 1) * width].double()
            mean, scale = part.mean(), 1 / (part.var(unbiased=False) + eps).sqrt()
            means.append(mean)
            scales.append(scale)
            for channel in range(group * width, (group + 1) * width):
                y = (x[n, channel].double() - mean) * scale * gamma[channel].double() + beta[channel].double()
                out[n, channel] = y / (1 + (-y).exp())
    shape = (x.shape[0], groups)
    return out.float(), torch.stack(means).reshape(shape).float(), torch.stack(scales).reshape(shape).float()


def gating(x, finished, k):
    share = np.exp(x.double().numpy() - x.double().numpy().max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    order = np.argsort(-share, -1, kind="stable")[:, :k]
    values = np.take_along_axis(share, order, -1)
    order = np.where(finished.numpy()[:, None], x.shape[-1], order)
    rows = [[column * x.shape[0] + row for column in range(k)] for row in range(x.shape[0])]
    return (torch.from_numpy(values).float(), torch.from_numpy(order.astype(np.int32)),
            torch.tensor(rows, dtype=torch.int32))


def adam(state, grad, step, lr, betas, epsilon):
    """As its paper has it, with the correction in the step."""
    value, first, second = (one.double() for one in state)
    first = betas[0] * first + (1 - betas[0]) * grad.double()
    second = betas[1] * second + (1 - betas[1]) * grad.double() ** 2
    rate = lr * math.sqrt(1 - betas[1] ** step) / (1 - betas[0] ** step)
    return tuple(one.float() for one in (value - rate * first / (second.sqrt() + epsilon), first, second))


def adam_w(state, grad, step, lr, betas, epsilon, decay):
    """The result of this step by PyTorch's own optimizer."""
    parameter = torch.nn.Parameter(state[0].double())
    parameter.grad = grad.double()
    optimizer = torch.optim.AdamW([parameter], lr=lr, betas=betas, eps=epsilon, weight_decay=decay)
    optimizer.state[parameter] = {"step": torch.tensor(float(step - 1)), "exp_avg": state[1].double().clone(),
                                  "exp_avg_sq": state[2].double().clone()}
    optimizer.step()
    told = optimizer.state[parameter]
    return parameter.detach().float(), told["exp_avg"].float(), told["exp_avg_sq"].float()


def attention(query, key, value, heads, causal, scale):
    """BSH, one head after the other."""
    batch, queries, wide = query.shape
    width = wide // heads
    shared = heads // (key.shape[-1] // width)
    out = np.zeros((batch, queries, wide))
    for b in range(batch):
        for head in range(heads):
            q = query[b, :, head * width:(head + 1) * width].double().numpy()
            place = head // shared * width
            k, v = (one[b, :, place:place + width].double().numpy() for one in (key, value))
            score = q @ k.T * scale
            if causal:
                score[np.triu_indices(queries, 1)] = -np.inf
            score = np.exp(score - score.max(-1, keepdims=True))
            out[b, :, head * width:(head + 1) * width] = score / score.sum(-1, keepdims=True) @ v
    return torch.from_numpy(out).to(query.dtype)


# --------------------------------------------------------------------------- dumps


class Dump:
    def __init__(self, folder):
        self.folder = folder
        self.data = {}
        (folder / "dump_tensor_data").mkdir(parents=True)

    def told(self, value, name):
        if isinstance(value, torch.Tensor):
            torch.save(value.clone(), self.folder / "dump_tensor_data" / f"{name}.pt")
            real = value.double() if value.numel() else torch.zeros(1)
            return {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape),
                    "Max": real.max().item(), "Min": real.min().item(),
                    "Mean": real.mean().item(), "Norm": real.norm().item(),
                    "requires_grad": value.is_floating_point(), "data_name": f"{name}.pt"}
        if isinstance(value, (list, tuple)):
            return [self.told(one, f"{name}.{place}") for place, one in enumerate(value)]
        return {"type": type(value).__name__, "value": value}

    def add(self, operator, args, outputs, number=0, gradients=None, **kwargs):
        name = f"NPU.{operator}.{number}.forward"
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        self.data[name] = {
            "input_args": [self.told(one, f"{name}.input.{i}") for i, one in enumerate(args)],
            "input_kwargs": {key: self.told(one, f"{name}.input.{key}") for key, one in kwargs.items()},
            "output": [self.told(one, f"{name}.output.{i}") for i, one in enumerate(outputs)],
        }
        if gradients:
            name = name.replace("forward", "backward")
            self.data[name] = {key: [self.told(one, f"{name}.{key}.{i}") for i, one in enumerate(gradients[key])]
                               for key in ("input", "output")}
        return self

    def write(self):
        dump = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": "/", "data": self.data}
        (self.folder / "dump.json").write_text(json.dumps(dump), encoding="utf-8")


def check(msprobe, scratch, *options):
    out = scratch / f"out{len(list(scratch.glob('out*')))}"
    words = ["acc_check", "-api_info", "dump/dump.json", "--recorded", "-o", out.name, "--python", harness.prepared_interpreter(), "-n",
             "1", *options]
    result = harness.run(msprobe, words, scratch)
    files = list(out.glob("accuracy_checking_result_*.csv"))
    if not files:
        return result, {}
    with files[0].open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return result, {row[0]: row for row in rows}


def verdicts(rows):
    return {name: (row[4], row[5]) for name, row in rows.items()}


def operators():
    """(operator, arguments, keywords, outputs) of one call each that a kernel did right."""
    half = torch.bfloat16
    x = randn(2, 3, 16, dtype=half)
    gamma = randn(16, dtype=half)
    yield "npu_rms_norm", [x, gamma], {}, rms_norm(x, gamma, 1e-6)
    yield "npu_swiglu", [x], {}, swiglu(x)
    cos, sin = randn(1, 3, 16), randn(1, 3, 16)
    y = randn(2, 3, 16)
    yield "npu_rotary_mul", [y, cos, sin], {}, rotary(y, cos, sin)
    z = randn(40) * 4
    yield "npu_fast_gelu", [z], {}, (z.double() / (1 + (-1.702 * z.double()).exp())).float()
    weight, bias = randn(5, 16), randn(5)
    yield "npu_linear", [y, weight, bias], {}, (torch.einsum("abi,oi->abo", y.double(), weight.double()) + bias).float()
    scores = randn(2, 2, 6, 6)
    mask = torch.rand(2, 1, 6, 6, generator=generator) > 0.5
    yield "npu_scaled_masked_softmax", [scores, mask, 0.5, False], {}, masked_softmax(scores, mask, 0.5)
    yield "npu_confusion_transpose", [y, [0, 2, 1], [2, 48], True], {}, torch.from_numpy(
        np.ascontiguousarray(y.numpy().swapaxes(1, 2)).reshape(2, 48))
    gamma, beta = randn(16), randn(16)
    yield "npu_layer_norm_eval", [y, [16], gamma, beta, 1e-3], {}, layer_norm(y, gamma, beta, 1e-3)
    image = randn(2, 6, 3, 4)
    scale, shift = randn(6), randn(6)
    yield "npu_group_norm_silu", [image, scale, shift, 3, 1e-5], {}, group_norm_silu(image, scale, shift, 3, 1e-5)
    yield "npu_mish", [z], {}, (z.double() * torch.tanh(torch.log1p(z.double().exp()))).float()
    yield "npu_sort_v2", [y], {"dim": 1, "descending": True}, torch.from_numpy(-np.sort(-y.numpy(), 1))
    gates, finished = randn(6, 8), torch.tensor([False, True, False, False, False, True])
    yield "npu_moe_gating_top_k_softmax", [gates, finished], {"k": 3}, gating(gates, finished, 3)
    state = (randn(30), randn(30), randn(30).abs())
    grad = randn(30)
    yield ("npu_apply_adam", [0.9**3, 0.99**3, 0.01, 0.9, 0.99, 1e-8, grad, False, False], {"out": list(state)},
           adam(state, grad, 3, 0.01, (0.9, 0.99), 1e-8))
    yield ("npu_apply_adam_w", [0.9**2, 0.99**2, 0.01, 0.1, 0.9, 0.99, 1e-8, grad, None, False, False],
           {"out": list(state)}, adam_w(state, grad, 3, 0.01, (0.9, 0.99), 1e-8, 0.1))
    query, key, value = randn(2, 7, 16, dtype=half), randn(2, 7, 8, dtype=half), randn(2, 7, 8, dtype=half)
    rest = (randn(2, 4, 7, 8), randn(2, 4, 7, 8), torch.empty(0), 5, 0, 0)
    yield ("npu_fusion_attention", [query, key, value, 4, "BSH"],
           {"atten_mask": torch.ones(2048, 2048).triu(1).bool(), "scale": 0.5, "sparse_mode": 2},
           (attention(query, key, value, 4, True, 0.5), *rest))


def fused_operators_are_judged_by_what_they_compute(msprobe, scratch):
    dump = Dump(scratch / "dump")
    for operator, args, kwargs, outputs in operators():
        dump.add(operator, args, outputs, **kwargs)
        first = outputs[0] if isinstance(outputs, tuple) else outputs
        wrong = first.clone()
        wrong.view(-1)[: max(1, wrong.numel() // 4)] *= 1.5
        others = outputs[1:] if isinstance(outputs, tuple) else ()
        dump.add(operator, args, (wrong, *others), number=1, **kwargs)
    dump.write()
    result, rows = check(msprobe, scratch, "--fail-on", "error")
    harness.check_equal("status", (result.returncode, result.stdout), (1, ""))
    expected = {}
    for name in [name.split(".")[1] for name in dump.data][::2]:
        expected[f"NPU.{name}.0"] = ("pass", "")
        expected[f"NPU.{name}.1"] = ("error", "")
    harness.check_equal("verdicts", verdicts(rows), expected)
    harness.check_equal("operators", len(rows), 30)


def their_gradients_too(msprobe, scratch):
    """The gradients of swiglu and attention, against formulas written here."""
    x, coming = randn(3, 8), randn(3, 4)
    a, b = x.double()[:, :4], x.double()[:, 4:]
    share = 1 / (1 + (-a).exp())
    grad = torch.cat((coming * b * share * (1 + a * (1 - share)), coming * a * share), 1).float()
    dump = Dump(scratch / "dump")
    dump.add("npu_swiglu", [x], swiglu(x), gradients={"input": [coming], "output": [grad]})
    dump.add("npu_swiglu", [x], swiglu(x), 1, gradients={"input": [coming], "output": [grad * 2]})
    q, k, v = (randn(1, 5, 8).requires_grad_() for _ in range(3))
    out = torch.softmax(q.double() @ k.double().transpose(1, 2) * 0.5, -1) @ v.double()
    coming = randn(1, 5, 8)
    found = [one.float() for one in torch.autograd.grad(out, (q, k, v), coming.double())]
    args = [one.detach() for one in (q, k, v)]
    outputs = (out.detach().float(), randn(1, 1, 5, 8), randn(1, 1, 5, 8))
    dump.add("npu_fusion_attention", [*args, 1, "BSH"], outputs, scale=0.5,
             gradients={"input": [coming, None, None], "output": found})
    dump.write()
    harness.check_equal("verdicts", verdicts(check(msprobe, scratch)[1]), {
        "NPU.npu_swiglu.0": ("pass", "pass"), "NPU.npu_swiglu.1": ("pass", "error"),
        "NPU.npu_fusion_attention.0": ("pass", "pass")})


def outputs_that_are_statistics_alone(msprobe, scratch):
    """Outputs that were recorded as statistics alone, as those of a large attention are."""
    x = randn(1, 5, 8)
    right = attention(x, x, x, 2, False, 0.5)
    dump = Dump(scratch / "dump")
    for number, first in enumerate((right, right * 1.01)):
        dump.add("npu_fusion_attention", [x, x, x, 2, "BSH"], (first, randn(1, 2, 5, 8), randn(1, 2, 5, 8), 3),
                 number, scale=0.5)
    for entry in dump.data.values():
        for output in entry["output"]:
            output.pop("data_name", None)
    dump.write()
    rows = check(msprobe, scratch)[1]
    harness.check_equal("verdicts", verdicts(rows), {
        "NPU.npu_fusion_attention.0": ("pass", ""), "NPU.npu_fusion_attention.1": ("error", "")})


def what_has_no_reference_says_so(msprobe, scratch):
    x = randn(1, 4, 8)
    dump = Dump(scratch / "dump")
    dump.add("npu_rotary_mul", [x, x, x, "interleave"], x)
    dump.add("npu_fusion_attention", [x, x, x, 2, "TND"], x)
    dump.add("npu_fusion_attention", [x, x, x, 2, "BSH"], x, 1, keep_prob=0.5)
    dump.add("npu_fusion_attention", [x, x, x, 2, "BSH"], x, 2, sparse_mode=5)
    dump.add("npu_apply_adam_w", [0.9, 0.9, 0.1, 0.1, 0.9, 0.9, 1e-8, x, None, True, False], (x, x, x),
             out=[x, x, x])
    dump.add("npu_other", [x], x)
    dump.write()
    rows = check(msprobe, scratch)[1]
    harness.check_equal("reasons", {name: row[6] for name, row in rows.items()}, {
        "NPU.npu_rotary_mul.0": "rotary_mode interleave has no reference",
        "NPU.npu_fusion_attention.0": "input_layout TND has no reference",
        "NPU.npu_fusion_attention.1": "its result is random: keep_prob is below 1",
        "NPU.npu_fusion_attention.2": "sparse_mode 5 has no reference",
        "NPU.npu_apply_adam_w.0": "amsgrad without max_grad_norm has no maximum to start from",
        "NPU.npu_other.0": "NPU.npu_other has no reference; --references may name one"})
    harness.check_equal("verdicts", set(verdicts(rows).values()), {("skip", "")})
    # It is not called on a device without torch_npu, and the row says so.
    words = ["acc_check", "-api_info", "dump/dump.json", "-o", "called", "-d", "cpu", "--python", harness.prepared_interpreter()]
    harness.run(msprobe, words, scratch)
    (file,) = (scratch / "called").glob("accuracy_checking_result_*.csv")
    text = file.read_text(encoding="utf-8-sig")
    harness.check("NPU.npu_rotary_mul is called by torch_npu, which this Python does not have; acc_check "
                  "--recorded judges its recorded results" in text, text)


OWN = """operators:
  npu_other:
    forward: twice
    backward: half
    description: doubles
  npu_mish: {forward: wrong}
"""


def references_of_the_user(msprobe, scratch):
    x = randn(4, 8)
    Dump(scratch / "dump").add("npu_other", [x], x * 2).add("npu_other", [x], x * 3, 1).add(
        "npu_mish", [x], x * x.double().exp().log1p().tanh().float()).write()
    path = scratch / "own.yaml"
    path.write_text(OWN)
    functions = scratch / "own.py"
    functions.write_text("import helper\ndef twice(x):\n    return x * helper.TWO\ndef wrong(x):\n    return -x\n")
    (scratch / "helper.py").write_text("TWO = 2\n")
    result, rows = check(msprobe, scratch, "--references", "own.yaml")
    harness.check_equal("verdicts", verdicts(rows), {
        "NPU.npu_other.0": ("pass", ""), "NPU.npu_other.1": ("error", ""), "NPU.npu_mish.0": ("error", "")})
    harness.check("own.yaml: the backward of npu_other is not called: its gradients come from forward"
                  in result.stderr, result.stderr)
    # Nothing beside a dump is run by itself.
    harness.check_equal("not asked for", verdicts(check(msprobe, scratch)[1])["NPU.npu_other.0"], ("skip", ""))
    for yaml, python, reason in (
        (OWN, "def twice(x):\n    return x\n",
         "own.py has no function wrong, the reference of npu_mish"),
        (OWN, "1 / 0\n", "own.py raised ZeroDivisionError: division by zero"),
        (OWN, "raise SystemExit(3)\n", "own.py raised SystemExit: 3"),
        (OWN, None, "own.py: No such file or directory"),
        ("operators: [a]", "", "line 1: operators must name operators and their functions"),
        ("operator: {}", "", "line 1: unknown key 'operator'"),
        ("operators: {npu_x: {}}", "", "line 1: npu_x needs a function: forward: NAME"),
        ("operators: {npu_x: {forward: os.system}}", "", "line 1: npu_x needs a function: forward: NAME"),
        ("operators: {npu_x: {forwards: f}}", "", "'forwards' must be one of forward, backward, description"),
    ):
        path.write_text(yaml)
        functions.unlink(missing_ok=True)
        if python is not None:
            functions.write_text(python)
        result, rows = check(msprobe, scratch, "--references", "own.yaml")
        harness.check_equal(reason, (result.returncode, rows), (2, {}))
        harness.check(reason in result.stderr, f"{reason}: {result.stderr}")
        errors = [line for line in result.stderr.splitlines() if "error" in line]
        harness.check_equal(f"lines of {reason}", len(errors), 1)


if __name__ == "__main__":
    harness.main_of_script()

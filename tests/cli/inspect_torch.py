#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that PyTorch saved without harm in mind, in both of its containers and all protocols, are read to their end: they
are never called dangerous, and a file that holds tensors alone is clean.

usage: inspect_torch.py MSPROBE    (run by the Python that has PyTorch)
"""

import collections
import io
import pickle

import harness

BIG = 1 << 70


def saved(value, is_zip, protocol):
    import torch

    buffer = io.BytesIO()
    torch.save(value, buffer, pickle_protocol=protocol, _use_new_zipfile_serialization=is_zip)
    return buffer.getvalue()


def files(value):
    for is_zip in (True, False):
        # Protocol 0 cannot say what a storage is; PyTorch itself does not read what it saves so.
        for protocol in range(1, 6):
            yield f"{'zip' if is_zip else 'legacy'}_{protocol}.pt", saved(value, is_zip, protocol)


def expect(msprobe, scratch, name, data, level, expected):
    (scratch / name).write_bytes(data)
    result = harness.run(msprobe, ["inspect", "--fail-on", level, name], scratch)
    harness.check_equal(f"{name} --fail-on {level}: {result.stdout}{result.stderr}", result.returncode, expected)
    harness.check_equal("stderr", result.stderr, "")
    return result.stdout


def tensors_are_clean(msprobe, scratch):
    import torch

    weight = torch.arange(6.0).reshape(2, 3)
    values = [
        weight,
        torch.nn.Parameter(weight),
        collections.OrderedDict(w=weight, v=weight[1:], n=BIG, m=-BIG, t=(1, "x", None, 0.5, True)),
        {"half": weight.half(), "bf16": weight.bfloat16(), "int": weight.to(torch.int8), "sparse": [weight.bool()]},
        torch.nn.Linear(2, 3).state_dict(),
    ]
    for value in values:
        for name, data in files(value):
            expect(msprobe, scratch, name, data, "unknown", 0)


def modules_are_read(msprobe, scratch):
    import torch

    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    module.large = BIG
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    for value in (module, {"module": module, "optimizer": optimizer.state_dict(), "large": -BIG}):
        for name, data in files(value):
            expect(msprobe, scratch, name, data, "dangerous", 0)
            # The classes of modules are on no list, so they are unknown, and that is all there is to say.
            output = expect(msprobe, scratch, name, data, "unknown", 1)
            harness.check("not understood" not in output, output)
            harness.check("[2, 3]" in output and "float32" in output, output)


# The arguments of the constructor of a module of this class, if there are any.
ARGUMENTS = {
    "Linear": (2, 3), "Conv1d": (1, 1, 1), "Conv2d": (1, 1, 1), "ConvTranspose2d": (1, 1, 1), "BatchNorm2d": (2,),
    "LayerNorm": (4,), "GroupNorm": (1, 2), "Embedding": (3, 2), "LSTM": (2, 2), "GRU": (2, 2),
    "MultiheadAttention": (4, 2), "TransformerEncoderLayer": (4, 2, 4), "Transformer": (4, 2, 1, 1, 4),
}  # fmt: skip


def instances(module, base):
    for name in sorted(dir(module)):
        kind = getattr(module, name)
        # A lazy module pickles the method that completes it by getattr, which is dangerous for good.
        if isinstance(kind, type) and issubclass(kind, base) and not name.startswith("Lazy"):
            yield name, kind


def no_class_of_pytorch_is_dangerous(msprobe, scratch):
    import torch

    values = {}
    for name, kind in instances(torch.nn, torch.nn.Module):
        try:
            values[name] = kind(*ARGUMENTS.get(name, ()))
        except TypeError:
            continue
    weights = [torch.nn.Parameter(torch.ones(2))]
    for name, kind in instances(torch.optim, torch.optim.Optimizer):
        if kind is not torch.optim.Optimizer:
            values[name] = kind(weights, lr=0.1)
    values["StepLR"] = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(weights, lr=0.1), 1)
    values["Normal"] = torch.distributions.Normal(0.0, 1.0)
    values["TensorDataset"] = torch.utils.data.TensorDataset(torch.ones(2))
    harness.check(len(values) > 80, f"only {sorted(values)}")
    for name, value in values.items():
        expect(msprobe, scratch, f"{name}.pt", saved(value, True, 2), "dangerous", 0)


def plain_pickles_are_clean(msprobe, scratch):
    value = {"a": [1, BIG, -BIG, 0.5, None, True, b"x", "y", ("z",)], "b": {1, 2}, "c": collections.OrderedDict(d=1)}
    for protocol in range(6):
        data = pickle.dumps(value, protocol)
        expect(msprobe, scratch, f"{protocol}.pkl", data, "unknown", 0)
        expect(msprobe, scratch, f"{protocol}_chain.pkl", data * 20, "unknown", 0)


harness.main_of_script("torch")

# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/check-gpu. Each takes a Place and returns what it found in a few words; it raises if that is
wrong, and Skipped if it cannot be tried here."""

import contextlib
import glob
import os
import shutil
import tempfile
import time

import torch
from recording import Skipped, close, record, record_values
from torch.nn import functional


def values():
    generator = torch.Generator().manual_seed(3)
    plain = torch.randn(300, 7, generator=generator)
    found = {
        "float32": plain, "transposed": plain.t(), "strided": plain[::3, 2:5], "zero-dim": plain[0, 0],
        "empty": plain[:0], "nan": torch.tensor([1.0, float("nan"), -2.0]),
        "inf": torch.tensor([1.0, float("inf"), float("-inf")]), "mask": torch.full((8, 8), -3.0e38),
        "float64": plain.double() * 1e200, "float16": (plain * 500).half(), "bfloat16": plain.bfloat16(),
        "bool": plain > 0, "complex64": torch.complex(plain, plain * 2), "int64": torch.tensor([1, 2 ** 60, -3]),
    }
    for name in ("uint8", "int8", "int16", "int32"):
        found[name] = (plain * 20).abs().to(getattr(torch, name))
    for name in ("float8_e4m3fn", "float8_e5m2"):
        if hasattr(torch, name):
            found[name] = plain.to(getattr(torch, name))
    return found


def compare_records(place, names, tolerance, **section):
    tensors = values()
    names = [name for name in tensors if names is None or name in names]
    expected, _ = record_values([tensors[name] for name in names], **section)
    got, _ = record_values([place.put(tensors[name]) for name in names], **section)
    for name, one, other in zip(names, expected, got):
        for values_of_one in (one, other):
            values_of_one.pop("Neg_inf_count", None)  # counted in host memory only
        assert list(one) == list(other), "%s: %s on the host, %s on the device" % (name, list(one), list(other))
        for key in one:
            limit = tolerance.get(one["dtype"], tolerance[None]) if key in ("Mean", "Norm") else 0.0
            if one["dtype"] == "torch.complex64":  # of absolute values, which are computed
                limit = 1e-5
            number = key in ("Max", "Min", "Mean", "Norm")
            same = close(one[key], other[key], limit) if number else one[key] == other[key]
            assert same, "%s: %s is %r on the host, %r on the device" % (name, key, one[key], other[key])
    return names


def check_statistics(place):
    # Sums of other order; half types go through float32 on both sides. Statistics of float8 are the host's alone.
    names = [name for name in values() if not name.startswith("float8")]
    return "%d kinds of tensors" % len(compare_records(place, names, {None: 1e-5, "torch.float16": 1e-3,
                                                                      "torch.bfloat16": 1e-2}))


def check_synchronisation(place):
    """No tensor is waited for while it is recorded: only when results are fetched."""
    from msprobe.pytorch import device, gpu

    drained = []
    original = device._Results.fetch
    original_of_all = device.drain

    def fetch(results):
        drained.append(len(results._slots))
        original(results)

    def drain_all():
        if own:
            drained.append("our own kernel")
        with synchronising(place, True):
            original_of_all()

    x = place.put(torch.ones(64, 64))
    own = gpu.use(x.device)  # its self-test waits
    torch.relu(x + 1)  # what libraries wait for when they are first used

    def work():
        y = x
        with synchronising(place, False):
            for _ in range(50):
                y = torch.relu(y + 1)

    device._Results.fetch, device.drain = fetch, drain_all
    try:
        trees, _ = record(work)
    finally:
        device._Results.fetch, device.drain = original, original_of_all
    assert len(trees[0]) == 100, "%d entries" % len(trees[0])
    waits = [count for count in drained if count]
    assert len(waits) == 1, "results were fetched %d times" % len(waits)
    assert trees[0]["Torch.relu.49.forward"]["output"][0]["Max"] == 51.0
    # Copies for files are waited for when the step ends; so are those for checksums, where there is no kernel for them.
    device.drain = drain_all
    try:
        for task, section in (("tensor", {}), ("statistics", {"summary_mode": "md5"})):
            trees, folder = record(work, task=task, **section)
            assert trees[0]["Torch.relu.49.forward"]["output"][0]["dtype"] == "torch.float32"
            shutil.rmtree(folder)
    finally:
        device.drain = original_of_all
    if own:
        return "fetched at once, by our own kernel"
    return "%d tensors, fetched at once, by PyTorch's kernels" % waits[0]


@contextlib.contextmanager
def synchronising(place, allowed):
    """Operations that wait for the GPU raise, unless they are allowed."""
    if place.double:
        yield
        return
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("default" if allowed else "error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def check_md5(place):
    return "%d kinds of tensors" % len(compare_records(place, None, {None: 1e-5, "torch.float16": 1e-3,
                                                                     "torch.bfloat16": 1e-2}, summary_mode="md5"))


def check_tensors(place):
    tensors = {name: tensor for name, tensor in values().items() if tensor.numel()}
    tensors["large"] = torch.arange(3 << 20, dtype=torch.float32)
    records, folder = record_values([place.put(tensor) for tensor in tensors.values()], task="tensor")
    for (name, tensor), one in zip(tensors.items(), records):
        path = glob.glob(os.path.join(folder, "dump", "step0", "*", "dump_tensor_data", one["data_name"]))
        assert len(path) == 1, "%s has no file" % name
        saved = torch.load(path[0])
        assert saved.device.type == "cpu", "%s was saved on %s" % (name, saved.device)
        assert saved.dtype == tensor.dtype and saved.shape == tensor.shape, name
        same = saved.contiguous().reshape(-1).view(torch.uint8).equal(tensor.contiguous().reshape(-1).view(torch.uint8))
        assert same, "%s was not saved as it is" % name
    shutil.rmtree(folder)
    return "%d files" % len(tensors)


def check_streams(place):
    """A tensor that another stream is still computing has its own values, not the earlier values of its memory."""
    place.need_gpu("streams")
    side = torch.cuda.Stream()

    def work():
        with torch.cuda.stream(side):
            x = torch.zeros(1 << 20, device="cuda")
            torch.cuda._sleep(200000000)
            x += 3
            torch.relu(x)
        torch.relu(torch.ones(4, device="cuda"))

    for section in ({}, {"summary_mode": "md5"}):
        trees, _ = record(work, **section)
        got = [trees[0]["Torch.relu.%d.forward" % n]["output"][0]["Max"] for n in (0, 1)]
        assert got == [3.0, 1.0], got
    return "statistics and md5"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(32, 64)
        self.norm = torch.nn.LayerNorm(64)
        self.two = torch.nn.Linear(64, 8)

    def forward(self, x):
        return self.two(functional.gelu(self.norm(self.one(x))))


def train(place, debugged, autocast=None, optimizer=torch.optim.Adam, wrap=None, **options):
    """Losses of four steps, the last tree."""
    torch.manual_seed(5)
    model = Model().to(place.device)
    if wrap is not None:
        model = wrap(model)
    stepping = optimizer(model.parameters(), lr=0.01)
    data = torch.randn(16, 32)
    x, target = place.put(data), torch.arange(16).remainder(8).to(place.device)
    scaler = torch.cuda.amp.GradScaler() if autocast is not None and not place.double else None
    losses = []

    def step():
        stepping.zero_grad()
        with torch.autocast(place.device, dtype=autocast) if autocast is not None else contextlib.nullcontext():
            loss = functional.cross_entropy(model(x), target)
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(stepping)
            scaler.update()
        else:
            loss.backward()
            stepping.step()
        losses.append(loss.detach().clone())

    if not debugged:
        for _ in range(4):
            step()
        return torch.stack(losses).cpu(), None
    trees, _ = record(step, model=model, steps=4, **options)
    return torch.stack(losses).cpu(), trees[-1]


def check_equality(place):
    plain, _ = train(place, False)
    for task, section in (("statistics", {}), ("statistics", {"summary_mode": "md5"}), ("tensor", {})):
        recorded, _ = train(place, True, task=task, **section)
        assert torch.equal(plain, recorded), "losses differ with task %s %s: %s, %s" % (task, section, plain, recorded)
    modules, tree = train(place, True, level="mix")
    assert torch.allclose(plain, modules, rtol=1e-4), "losses differ at level mix"
    assert "Module.one.Linear.backward.0" in tree
    return "losses of 4 steps, bit for bit"


def check_amp(place):
    dtype = torch.bfloat16 if place.double else torch.float16
    if place.double and torch.__version__.startswith("1."):
        raise Skipped("autocast of this PyTorch does not take the model on the processor")
    plain, _ = train(place, False, dtype)
    recorded, tree = train(place, True, dtype)
    assert torch.equal(plain, recorded), "losses differ: %s, %s" % (plain, recorded)
    # Autocast casts within the function: what goes in is float32, what comes out is half.
    output = tree["Functional.linear.0.forward"]["output"][0]
    assert output["dtype"] == str(dtype), output
    assert output["Max"] is not None and output["Norm"] > 0, output
    return str(dtype)


def check_fused_optimizer(place):
    """It writes into parameters behind autograd's back: the next step's checksums are those of what is there then."""
    place.need_gpu("fused kernels")
    _, tree = train(place, True, optimizer=lambda parameters, lr: torch.optim.AdamW(parameters, lr=lr, fused=True),
                    summary_mode="md5")
    plain, _ = train(place, False)
    recorded, _ = train(place, True, summary_mode="md5")
    assert torch.equal(plain, recorded)
    return "%d entries" % len(tree)


def check_ddp(place):
    import torch.distributed as dist

    backend = "gloo" if place.double else "nccl"
    if not dist.is_available() or (not place.double and not dist.is_nccl_available()):
        raise Skipped("this PyTorch has no " + backend)
    folder = tempfile.mkdtemp(prefix="msprobe-gpu-")
    dist.init_process_group(backend, init_method="file://" + os.path.join(folder, "store"), rank=0, world_size=1)
    try:
        wrap = torch.nn.parallel.DistributedDataParallel
        plain, _ = train(place, False, wrap=wrap)
        for view in (False, True):
            recorded, tree = train(place, True, level="mix",
                                   wrap=lambda model: wrap(model, gradient_as_bucket_view=view))
            assert torch.allclose(plain, recorded, rtol=1e-4), "losses differ"
            gradient = tree["Module.module.one.Linear.parameters_grad.0"]["weight"][0]
            assert gradient["Norm"] > 0, gradient

        def communicate():
            x = torch.full((1024,), 2.0, device=place.device)
            work = dist.all_reduce(x, async_op=True)
            work.wait()

        trees, _ = record(communicate)
        output = trees[0]["Distributed.all_reduce.0.forward"]["output"][0]
        assert (output["Max"], output["Min"]) == (2.0, 2.0), output
    finally:
        dist.destroy_process_group()
    return backend + ", one process"


def check_float8(place):
    names = [name for name in values() if name.startswith("float8")]
    if not names:
        raise Skipped("this PyTorch has no float8")
    compare_records(place, names, {None: 0.0}, summary_mode="md5")
    got, _ = record_values([place.put(values()[name]) for name in names])
    assert [one["dtype"] for one in got] == ["torch." + name for name in names], got
    return ", ".join(names)


def check_graphs(place):
    """While a graph is captured nothing is measured: what waits for the GPU would end the capture."""
    place.need_gpu("graphs")
    x = torch.ones(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    captured = []

    def work():
        with torch.cuda.graph(graph):
            captured.append(torch.relu(x) * 2)
        torch.sigmoid(x)

    for section in ({}, {"summary_mode": "md5"}):
        captured.clear()
        graph = torch.cuda.CUDAGraph()
        trees, _ = record(work, **section)
        graph.replay()
        torch.cuda.synchronize()
        assert captured[0].tolist() == [2.0] * 8, captured[0]
        assert trees[0]["Torch.relu.0.forward"]["output"][0]["Max"] is None
        assert trees[0]["Torch.sigmoid.0.forward"]["output"][0]["Max"] is not None
    return "captured and replayed"


def check_own_kernel(place):
    """Where the time of recording with the collector's own kernel goes."""
    place.need_gpu("the collector's own kernel")
    from msprobe.pytorch import device, gpu

    x = place.put(torch.ones(256, 256))
    gpu._opened.clear()
    begin = time.perf_counter()
    assert gpu.use(x.device)
    opened = time.perf_counter() - begin
    calls = 200
    spent = {"calls": 0.0, "fetch": 0.0}
    drain = device.drain

    def timed_drain():
        begin = time.perf_counter()
        drain()
        spent["fetch"] += time.perf_counter() - begin

    def work():
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            torch.relu(x)
        spent["calls"] = time.perf_counter() - begin

    work()
    plain = spent["calls"]
    device.drain = timed_drain
    try:
        record(work)
        hooks = (spent["calls"] - plain) * 1e6 / calls
        fetch = spent["fetch"] * 1e3
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            record(work)
    finally:
        device.drain = drain
    spans = {"cuLaunchKernel": 0.0, "msprobe_measure": 0.0}  # the driver's call, and what it starts
    for event in profile.events():
        if event.name in spans:
            spans[event.name] += event.time_range.elapsed_us() / calls
    launch, kernel = spans.values()
    return "ready in %.1f s; a call: %.0f us in hooks, %.0f us of it in launches, %.0f us on the GPU; %.1f ms to fetch" % (
        opened, hooks, launch, kernel, fetch)


PARTS = {
    "statistics": check_statistics,
    "synchronisation": check_synchronisation,
    "md5": check_md5,
    "tensors": check_tensors,
    "streams": check_streams,
    "equality": check_equality,
    "amp": check_amp,
    "fused optimizer": check_fused_optimizer,
    "ddp": check_ddp,
    "float8": check_float8,
    "graphs": check_graphs,
    "own kernel": check_own_kernel,
}

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times training steps without a collector, with ours and with the Python tool's, and prints the ratios.

    benchmarks/collector.py OURS --python PYTHON [--peer] [--framework NAME] [--modes MODE,...] [--models NAME,...]
        [--rounds N] [--touch GIB]

OURS: the folder that goes to PYTHONPATH (build/python). PYTHON has torch, and with --peer the Python tool too. Each
mode runs in a process of its own; the modes take turns, so that a busy neighbour hits all. Times are processor
milliseconds of one step (forward, backward, optimizer, stop, step) on one thread; medians of all rounds. What it costs to
wrap functions for a step, to call them while nothing is recorded (as outside of a token_range) and to unwrap them is less
than processes differ: there steps with and without that take turns in one process, and the ratio is the median of the
pairs. Modes that save tensors are told with what one step leaves on the disk, and with what `dd` needs to write that much
from one file to another one. --touch writes to as much memory before each run, for virtual machines (processes.py).
"""

import argparse
import importlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

from processes import run_child, touch_memory

HERE = pathlib.Path(__file__).resolve().parent
# The models of the collector's budget: (layers, width, heads, length, batch, vocabulary, steps timed)
MODELS = {
    "hidden256": (6, 256, 8, 128, 4, 1000, 5),
    "hidden32": (6, 32, 8, 16, 1, 1000, 20),
}
PAIRS = 60  # of steps with and without wrapping
RISK = {"risk_level": "ALL"}
MODES = {
    "wrapped": ({"level": "mix", **RISK}, False),
    "statistics L0": ({"level": "L0", **RISK}, True),
    "statistics L1": ({"level": "L1", **RISK}, True),
    "statistics mix": ({"level": "mix", **RISK}, True),
    "md5 L1": ({"level": "L1", **RISK, "statistics": {"summary_mode": "md5"}}, True),
    "md5 mix": ({"level": "mix", **RISK, "statistics": {"summary_mode": "md5"}}, True),
    "xor mix": ({"level": "mix", **RISK, "statistics": {"summary_mode": "xor"}}, True),
    "structure": ({"level": "mix", **RISK, "task": "structure", "structure": {}}, True),
    "tensor L1": ({"level": "L1", **RISK, "task": "tensor", "tensor": {}}, True),
    "tensor mix": ({"level": "mix", **RISK, "task": "tensor", "tensor": {}}, True),
}


def pytorch_training(layers, width, heads, length, batch, vocabulary):
    """The model, and what trains it by one step."""
    import torch
    from torch.nn import functional

    from collector_scenarios import Decoder

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Decoder(vocabulary, width, heads, layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens = torch.randint(0, vocabulary, (batch, length))

    def train():
        optimizer.zero_grad()
        output = model(tokens)
        functional.cross_entropy(output.flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()

    return model, train


def msadapter_training(layers, width, heads, length, batch, vocabulary):
    """The same through MSAdapter, without an optimizer, which has no kernels there on the CPU."""
    import mindspore

    from msadapter_scenarios import Decoder, filled, square

    model = filled(Decoder(vocabulary, width, heads, True, layers))
    tokens = mindspore.Tensor([[(7 * row + 3 * column) % vocabulary for column in range(length)] for row in range(batch)])
    with_gradients = mindspore.value_and_grad(lambda given: square(model(given)), None, list(model.parameters()))

    def train():
        for value in with_gradients(tokens)[1]:
            value.asnumpy()  # it is not there before

    return model, train


# The training function and the front end of each framework.
FRAMEWORKS = {"pytorch": (pytorch_training, "msprobe.pytorch"), "msadapter": (msadapter_training, "msprobe.mindspore")}


def child(framework, model_name, mode, folder, package=""):
    """Trains, and prints a line of JSON with the seconds of each step."""
    sys.path.insert(0, str(HERE.parent / "tests" / "peer"))
    training, front_end = FRAMEWORKS[framework]
    *sizes, steps = MODELS[model_name]
    model, train = training(*sizes)
    debugger, started = None, False
    if mode != "none":
        import msprobe
        PrecisionDebugger = importlib.import_module(front_end).PrecisionDebugger

        if package and not msprobe.__file__.startswith(package):
            raise SystemExit(f"{package} holds no msprobe; build the target collector")

        settings, started = MODES[mode]
        config = {"task": "statistics", "dump_path": os.path.join(folder, "dump"), "statistics": {}, **settings}
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        debugger = PrecisionDebugger(config_path=path)

    def step():
        if started:
            debugger.start(model)
        train()
        if started:
            debugger.stop()
            debugger.step()

    def timed_step():
        begin = time.process_time()
        step()
        return time.process_time() - begin

    def wall_step():
        begin = time.perf_counter()
        step()
        return time.perf_counter() - begin

    for _ in range(2):
        step()
    result = {"cpu": [timed_step() for _ in range(steps)]}
    if mode == "wrapped" and package:
        result["ratios"] = paired_ratios(timed_step)
    result["wall"] = [wall_step() for _ in range(3)]
    if saves_tensors(mode):
        result["disk"] = disk_of(os.path.join(folder, "dump", "step2"), os.path.join(folder, "bytes"))
    print(json.dumps(result))


def saves_tensors(mode):
    return mode != "none" and MODES[mode][0].get("task") == "tensor"


def disk_of(step, scratch):
    """Counts what the folder of a step contains, and the processor and wall seconds that dd needs for as many bytes."""
    status = [os.stat(os.path.join(folder, name)) for folder, _, names in os.walk(step) for name in names]
    files = {one.st_ino: one for one in status}
    size = sum(one.st_size for one in files.values())
    with open(scratch, "wb") as file:
        for _ in range(0, size, 1 << 20):
            file.write(os.urandom(1 << 20))
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(["dd", "bs=1M", f"if={scratch}", f"of={scratch}2"], check=True, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"names": len(status), "files": len(files), "bytes": size,
            "allocated": sum(one.st_blocks for one in files.values()) << 9,
            "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "wall": wall}


def paired_ratios(timed_step):
    from msprobe.pytorch.apis import registry

    def wrapped_step():
        begin = time.process_time()
        registry.install()
        timed_step()
        registry.remove()
        return time.process_time() - begin

    ratios = []
    for pair in range(PAIRS):
        took = {}
        for wrapped in (pair % 2 == 0, pair % 2 == 1):
            timed_step()
            took[wrapped] = wrapped_step() if wrapped else timed_step()
        ratios.append(took[True] / took[False])
    return ratios


def print_disks(disks, walls):
    print("\n| mode | of | tensors' names and JSON | files | MB | wall time of a step | dd of as many: wall | processor |")
    print("|---|---|---|---|---|---|---|---|")
    for (mode, name), found in disks.items():
        first = found[0]
        wall, dd_wall, dd_cpu = (1000 * statistics.median(values) for values in (
            walls[mode, name], [one["wall"] for one in found], [one["cpu"] for one in found]))
        print(f"| {mode} | {name} | {first['names']} | {first['files']} | {first['bytes'] / 1e6:.1f} "
              f"({first['allocated'] / 1e6:.1f} on disk) | {wall:.0f} ms | {dd_wall:.0f} ms | {dd_cpu:.0f} ms |")


def run(options, model, mode, package):
    if mode == "none" and options.framework == "msadapter":
        package = os.path.abspath(options.ours)  # without ours the program is prepared for the Python tool
    return run_child(options.python, __file__, [options.framework, model, mode], package)


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--framework", choices=FRAMEWORKS, default="pytorch")
    parser.add_argument("--modes", default="")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--touch", type=int, default=0, metavar="GIB")
    options = parser.parse_args()
    # Functions of PyTorch alone can be unwrapped in between.
    all_modes = [mode for mode in MODES if MODES[mode][1] or options.framework == "pytorch"]
    modes = options.modes.split(",") if options.modes else all_modes
    unknown = [mode for mode in modes if mode not in all_modes]
    if unknown:
        parser.error(f"no such mode: {unknown[0]} (there are {', '.join(all_modes)})")
    packages = {"msprobe": os.path.abspath(options.ours)}
    if options.peer:
        packages["Python tool"] = None

    for model in options.models.split(","):
        runs = [("none", None)] + [(mode, name) for mode in modes for name in packages]
        times = {key: [] for key in runs}
        walls = {key: [] for key in runs}
        disks = {}
        ratios = []
        for _ in range(options.rounds):
            for mode, name in runs:
                if options.touch:
                    touch_memory(options.touch)
                result = run(options, model, mode, packages.get(name))
                times[mode, name] += result["cpu"]
                walls[mode, name] += result["wall"]
                if "disk" in result:
                    disks.setdefault((mode, name), []).append(result["disk"])
                ratios += result.get("ratios", [])
                print(".", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        medians = {key: 1000 * statistics.median(value) for key, value in times.items()}
        base = medians["none", None]
        print(f"{model}: {base:.1f} ms a step without a collector")
        head = "| mode | msprobe | of no collector |" + (
            " Python tool | of no collector | added time: ours of theirs |" if options.peer else "")
        print(head + "\n|" + "---|" * (head.count("|") - 1))
        for mode in modes:
            ours = medians[mode, "msprobe"]
            ratio = ours / base if MODES[mode][1] else statistics.median(ratios)
            line = f"| {mode} | {ours:.1f} ms | {ratio:.2f} |"
            if options.peer:
                theirs = medians[mode, "Python tool"]
                line += f" {theirs:.1f} ms | {theirs / base:.2f} | {(ours - base) / (theirs - base):.2f} |"
            print(line)
        if disks:
            print_disks(disks, walls)
    return 0


if __name__ == "__main__":
    sys.exit(main())

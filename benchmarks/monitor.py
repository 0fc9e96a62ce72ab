#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times training steps without a monitor, with ours and with the Python tool's, and prints the ratios.

    benchmarks/monitor.py OURS --python PYTHON [--peer] [--modes MODE,...] [--rounds N] [--memory STEPS]

OURS: the folder that goes to PYTHONPATH (build/python). PYTHON has torch, and with --peer the Python tool too. Each mode
runs in a process of its own; the modes take turns, so that a busy neighbour hits all. Times are processor milliseconds of
one step (forward, backward, Adam's step) on one thread, writing included; medians of all rounds. --memory: the resident
memory of one long training, told at ten places.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

from processes import run_child

HERE = pathlib.Path(__file__).resolve().parent
MODEL = "hidden256"
OPS = ["norm", "min", "max", "mean", "nans"]
PARAMETERS = {"wg_distribution": True, "mv_distribution": True}
MODES = {
    "gradients and moments": PARAMETERS,
    "and activations": {**PARAMETERS, "xy_distribution": True},
}


def child(mode, steps, folder, package):
    """Trains, and prints a line of JSON with the seconds of each step."""
    sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "peer")]
    import torch
    from torch.nn import functional

    from collector import MODELS
    from collector_scenarios import Decoder

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers, width, heads, length, batch, vocabulary, timed = MODELS[MODEL] if steps == 0 else (1, 8, 1, 4, 1, 10, steps)
    model = Decoder(vocabulary, width, heads, layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    tokens = torch.randint(0, vocabulary, (batch, length))
    if mode != "none":
        sys.modules["megatron"] = None  # where it can be imported the Python tool leaves gradients out
        os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(folder, "out")
        import msprobe
        from msprobe.pytorch import TrainerMon

        if package and not msprobe.__file__.startswith(package):
            raise SystemExit(f"{package} holds no msprobe; build the target collector")
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"targets": {}, "ops": OPS, "step_count_per_record": 1000, **MODES[mode]}, file)
        TrainerMon(path, params_have_main_grad=False).set_monitor(model, grad_acc_steps=1, optimizer=optimizer)

    def step():
        begin = time.process_time()
        optimizer.zero_grad()
        output = model(tokens)
        loss = functional.cross_entropy(output.flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        return time.process_time() - begin, float(loss)

    for _ in range(2):
        step()
    memory, results = [], []
    for number in range(timed):
        results.append(step())
        if number % max(timed // 10, 1) == 0:
            memory.append(resident())
    print(json.dumps({"cpu": [took for took, _ in results], "losses": [loss for _, loss in results[:50]],
                      "memory": memory}))


def resident():
    """MB of memory that the process holds."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def run(python, mode, package, steps=0):
    return run_child(python, __file__, [mode, str(steps)], package)


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=int, default=0)
    options = parser.parse_args()
    ours = os.path.abspath(options.ours)
    if options.memory:
        told = run(options.python, list(MODES)[-1], ours, options.memory)["memory"]
        print("MB, " + " ".join(f"{one:.0f}" for one in told))
        return 0
    packages = {"msprobe": ours}
    if options.peer:
        packages["Python tool"] = None

    runs = [("none", None)] + [(mode, name) for mode in options.modes.split(",") for name in packages]
    times = {key: [] for key in runs}
    losses = {}
    for _ in range(options.rounds):
        for mode, name in runs:
            result = run(options.python, mode, packages.get(name))
            times[mode, name] += result["cpu"]
            losses[mode, name] = result["losses"]
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    medians = {key: 1000 * statistics.median(value) for key, value in times.items()}
    base = medians["none", None]
    print(f"{MODEL}: {base:.1f} ms a step without a monitor")
    head = "| mode | msprobe | of no monitor |" + (
        " Python tool | of no monitor | added time: ours of theirs |" if options.peer else "")
    print(head + "\n|" + "---|" * (head.count("|") - 1))
    for mode in options.modes.split(","):
        mine = medians[mode, "msprobe"]
        line = f"| {mode} | {mine:.1f} ms | {mine / base:.3f} |"
        if options.peer:
            theirs = medians[mode, "Python tool"]
            line += f" {theirs:.1f} ms | {theirs / base:.2f} | {(mine - base) / (theirs - base):.3f} |"
        print(line)
        if losses[mode, "msprobe"] != losses["none", None]:
            raise SystemExit(f"{mode}: the losses are not those without a monitor")
    return 0


if __name__ == "__main__":
    sys.exit(main())

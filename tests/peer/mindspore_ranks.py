#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mindspore_ranks.py OURS [SCENARIO FOLDER]

A data-parallel training in two processes of MindSpore on the CPU, which msrun starts and AllReduce joins, recorded with our
collector (OURS: the folder that goes to PYTHONPATH) and with the Python tool: each rank has its own data and its own folder,
and the trees are the same. With SCENARIO, one process of it.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RANKS = 2
LEVELS = ("L1", "L0", "mix")
NO_BACKEND = 77


def train(level, folder):
    import numpy as np

    import mindspore as ms
    from mindspore import Tensor, communication, nn, ops

    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    try:
        communication.init("mccl")
    except RuntimeError as error:
        print(f"no communication on the CPU: {error}".splitlines()[0])
        sys.exit(NO_BACKEND)
    rank = communication.get_rank()
    import msprobe
    from msprobe.mindspore import PrecisionDebugger
    from mindspore_scenarios import give_kernels
    give_kernels()
    if rank == 0:
        (folder / "package").write_text(msprobe.__file__)

    class Summed(nn.Cell):
        def __init__(self):
            super().__init__()
            self.all_reduce = ops.AllReduce()

        def construct(self, x):
            return self.all_reduce(x)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first = nn.Dense(6, 8)
            self.second = nn.Dense(8, 3)
            self.summed = Summed()

        def construct(self, x):
            return self.second(ops.tanh(self.summed(self.first(x))))

    net = Net()
    weights = np.random.default_rng(1)
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(weights.standard_normal(parameter.shape).astype(np.float32)))
    net.set_train()
    data = np.random.default_rng(100 + rank)
    reduce = ops.AllReduce()
    debugger = PrecisionDebugger(config_path=str(folder / "config.json"))
    losses = []
    step = ms.value_and_grad(lambda x: net(x).square().mean(), None, net.trainable_params())
    for _ in range(2):
        x = Tensor(data.standard_normal((4, 6)).astype(np.float32))
        debugger.start(net)
        loss, gradients = step(x)
        debugger.stop()
        debugger.step()
        losses.append(float(loss))
        for parameter, gradient in zip(net.trainable_params(), gradients):
            parameter.set_data(parameter - reduce(gradient) * (0.1 / RANKS))
    (folder / f"losses{rank}.json").write_text(json.dumps(losses))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(level, folder, ours):
    """Folders of ranks, by their names, as collector_parity loads them."""
    folder.mkdir(parents=True)
    config = {"task": "statistics", "level": level, "dump_path": str(folder / "dump"), "statistics": {}}
    if ours:
        config["python_compatible"] = True
    (folder / "config.json").write_text(json.dumps(config))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if ours:
        environment["PYTHONPATH"] = ours
    logs = folder / "logs"
    words = [os.path.join(os.path.dirname(sys.executable), "msrun"), f"--worker_num={RANKS}", f"--local_worker_num={RANKS}",
             f"--master_port={free_port()}", f"--log_dir={logs}", "--join=True", __file__, "-", level, str(folder)]
    environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment["PATH"]
    done = subprocess.run(words, check=False, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)
    said = "".join(path.read_text(errors="replace") for path in sorted(logs.glob("worker_*.log")))
    if "no communication on the CPU" in said:
        print("SKIPPED: this MindSpore has no communication on the CPU")
        sys.exit(0)
    if done.returncode != 0 or not all((folder / f"losses{rank}.json").is_file() for rank in range(RANKS)):
        raise SystemExit(f"{level} under {'msprobe' if ours else 'the Python tool'}: status {done.returncode}\n{said[-4000:]}")
    package = (folder / "package").read_text()
    if bool(ours) != package.startswith(ours or "\0"):
        raise SystemExit(f"{level}: the wrong package was in use: {package}")


def ranks_apart(folder):
    """A separate tree for each rank, with its losses."""
    for rank in range(RANKS):
        apart = folder / f"apart{rank}"
        for step in sorted((folder / "dump").iterdir()):
            (apart / "dump" / step.name).mkdir(parents=True)
            (step / f"rank{rank}").rename(apart / "dump" / step.name / f"rank{rank}")
            if any(step.iterdir()) and rank + 1 == RANKS:
                raise SystemExit(f"{step}: folders of more ranks than {RANKS}: {sorted(path.name for path in step.iterdir())}")
        (folder / f"losses{rank}.json").rename(apart / "losses.json")
        yield rank, apart


def main():
    from collector_parity import Comparison, explained, load

    ours = os.path.abspath(sys.argv[1])
    failed = 0
    with tempfile.TemporaryDirectory(prefix="msprobe_ranks_") as scratch:
        for level in LEVELS:
            folders = {name: pathlib.Path(scratch, level, name) for name in ("ours", "theirs")}
            run(level, folders["ours"], ours)
            run(level, folders["theirs"], None)
            entries = set()
            for (rank, mine), (_, other) in zip(ranks_apart(folders["ours"]), ranks_apart(folders["theirs"])):
                comparison = Comparison(f"{level}, rank {rank}", False)
                tree = load(mine)
                comparison.trees(tree, load(other))
                bad = [line for line in comparison.found if not explained(line, "mindspore")]
                for line in bad[:20]:
                    print(line)
                count = sum(len(step["dump.json"]["data"]) for step in tree["steps"].values())
                entries.add(json.dumps(tree["steps"]["step0"]["dump.json"]["data"], sort_keys=True))
                print(f"{level}, rank {rank}: {count} entries of {len(tree['steps'])} steps,"
                      f" {'same' if not bad else f'{len(bad)} differences'}")
                failed += bool(bad) or count == 0
            if len(entries) != RANKS:
                print(f"{level}: ranks that had other data recorded the same")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) > 3:
        train(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        sys.exit(main())

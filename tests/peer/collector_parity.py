#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: collector_parity.py OURS [--framework NAME] [--golden FOLDER | --peer-python PYTHON] [--python PYTHON]
       collector_parity.py --store FOLDER --peer-python PYTHON

Runs the scenarios under our collector (OURS: the folder that goes to PYTHONPATH) and under the Python tool, or takes
what that gave from the files which --store wrote, and compares the trees: files, entries, their order, fields, names,
checksums, stacks, parents; statistics within the tolerance of the element type. EXPLAINED lists what differs on purpose.
"""
import argparse
import concurrent.futures
import contextlib
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from forked_runs import ForkedRuns, FreshRuns

HERE = pathlib.Path(__file__).resolve().parent
MEAN_AND_NORM = {"Mean", "Norm"}
EXTREMA = {"Max", "Min"}
# Summation order differs; half types are rounded to their own precision.
TOLERANCE = {"torch.bfloat16": 2.0**-7, "torch.float16": 2.0**-10, "torch.complex64": 1e-5, "torch.float32": 2e-5,
             "BFloat16": 2.0**-7, "Float16": 2.0**-10, "Complex64": 1e-5, "Float32": 2e-5,
             "mindspore.float32": 2e-5}
# Functions of collector_run, forked_runs and of the scenarios' own programs.
RUNNERS = ("<module>, ", "main, ", "run, ", "run_job, ", "serve, ")
SCENARIOS = {"pytorch": "collector_scenarios", "mindspore": "mindspore_scenarios", "msadapter": "msadapter_scenarios"}


def runs_of(python, scenarios, framework, ours=None):
    """Runs of scenarios with the msprobe in the folder `ours`, else with that of the Python."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if ours:
        environment["PYTHONPATH"] = ours
    if framework != "pytorch":  # MindSpore, which starts threads when it is imported, and a fork has none of them
        return FreshRuns(python, HERE / f"{scenarios}.py", environment)
    return ForkedRuns(python, f"{scenarios}:run", ["torch", "numpy", "msprobe.pytorch"], environment)


def run(runs, scenario, folder, ours=None, extra=None):
    done = runs.run([scenario, folder, *([json.dumps(extra)] if extra else [])], folder.parent)
    if done.returncode != 0:
        raise SystemExit(f"{scenario} under {'msprobe' if ours else 'the Python tool'}: status {done.returncode}\n"
                         f"{done.stdout[-2000:]}{done.stderr[-4000:]}")
    package = (folder / "package").read_text()
    if (ours and not package.startswith(ours)) or (not ours and "site-packages" not in package):
        raise SystemExit(f"{scenario}: the wrong package was in use: {package}")


def load(folder):
    """The tree as one value: {"losses": [...], "steps": {"step0": {"files": [...], "dump.json": {...}, ...}}}"""
    result = {"losses": json.loads((folder / "losses.json").read_text()), "steps": {}}
    for step in sorted((folder / "dump").iterdir()):
        ranks = list(step.iterdir())
        if len(ranks) != 1:
            raise SystemExit(f"{step}: {len(ranks)} folders of ranks, expected one")
        rank = ranks[0]
        files = sorted(str(path.relative_to(rank)) for path in rank.rglob("*") if path.is_file())
        loaded = {"files": files}
        for name in files:
            if name.endswith(".json"):
                loaded[name] = json.loads((rank / name).read_text())
        if "stack.json" in loaded:
            loaded["stack.json"] = stacks_by_entry(loaded["stack.json"])
        for name in ("dump.json", "debug.json"):
            for ours in ("recorder", "format"):
                loaded.get(name, {}).pop(ours, None)
            if loaded.get(name, {}).get("dump_data_dir") is not None:
                loaded[name]["dump_data_dir"] = "a folder"
        result["steps"][step.name] = loaded
    return result


def stacks_by_entry(stacks):
    """{entry: frames}. Of a frame the function and the source line; frames of the framework itself are left out: those of hooks
    differ by nature."""
    result = {}
    for names, frames in stacks.values():
        frames = [frame.split(", line ", 1)[-1].split(", in ", 1)[-1] for frame in frames
                  if not re.search("/(torch|mindspore|mindtorch)/", frame)]
        result.update((name, frames) for name in names)
    return result


def without_runner(frames):
    """The frames of a stack without the outermost, which run the scenario; a parent of construct.json as it is."""
    return [frame for frame in frames if not frame.startswith(RUNNERS)] if isinstance(frames, list) else frames


class Comparison:
    def __init__(self, scenario, elsewhere):
        """`elsewhere`: theirs are of another machine, on whose processor PyTorch has other kernels of convolutions, which
        round otherwise. Of one machine extrema are the same number."""
        self.scenario = scenario
        self.found = []
        self.rounded = MEAN_AND_NORM | EXTREMA if elsewhere else MEAN_AND_NORM

    def differ(self, where, text):
        self.found.append(f"{self.scenario}: {where}: {text}")

    def value(self, where, ours, theirs, dtype=None):
        if isinstance(theirs, dict) and isinstance(ours, dict):
            if list(ours) != list(theirs):
                self.differ(where, f"members {list(ours)}, theirs {list(theirs)}")
                return
            for key in theirs:
                self.member(f"{where}.{key}", key, ours[key], theirs[key], theirs.get("dtype"))
        elif isinstance(theirs, list) and isinstance(ours, list):
            if len(ours) != len(theirs):
                self.differ(where, f"{len(ours)} elements, theirs {len(theirs)}")
                return
            for index, (mine, other) in enumerate(zip(ours, theirs)):
                self.value(f"{where}.{index}", mine, other, dtype)
        elif type(ours) is not type(theirs) or not (ours == theirs or (ours != ours and theirs != theirs)):
            self.differ(where, f"{ours!r}, theirs {theirs!r}")

    def member(self, where, key, ours, theirs, dtype):
        if key in self.rounded and isinstance(ours, float) and isinstance(theirs, float):
            if math.isfinite(theirs) and math.isfinite(ours):
                if abs(ours - theirs) <= TOLERANCE.get(dtype, 1e-6) * max(abs(ours), abs(theirs), 1e-2):
                    return
        self.value(where, ours, theirs, dtype)

    def trees(self, ours, theirs):
        mine, other = ours["steps"], theirs["steps"]
        if list(mine) != list(other):
            self.differ("steps", f"{list(mine)}, theirs {list(other)}")
            return
        for step in mine:
            self.step(step, mine[step], other[step])
        same = [math.isclose(a, b, rel_tol=1e-6) for a, b in itertools.zip_longest(ours["losses"], theirs["losses"], fillvalue=math.nan)]
        if not all(same):
            self.differ("losses", f"{ours['losses']}, theirs {theirs['losses']}")

    def step(self, step, ours, theirs):
        for name in sorted(set(ours["files"]) ^ set(theirs["files"])):
            self.differ(f"{step}/{name}", "only here" if name in ours["files"] else "only theirs")
        for name in ("dump.json", "debug.json"):
            if name in ours and name in theirs:
                self.dump(f"{step}/{name}", ours[name], theirs[name])
        for name in ("stack.json", "construct.json"):
            mine, other = ours.get(name, {}), theirs.get(name, {})
            for key in sorted(set(mine) | set(other)):
                if key not in mine or key not in other:
                    self.differ(f"{step}/{name}", f"{key} {'only here' if key in mine else 'only theirs'}")
                elif without_runner(mine[key]) != without_runner(other[key]):
                    self.differ(f"{step}/{name}", f"{key}: {mine[key]!r}, theirs {other[key]!r}")

    def dump(self, where, mine, other):
        for key in other:
            if key != "data":
                self.value(f"{where}.{key}", mine.get(key), other[key])
        mine, other = mine["data"], other["data"]
        for name in other:
            if name not in mine:
                self.differ(where, f"entry {name} only theirs")
        for name in mine:
            if name not in other:
                self.differ(where, f"entry {name} only here")
        common = [[name for name in data if name in mine and name in other] for data in (mine, other)]
        # A gradient of a module is seen before those of its parameters are complete; identities come behind.
        ordered = [[name for name in names if ".parameters_grad." not in name] for names in common]
        for position, (name, their_name) in enumerate(zip(*ordered)):
            if name != their_name:
                self.differ(where, f"order: at {position} {name}, theirs {their_name}")
                break
        for name in common[0]:
            self.value(f"{where}.{name}", mine[name], other[name])


# Intended differences, as patterns of the lines above; docs/differences.md has the reasons.
EXPLAINED = [
    # The parents of backwards are those of the forwards.
    r"construct\.json: \S+backward\S*: '\S+backward\.\d+', theirs None",
    # An in-place activation is no parent of what ran before it.
    r"^pictures_mix: .*construct\.json: (Functional\.(batch_norm|conv2d)|Module\.conv1)\S+backward\S*: .*ReLU\.backward",
    # The Python tool reads the bytes for the checksum later; by then these are overwritten in place.
    r"Tensor\.add_\.\d+\.forward\.input_args\.0\.md5: ",
    # Ours is the CRC-32 of the values before an assignment, theirs mostly that of the values after it; on a busy machine
    # also for calls that took the tensor earlier, whose checksums its threads have not come to yet.
    r"^arguments_md5: .*\.forward\.input_args\.0(\.0)?\.md5: 'c64ce840', theirs '04f36e18'$",
    r"^pictures_mix: .*\.batch_norm\.0\.forward\.input_args\.[12]\.md5: ",
    r"^pictures_mix: .*(\.batch_norm\.0\.forward\.output|BatchNorm2d\.forward\.0\.output)\.0\.md5: ",
    r"^pictures_mix: .*(\.relu\.0\.forward\.input_args|ReLU\.forward\.0\.input_args)\.0\.md5: ",
    # A gradient that cannot be seen alone says so.
    r"members \[.*'gradient_of'.*\], theirs ",
    # In-place operations at the border of a module: the module has a backward, and the operation the gradient it returns.
    r"^pictures_mix: .*Module\.(bn\.BatchNorm2d|act\.ReLU)\.backward\.0 only here$",
    r"^pictures_mix: .*\.Functional\.relu\.0\.backward\.output\.0\.(Mean|Norm|Max|Min|md5): ",
    # An output that nothing uses gets no gradient, so what made it has no backward, and the module is done at the end.
    r"^shared_mix: .*Tensor\.exp\.0\.backward only theirs$",
    r"^shared_mix: .*order: at \d+ Tensor\.sum\.0\.backward, theirs Module\.inner\.Structured\.backward\.0$",
    # A positional dtype or device is recorded.
    r"input_args\.\d+: members \['type', 'value'\], theirs \[\]$",
    # linear belongs to the core.
    r"^decoder_core: .*(linear|chain_matmul).* only here",
]


# Stored results are of PyTorch 1.13, where the Python tool records no backward of a module.
# Hence it knows no window of one either, and drops the backwards of operations within.
EXPLAINED_GOLDEN = [r"Module\.\S+\.backward\.\d+ only here$", r"^decoder_list: .*\.backward only here$"]


# The same for MindSpore; docs/collector-mindspore.md has the reasons.
EXPLAINED_MINDSPORE = [
    # The parents of backwards are those of the forwards.
    r"construct\.json: \S+backward\S*: '\S+backward\.\d+', theirs None",
    # Greatest and least whole numbers are exact (there as float32).
    r"\.(Max|Min): (-?\d+), theirs \2\.0$",
    # A NaN shows in the greatest and least element, as it does for PyTorch.
    r"\.(Max|Min): nan, theirs (inf|-?\d)",
    # Gradients of tensors in a tuple inside of a tuple.
    r"^shared_mix: .*\.Structured\.backward\.\d+\.input: 2 elements, theirs 1$",
    # The place of parameters' gradients among the operators of their cell.
    r"order: at \d+ \S+\.parameters_grad\.\d+, theirs Primitive\.\S+\.backward$",
]


# The same for MSAdapter.
EXPLAINED_MSADAPTER = [
    # The parents of backwards are those of the forwards.
    r"construct\.json: \S+backward\S*: '\S+backward\.\d+', theirs None",
    # Greatest and least whole numbers are exact (there as float32).
    r"\.(Max|Min): (-?\d+), theirs \2\.0$",
    # Gradients of tensors in lists, and of those given by keyword.
    r"Torch\.(cat|stack|add)\.\d+\.backward\.output: \d elements, theirs 0$",
    r"Torch\.(cat|stack|add)\.\d+\.backward\.output\.\d(\.\d)?\.npy: only here$",
    # The gradient of a normalization behind an embedding, which recording falsifies there (msadapter_unchanged.py).
    r"^decoder_\w+: .*\.(layer_norm\.0|embedding\.0|layers\.0\.norm\.LayerNorm|layers\.0\.Layer|embedding\.Embedding)"
    r"\.(backward|parameters_grad)\S*\.(Max|Min|Mean|Norm|md5): ",
    # A module that is called by keyword.
    r"Module\.(0\.)?scaled\.Scaled\.backward\.0 only here$",
    # Dropout that keeps everything returns its input, which has no backward; there dropout is not called.
    r"Functional\.dropout\.\d\.backward\S* only theirs$",
]


def explained(line, framework, golden=False):
    patterns = {"pytorch": EXPLAINED, "mindspore": EXPLAINED_MINDSPORE, "msadapter": EXPLAINED_MSADAPTER}[framework]
    return any(re.search(pattern, line) for pattern in patterns + (EXPLAINED_GOLDEN if golden else []))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", nargs="?")
    parser.add_argument("--framework", choices=SCENARIOS, default="pytorch")
    parser.add_argument("--golden", type=pathlib.Path, help="folder torch-<version> of stored results of the Python tool")
    parser.add_argument("--store", type=pathlib.Path, help="writes the Python tool's results there")
    parser.add_argument("--peer-python")
    parser.add_argument("--python", help="runs ours; default: the peer's, else this one")
    parser.add_argument("--show", action="store_true", help="print explained differences, too")
    parser.add_argument("--scenarios", default="", help="default: all, or those stored")
    options = parser.parse_args()
    module = SCENARIOS[options.framework]
    python = options.python or options.peer_python or sys.executable

    if options.golden:
        version = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], check=False, capture_output=True,
                                 text=True).stdout.strip()
        if not version.startswith(options.golden.name.partition("-")[2] + "."):
            print(f"SKIPPED: the trees are of {options.golden.name}, here is {version or 'no PyTorch'}")
            return 77

    scenarios = [name for name in options.scenarios.split(",") if name]
    if not scenarios and options.golden:
        scenarios = sorted(path.stem for path in options.golden.glob("*.json"))
    if not scenarios:
        code = f"import {SCENARIOS[options.framework]} as c; print(*c.SCENARIOS)"
        scenarios = subprocess.run([python, "-W", "ignore", "-c", code], env={**os.environ, "PYTHONPATH": str(HERE)},
                                   capture_output=True, text=True, check=True).stdout.split()
    failed = 0
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="msprobe_parity_"))
        if not options.golden:
            their_runs = stack.enter_context(runs_of(options.peer_python, module, options.framework))
        if not options.store:
            package = os.path.abspath(options.ours)
            our_runs = stack.enter_context(runs_of(python, module, options.framework, package))
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(os.cpu_count()))
        recordings = []
        for scenario in scenarios:
            folder = {name: pathlib.Path(scratch, name, scenario) for name in ("ours", "theirs")}
            for path in folder.values():
                path.mkdir(parents=True)
            runs = []
            if not options.golden:
                runs.append(pool.submit(run, their_runs, scenario, folder["theirs"]))
            if not options.store:
                runs.append(pool.submit(run, our_runs, scenario, folder["ours"], package, {"python_compatible": True}))
            recordings.append((scenario, folder, runs))
        for scenario, folder, runs in recordings:
            for future in runs:
                future.result()
            if options.golden:
                theirs = json.loads((options.golden / f"{scenario}.json").read_text())
            else:
                theirs = load(folder["theirs"])
            if options.store:
                options.store.mkdir(parents=True, exist_ok=True)
                (options.store / f"{scenario}.json").write_text(json.dumps(theirs, separators=(",", ":")) + "\n")
                continue
            comparison = Comparison(scenario, bool(options.golden))
            comparison.trees(load(folder["ours"]), theirs)
            bad_lines = [line for line in comparison.found if not explained(line, options.framework, options.golden)]
            lines = comparison.found if options.show else bad_lines
            for line in lines[:40]:
                print(line)
            if len(lines) > 40:
                print(f"{scenario}: ... and {len(lines) - 40} more")
            bad = len(bad_lines)
            print(f"{scenario}: {'same' if bad == 0 else f'{bad} differences'}"
                  f"{f', {len(comparison.found) - bad} explained' if len(comparison.found) > bad else ''}")
            failed += bad > 0
    if not options.store:
        print(f"{len(scenarios) - failed} of {len(scenarios)} scenarios agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

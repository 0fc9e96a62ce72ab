# SPDX-License-Identifier: Apache-2.0
"""Runs the parts of scripts/check-gpu and prints a table. On a GPU each part is a separate process: what one leaves behind
there, or where it hangs, is nothing to the others."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOTAL = 450.0  # seconds: the whole takes at most eight minutes
LONGEST = 120.0  # of one part
NO_GPU = 77
NO_TIME = "no time was left"
OWN = "own kernel"  # a part, too: that which is of it alone


def rows_of(names, double):
    """(part, whether with the collector's own kernel), one for each row of the table: with PyTorch's kernels, which measure by
    default, then with the other one, which needs a GPU."""
    rows = []
    for name in names:
        rows += [(name, True)] if name == OWN else [(name, False)] if double else [(name, False), (name, True)]
    return rows


def label_of(row):
    name, own = row
    return "%s, %s" % (name, OWN) if own and name != OWN else name


def run_parts(names, double):
    """In the parts' process, which ends with it: prints a line of JSON for each row."""
    from parts import PARTS
    from recording import Place, Skipped

    for row in rows_of(names, double):
        name, own = row
        began = time.monotonic()
        try:
            place = Place(double)
            place.measure_with(own)
            state, detail = "passed", PARTS[name](place)
        except Skipped as reason:
            state, detail = "skipped", str(reason)
        except Exception as error:
            import traceback

            traceback.print_exc()
            state, detail = "FAILED", "%s: %s" % (type(error).__name__, str(error).split("\n")[0][:160])
        print(json.dumps([label_of(row), state, time.monotonic() - began, detail]), flush=True)
    os._exit(0)  # PyTorch may abort where a thread of gloo outlives the interpreter


def in_process(command, environment, seconds):
    """(status, stdout, stderr) of a process that is ended, with its children, when its time is over: status None."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=errors, start_new_session=True)
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        out.seek(0)
        errors.seek(0)
        return status, out.read(), errors.read()


class Table:
    def __init__(self, begin):
        self._begin = begin
        self.failed = 0
        print("%-48s %-8s %8s  %s" % ("part", "result", "seconds", "detail"))

    def left(self):
        return min(LONGEST, TOTAL - (time.monotonic() - self._begin))

    def add(self, name, state, seconds, detail):
        self.failed += state == "FAILED"
        print("%-48s %-8s %8.1f  %s" % (name, state, seconds, detail), flush=True)


def check(table, names, options, environment):
    """The parts of one process."""
    began = time.monotonic()
    labels = [label_of(row) for row in rows_of(names, options.double)]
    if table.left() < 10:
        for label in labels:
            table.add(label, "skipped", 0.0, NO_TIME)
        return
    command = [sys.executable, "-W", "ignore", __file__, "--part", ",".join(names)]
    with tempfile.TemporaryDirectory(prefix="msprobe-gpu-") as folder:  # of all that the parts write
        status, out, errors = in_process(command + (["--double"] if options.double else []),
                                         dict(environment, TMPDIR=folder), table.left())
    told = [json.loads(line) for line in out.splitlines() if line.startswith("[")]
    for line in told:
        table.add(*line)
    for label in labels[len(told):]:
        table.add(label, "FAILED", time.monotonic() - began,
                  "did not end in time" if status is None else "ended with status %s" % status)
    if (options.verbose and any(state == "FAILED" for _, state, _, _ in told)) or len(told) < len(labels):
        print(errors[-4000:])


def measure(table, options, environment):
    """Measures what a step costs without a collector, with this one by both kinds of kernels, and with the Python tool if it
    is there."""
    from cost import MODES, SHAPES

    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    peer = options.peer or sys.executable
    found = subprocess.run([peer, "-c", "import msprobe.pytorch.dump"], check=False, env=plain, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    for shape in SHAPES:
        base = None
        for mode, own in rows_of(MODES, options.double):
            aims = MODES[mode][1]
            if own and not aims:
                continue  # nothing to decide by it
            label = "cost: %s, " % shape + label_of(("no collector" if mode == "none" else mode, own))
            began = time.monotonic()
            took, why = time_steps(sys.executable, dict(environment, MSPROBE_GPU_KERNEL="1" if own else "0"), (shape, mode),
                                   table.left(), options)
            if took is None:
                table.add(label, "skipped" if why == NO_TIME else "FAILED", time.monotonic() - began, why)
                continue
            told = ["%.1f ms a step" % took]
            if mode == "none":
                base = took
            elif base:
                aim = " (aim: %.1f)" % aims[shape] if shape in aims else ""
                told.append("%.2f times a step without%s" % (took / base, aim))
                if found.returncode == 0 and not own:
                    other, why = time_steps(peer, plain, (shape, mode), table.left(), options)
                    told.append("the Python tool: " + (why if other is None else "%.1f ms, %.2f times" % (other, other / base)))
                    if other is not None and other > base:
                        told.append("it adds %.1f times what we add" % ((other - base) / max(took - base, 1e-3)))
            table.add(label, "measured", time.monotonic() - began, "; ".join(told))
    if found.returncode != 0:
        print("(the Python tool is not installed: nothing to compare the cost with; --peer PYTHON names one)")


def time_steps(python, environment, what, seconds, options):
    """(milliseconds of a step, ""), or (None, why not)."""
    if seconds < 10:
        return None, NO_TIME
    with tempfile.TemporaryDirectory(prefix="msprobe-gpu-") as folder:
        command = [python, "-W", "ignore", str(HERE / "cost.py"), *what, folder]
        status, out, errors = in_process(command + (["--double"] if options.double else []), environment, seconds)
    try:
        if status == 0:
            return float(out.strip().splitlines()[-1]), ""
    except (IndexError, ValueError):
        pass
    if options.verbose:
        print(errors[-4000:])
    return None, "did not end in time" if status is None else "ended with status %s" % status


def main():
    parser = argparse.ArgumentParser(prog="check-gpu", description="Tries the collector on a GPU and prints a table.")
    parser.add_argument("--package", help="the folder that holds the package msprobe; default: build/python")
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with PyTorch and the Python tool")
    parser.add_argument("--only", help="parts to run, separated by commas; cost is one of them")
    parser.add_argument("--double", action="store_true", help="use a stand-in for a GPU: tries the parts themselves")
    parser.add_argument("--verbose", action="store_true", help="show what failed parts wrote")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        run_parts(options.part.split(","), options.double)

    begin = time.monotonic()
    try:
        import torch
    except ImportError:
        print("check-gpu: no GPU was tried: %s has no PyTorch" % sys.executable)
        return NO_GPU
    if not options.double and not torch.cuda.is_available():
        print("check-gpu: no GPU: PyTorch %s sees none, so nothing was checked" % torch.__version__)
        return NO_GPU
    package = os.path.abspath(options.package or str(HERE.parent.parent / "build" / "python"))
    if not os.path.isdir(os.path.join(package, "msprobe")):
        print("check-gpu: %s holds no package msprobe: build the target collector first" % package)
        return 2
    from parts import PARTS

    names = [*PARTS, "cost"]
    only = options.only.split(",") if options.only else names
    unknown = [name for name in only if name not in names]
    if unknown:
        print("check-gpu: %s is no part; there are %s" % (unknown[0], ", ".join(names)))
        return 2
    print("%s, PyTorch %s" % ("a stand-in for a GPU" if options.double else torch.cuda.get_device_name(0),
                              torch.__version__))
    environment = dict(os.environ, PYTHONPATH=package, PYTHONDONTWRITEBYTECODE="1")
    table = Table(begin)
    parts = [name for name in only if name != "cost"]
    for names in [parts] if options.double and parts else [[name] for name in parts]:
        check(table, names, options, environment)
    if "cost" in only:
        measure(table, options, environment)
    print("%s; %.0f s" % ("%d failed" % table.failed if table.failed else "nothing failed", time.monotonic() - begin))
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())

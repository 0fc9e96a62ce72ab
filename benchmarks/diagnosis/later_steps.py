#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records models of the catalogue at one later step alone, faulty from the start and faulty from that step on.

    PYTHONPATH=BUILD/python benchmarks/diagnosis/later_steps.py FOLDER [--steps 5,50,300] [--benches NAME,...]

Statistics only, laid out as `record` does, for `score`. A model's name tells the step (decoder_at50); a fault whose
name ends in _since comes with that step. Where `msprobe` is a release of the Python tool, that one records.
"""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import dataclasses

from catalogue import FAULTS
from models import BENCHES
from recording import Recorder, benign_pairs, turns


def later(bench, step):
    name = f"{bench.name}_at{step}"
    return type(name, (bench,), {"name": name, "recorded_steps": (step,)})


def faults_of(name, bench):
    for fault in FAULTS:
        if fault.bench == name:
            fault = dataclasses.replace(fault, bench=bench.name)
            yield fault
            # A faulty update shows in the step after it.
            if fault.kind != "update" or bench.records_optimizer:
                yield dataclasses.replace(fault, name=f"{fault.name}_since", since=bench.recorded_steps[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--steps", default="5,50,300")
    parser.add_argument("--benches", default="decoder,gated,convolution")
    options = parser.parse_args()
    recorder = Recorder(options.folder, {}, ["statistics"])
    begin = time.time()
    for step in (int(text) for text in options.steps.split(",")):
        for name in options.benches.split(","):
            bench = later(BENCHES[name], step)
            recorder.benches[bench.name] = bench
            for pair in list(benign_pairs(bench))[:3]:
                recorder.attempt(recorder.benign, bench, *pair)
            for number, fault in enumerate(faults_of(name, bench)):
                golden, target, _ = turns(bench.kernels, number // 2)
                recorder.attempt(recorder.case_of_fault, fault, bench.seeds[0], golden, target, None)
            print(f"{bench.name}: {recorder.cases} cases in {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
    print(*recorder.failed, sep="\n", file=sys.stderr)
    return 1 if recorder.failed else 0


if __name__ == "__main__":
    sys.exit(main())

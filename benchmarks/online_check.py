#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether task acc_check finds three wrong kernels, and nothing in healthy training, in each of its three ways.

usage: online_check.py BUILD [--steps N] [--only WAY]

BUILD is a build folder; Python is the one that it was configured with (PYTHON in the environment names another one). Two
models (tests/python/online_training.py), float32 and bfloat16 under automatic casts; judged in the process, by a process that
listens to the network (TLS), or one that shares a folder. Faulty training: two ranks under DistributedDataParallel, of which
rank 1 has three wrong kernels from step 5 on, 8 steps. Healthy training: one process, 200 steps (--steps). Each one is compared
with the same training without msprobe, bit for bit. The exit status is 1 if anything is not as it should be.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TRAINING = os.path.join(HERE, "../tests/python/online_training.py")
WRONG = {"llama": ["Functional.softmax.0", "Functional.silu.1", "Functional.linear.13"],
         "vit": ["Functional.layer_norm.0", "Functional.linear.1", "Functional.gelu.1"]}
WAYS = ("process", "network", "folder")


def certificates(folder):
    with open(os.path.join(HERE, "../docs/precheck.md"), encoding="utf-8") as file:
        script = re.search(r"```\n(openssl req .*?)```", file.read(), re.DOTALL).group(1)
    os.mkdir(folder)
    subprocess.run(["bash", "-ec", script.replace("DNS:judge.example", "DNS:localhost")], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


class Bench:
    def __init__(self, build, scratch):
        self.scratch = scratch
        self.python = os.environ.get("PYTHON", "/usr/bin/python3")
        self.msprobe = os.path.join(build, "src/msprobe")
        self.environment = {**os.environ, "PYTHONPATH": os.path.join(build, "python"),
                            "PATH": os.path.join(build, "src") + os.pathsep + os.environ["PATH"]}
        self.tls = certificates(scratch + "/tls")

    def judge(self, way, results):
        """(a judging process or None, the section of the trainings)"""
        common = ["-o", results, "--python", self.python]
        if way == "process":
            return None, {}
        if way == "folder":
            folder = tempfile.mkdtemp(dir=self.scratch)
            return self.start([self.msprobe, "acc_check", "-api_info", folder] + common), {"nfs_path": folder}
        judge = self.start([self.msprobe, "acc_check", "--listen", "localhost:0", "--tls", self.tls] + common)
        port = int(judge.stdout.readline().rpartition(":")[2])
        return judge, {"server": "localhost:%d" % port, "tls_path": self.tls}

    def start(self, words, **environment):
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                                env={**self.environment, **environment})

    def train(self, way, kind, precision, health, steps, ranks):
        """(digests of the ranks, the output of all processes, the seconds)"""
        results = tempfile.mkdtemp(dir=self.scratch)
        judge, section = self.judge(way, results) if way else (None, None)
        words = [self.python, "-W", "ignore", TRAINING, kind, precision, health, str(steps)]
        if section is not None:
            words.append(results + "/config.json")
            with open(words[-1], "w", encoding="utf-8") as file:
                json.dump({"task": "acc_check", "dump_path": results, "level": "L1", "risk_level": "ALL",
                           "acc_check": {"budget": None, **section}}, file)
        began = time.monotonic()
        trainings = [self.start(words, **({"RANK_OF_TWO": str(rank), "STORE": results + "/store"} if ranks == 2 else {}))
                     for rank in range(ranks)]
        told = [training.communicate()[0] for training in trainings]
        seconds = time.monotonic() - began
        digests = [re.search(r"^([0-9a-f]{64}) (\S+)", text, re.MULTILINE) for text in told]
        if any(training.returncode for training in trainings) or not all(digests):
            raise SystemExit("a training failed:\n" + "\n".join(told))
        if judge is not None:
            told.append(judge.communicate()[0])
        return [found.group(0) for found in digests], "\n".join(told), seconds


def main():
    options = argparse.ArgumentParser()
    options.add_argument("build")
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--only", choices=WAYS)
    options = options.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(os.path.abspath(options.build), scratch)
        print("%-8s %-6s %-8s | %-28s | %s" % ("way", "model", "type", "faulty, two ranks, 8 steps", "healthy, %d steps" %
                                               options.steps))
        for kind in WRONG:
            for precision in ("float32", "amp"):
                plain = {"faulty": bench.train(None, kind, precision, "faulty", 8, 2)[0],
                         "healthy": bench.train(None, kind, precision, "healthy", options.steps, 1)[0]}
                for way in WAYS if options.only is None else (options.only,):
                    digests, told, seconds = bench.train(way, kind, precision, "faulty", 8, 2)
                    named = re.findall(r"^  error +(\S+) in ", told, re.MULTILINE)
                    first = len(re.findall(r"of rank 1, step 5: .* is wrong: ", told))
                    same = digests == plain["faulty"]
                    right = named == WRONG[kind] and first == 3 and same and "of rank 0, step" not in told
                    cells = ["%d of 3 named, %s, %.0f s" % (len(set(named) & set(WRONG[kind])),
                                                            "same bits" if same else "OTHER BITS", seconds)]
                    digests, told, seconds = bench.train(way, kind, precision, "healthy", options.steps, 1)
                    same = digests == plain["healthy"]
                    counts = re.search(r"(\S+) calls of steps 0 to (\d+), .*: (\d+) operations pass, (\d+) error, (\d+) warning",
                                       told)
                    # The verdict warning is for differences that may be right; the training prints none of them.
                    quiet = counts is not None and counts.group(4) == "0" and (
                        re.sub(r"warning: .* takes fewer calls than come", "", told).count("warning:") == 0) and (
                        int(counts.group(2)) == options.steps - 1)
                    cells.append("%s calls, %s error, %s warning, %s, %.0f s" % (
                        *(counts.group(1, 4, 5) if counts else "???"), "same bits" if same else "OTHER BITS", seconds))
                    print("%-8s %-6s %-8s | %-28s | %s%s" % (way, kind, precision, *cells,
                                                             "" if right and quiet and same else "   FAILED"), flush=True)
                    if not (right and quiet and same):
                        failed = True
                        print(told, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

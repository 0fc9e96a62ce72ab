# SPDX-License-Identifier: Apache-2.0
"""Runs a Python program many times in processes that import its libraries once: each run is a fork of one that has.

`with ForkedRuns(python, "module:function", imports) as runs: runs.run(arguments)` gives what subprocess.run() would of
a program that calls the function; threads may share it. Run as a program, by that Python, this file is one of those
processes: it reads a job a line and answers with the job's exit status.
"""

import atexit
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import traceback

TIME_LIMIT_S = 900


class ForkedRuns:
    def __init__(self, python, entry, imports, environment=None, processes=None):
        self.python = python
        self.free = queue.Queue()
        self.started = []
        for _ in range(processes or os.cpu_count()):
            process = subprocess.Popen(
                [python, "-W", "ignore", __file__, entry, *imports],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self.started.append(process)
            self.free.put(process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.stdin.close()
        for process in self.started:
            process.wait()
            process.stdout.close()

    def run(self, arguments, cwd=None):
        """The finished run, its output and its errors together as `stdout` and `stderr`."""
        words = [str(word) for word in arguments]
        with tempfile.NamedTemporaryFile(prefix="msprobe-peer-") as log:
            process = self.free.get()
            try:
                job = {"arguments": words, "cwd": str(cwd or os.getcwd()), "log": log.name}
                print(json.dumps(job), file=process.stdin, flush=True)
                answer = process.stdout.readline()
            finally:
                self.free.put(process)
            if not answer:
                raise RuntimeError(f"{self.python}: the process that was to run {words} has ended")
            text = log.read().decode(errors="replace")
        return subprocess.CompletedProcess(words, int(answer), text, text)


class FreshRuns:
    """The same, each run in a new process, for libraries whose threads a fork would lack."""

    def __init__(self, python, script, environment):
        self.command = [python, "-W", "ignore", str(script)]
        self.environment = environment

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, arguments, cwd=None):
        command = [*self.command, *map(str, arguments)]
        return subprocess.run(
            command, env=self.environment, cwd=cwd, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )


def python_tool(python):
    """Runs of the Python tool's command line. What a command lacks it tells itself."""
    imports = ["torch", "pandas", "openpyxl", "tqdm", "msprobe.pytorch", "msprobe.core.compare.utils"]
    return ForkedRuns(python, "msprobe.msprobe:main", imports)


def run_job(function, job):
    """In the forked process, which ends with it."""
    os.setsid()
    signal.alarm(TIME_LIMIT_S)
    log = os.open(job["log"], os.O_WRONLY)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, descriptor in enumerate((nothing, log, log)):
        os.dup2(descriptor, target)
    os.chdir(job["cwd"])
    sys.argv = ["forked", *job["arguments"]]
    status = 0
    try:
        function()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


def serve(entry, imports):
    answers = os.fdopen(os.dup(1), "w")
    # Other output does not belong to an answer.
    os.dup2(2, 1)
    module, name = entry.split(":")
    for each in imports:
        try:
            importlib.import_module(each)
        except ImportError:
            pass
    function = getattr(importlib.import_module(module), name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run_job(function, json.loads(line))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        try:
            os.killpg(child, signal.SIGKILL)  # what it started and left
        except ProcessLookupError:
            pass
        print(status, file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])

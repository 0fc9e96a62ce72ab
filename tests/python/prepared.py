# SPDX-License-Identifier: Apache-2.0
"""Runs scripts in forks of a process that has PyTorch, whose import takes longer than most scripts of tests. Each ends with
its interpreter, as any other does."""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings

_server = None


class Script:
    """A script that runs. It is killed after so many seconds."""

    def __init__(self, path, *arguments, environment=None, quiet=False, timeout=150):
        global _server
        if _server is None:
            _server = subprocess.Popen([sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE)
            atexit.register(_server.kill)
        self._folder = tempfile.mkdtemp(prefix="msprobe-script-")
        self._end = time.monotonic() + timeout + 60  # the server loads PyTorch first
        words = [path, *map(str, arguments)]
        request = {"words": words, "environment": {**os.environ, **(environment or {})}, "folder": self._folder,
                   "directory": os.getcwd(), "quiet": quiet, "timeout": timeout}
        _server.stdin.write(json.dumps(request).encode() + b"\n")
        _server.stdin.flush()

    def _read(self, name):
        with open(os.path.join(self._folder, name), encoding="utf-8") as file:
            return file.read()

    def end(self):
        """A CompletedProcess."""
        while not os.path.exists(os.path.join(self._folder, "status")):
            assert time.monotonic() < self._end and _server.poll() is None, "a script does not end"
            time.sleep(0.01)
        status = int(self._read("status"))
        done = subprocess.CompletedProcess([], -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
                                           self._read("stdout"), self._read("stderr"))
        shutil.rmtree(self._folder)
        return done


def _next_fork():
    """Reads what is to run and returns it in a fork of this process, which that becomes; None when there is no more."""
    for line in sys.stdin:
        request = json.loads(line)
        if os.fork() != 0:
            continue
        script = os.fork()
        if script == 0:
            return request
        status = os.waitpid(script, 0)[1]
        part = os.path.join(request["folder"], "part")
        with open(part, "w", encoding="ascii") as file:
            file.write(str(status))
        os.rename(part, os.path.join(request["folder"], "status"))
        os._exit(0)
    return None


def _become(request):
    folder = request["folder"]
    for number, name in enumerate((os.devnull, folder + "/stdout", folder + "/stderr")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    sys.argv[:] = request["words"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    if request["quiet"]:
        warnings.simplefilter("ignore")
    signal.alarm(request["timeout"])


if __name__ == "__main__":
    import torch  # noqa: F401

    fork = _next_fork()
    if fork is not None:
        _become(fork)
        __file__ = sys.argv[0]
        with open(__file__, encoding="utf-8") as text:
            exec(compile(text.read(), __file__, "exec"), globals())

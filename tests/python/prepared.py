# SPDX-License-Identifier: Apache-2.0
"""Runs scripts in forks of a process that has imported PyTorch, which takes longer than most scripts. A script ends as in an
interpreter that was started for it. It is killed when the process that asked for it ends.

usage: prepared.py SOCKET DESCRIPTOR    is that process; writes "ready" into the descriptor
"""

import atexit
import fcntl
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import warnings

_LARGEST = 1 << 17  # of a packet
# An interpreter for `-c TEXT` alone, such as a runner of acc_check is.
_INTERPRETER = """#!{python} -ISs
import json, os, signal, socket, sys
asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asked.connect({address!r})
given = [number for number in range(8) if os.path.exists("/proc/self/fd/%d" % number) and number != asked.fileno()]
request = {{"text": sys.argv[2], "words": ["-c", *sys.argv[3:]], "environment": dict(os.environ), "folder": os.getcwd(),
            "given": given, "quiet": False, "timeout": 600}}
socket.send_fds(asked, [json.dumps(request).encode()], given)
for number in given:
    os.close(number)
status = int(asked.recv(100) or b"256")
if os.WIFSIGNALED(status):
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.WEXITSTATUS(status))
"""


@functools.lru_cache(maxsize=None)
def _server(python):
    """Starts such a process of this Python once, and returns the folder of its socket."""
    folder = tempfile.mkdtemp(prefix="msprobe-prepared-")
    address = os.path.join(folder, "socket")
    ready, told = os.pipe()
    process = subprocess.Popen([python, os.path.abspath(__file__), address, str(told)], pass_fds=[told], stdin=subprocess.DEVNULL)
    os.close(told)
    owner = os.getpid()

    def end():
        if os.getpid() == owner:  # not a fork of it
            process.kill()
            process.wait()
            shutil.rmtree(folder)

    atexit.register(end)
    with os.fdopen(ready, "rb") as pipe:
        assert pipe.read() == b"ready", "%s has no PyTorch" % python
    return folder


@functools.lru_cache(maxsize=None)
def interpreter(python=sys.executable):
    """The path of an interpreter that has imported PyTorch already."""
    folder = _server(python)
    path = os.path.join(folder, "python")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_INTERPRETER.format(python=sys.executable, address=os.path.join(folder, "socket")))
    os.chmod(path, 0o700)
    return path


class Script:
    """A running script. It is killed after `timeout` seconds. merged: stdout has what it writes to stderr, too."""

    def __init__(self, path, *arguments, environment=None, folder=None, quiet=False, merged=False, timeout=150):
        self._said = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2)]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        request = {"text": text, "words": [str(path), *map(str, arguments)], "environment": {**os.environ, **(environment or {})},
                   "folder": folder or os.getcwd(), "given": [1, 2], "quiet": quiet, "timeout": timeout}
        self._asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asked.connect(os.path.join(_server(sys.executable), "socket"))
        out, errors = self._said
        socket.send_fds(self._asked, [json.dumps(request).encode()], [out.fileno(), (out if merged else errors).fileno()])

    def end(self):
        """A CompletedProcess."""
        with self._asked:
            status = int(self._asked.recv(100))
        texts = []
        for file in self._said:
            with file:
                file.seek(0)
                texts.append(file.read())
        return subprocess.CompletedProcess(
            [], -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), *texts)


def _wait(script, asked):
    """Sends the status of the script to the process that asked for it."""
    ended = os.pidfd_open(script)
    if ended not in select.select([asked, ended], [], [])[0]:  # the process that asked has ended
        os.kill(script, signal.SIGKILL)
    status = os.waitpid(script, 0)[1]
    try:
        asked.send(b"%d" % status)
    except OSError:
        pass


def _next_fork(listening):
    """Forks for each request, and returns the request and its descriptors in the fork. Ends with the process that started it."""
    owner = os.pidfd_open(os.getppid())
    while True:
        if owner in select.select([listening, owner], [], [])[0]:
            os._exit(0)
        asked, _ = listening.accept()
        packet, numbers, _, _ = socket.recv_fds(asked, _LARGEST, 8)
        if os.fork() == 0:
            script = os.fork()
            if script == 0:
                os.close(owner)
                asked.close()
                listening.close()
                return json.loads(packet), numbers
            for number in numbers:
                os.close(number)
            _wait(script, asked)
            os._exit(0)
        asked.close()
        for number in numbers:
            os.close(number)


def _become(request, numbers):
    above = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 100) for number in numbers]
    for number in numbers:
        os.close(number)
    for number, place in zip(above, request["given"]):
        os.dup2(number, place)
        os.close(number)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv[:] = request["words"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    if request["quiet"]:
        warnings.simplefilter("ignore")
    signal.alarm(request["timeout"])
    return compile(request["text"], sys.argv[0], "exec")


if __name__ == "__main__":
    import torch  # noqa: F401

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as waiting:
        waiting.bind(sys.argv[1])
        waiting.listen(64)
        with os.fdopen(int(sys.argv[2]), "wb") as pipe:
            pipe.write(b"ready")
        fork = _next_fork(waiting)
    code = _become(*fork)
    __file__ = sys.argv[0]
    exec(code, globals())

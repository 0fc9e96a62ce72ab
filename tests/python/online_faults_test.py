# SPDX-License-Identifier: Apache-2.0
"""Task acc_check where its judge fails: the training goes on, says so in few lines, and computes the same bits."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

from helpers import *
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException
from msprobe.pytorch import online_check
from msprobe.pytorch.online_check import sender, wire
from online_network_test import Listener, Network

STEPS = 6


class Server:
    """Listens, and serves each connection with the given function."""

    def __init__(self, serve):
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "localhost:%d" % self._listener.getsockname()[1]
        self.connections = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                one, _ = self._listener.accept()
                self.connections.append(one)
                with contextlib.suppress(OSError):
                    self._serve(one)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self.connections:
            one.close()
        self._thread.join(10)


def greet(connection):
    connection.sendall(wire.first_frame({"release": "1"}))


class Faults(Network):
    """The server fails."""

    def server(self, serve):
        found = Server(serve)
        self.addCleanup(found.close)
        return found

    def check(self, address, between=lambda step: None, steps=STEPS, **waits):
        """The warnings of a training, which are one line each; its results are those of one that is not judged."""
        waits = {"_LONGEST_START": 1, "_LONGEST_CONNECT": 1, "_LONGEST_SILENCE": 1, **waits}
        plain, _ = self.run_steps(steps, None)
        began = time.monotonic()
        with mock.patch.multiple(sender, **waits):
            seen, told = self.run_steps(steps, {"server": address}, between)
        self.assertLess(time.monotonic() - began, 60)
        self.assert_same(seen, plain)
        self.assertEqual([line for line in told if "\n" in line or "Traceback" in line], [])
        return [line for line in told if line.startswith("warning")]

    def test_one_that_says_nothing(self):
        self.assertEqual([line.partition(" cannot")[2] for line in self.check(self.server(lambda one: None).address)],
                         [" be reached: timed out: nothing is judged until it can be"])

    def test_one_that_greets_too_slowly(self):
        """The limit is of the whole greeting."""
        def drip(one):
            for byte in wire.first_frame({"release": "1"}):
                one.sendall(bytes([byte]))
                time.sleep(0.3)

        self.assertEqual([line.partition(" cannot")[2] for line in self.check(self.server(drip).address)],
                         [" be reached: timed out: nothing is judged until it can be"])

    def test_one_that_greets_and_reads_nothing(self):
        """The queue is full then, and the end waits for it no longer than it may."""
        self.assertEqual([line.partition(" takes")[2] for line in self.check(
            self.server(greet).address, _MOST_QUEUED=100, _MOST_WAITING=1000)],
            [" fewer calls than the training makes: some wait for later steps"])

    def test_one_whose_connections_do_not_last(self):
        """It is not tried forever, nor are there lines forever."""
        server = self.server(lambda one: (one.recv(4096), greet(one), one.close()))

        def between(step):
            if step == 2:
                self.wait_for(lambda: not online_check.task.judge.alive)

        warnings = self.check(server.address, between, _MOST_LOSSES=3)
        self.assertEqual(len(server.connections), 3)
        self.assertEqual(len(warnings), 4, warnings)
        self.assertEqual(warnings[-1], "warning: task acc_check: %s: its connections end early: nothing is judged any more"
                         % server.address)

    def test_one_that_sends_what_is_no_frame(self):
        server = self.server(lambda one: (greet(one), one.sendall(b"\xff" * 100)))

        def between(step):
            if step == 1:
                self.wait_for(lambda: not online_check.task.judge._is_connected)

        warnings = self.check(server.address, between)
        self.assertRegex(warnings[0], "was lost: it sent data that is not a frame: nothing is judged until it can be reached again")

    def test_one_that_is_away_for_too_long(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "localhost:%d" % free.getsockname()[1]
        self.assertEqual([line.partition(address)[2] for line in self.check(address, _LONGEST_OUTAGE=0)],
                         [" cannot be reached: Connection refused: nothing is judged until it can be",
                          ": it could not be reached for 0 hours: nothing is judged any more"])

    def test_the_receiver_dies_under_two_ranks(self):
        """The command says so and ends with status 2; the ranks go on, with a warning at most."""
        listener = self.listen()
        digests = []
        for section in ({"server": listener.address}, None):
            store = os.path.join(self.folder, "store%d" % len(digests))
            ranks = [self.start_training("vit", "amp", "healthy", 12, section, RANK_OF_TWO=str(rank), STORE=store)
                     for rank in range(2)]
            if section is not None:
                for _ in range(2):
                    self.assertIn(" begins\n", listener.process.stdout.readline())
                found = subprocess.run(["ps", "-o", "pid,args", "--ppid", str(listener.process.pid)], check=True,
                                       stdout=subprocess.PIPE, text=True).stdout
                receiver, = [int(line.split()[0]) for line in found.splitlines() if '"release"' in line]
                os.kill(receiver, signal.SIGKILL)
            ended = [self.ended(rank) for rank in ranks]
            digests.append([printed for printed, _ in ended])
            for _, told in ended:
                self.assertLessEqual(told.count("warning"), 1, told)
                self.assertNotIn("Traceback", told)
        self.assertEqual(*digests)
        told = listener.end()
        self.assertEqual(listener.process.returncode, 2, told)
        self.assertRegex(told, "error: the receiver of calls died of signal 9")


class Descriptors(Network):
    """There are few, or none."""

    def test_of_the_server(self):
        """It says how many connections it can have; silent ones do not use them up."""
        self.results = os.path.join(self.folder, "results")
        os.mkdir(self.results)
        listener = Listener(self.results, python=sys.executable,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)))
        self.addCleanup(listener.kill)
        silent = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(20)]
        seen, told = self.run_steps(STEPS, {"server": listener.address})
        self.assert_same(seen, self.run_steps(STEPS, None)[0])
        self.assertEqual([line for line in told if line.startswith("warning")], [])
        for one in silent:
            one.close()
        told = listener.end()
        self.assertEqual(listener.process.returncode, 0, told)
        # How many depends on the descriptors that the listener was started with.
        self.assertRegex(told, r"warning: the limit of open files allows [1-9]\d* connections at a time: `ulimit -n` raises it\n")
        self.assertIn("30 calls of steps 0 to 5", told)

    @contextlib.contextmanager
    def none_left(self, but=0):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, hard))
        held = []
        try:
            with contextlib.suppress(OSError):
                while True:
                    held.append(os.open(os.devnull, os.O_RDONLY))
            for _ in range(but):
                os.close(held.pop())
            yield
        finally:
            for one in held:
                os.close(one)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_of_the_training(self):
        """Calls whose tensors cannot be kept are left out, with one line; later ones are judged."""
        listener = self.listen()
        log._said.clear()
        around = contextlib.ExitStack()

        def between(step):
            if step == 1:
                self.wait_for(lambda: not online_check.task.judge._queue)
                around.enter_context(self.none_left())
            if step == 3:
                around.close()

        with around, mock.patch.object(sender, "_SEGMENT", 1):
            seen, told = self.run_steps(STEPS, {"server": listener.address}, between)
        self.assert_same(seen, self.run_steps(STEPS, None)[0])
        self.assertEqual(sum("task acc_check: some calls are left out: Too many open files" in line for line in told), 1, told)
        self.assertEqual(listener.process.poll(), None)
        told = listener.end()
        self.assertRegex(told, " calls of steps 0 to 5")

    def test_none_to_begin_with(self):
        """It is refused where the debugger is made, as any setting that cannot be."""
        self.config_path = os.path.join(self.folder, "config.json")
        self.write_config({"task": "acc_check", "dump_path": self.folder, "level": "L1", "acc_check": {"server": "localhost:1"}})
        for but in range(1, 4):
            with self.none_left(but), self.assertRaises(MsprobeException):
                PrecisionDebugger(config_path=self.config_path)


class Folders(Network):
    """The folder of nfs_path."""

    def check(self, spoil):
        folder = os.path.join(self.folder, "shared")
        os.mkdir(folder)

        def between(step):
            if step == 2:
                spoil(folder)

        seen, told = self.run_steps(STEPS, {"nfs_path": folder}, between)
        self.assert_same(seen, self.run_steps(STEPS, None)[0])
        warnings = [line for line in told if line.startswith("warning")]
        self.assertEqual(len(warnings), 1, told)
        return warnings[0]

    def test_it_is_removed(self):
        """The number of a file that was closed may be another file's soon: nothing is written to that."""
        judge = []

        def spoil(folder):
            judge.append(online_check.task.judge)
            shutil.rmtree(folder)

        self.assertRegex(self.check(spoil), "nfs_path cannot be written to: .*No such file or directory.*: nothing is judged any more")
        self.assertEqual(judge[0].file.descriptor, -1)

    def test_it_is_full(self):
        def spoil(folder):
            write = os.write
            patch = mock.patch.object(os, "write", lambda to, content: write(
                os.open("/dev/full", os.O_WRONLY) if to == online_check.task.judge._messages else to, content))
            patch.start()
            self.addCleanup(patch.stop)

        self.assertRegex(self.check(spoil), "nfs_path cannot be written to: .*No space left on device.*: nothing is judged any more")


if __name__ == "__main__":
    unittest.main()

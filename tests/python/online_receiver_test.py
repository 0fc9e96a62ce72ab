# SPDX-License-Identifier: Apache-2.0
"""The receiver of `msprobe acc_check --listen`, in this process: peers that are silent, slow, many, or send anything at all."""

import errno
import json
import os
import random
import select
import shutil
import socket
import struct
import threading
import time
import unittest
from unittest import mock

from helpers import *
from msprobe.pytorch.online_check import receiver, wire
from online_network_test import Network


class Stores(Case):
    def test_a_folder_that_the_command_has_removed_was_judged(self):
        store = receiver._Store(os.path.join(self.folder, "1"))
        store.add_tensors(b"12345678")
        store.add_message(b"{}")
        self.assertFalse(store.look())
        shutil.rmtree(store.folder)
        self.assertTrue(store.look())
        self.assertEqual((store.bytes, store.judged), (0, 8))
        self.assertFalse(store.look())
        store.remove()


class Peers(Case):
    """They connect to a receiver in this process."""

    def setUp(self):
        super().setUp()
        self.events, events = os.pipe()
        requests, self.requests = os.pipe()
        patches = {"_EVENTS": events, "_REQUESTS": requests, "_LONGEST_GREETING": 1, "_LONGEST_FRAME": 1, "_LONGEST_ABSENCE": 1,
                   "_TICK": 0.05, "_LINES_A_MINUTE": 10000}
        for name, value in patches.items():
            patch = mock.patch.object(receiver, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.receiver = receiver.Receiver({"release": "1", "tls": "", "host": "localhost", "port": 0})
        self.thread = threading.Thread(target=self.receiver.run)
        self.thread.start()
        self._heard = b""
        self.said = []
        self.listens = self.hear("listens")["listens"]
        self.port = int(self.listens.rpartition(":")[2])

        def end():
            os.close(self.requests)
            self.thread.join(10)
            folder = self.receiver.folder
            self.receiver.close()
            for one in (self.events, events, requests):
                os.close(one)
            self.assertFalse(os.path.exists(folder))

        self.addCleanup(end)

    def hear(self, kind):
        """The next event of this kind; what comes before it is in self.said."""
        while True:
            while b"\n" not in self._heard:
                if not select.select([self.events], [], [], 60)[0]:
                    raise AssertionError("it said no more than %s" % self.said[-5:])
                self._heard += os.read(self.events, 65536)
            line, _, self._heard = self._heard.partition(b"\n")
            self.said.append(json.loads(line.decode()))
            if kind in self.said[-1]:
                return self.said[-1]

    def connect(self, source="127.0.0.1"):
        one = socket.create_connection(("127.0.0.1", self.port), 60, source_address=(source, 0))
        self.addCleanup(one.close)
        return one

    FIRST = wire.first_frame({"training": "a", "release": "1"})
    BEGIN = wire.frame(wire.MESSAGE, b'{"begin": {}}')

    def whole(self):
        return [self.FIRST, self.BEGIN, wire.frame(wire.TENSORS, b"0123"), wire.frame(wire.TENSORS, b"45"),
                wire.frame(wire.MESSAGE, b'{"call": 1}'), wire.frame(wire.NEXT), wire.frame(wire.END)]

    def check_good_one(self, source="127.0.0.1"):
        """It gets through, and its files are right."""
        one = self.connect(source)
        for piece in self.whole():
            one.sendall(piece)
        peer = wire.named(one.getsockname())
        while True:
            begun = self.hear("begins")
            if begun["peer"] == peer:
                break
        received = b""
        wanted = wire.first_frame({"release": "1"}) + wire.frame(wire.DONE)
        while len(received) < len(wanted):
            received += one.recv(4096)
        self.assertEqual(received, wanted)
        folder = os.path.join(self.receiver.folder, str(begun["begins"]))
        with open(folder + "/messages.0", "rb") as file:
            self.assertEqual(file.read(), b'{"begin": {}}\n{"call": 1}\n{"end": 0}\n')
        with open(folder + "/tensors.0", "rb") as file:
            self.assertEqual(file.read(), b"012345")
        # The receiver answers with the number of bytes that were judged.
        os.remove(folder + "/tensors.0")
        self.assertEqual(one.recv(100), wire.frame(wire.JUDGED, struct.pack(">Q", 6)))
        os.write(self.requests, b"%d\n" % begun["begins"])
        self.assertEqual(one.recv(100), b"")
        Network.wait_for(lambda: not os.path.exists(folder))

    def test_garbage_ends_its_connection_alone(self):
        for content, reason in (
                (b"GET / HTTP/1.1\r\n\r\n", "it is not msprobe"),
                (b"\x16\x03\x01", "it speaks TLS, for which --tls names certificates"),
                (wire.FIRST.pack(wire.MAGIC, 1, 1 << 30), "it is not msprobe"),
                (wire.FIRST.pack(wire.MAGIC, 1, 2) + b"[]", "it did not identify itself"),
                (wire.FIRST.pack(wire.MAGIC, 1, 4000) + b"[" * 4000, "it did not identify itself"),
                (self.FIRST + b"\xff" * 5, "it sent data that is not a frame"),
                (self.FIRST + wire.FRAME.pack(wire.MESSAGE, 1 << 31), "it sent data that is not a frame"),
                (self.FIRST + wire.FRAME.pack(wire.JUDGED, 8), "it sent data that is not a frame"),
                (self.FIRST + wire.frame(wire.MESSAGE, b"{}\n{}"), "it sent a message of several lines"),
                (self.FIRST + self.BEGIN + wire.frame(wire.END) * 2, "it sent data after its end"),
                (wire.MAGIC[:3], "it did not begin within 1 s"),
                (self.FIRST, "it did not begin within 1 s"),
                (self.FIRST + self.BEGIN + wire.FRAME.pack(wire.MESSAGE, 100) + b"{",
                 "it did not complete a frame within 1 s: the calls that arrived are judged")):
            one = self.connect()
            one.sendall(content)
            if "after its end" in reason:
                continue  # its end counts
            self.assertEqual(self.hear("warning")["warning"], "127.0.0.1:%d: %s" % (one.getsockname()[1], reason))
        one = self.connect()
        one.close()
        self.assertIn("it sent nothing", self.hear("warning")["warning"])
        self.check_good_one()

    def test_silent_connections_make_room(self):
        """200 of them keep out no training, whether it comes from their address or from another one."""
        began = time.monotonic()
        with mock.patch.object(receiver, "_LONGEST_GREETING", 60):
            elsewhere = self.connect("127.0.0.2")
            elsewhere.sendall(wire.MAGIC[:3])
            silent = [self.connect("127.0.0.3") for _ in range(200)]
            self.check_good_one()
            self.check_good_one("127.0.0.3")
            elsewhere.sendall(self.FIRST[3:] + self.BEGIN)
            self.assertEqual(self.hear("begins")["peer"], "127.0.0.2:%d" % elsewhere.getsockname()[1])
        self.assertLess(time.monotonic() - began, 5)
        warnings = [one["warning"] for one in self.said if "warning" in one]
        made_room = [line for line in warnings if line.endswith(": it did not identify itself, and another connection needs its place")]
        self.assertEqual(made_room[:72], ["127.0.0.3:%d: it did not identify itself, and another connection needs its place"
                                          % one.getsockname()[1] for one in silent[:72]])
        self.assertEqual(warnings, made_room)
        for one in silent:
            one.close()

    def test_silent_connections_of_many_addresses(self):
        began = time.monotonic()
        with mock.patch.object(receiver, "_LONGEST_GREETING", 60):
            for one in range(2, 12):
                for _ in range(60):
                    self.connect("127.0.0.%d" % one)
            self.check_good_one()
        self.assertLess(time.monotonic() - began, 10)

    def test_an_address_is_not_limited_once_it_has_greeted(self):
        """All ranks of a node share one."""
        with mock.patch.multiple(receiver, _MOST_NEW_OF_ONE=3, _MOST_NEW=5):
            ranks = []
            for _ in range(100):
                ranks.append(self.connect())
                ranks[-1].sendall(self.FIRST + self.BEGIN)
            began = {self.hear("begins")["peer"] for _ in ranks}
            self.assertEqual(began, {"127.0.0.1:%d" % one.getsockname()[1] for one in ranks})
            silent = [self.connect() for _ in range(10)]
            for one in ranks:
                one.sendall(wire.frame(wire.MESSAGE, b'{"call": 1}') + wire.frame(wire.END))
                received = b""
                while not received.endswith(wire.frame(wire.DONE)):
                    received += one.recv(4096)
            self.check_good_one()
            for one in ranks + silent:
                one.close()

    def test_more_connections_than_may_be_there(self):
        """Silent ones go; those that have greeted stay, and the next one is refused."""
        with mock.patch.object(self.receiver, "_most_connections", 3):
            ranks = [self.connect() for _ in range(2)]
            for one in ranks:
                one.sendall(self.FIRST + self.BEGIN)
                self.hear("begins")
            silent = [self.connect() for _ in range(2)]
            self.assertIn("another connection needs its place", self.hear("warning")["warning"])
            third = self.connect()
            third.sendall(self.FIRST + self.BEGIN)
            self.hear("begins")
            silent.append(self.connect())
            self.assertEqual(self.hear("warning")["warning"],
                             "127.0.0.1:%d: there are too many connections: it is refused" % silent[-1].getsockname()[1])
            self.assertEqual(silent[-1].recv(1), b"")
            third.close()
            self.assertIn("127.0.0.1:", self.hear("warning")["warning"])
            self.check_good_one()

    def test_where_connections_come_from(self):
        place = receiver._place_of
        self.assertEqual(place(("10.0.0.1", 1)), place(("::ffff:10.0.0.1", 2, 0, 0)))
        self.assertNotEqual(place(("10.0.0.1", 1)), place(("10.0.0.2", 1)))
        self.assertEqual(place(("2001:db8::1", 1, 0, 0)), place(("2001:db8::ffff:0:1", 1, 0, 0)))
        self.assertNotEqual(place(("2001:db8::1", 1, 0, 0)), place(("2001:db8:0:1::1", 1, 0, 0)))
        self.assertEqual(place(("fe80::1%lo", 1, 0, 1)), place(("fe80::2", 1, 0, 1)))

    def test_no_descriptors_are_left(self):
        """It rests from accepting, and serves the others meanwhile."""
        one = self.connect()
        one.sendall(self.FIRST)
        self.assertEqual(len(one.recv(4096)), len(wire.first_frame({"release": "1"})))
        listener, calls = self.receiver._listener, []

        class Exhausted:
            def accept(self):
                calls.append(0)
                if len(calls) < 4:
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                return listener.accept()

            def fileno(self):
                return listener.fileno()

        self.receiver._listener = Exhausted()
        waiting = self.connect()
        one.sendall(self.BEGIN)
        self.hear("begins")
        waiting.sendall(self.FIRST + self.BEGIN)
        self.hear("begins")
        self.receiver._listener = listener
        self.assertLess(len(calls), 10)
        self.check_good_one()

    def test_no_more_waits_than_may(self):
        with mock.patch.object(receiver, "_MOST_WAITING", 1 << 20), mock.patch.object(receiver, "_LONGEST_STALL", 1):
            one = self.connect()
            one.settimeout(10)
            one.sendall(self.FIRST + self.BEGIN)
            begun = self.hear("begins")["begins"]
            folder = os.path.join(self.receiver.folder, str(begun))
            one.settimeout(0.3)
            piece = wire.frame(wire.TENSORS, bytes(1 << 18)) + wire.frame(wire.MESSAGE, b"{}")
            try:
                for _ in range(1000):
                    one.sendall(piece)
            except socket.timeout:
                pass
            self.assertLess(sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)), 2 << 20)
            self.assertIn("it sent calls faster than they are judged", self.hear("warning")["warning"])
        self.check_good_one()

    def test_slow_ones_with_a_right_greeting(self):
        """A frame that takes too long ends its connection, though bytes come all the time; pauses between frames do not; other
        trainings wait for neither."""
        message = wire.frame(wire.MESSAGE, b'{"call": 1}' + bytes(60))
        dripping, slow = self.connect(), self.connect()
        for one in (dripping, slow):
            one.sendall(self.FIRST + self.BEGIN)
            self.hear("begins")
        is_over = threading.Event()

        def drip():
            for byte in message:
                if is_over.wait(0.05):
                    return
                dripping.send(bytes([byte]))

        dripper = threading.Thread(target=drip)
        began = time.monotonic()
        dripper.start()
        try:
            for _ in range(5):
                slow.sendall(wire.frame(wire.TENSORS, bytes(100)))
                self.check_good_one()
                time.sleep(0.3)
            slow.sendall(wire.frame(wire.MESSAGE, b'{"call": 1}') + wire.frame(wire.END))
            received = b""
            while not received.endswith(wire.frame(wire.DONE)):
                received += slow.recv(4096)
        finally:
            is_over.set()
            dripper.join()
        warnings = [one["warning"] for one in self.said if "warning" in one] or [self.hear("warning")["warning"]]
        self.assertEqual(warnings, ["127.0.0.1:%d: it did not complete a frame within 1 s: the calls that arrived are judged"
                                    % dripping.getsockname()[1]])
        self.assertGreater(time.monotonic() - began, 1)

    def test_where_the_disk_is_full_the_largest_one_goes(self):
        """And not one that waits for it."""
        with mock.patch.object(self.receiver, "_most", 1 << 20), mock.patch.object(receiver, "_LONGEST_STALL", 1):
            large, small = self.connect(), self.connect()
            for one in (large, small):
                one.sendall(self.FIRST + self.BEGIN)
                self.hear("begins")
            small.sendall(wire.frame(wire.TENSORS, bytes(100)) + wire.frame(wire.MESSAGE, b"{}"))
            large.settimeout(0.3)
            try:
                for _ in range(1000):
                    large.sendall(wire.frame(wire.TENSORS, bytes(1 << 18)) + wire.frame(wire.MESSAGE, b"{}"))
            except socket.timeout:
                pass
            small.sendall(wire.frame(wire.TENSORS, bytes(100)) + wire.frame(wire.MESSAGE, b"{}"))
            self.assertRegex(self.hear("warning")["warning"], "127.0.0.1:%d: it sent calls faster than they are judged" % large.getsockname()[1])
            begun = [one["begins"] for one in self.said if "begins" in one]
            shutil.rmtree(os.path.join(self.receiver.folder, str(begun[0])))  # it was judged
            os.write(self.requests, b"%d\n" % begun[0])
            small.sendall(wire.frame(wire.END))
            received = b""
            while not received.endswith(wire.frame(wire.DONE)):
                received += small.recv(4096)

    def test_a_full_disk(self):
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with mock.patch.object(receiver._Store, "add_tensors", side_effect=full):
            one = self.connect()
            one.sendall(b"".join(self.whole()))
            self.assertIn("its data cannot be stored: No space left on device: the calls that arrived are judged",
                          self.hear("warning")["warning"])
        self.check_good_one()

    def test_a_lost_training_may_come_back(self):
        one = self.connect()
        one.sendall(self.FIRST + self.BEGIN)
        self.assertEqual(self.hear("open"), {"open": 1})
        self.assertEqual(len(one.recv(4096)), len(wire.first_frame({"release": "1"})))
        one.close()
        self.assertIn("it ended the connection: the calls that arrived are judged", self.hear("warning")["warning"])
        one = self.connect()
        one.sendall(self.FIRST + self.BEGIN)
        self.assertTrue(self.hear("begins")["again"])
        one.close()
        self.assertEqual(self.hear("open"), {"open": 0})  # it was away for too long

    def test_mutated_streams(self):
        chosen = random.Random(5)
        for _ in range(400):
            pieces = self.whole()
            for _ in range(chosen.choice((1, 1, 2, 5))):
                at = chosen.randrange(len(pieces))
                piece = bytearray(pieces[at])
                change = chosen.randrange(5)
                if change == 0 and piece:
                    piece[chosen.randrange(len(piece))] = chosen.randrange(256)
                elif change == 1:
                    del piece[chosen.randrange(len(piece) + 1):]
                elif change == 2:
                    piece[chosen.randrange(len(piece) + 1):0] = bytes(chosen.randrange(256) for _ in range(chosen.randrange(40)))
                elif change == 3:
                    piece *= 2
                else:
                    other = chosen.randrange(len(pieces))
                    piece, pieces[other] = bytearray(pieces[other]), bytes(piece)
                pieces[at] = bytes(piece)
            # Elsewhere: the good one may be given a port that one of these had.
            one = self.connect("127.0.0.2")
            try:
                one.sendall(b"".join(pieces))
            except OSError:
                pass
            one.close()
        for folder, _, files in os.walk(self.receiver.folder):  # it passes over what the receiver removes meanwhile
            for file in files:
                found = os.path.relpath(os.path.join(folder, file), self.receiver.folder)
                self.assertRegex(found, r"^[0-9]+/(messages|tensors)\.[0-9]+$")
        self.check_good_one()


if __name__ == "__main__":
    unittest.main()

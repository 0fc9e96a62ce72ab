# SPDX-License-Identifier: Apache-2.0
"""Takes the calls of running trainings from the network, and puts them into files that the judge reads and removes.

The command contains this file and wire.py, and runs them as a process of its own (`msprobe acc_check --listen`), with
the standard library alone. data/precheck/PROTOCOL.md describes what it hears and says. Peers are not trusted: all sizes
have limits, nothing that a peer sends is a name of a file or is executed, and what is wrong with one connection ends that
one alone.
"""

import collections
import errno
import ipaddress
import json
import os
import resource
import selectors
import shutil
import socket
import ssl
import sys
import tempfile
import time

if __package__:
    from . import wire
else:  # inside the command, where it follows a zero byte
    import types

    wire = types.ModuleType("wire")
    exec(compile(os.pread(7, 1 << 20, 0).split(b"\0")[1], "wire.py", "exec"), wire.__dict__)

_MOST_OF_A_FILE = wire.MOST_OF_A_MESSAGE + (16 << 20)
_MOST_WAITING = 2 << 30           # bytes of one connection; a training stays below half of it, and may hold one more call
_MOST_CONNECTIONS = 512
_MOST_NEW = 256                   # connections that have not identified themselves yet
_MOST_NEW_OF_ONE = 128            # of these, from one place
_MOST_CLOSING = 64
_OWN_DESCRIPTORS = 16
_DESCRIPTORS = 4                  # per connection: its socket, two files, and the socket of a closing one
_LONGEST_GREETING = 20            # seconds
_LONGEST_FAREWELL = 1
_LONGEST_FRAME = 60               # seconds from its first byte to its last
_LONGEST_STALL = 600              # seconds without a judged call while there is no room
_LONGEST_ABSENCE = 60             # seconds for a training whose connection was lost
_TICK = 0.2
_PIECE = 1 << 18
_PIECES = 16                      # read at one time, because other connections wait
_MESSAGES_OF_A_FILE = 1 << 20     # bytes
_LINES_A_MINUTE = 60
_REQUESTS, _EVENTS = 3, 4         # descriptors

_LIMITS = {wire.TENSORS: wire.LONGEST_TENSORS, wire.NEXT: 0, wire.MESSAGE: wire.LONGEST_MESSAGE, wire.END: 0}
_BLOCKED = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Closed(Exception):
    """The reason why a connection ends for good: the peer should not connect again."""


class _Late(_Closed):
    """The reason why a connection ends, although the peer may connect again."""


def _tell(**event):
    line = memoryview((json.dumps(event) + "\n").encode())
    while line:
        line = line[os.write(_EVENTS, line):]


def _place_of(address):
    """Returns the place of a connection. All IPv6 addresses of one network are the same place, since a peer can have
    any of them."""
    found = ipaddress.ip_address(address[0].partition("%")[0])
    if found.version == 6:
        return found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64))
    return found


def _most_connections():
    """Returns how many connections the available descriptors allow."""
    wanted = _OWN_DESCRIPTORS + _DESCRIPTORS * _MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = min(wanted, soft)
    most = (wanted - _OWN_DESCRIPTORS) // _DESCRIPTORS
    if most < 1:
        raise wire.Unsuitable("the limit of open files, %d, is too low to listen: raise it with `ulimit -n`" % soft)
    return most


class _Lines:
    """Prints messages for the user, but no more than a person can read, whatever peers do."""

    def __init__(self):
        self._until = 0.0
        self._count = 0

    def say(self, kind, text):
        now = time.monotonic()
        if now >= self._until:
            self.end()
            self._until = now + 60
        self._count += 1
        if self._count <= _LINES_A_MINUTE:
            _tell(**{kind: text})

    def end(self):
        if self._count > _LINES_A_MINUTE:
            _tell(warning="%d more lines on connections in this minute" % (self._count - _LINES_A_MINUTE))
        self._count = 0


class _Store:
    """The files of one training: messages, and their tensors."""

    def __init__(self, folder):
        os.mkdir(folder, 0o700)
        self.folder = folder
        self._waiting = {}       # name -> bytes
        self.bytes = 0           # bytes of all waiting files
        self.judged = 0          # bytes of tensors
        self.has_messages = False
        self._tensors = None     # the file that grows
        self._number = 0         # its number
        self._message_file = None
        self._message_number = -1
        self._message_bytes = 0

    def _add(self, file, name, content):
        file.write(content)
        self._waiting[name] = self._waiting.get(name, 0) + len(content)
        self.bytes += len(content)

    def add_tensors(self, content):
        name = "tensors.%d" % self._number
        if self._tensors is None:
            self._tensors = open(os.path.join(self.folder, name), "xb")
        if self._waiting.get(name, 0) + len(content) > _MOST_OF_A_FILE:
            raise _Closed("it sent a call with more than 1 GiB of tensors")
        self._add(self._tensors, name, content)

    def next_tensors(self):
        if self._tensors is not None:
            self._tensors.close()
            self._tensors = None
        self._number += 1

    def add_message(self, line):
        if self._tensors is not None:
            self._tensors.flush()
        if self._message_file is None or self._message_bytes >= _MESSAGES_OF_A_FILE:
            self._next_message_file()
        self._add(self._message_file, "messages.%d" % self._message_number, line + b"\n")
        self._message_bytes += len(line) + 1
        self.has_messages = True

    def _next_message_file(self):
        if self._message_file is not None:
            self._message_file.close()
        self._message_number += 1
        self._message_bytes = 0
        # The file has no buffer, because the judge reads it while it grows.
        self._message_file = open(os.path.join(self.folder, "messages.%d" % self._message_number), "xb", buffering=0)

    def look(self):
        """Returns whether some waiting files were judged and removed."""
        if not self._waiting:
            return False
        try:
            present = set(os.listdir(self.folder))
        except FileNotFoundError:
            present = set()  # the command removes the folder of a training that it has judged, and then reports it
        gone = [name for name in self._waiting if name not in present]
        for name in gone:
            size = self._waiting.pop(name)
            self.bytes -= size
            if name.startswith("tensors"):
                self.judged += size
        return bool(gone)

    def close(self):
        for file in (self._tensors, self._message_file):
            if file is not None:
                try:
                    file.close()
                except OSError:
                    pass
        self._tensors = self._message_file = None

    def remove(self):
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Connection:
    def __init__(self, receiver, plain, address, number):
        self.receiver = receiver
        self.socket = plain
        self.peer = wire.named(address)
        self.place = _place_of(address)
        self.number = number
        self.training = None          # the name that the training gives itself
        self.store = None
        self.ended = False            # the peer has reported the end
        self.is_open = True
        self.greeted = False
        self.has_spoken = False
        self._in = bytearray()
        self._out = bytearray()
        self._shakes_hands = receiver.context is not None
        self._deadline = time.monotonic() + _LONGEST_GREETING
        self._frame_began = None
        self._paused = None           # the time since when there is no room
        self._judged_told = 0
        self._watched = 0             # selector events

    # ------------------------------------------------------------------ bytes

    def watch(self):
        wanted = (0 if self._paused is not None else selectors.EVENT_READ) | (selectors.EVENT_WRITE if self._out else 0)
        if self._shakes_hands:
            wanted = self._handshake_wants
        if wanted != self._watched:
            selector = self.receiver.selector
            if not self._watched:
                selector.register(self.socket, wanted, self)
            elif not wanted:
                selector.unregister(self.socket)
            else:
                selector.modify(self.socket, wanted, self)
            self._watched = wanted

    _handshake_wants = selectors.EVENT_READ

    def serve(self):
        """Reads and writes as far as possible now. Returns whether there may be more to do at once. Raises _Closed, OSError."""
        if self._shakes_hands:
            try:
                self.socket.do_handshake()
            except ssl.SSLWantReadError:
                self._handshake_wants = selectors.EVENT_READ
                return False
            except ssl.SSLWantWriteError:
                self._handshake_wants = selectors.EVENT_WRITE
                return False
            self._shakes_hands = False
        self._flush()
        for _ in range(_PIECES):
            if self._paused is not None:
                return False
            try:
                piece = self.socket.recv(_PIECE)
            except _BLOCKED:
                return False
            if not piece:
                raise _Late("it ended the connection" if self.greeted else "it sent nothing")
            self._in += piece
            self._take()
        return True

    def _flush(self):
        while self._out:
            try:
                del self._out[:self.socket.send(self._out[:_PIECE])]
            except _BLOCKED:
                return

    def _say(self, content):
        self._out += content
        self._flush()

    # ------------------------------------------------------------------ frames

    def _take(self):
        """Processes all complete frames."""
        if not self.greeted and not self._greet():
            return
        while self._paused is None:
            if len(self._in) < wire.FRAME.size:
                break
            kind, size = wire.FRAME.unpack_from(self._in)
            if kind not in _LIMITS or size > _LIMITS[kind]:
                raise _Closed("it sent data that is not a frame")
            if len(self._in) < wire.FRAME.size + size:
                break
            content = bytes(self._in[wire.FRAME.size:wire.FRAME.size + size])
            del self._in[:wire.FRAME.size + size]
            self._frame_began = None
            self._take_frame(kind, content)
        if self._in and self._frame_began is None:
            self._frame_began = time.monotonic()

    def _greet(self):
        received = bytes(self._in[:wire.FIRST.size])
        if received[:len(wire.MAGIC)] != wire.MAGIC[:len(received)]:
            if received[:1] == b"\x16":
                raise _Closed("it speaks TLS, for which --tls names certificates")
            raise _Closed("it is not msprobe")
        if len(received) < wire.FIRST.size:
            return False
        _, version, size = wire.FIRST.unpack(received)
        if size > wire.LONGEST_FIRST:
            raise _Closed("it is not msprobe")
        if len(self._in) < wire.FIRST.size + size:
            return False
        try:
            said = json.loads(bytes(self._in[wire.FIRST.size:wire.FIRST.size + size]).decode())
            training, release = said["training"], said["release"]
        except (ValueError, KeyError, TypeError, RecursionError):
            training = release = None
        if version != wire.VERSION:
            self._say(wire.first_frame({"release": self.receiver.release}))
            raise _Closed("it speaks version %d of the protocol%s, and this msprobe version %d: install the same release on "
                          "both sides" % (version, " (%s)" % release[:40] if isinstance(release, str) else "", wire.VERSION))
        if not isinstance(training, str) or not isinstance(release, str) or len(training) > 64:
            raise _Closed("it did not identify itself")
        del self._in[:wire.FIRST.size + size]
        self.training = training
        self._say(wire.first_frame({"release": self.receiver.release}))
        self.store = _Store(os.path.join(self.receiver.folder, str(self.number)))
        self.greeted = True
        return True

    def _take_frame(self, kind, content):
        if self.ended:
            raise _Closed("it sent data after its end")
        try:
            if kind == wire.TENSORS:
                self.store.add_tensors(content)
            elif kind == wire.NEXT:
                self.store.next_tensors()
            elif kind == wire.MESSAGE:
                if b"\n" in content:
                    raise _Closed("it sent a message of several lines")
                self._add_message(content)
            else:
                self.ended = True
                self._add_message(b'{"end": 0}')
                self._say(wire.frame(wire.DONE))
        except OSError as error:
            raise _Late("its data cannot be stored: %s" % wire.reason_of(error)) from None
        if self.store.bytes >= _MOST_WAITING or self.receiver.is_full():
            self._paused = time.monotonic()

    def _add_message(self, line):
        began = self.store.has_messages
        self.store.add_message(line)
        if not began:
            self._deadline = None
            self.receiver.begin(self)

    # ------------------------------------------------------------------ time

    def tick(self, now):
        """Checks time limits. Returns whether there is something to do at once. Raises _Closed."""
        if self._deadline is not None and now > self._deadline:
            raise _Late("it did not begin within %d s" % _LONGEST_GREETING)
        if self._frame_began is not None and self._paused is None and now - self._frame_began > _LONGEST_FRAME:
            raise _Late("it did not complete a frame within %d s" % _LONGEST_FRAME)
        if self.store is None:
            return False
        some = self.store.look()
        if self.store.judged != self._judged_told and not self._out:
            self._judged_told = self.store.judged
            self._say(wire.frame(wire.JUDGED, wire.COUNT.pack(self._judged_told)))
        if self._paused is None:
            return False
        if self.store.bytes < _MOST_WAITING and not self.receiver.is_full():
            self._paused = None
            if self._frame_began is not None:
                self._frame_began = now
            self._take()
            return True
        if some:
            self._paused = now
        elif now - self._paused > _LONGEST_STALL and (
                self.store.bytes >= _MOST_WAITING or self.receiver.has_most(self.store)):
            raise _Late("it sent calls faster than they are judged, and none was judged for %d s" % _LONGEST_STALL)
        return False

    def close(self, reason=None):
        """Closes the connection. If possible at once, the peer gets the reason."""
        self.is_open = False
        try:
            if reason is not None and self.greeted and not self._out:
                self._say(wire.frame(wire.REFUSED, reason.encode()[:wire.LONGEST_TEXT]))
        except (OSError, ValueError):
            pass
        if self._watched:
            self.receiver.selector.unregister(self.socket)
            self._watched = 0
        self.receiver.close_later(self.socket)
        if self.store is not None:
            if self.store.has_messages and not self.ended:
                try:
                    self.store.add_message(b'{"end": 0}')
                except OSError:
                    self.receiver.drop_later(self.number)
            self.store.close()
            if not self.store.has_messages:
                self.store.remove()


class Receiver:
    def __init__(self, settings):
        self.release = settings["release"]
        self.context = None
        self.selector = selectors.DefaultSelector()
        self.lines = _Lines()
        self._connections = {}    # number -> connection
        self._stores = {}         # number -> store, until the command no longer needs it
        self._lost = {}           # training -> time when its connection was lost
        self._closing = []        # (when, socket)
        self._number = 0
        self._open_told = None
        self._is_resting = False  # accepts no connections at the moment
        self._requests = b""
        self._eager = set()
        self.folder = None
        if settings["tls"]:
            self.context = wire.tls_context(settings["tls"], "server")
        self._most_connections = _most_connections()
        self._listener = self._listen(settings["host"], settings["port"])
        self.folder = tempfile.mkdtemp(prefix="msprobe-")
        space = os.statvfs(self.folder)
        self._most = space.f_bavail * space.f_frsize // 2

    def _listen(self, host, port):
        try:
            found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except OSError as error:
            raise wire.Unsuitable("%s: %s" % (host, wire.reason_of(error))) from None
        family, _, _, _, address = found[0]
        if self.context is None and not wire.is_loopback(address[0]):
            raise wire.Unsuitable("%s is not a loopback address: other machines can connect only with certificates, whose folder "
                                  "--tls names" % (host or address[0]))
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(128)
        except OSError as error:
            listener.close()
            raise wire.Unsuitable("%s: %s" % (wire.named(address), wire.reason_of(error))) from None
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ, None)
        return listener

    def is_full(self):
        return sum(store.bytes for store in self._stores.values()) >= self._most

    def has_most(self, store):
        """Whether no other training has more waiting bytes: if there is no room, the largest one is ended."""
        return store.bytes == max((one.bytes for one in self._stores.values()), default=0)

    # ------------------------------------------------------------------ trainings

    def begin(self, connection):
        self._stores[connection.number] = connection.store
        again = self._lost.pop(connection.training, None) is not None
        self._tell_open()
        _tell(begins=connection.number, peer=connection.peer, again=again)

    def drop_later(self, number):
        """The files of this training are lost: tells the command to end it."""
        _tell(ends=number)

    def _tell_open(self):
        """Returns how many trainings may still send messages."""
        count = len(self._lost) + sum(one.store is not None and one.store.has_messages and not one.ended
                                      for one in self._connections.values())
        if count != self._open_told:
            self._open_told = count
            _tell(open=count)

    # ------------------------------------------------------------------ connections

    def _accept(self):
        for _ in range(_PIECES):
            try:
                plain, address = self._listener.accept()
            except _BLOCKED:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self.selector.unregister(self._listener)  # otherwise the event would occur again at once
                    self._is_resting = True
                return
            if not self._has_room(_place_of(address)):
                plain.close()
                self.lines.say("warning", "%s: there are too many connections: it is refused" % wire.named(address))
                continue
            try:
                plain.setblocking(False)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                wire.keep_alive(plain)
                if self.context is not None:
                    plain = self.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
            except (OSError, ValueError):
                plain.close()
                continue
            self._number += 1
            connection = self._connections[self._number] = _Connection(self, plain, address, self._number)
            self._attend(connection, connection.serve)  # reads an arrived greeting before the next one needs room

    def _has_room(self, place):
        """Whether there is room for one more connection. A connection that has not greeted makes room for it, a silent
        one first; otherwise a peer that only connects would lock out all others."""
        new = [one for one in self._connections.values() if not one.greeted]
        counts = collections.Counter(one.place for one in new)
        if counts[place] < _MOST_NEW_OF_ONE:
            if len(self._connections) < self._most_connections and len(new) < _MOST_NEW:
                return len(self._stores) < _MOST_CONNECTIONS
            if not new:
                return False
            place = counts.most_common(1)[0][0]
        oldest = min((one for one in new if one.place == place), key=lambda one: (one.has_spoken, one.number))
        self._end(oldest, "it did not identify itself, and another connection needs its place")
        return len(self._stores) < _MOST_CONNECTIONS

    def _attend(self, connection, work, *arguments):
        """Runs `work`, and ends the connection if it fails."""
        if not connection.is_open:
            return
        try:
            if work(*arguments):
                self._eager.add(connection)
            connection.watch()
        except _Closed as reason:
            self._end(connection, str(reason), not isinstance(reason, _Late))
        except (OSError, ValueError) as error:  # ValueError: an SSL object that was closed
            self._end(connection, wire.reason_of(error))

    def _end(self, connection, reason, tells_peer=False):
        began = connection.store is not None and connection.store.has_messages
        if began and not connection.ended:
            self._lost[connection.training] = time.monotonic()
        connection.close(reason if tells_peer else None)
        self._connections.pop(connection.number, None)
        self._eager.discard(connection)
        if not connection.ended:
            self.lines.say("warning", "%s: %s%s" % (
                connection.peer, reason, ": the calls that arrived are judged" if began else ""))
        self._tell_open()

    def close_later(self, connection):
        """Closes the socket later, so that the peer can still read the last message, even if it has sent more than was
        read."""
        try:
            connection.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            pass
        self._closing.append((time.monotonic() + _LONGEST_FAREWELL, connection))
        if len(self._closing) > min(_MOST_CLOSING, self._most_connections):
            self._closing.pop(0)[1].close()

    def _hear(self):
        """Reads the numbers of trainings that the command no longer needs. Returns False at the end."""
        piece = os.read(_REQUESTS, 4096)
        if not piece:
            return False
        *lines, self._requests = (self._requests + piece).split(b"\n")
        for line in lines:
            number = int(line)
            connection = self._connections.pop(number, None)
            if connection is not None:
                if not connection.ended:
                    connection.ended = True  # it is not waited for any more
                    connection.close("its calls could not be judged")
                else:
                    connection.close()
                self._eager.discard(connection)
            store = self._stores.pop(number, None)
            if store is not None:
                store.remove()
            self._tell_open()
        return True

    def run(self):
        _tell(listens=wire.named(self._listener.getsockname()), folder=self.folder)
        if self._most_connections < _MOST_CONNECTIONS:
            _tell(warning="the limit of open files allows %d connections at a time: `ulimit -n` raises it"
                  % self._most_connections)
        self.selector.register(_REQUESTS, selectors.EVENT_READ, self)
        next_tick = 0.0
        while True:
            ready = self.selector.select(0 if self._eager else _TICK)
            eager, self._eager = self._eager, set()
            for key, _ in ready:
                if key.data is None:
                    self._accept()
                elif key.data is self:
                    if not self._hear():
                        return
                else:
                    key.data.has_spoken = True
                    eager.add(key.data)
            for connection in sorted(eager, key=lambda one: one.number):
                self._attend(connection, connection.serve)
            now = time.monotonic()
            if now >= next_tick:
                next_tick = now + _TICK
                self._tick(now)

    def _tick(self, now):
        if self._is_resting:
            self.selector.register(self._listener, selectors.EVENT_READ, None)
            self._is_resting = False
        for number, store in self._stores.items():
            if number not in self._connections:
                store.look()
        for connection in list(self._connections.values()):
            self._attend(connection, connection.tick, now)
        while self._closing and now >= self._closing[0][0]:
            self._closing.pop(0)[1].close()
        for training, since in list(self._lost.items()):
            if now - since > _LONGEST_ABSENCE:
                del self._lost[training]
                self._tell_open()

    def close(self):
        self.lines.end()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def main():
    receiver = None
    try:
        receiver = Receiver(json.loads(sys.argv[1]))
        receiver.run()
    except wire.Unsuitable as reason:
        _tell(fatal=str(reason))
    except BrokenPipeError:
        pass  # the command has ended
    finally:
        if receiver is not None:
            receiver.close()


if __name__ == "__main__":
    main()

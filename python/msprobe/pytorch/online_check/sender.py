# SPDX-License-Identifier: Apache-2.0
"""Sends calls over the network, to `msprobe acc_check --listen HOST:PORT` on any machine.

A separate thread sends the items that the training puts into a queue, so the training never waits for the network. Calls
that do not fit into the queue are not sent. If the connection is lost, the thread makes another one, for which everything
begins anew.
"""

import collections
import json
import mmap
import os
import select
import socket
import ssl
import threading
import time
import uuid

from msprobe import _native
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException

from . import entries, wire
from .judge import Elsewhere

_MOST_QUEUED = 256 << 20      # bytes in the queue; a single call may be larger
_MOST_WAITING = 1 << 30       # bytes of tensors that are not judged yet, here and at the server
_SEGMENT = 64 << 20           # bytes of memory that are released together
_LONGEST_START = 10           # seconds that the training waits for the first connection
_LONGEST_CONNECT = 10         # seconds, including the greeting
_LONGEST_SILENCE = 60         # seconds without progress at the end of the training
_LONGEST_PAUSE = 30           # seconds between two attempts
_LONGEST_OUTAGE = 24 * 3600   # seconds without the server
_MOST_LOSSES = 10             # consecutive connections that were shorter than a pause
_FILE = 8 << 20               # bytes of tensors in a file of the server; then the next file begins
_PIECE = 1 << 18              # bytes of a frame
_BATCH = 1 << 19              # bytes sent at once: after each, the thread may have to wait for the interpreter


class _Refused(Exception):
    """The reason why no connection can ever succeed."""


class _Lost(Exception):
    """The reason why the connection ended."""


class _Segment(entries.TensorFile):
    """Memory for the tensors of some calls. It is freed with the last item that refers to it."""

    descriptor = -1
    _file = None
    _map = None

    def read(self, begin, size):
        """Reads from mapped memory, because a system call would release the interpreter lock."""
        if self._map is None or len(self._map) < begin + size:
            self._map = mmap.mmap(self.descriptor, 0, access=mmap.ACCESS_READ)
        return self._map[begin:begin + size]

    def begin_page(self):
        self.end = (self.end + 63) // 64 * 64

    def __del__(self):
        self.close()


class _Item:
    """A message in the queue: its line, and the place of its tensors."""

    def __init__(self, line, is_call=False, segment=None, blocks=(), gap=0, size=0):
        self.line = line
        self.is_call = is_call
        self.segment = segment
        self.blocks = blocks
        self.gap = gap             # bytes of padding before them
        self.size = size           # bytes of tensors including the padding
        self.begins_file = False   # the server begins a new file of tensors
        self.ends_file = False


class _Connection:
    """A connection; only the sending thread uses it."""

    def __init__(self, plain, wake):
        self.socket = plain
        self._wake = wake
        self._in = bytearray()

    def poll(self, to_write):
        """Waits until there is something to read, the other thread calls or, with to_write, something can be written."""
        pending = getattr(self.socket, "pending", None)
        if pending is not None and pending():
            return
        select_on = select.poll()
        select_on.register(self.socket, select.POLLIN | (select.POLLOUT if to_write else 0))
        select_on.register(self._wake, select.POLLIN)
        select_on.poll(1000)
        try:
            os.read(self._wake, 4096)
        except BlockingIOError:
            pass

    def send(self, content):
        """Returns how many bytes the system has accepted."""
        try:
            return self.socket.send(content)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0

    def receive(self):
        """Yields the frames that have arrived. Raises _Lost."""
        while True:
            try:
                piece = self.socket.recv(_PIECE)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            if not piece:
                raise _Lost("it ended the connection")
            self._in += piece
            if len(self._in) > _PIECE:
                break
        while len(self._in) >= wire.FRAME.size:
            kind, size = wire.FRAME.unpack_from(self._in)
            if size > wire.LONGEST_TEXT:
                raise _Lost("it sent data that is not a frame")
            end = wire.FRAME.size + size
            if len(self._in) < end:
                break
            content = bytes(self._in[wire.FRAME.size:end])
            del self._in[:end]
            yield kind, content


class Server(Elsewhere):
    """Sends messages to a server."""

    def __init__(self, begin, host, port, tls):
        """Raises MsprobeException if a setting is not supported here."""
        super().__init__(begin)
        self._host, self._port = host, port
        self.name = ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)
        try:
            self._context = wire.tls_context(tls, "client") if tls else None
            if self._context is None:
                self._check_is_here()
        except wire.Unsuitable as reason:
            raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "task acc_check: %s" % reason) from None
        self.alive = True
        self._training = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._queue = collections.deque()
        self._queued = 0          # bytes in the queue: tensors and messages
        self._sent = 0            # bytes sent over this connection
        self._judged = 0
        self._file = 0            # number of the server's current file of tensors
        self._file_bytes = 0
        self._calls = 0           # calls in the queue
        self._lost_calls = 0
        self._waiting_calls = 0   # calls waiting for their turn that did not fit
        self._told_full = False
        self._is_connected = False
        self._connections = 0
        self._follow = set()      # calls of this connection whose backward is still to come
        self._places = {}         # call -> the description of its place
        self._told_places = set()  # calls whose place this connection knows
        self._is_asleep = False
        self._is_ending = False
        self._is_done = False
        self._has_finished = False
        self._tried = threading.Event()
        try:
            self._segment = _Segment()
            self._wake_reader, self._wake_writer = os.pipe()
            for end in (self._wake_reader, self._wake_writer):
                os.set_blocking(end, False)
            self._thread = threading.Thread(target=self._run, name="msprobe", daemon=True)
            self._thread.start()
        except (OSError, RuntimeError) as error:  # no descriptor, or no thread
            raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR,
                                   "task acc_check: %s: nothing can be sent: %s" % (self.name, error)) from None
        self._tried.wait(_LONGEST_START)

    def _check_is_here(self):
        try:
            found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError:
            return  # the thread reports it
        if not all(wire.is_loopback(one[4][0]) for one in found):
            raise wire.Unsuitable("%s is another machine, to which tensors are sent only with certificates: tls_path names their "
                                  "folder" % self._host)

    # ------------------------------------------------------------------ the training's side

    @property
    def file(self):
        """Returns the file for the tensors of the next call."""
        if self._segment.end >= _SEGMENT:
            self._segment = _Segment()
        return self._segment

    def is_full(self, size):
        """Whether a call with this many bytes of arguments does not fit."""
        if not self._is_connected:
            return True
        with self._lock:
            fits = (not self._queued or self._queued + size <= _MOST_QUEUED) and (
                self._queued + self._sent - self._judged + size <= _MOST_WAITING)
            if fits:
                return False
            self._waiting_calls += 1
            is_first, self._told_full = not self._told_full, True
        if is_first:
            log.warn("task acc_check: %s takes fewer calls than the training makes: some wait for later steps" % self.name)
        return True

    @staticmethod
    def described(part):
        return {"entry": part.entry, "tensors": part.tensors, "blocks": part.blocks, "segment": part.file}

    def tell(self, message):
        if "unused" not in message:
            self._put(message)

    def ask(self, message, number, calls):
        self._put(message)
        return {"refused": False}, 0.0

    def _put(self, message):
        segment, blocks, size = None, (), 0
        if "entry" in message:
            message = dict(message)
            segment = message.pop("segment")
            blocks, size = self._pack(message)
            if size > wire.MOST_OF_A_MESSAGE:
                return self._leave_out(message, "its tensors take more than 1 GiB")
        with self._lock:
            if not self._is_connected:
                self._lost_calls += "call" in message
                return None
            if "backward" in message:
                if message["backward"] not in self._follow:
                    return None  # its call was sent over another connection
                self._follow.discard(message["backward"])
            elif "step_ends" in message:
                self._follow.clear()
            elif "call" in message:
                self._add_place(message)
            begins_file, gap = False, 0
            if segment is not None:
                begins_file = self._file_bytes >= _FILE
                begin = 0 if begins_file else (self._file_bytes + 63) // 64 * 64
                gap = begin - (0 if begins_file else self._file_bytes)
                message["file"] = self._file + begins_file
                message["tensors"] = {name: [dtype, shape, place + begin]
                                      for name, (dtype, shape, place) in message["tensors"].items()}
            line = json.dumps(message).encode()
            if len(line) > wire.LONGEST_MESSAGE:
                if "call" in message:
                    message = {key: message[key] for key in ("type", "name", "number", "step", "leaf")}
                    message.update(skipped=0, reason="its arguments take more than 4 MiB as text")
                    return self._append(_Item(json.dumps(message).encode()))
                return None
            if message.get("follows"):
                self._follow.add(message["call"])
            self._calls += "call" in message
            item = _Item(line, "call" in message, segment, blocks, gap, gap + size)
            item.begins_file = begins_file
            item.ends_file = "step_ends" in message and self._file_bytes > 0
            if segment is not None:
                self._file_bytes = begin + size
            if begins_file or item.ends_file:
                self._file += 1
            if item.ends_file:
                self._file_bytes = 0
            return self._append(item)

    def _leave_out(self, message, reason):
        if "call" in message:
            heading = {key: message[key] for key in ("type", "name", "number", "step", "leaf")}
            self._put(dict(heading, skipped=message["call"], reason=reason))

    def _append(self, item):
        self._queue.append(item)
        self._queued += item.size + len(item.line)
        self._wake()

    @staticmethod
    def _pack(message):
        """Changes the places of tensors to places in a file of this message alone. Returns (blocks, bytes of that
        file)."""
        blocks, moved, size = [], [], 0
        for begin, length in message.pop("blocks"):
            size = (size + 63) // 64 * 64
            blocks.append((begin, length, size))
            moved.append((begin, begin + length, size - begin))
            size += length
        tensors = {}
        for name, (dtype, shape, place) in message["tensors"].items():
            by = next((by for begin, end, by in moved if begin <= place <= end), 0)
            tensors[name] = [dtype, shape, place + by]
        message["tensors"] = tensors
        return blocks, size

    def _add_place(self, message):
        """Adds the place of the call, because a new connection does not know it."""
        call = message["type"], message["name"], message["number"]
        if "place" in message:
            self._places[call] = {key: message[key] for key in ("place", "where", "frames")}
        elif call not in self._told_places:
            message.update(self._places.get(call, {}))
        self._told_places.add(call)

    def lose(self, reason):
        """Does nothing: no message to a server raises Lost."""

    def finish(self):
        if self._has_finished:
            return
        self._has_finished = True
        self.alive = False
        with self._lock:
            self._is_ending = True
            before = self._progress()
        self._wake()
        end = time.monotonic() + _LONGEST_SILENCE
        while self._thread.is_alive() and self._is_connected and time.monotonic() < end:
            self._thread.join(0.2)
            if self._progress() != before:
                before = self._progress()
                end = time.monotonic() + _LONGEST_SILENCE
        with self._lock:
            self._is_done = True
            self._lost_calls += self._calls
            lost, waiting = self._lost_calls, self._waiting_calls
        self._wake()
        self._thread.join(1)
        if not self._thread.is_alive():
            os.close(self._wake_writer)
            os.close(self._wake_reader)
        if lost or waiting:
            log.info("task acc_check: %s: %s" % (self.name, ", ".join(
                text % count for text, count in (("lost with a connection or at the end: %d", lost),
                                                 ("%d did not fit and waited for a later step", waiting)) if count)))

    def _progress(self):
        return self._sent, self._judged, len(self._queue)

    def _wake(self):
        if not self._is_asleep:
            return
        try:
            os.write(self._wake_writer, b"\0")
        except OSError:
            pass  # the thread is awake already

    # ------------------------------------------------------------------ the thread

    def _run(self):
        try:
            self._keep_connected()
        except _Refused as reason:
            self._give_up(str(reason))
        except Exception as error:  # an error here must not affect the training
            self._give_up(repr(error))
        finally:
            self._end_connection()
            self._tried.set()

    def _keep_connected(self):
        """Sends until the end of the training. Raises _Refused."""
        pause, losses, has_warned = 1.0, 0, False
        since = time.monotonic()  # the time since when there is no connection
        while not self._is_ending:
            try:
                connection = self._connect()
            except (OSError, _Lost) as error:
                if not has_warned:
                    log.warn("task acc_check: %s cannot be reached: %s: nothing is judged until it can be" % (
                        self.name, wire.reason_of(error)))
                has_warned = True
                self._tried.set()
                if time.monotonic() - since > _LONGEST_OUTAGE:
                    raise _Refused("it could not be reached for %d hours" % (_LONGEST_OUTAGE // 3600)) from None
            else:
                if self._is_ending:
                    return connection.socket.close()
                began = time.monotonic()
                if self._connections:
                    log.info("task acc_check: %s judges again" % self.name)
                self._begin_connection()
                self._tried.set()
                try:
                    return self._serve(connection)
                except (OSError, ValueError, _Lost) as error:
                    has_warned = self._end_connection()
                    if has_warned:
                        log.warn("task acc_check: the connection to %s was lost: %s: nothing is judged until it can be reached "
                                 "again" % (self.name, wire.reason_of(error)))
                finally:
                    connection.socket.close()
                since = time.monotonic()
                losses += 1
                if since - began > _LONGEST_PAUSE:
                    pause, losses = 1.0, 0
                if losses >= _MOST_LOSSES:
                    raise _Refused("its connections end early")
            self._sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return None

    def _give_up(self, reason):
        self.alive = False
        log.warn("task acc_check: %s: %s: nothing is judged any more" % (self.name, reason))

    def _sleep(self, seconds):
        end = time.monotonic() + seconds
        self._is_asleep = True
        while not self._is_ending and time.monotonic() < end:
            look = select.poll()
            look.register(self._wake_reader, select.POLLIN)
            look.poll(max(end - time.monotonic(), 0) * 1000)
            try:
                os.read(self._wake_reader, 4096)
            except BlockingIOError:
                pass
        self._is_asleep = False

    def _connect(self):
        """Makes a connection. Raises OSError, _Lost, _Refused."""
        end = time.monotonic() + _LONGEST_CONNECT
        plain = socket.create_connection((self._host, self._port), _LONGEST_CONNECT)
        try:
            if self._context is None and not wire.is_loopback(plain.getpeername()[0]):
                raise _Refused("it is another machine, to which tensors are sent only with certificates (tls_path)")
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire.keep_alive(plain)
            try:
                if self._context is not None:
                    plain = self._context.wrap_socket(plain, server_hostname=self._host)
                self._greet(plain, end)
            except (_Lost, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
                raise _Lost("it ends the connection before its greeting, perhaps because it listens %s, or has too many "
                            "connections" % ("with certificates (--tls), for which there is tls_path" if self._context is None
                                             else "without certificates (--tls)")) from None
            except ssl.SSLError as error:
                raise _Refused(wire.reason_of(error)) from None
            plain.setblocking(False)
            return _Connection(plain, self._wake_reader)
        except BaseException:
            plain.close()
            raise

    def _greet(self, plain, end):
        plain.sendall(wire.first_frame({"training": self._training, "release": _native.version}))
        head = self._read(plain, wire.FIRST.size, end)
        magic, version, size = wire.FIRST.unpack(head)
        if magic != wire.MAGIC or size > wire.LONGEST_FIRST:
            raise _Refused("it is not msprobe" + (", or it speaks TLS, for which tls_path names certificates"
                                                 if self._context is None else ""))
        try:
            release = str(json.loads(self._read(plain, size, end).decode()).get("release"))[:40]
        except (ValueError, AttributeError):
            release = "unknown"
        if version != wire.VERSION:
            raise _Refused("it speaks version %d of the protocol (%s), and this msprobe version %d: install the same release "
                           "on both sides" % (version, release, wire.VERSION))

    @staticmethod
    def _read(plain, size, end):
        read = b""
        while len(read) < size:
            plain.settimeout(max(end - time.monotonic(), 0.001))
            piece = plain.recv(size - len(read))
            if not piece:
                raise _Lost("it ended the connection")
            read += piece
        return read

    def _begin_connection(self):
        with self._lock:
            self._connections += 1
            self._sent = self._judged = self._file = self._file_bytes = 0
            self._follow.clear()
            self._told_places.clear()
            self._append(_Item(json.dumps(self.begin).encode()))
            self._is_connected = True

    def _end_connection(self):
        """Ends the connection; waiting items are lost. Returns whether there was a connection."""
        with self._lock:
            was_connected, self._is_connected = self._is_connected, False
            self._lost_calls += self._calls
            self._calls = 0
            self._queue.clear()
            self._queued = 0
        return was_connected

    def _serve(self, connection):
        """Sends until the server has everything. Raises _Lost, _Refused, OSError."""
        work = self._contents()
        content, at, is_over = memoryview(b""), 0, False
        while not self._is_done:
            for kind, said in connection.receive():
                if kind == wire.JUDGED and len(said) == wire.COUNT.size:
                    self._judged, = wire.COUNT.unpack(said)
                elif kind == wire.REFUSED:
                    raise _Refused("says: %s" % "".join(
                        one if one.isprintable() else "?" for one in said.decode(errors="replace")))
                elif kind == wire.DONE and is_over:
                    return
                else:
                    raise _Lost("it sent data that is not a frame")
            if at == len(content):
                content, at = memoryview(self._batch(work)), 0
                if not content and self._is_ending and not is_over:
                    content, is_over = memoryview(wire.frame(wire.END)), True
            if at < len(content):
                taken = connection.send(content[at:])
                at += taken
                if not taken:
                    connection.poll(True)
            else:
                self._is_asleep = True
                if not self._queue and (is_over or not self._is_ending) and not self._is_done:
                    connection.poll(False)
                self._is_asleep = False

    @staticmethod
    def _batch(work):
        batch = bytearray()
        for piece in work:
            if not piece:
                break
            batch += piece
            if len(batch) >= _BATCH:
                break
        return batch

    def _contents(self):
        """Yields the data to send in pieces; an empty piece while the queue is empty."""
        while True:
            with self._lock:
                item = self._queue[0] if self._queue else None
            if item is None:
                yield b""
                continue
            if item.begins_file:
                yield wire.frame(wire.NEXT)
            if item.segment is not None:
                yield wire.frame(wire.TENSORS, bytes(item.gap))
                at = 0
                for begin, length, place in item.blocks:
                    if place > at:
                        yield wire.frame(wire.TENSORS, bytes(place - at))
                    for part in range(0, length, _PIECE):
                        size = min(_PIECE, length - part)
                        yield wire.frame(wire.TENSORS, item.segment.read(begin + part, size))
                    at = place + length
            yield wire.frame(wire.MESSAGE, item.line)
            if item.ends_file:
                yield wire.frame(wire.NEXT)
            with self._lock:
                if self._queue and self._queue[0] is item:
                    self._queue.popleft()
                    self._queued -= item.size + len(item.line)
                    self._sent += item.size
                    self._calls -= item.is_call

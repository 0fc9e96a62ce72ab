# SPDX-License-Identifier: Apache-2.0
"""Programs at a terminal, for the tests of what they print and of what is typed."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

import harness


class Terminal:
    """A program in a new pseudo-terminal, and the keys that are typed there."""

    def __init__(self, words, folder, columns=80, stdout=True, **environment):
        self.end, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", 20, columns, 0, 0))
        self.settings = termios.tcgetattr(end)
        self.slave = os.dup(end)
        self.seen = ""
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env={**harness.environment(words[0], folder), "TERM": "xterm", **environment},
            stdin=end,
            stdout=end if stdout else subprocess.DEVNULL,
            stderr=end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - there are no threads
        )
        os.close(end)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.end)
        os.close(self.slave)

    def wait_for(self, text):
        """Returns the output up to the end of `text`; it is not searched again."""
        deadline = time.monotonic() + harness.TIME_LIMIT_S
        while text not in self.seen:
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([self.end], [], [], left)[0]
            harness.check(ready, f"no {text!r} in {self.seen!r}")
            self.seen += os.read(self.end, 4096).decode("utf-8", "replace")
        before, self.seen = self.seen.split(text, 1)
        return before + text

    def wait_for_editor(self, prompt):
        """The editor takes over a moment after it printed its prompt; what is typed before that is the kernel's."""
        self.wait_for(prompt)
        deadline = time.monotonic() + harness.TIME_LIMIT_S
        while termios.tcgetattr(self.slave)[3] & termios.ICANON:
            harness.check(time.monotonic() < deadline, "the terminal stays in line mode")
            time.sleep(0.01)

    def type(self, text):
        os.write(self.end, text.encode())

    def read_within(self, seconds):
        """Whether something came, which is added to what was seen."""
        if not select.select([self.end], [], [], seconds)[0]:
            return False
        self.seen += os.read(self.end, 4096).decode("utf-8", "replace")
        return True

    def status(self):
        """The status of the process, which has to end by itself and to leave the terminal as it was."""
        deadline = time.monotonic() + harness.TIME_LIMIT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read_within(0.05)
        # Its last words may have come between the last look at the terminal and its end.
        while self.read_within(0):
            pass
        harness.check(self.process.poll() is not None, f"it did not end: {self.seen!r}")
        harness.check_equal("settings of the terminal", termios.tcgetattr(self.slave), self.settings)
        return self.process.returncode

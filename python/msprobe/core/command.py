# SPDX-License-Identifier: Apache-2.0
"""The native command of this package, which does the offline work."""

import os
import re
import subprocess
import sys

from .common.exceptions import MsprobeException

_ELF = b"\x7fELF"


def find():
    """Its path; None if it is not installed. The Python tool's command of the same name is skipped."""
    for path in _candidates():
        if _is_ours(path):
            return path
    return None


def run(arguments, quiet=False):
    """Runs it. Its output is shown, unless `quiet`, which returns stderr. Raises MsprobeException on failure."""
    command = located()
    piped = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE} if quiet else {}
    try:
        done = subprocess.run([command] + [str(one) for one in arguments], check=False, text=True, **piped)
    except OSError as error:
        raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR,
                               "%s cannot be run: %s" % (command, error)) from None
    if done.returncode == 130:
        raise KeyboardInterrupt
    if done.returncode != 0:
        told = ": " + done.stderr.strip() if quiet else ""
        raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR,
                               "msprobe %s ended with status %d%s" % (arguments[0], done.returncode, told))
    return done.stderr


def located():
    """Its path. Raises MsprobeException if it is not installed."""
    command = find()
    if command is None:
        raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR,
                               "the command msprobe of this package is not installed: `meson install` puts it into "
                               "bin/, or add its folder to PATH")
    return command


def ask(arguments):
    """Runs it and returns (exit status, stdout, stderr); raises MsprobeException if it cannot be run."""
    command = located()
    try:
        done = subprocess.run([command] + [str(one) for one in arguments], check=False, stdin=subprocess.DEVNULL,
                              capture_output=True)
    except OSError as error:
        raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR,
                               "%s cannot be run: %s" % (command, error)) from None
    if done.returncode == 130:
        raise KeyboardInterrupt
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def _candidates():
    """Beside the package, as built or as installed; beside the interpreter; in PATH."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    above = os.path.dirname(os.path.dirname(folder))
    yield os.path.join(above, "src", "msprobe")
    while True:
        yield os.path.join(above, "bin", "msprobe")
        if above == os.path.dirname(above):
            break
        above = os.path.dirname(above)
    yield os.path.join(os.path.dirname(sys.executable), "msprobe")
    for place in os.environ.get("PATH", "").split(os.pathsep):
        yield os.path.join(place or os.curdir, "msprobe")


def _is_ours(path):
    try:
        with open(path, "rb") as file:
            if file.read(len(_ELF)) != _ELF:  # a script, as that of the Python tool
                return False
        told = subprocess.run([path, "--version"], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60,
                              text=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return False
    return told.returncode == 0 and re.match(r"msprobe \d[^\n]*\n  CLI11 ", told.stdout) is not None

# SPDX-License-Identifier: Apache-2.0
"""`python -m msprobe.bisect -- COMMAND_A -- COMMAND_B`: records two trainings, and finds where they first diverge.

The programs record themselves, with msprobe.record(), a callback or a PrecisionDebugger; the environment variable
MSPROBE_SETTINGS replaces their dump_path, task and steps.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from typing import Any, Dict, List, Optional, Tuple

from . import checking
from .core import overriding
from .core.common import log
from .core.common.exceptions import MsprobeException

_USAGE = "msprobe bisect [options] -- COMMAND_A -- COMMAND_B"


def main(arguments: List[str]) -> int:
    """Returns the exit status: 0 if nothing failed. With --fail-on culprit it is 1 if the runs differ, and 2 if a part
    could not be compared. 2 if something failed."""
    options, commands = _read(arguments)
    try:
        folder = checking.empty_folder(options.output_path)

        def record(side: str, settings: Dict[str, Any]) -> None:
            command = commands[side]
            log.info("recording %s of %s: %s" % (settings["task"], side.upper(), _shown(command)))
            _run(command, dict(os.environ, **{overriding.VARIABLE: json.dumps(settings)}))
        names = {side: "%s (%s)" % (side.upper(), _shown(command)) for side, command in commands.items()}
        found = checking.check(record, names, folder, options.steps, options.noise_floor, options.allow_uncompared)
        print(found)
        print("\nreport: " + found.comparison.report(os.path.join(folder, "report.html")))
    except MsprobeException as error:
        sys.stderr.write("msprobe: error: %s\n" % str(error).replace("[msprobe] ", "", 1))
        return 2
    if options.fail_on != "culprit" or found:
        return 0
    return found.statistics._status


def _read(arguments: List[str]) -> Tuple[argparse.Namespace, Dict[str, List[str]]]:
    parser = argparse.ArgumentParser(
        prog="msprobe bisect", usage=_USAGE,
        description="Record two trainings and find where they first diverge. Where statistics find a likely culprit, both "
                    "run once more, and the suspects are recorded with tensors. The programs must record themselves.")
    parser.add_argument("-o", "--output_path", metavar="DIR", default="msprobe_bisect",
                        help="Folder for the dumps and the report; it must be empty; default: ./msprobe_bisect")
    parser.add_argument("--steps", metavar="N", type=_positive, default=2, help="Number of steps to record; default: 2")
    parser.add_argument("--noise-floor", metavar="PATH",
                        help="Dump of B's code on other kernels: its differences count as rounding")
    parser.add_argument("--fail-on", choices=("culprit", "never"), default="never",
                        help="Exit with 1 if the runs differ, with 2 if a part could not be compared; default: never")
    parser.add_argument("--allow-uncompared", metavar="N", type=_percent, default=0,
                        help="With --fail-on: accept that up to N percent of the tensors are not compared; default: 0")
    places = [at for at, word in enumerate(arguments) if word == "--"]
    options = parser.parse_args(arguments[:places[0]] if places else arguments)
    if len(places) < 2:
        parser.error("two commands are needed: " + _USAGE)
    if len(places) > 2:
        parser.error("there are %d times `--`: put a command that contains it into a script" % len(places))
    first, second = arguments[places[0] + 1:places[1]], arguments[places[1] + 1:]
    if not first or not second:
        parser.error("a command is empty: " + _USAGE)
    return options, {"a": first, "b": second}


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _percent(text: str) -> float:
    number = float(text)
    if not 0 <= number < 100:
        raise ValueError(text)
    return number


def _run(command: List[str], environment: Dict[str, str]) -> None:
    """Runs the command. Its output goes to stderr, so that stdout has only the answer."""
    sys.stdout.flush()
    try:
        status = subprocess.run(command, check=False, env=environment, stdout=sys.stderr.fileno()).returncode
    except OSError as error:
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR,
                               "%s cannot be run: %s" % (command[0], error.strerror)) from None
    if status:
        log.warn("%s ended with status %d: what it had recorded is compared" % (_shown(command), status))


def _shown(command: List[str]) -> str:
    return " ".join(shlex.quote(word) for word in command)


def run(arguments: Optional[List[str]] = None) -> int:
    """main(), for the command line."""
    try:
        return main(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(run())

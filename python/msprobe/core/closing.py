# SPDX-License-Identifier: Apache-2.0
"""Prints the last lines of a run: requests that matched nothing, with the reason, so that the user learns of them at
once.
"""

import difflib
import os
import re

from . import session
from .common import log

_MOST = 3      # names in a line
_LONGEST = 80  # characters of a name


def lines(info, last_step, processes, why_nothing=None):
    """Returns one line for each request. last_step: the step of the last start(), None if there was no start;
    processes: their number if known; why_nothing: the reason for no entries, if known."""
    told = []
    if info["enabled"] and info["steps"]:
        never = steps_that_never_came(info, last_step)
        if never:
            told.append(never)
        told.extend(_names_that_nothing_had())
        if not info["entries"] and session.TASKS[info["task"]] in ("statistics", "tensor") and (
                not session.dumps_kernels()):
            told.append("0 entries: " + (why_nothing or _why_no_entries(info, bool(told))))
    if info["enabled"]:
        ranks = numbers(session.setting("rank")) or ()
        beyond = [rank for rank in ranks if processes is not None and rank >= processes]
        if beyond:
            there = "is 1 process: name 0" if processes == 1 else (
                "are %d processes: name 0 to %d" % (processes, processes - 1))
            told.append("%s %s requested, but there %s in \"rank\"" % (
                _named("rank", beyond), "is" if len(beyond) == 1 else "are", there))
    return told


def losses(lost, unit):
    """Says which recorded data are missing on the disk, and why; empty if none is missing. unit: the words for one
    entry and for several."""
    whats = [counted(lost["entries"], *unit)] if lost["entries"] else []
    if lost["files"]:
        whats.append(counted(lost["files"], "file", "files"))
    told = [" and ".join(whats) + (" was lost" if lost["entries"] + lost["files"] == 1 else " were lost")] if whats else []
    if lost["no_steps"]:
        told.append(some(lost["no_steps"]) + " could not be started")
    return ", ".join(told) + ": " + lost["reason"] if told else ""


def counted(count, one, many):
    return "%s %s" % (format(count, ","), one if count == 1 else many)


def steps_that_never_came(info, last_step):
    """Returns None if all steps occurred."""
    wanted = session.setting("step") or []
    ended = last_step if last_step is not None else info["step"]
    never = [] if info["finished"] else [step for step in wanted if step > ended]
    if not never:
        return None
    return "%s did not occur: the last one was %d%s" % (
        _named("step", never), ended,
        ", as step() was not called" if info["step"] == 0 else ": name earlier ones in \"step\"")


def _names_that_nothing_had():
    found = session.setting("unmatched")
    if not found["names"] or not found["passed"]:
        return []
    keys = {name: key for key in ("list", "tensor_list", "scope") for name in session.setting("section." + key) or []}
    return ["%s: no call has the name %s%s" % (
        keys.get(name, "list"), _quoted([name]), _nearest(name, found["passed"], keys.get(name) == "scope"))
        for name in found["names"][:_MOST]]


def _nearest(name, passed, whole):
    candidates = set(passed)
    if not whole:
        for one in passed:
            base = re.sub(r"\.(\d+\.(forward|backward)|(forward|backward)\.\d+|parameters_grad.*)$", "", one)
            parts = base.split(".")
            wanted = name.count(".") + 1
            candidates.update([base], (".".join(parts[at:at + wanted]) for at in range(len(parts))))
    near = difflib.get_close_matches(name[:_LONGEST], sorted(one for one in candidates if len(one) < 200), _MOST, 0.6)
    if near:
        return ": did you mean %s?" % _quoted(near)
    return "; there were %s" % _quoted(passed)


def _why_no_entries(info, told):
    keys = [key for key in ("scope", "list") if session.setting("section." + key)]
    if told and keys:
        return "no call has a name that %s%s" % (
            " and ".join(keys) + (" select" if len(keys) == 2 else " selects"),
            "" if info["records_apis"] else "; operations are recorded at level L1 or mix")
    mode = session.setting("section.data_mode")
    if mode and "backward" in mode and "forward" not in mode and "all" not in mode:
        return "data_mode selects backwards only, but none ran before step()"
    if not info["records_apis"]:
        return ("no module of the model was called between start() and stop(): give start() the model that is called, "
                "or record operations (level L1 or mix)")
    return "no recorded function was called between start() and stop()%s" % (
        "; risk_level CORE records only core operations" if session.setting("risk_level") == "CORE" else "")


def numbers(listed):
    """All numbers of a list such as [0, "2-4"]; None for an empty list, which means all."""
    if not listed:
        return None
    found = set()
    for one in listed:
        first, _, last = str(one).partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return sorted(found)


def printable(text):
    """Escapes characters that control a terminal."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _named(what, found):
    return "%s%s %s" % (what, "" if len(found) == 1 else "s", some(found))


def some(found):
    return ", ".join(map(str, found[:_MOST])) + (" and %d more" % (len(found) - _MOST) if len(found) > _MOST else "")


def _quoted(names):
    shown = ", ".join('"%s"' % (printable(name) if len(name) <= _LONGEST else printable(name[:_LONGEST]) + "...")
                      for name in names[:_MOST])
    return shown + (" and %d more" % (len(names) - _MOST) if len(names) > _MOST else "")


def warn_of_other_runs(folder):
    """Warns if another process wrote into the same folder. Without ranks, a step holds one folder per process, so the
    user cannot compare two runs in one folder as they are."""
    own = "proc%d" % os.getpid()
    try:
        for step in sorted(os.listdir(folder)):
            names = os.listdir(os.path.join(folder, step)) if step.startswith("step") else []
            others = sorted(name for name in names if name.startswith("proc") and name != own)
            if own in names and others:
                log.warn("%s holds %s of another process, too: give each run a separate dump_path, or name the "
                         "folder of one process to `msprobe compare`" % (os.path.join(folder, step), others[0]))
                return
    except OSError:  # the recording itself reports what is wrong with the folder
        pass

# SPDX-License-Identifier: Apache-2.0
"""The last lines of a run: what was asked for and did not come, and why, so that it is not found out days later."""

import difflib
import re

from . import session

_MOST = 3      # names in a line
_LONGEST = 80  # of a name that is shown


def lines(info, last_step, processes):
    """One for each thing. last_step: of the last start(), None if there was none; processes: their number if known."""
    told = []
    if info["enabled"] and info["steps"]:
        never = steps_that_never_came(info, last_step)
        if never:
            told.append(never)
        told.extend(_names_that_nothing_had())
        if not info["entries"] and session.TASKS[info["task"]] in ("statistics", "tensor"):
            told.append("0 entries: " + _why_no_entries(info, bool(told)))
    if info["enabled"]:
        ranks = numbers(session.setting("rank")) or ()
        beyond = [rank for rank in ranks if processes is not None and rank >= processes]
        if beyond:
            told.append("%s %s asked for, but there %s" % (
                _counted("rank", beyond), "is" if len(beyond) == 1 else "are",
                "is 1 process" if processes == 1 else "are %d processes" % processes))
    ignored = session.setting("without_effect")
    if ignored:
        told.append("in the configuration %s had no effect%s" % (_quoted(ignored, 10), _meant(session.setting("warnings"))))
    return told


def _meant(warnings):
    """What was proposed when the configuration was read."""
    proposed = [found.group(1) for found in (re.search(r"did you mean (\"[^\"]*\")\?$", line) for line in warnings) if found]
    return ": did you mean %s?" % ", ".join(proposed[:_MOST]) if proposed else ""


def steps_that_never_came(info, last_step):
    """None if all did."""
    wanted = session.setting("step") or []
    ended = last_step if last_step is not None else info["step"]
    never = [] if info["finished"] else [step for step in wanted if step > ended]
    if not never:
        return None
    return "%s never came: the last one was %d%s" % (
        _counted("step", never), ended, ", as step() was not called" if info["step"] == 0 else "")


def _names_that_nothing_had():
    found = session.setting("unmatched")
    if not found["names"] or not found["passed"]:
        return []
    scope = session.setting("section.scope") or []
    return ["%s: nothing was called %s%s" % (
        "scope" if name in scope else "list", _quoted([name]), _nearest(name, found["passed"], name in scope))
        for name in found["names"][:_MOST]]


def _nearest(name, passed, whole):
    candidates = set(passed)
    if not whole:
        for one in passed:
            base = re.sub(r"\.(\d+\.(forward|backward)|(forward|backward)\.\d+|parameters_grad.*)$", "", one)
            candidates.update([base], base.split("."))
    near = difflib.get_close_matches(name[:_LONGEST], sorted(one for one in candidates if len(one) < 200), _MOST, 0.6)
    if near:
        return ": did you mean %s?" % _quoted(near)
    return "; there were %s" % _quoted(passed)


def _why_no_entries(info, told):
    if told and (session.setting("section.list") or session.setting("section.scope")):
        return "nothing has a name that is asked for"
    mode = session.setting("section.data_mode")
    if mode and "backward" in mode and "forward" not in mode and "all" not in mode:
        return "data_mode asks for backwards, and none came before step()"
    if not info["records_apis"]:
        return "no module of the model was called between start() and stop()"
    return "nothing that is recorded was called between start() and stop()%s" % (
        "; risk_level CORE leaves much out" if session.setting("risk_level") == "CORE" else "")


def numbers(listed):
    """All numbers of a list such as [0, "2-4"]; None for all there are."""
    if not listed:
        return None
    found = set()
    for one in listed:
        first, _, last = str(one).partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return sorted(found)


def printable(text):
    """Nothing that drives a terminal."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _counted(what, found):
    shown = ", ".join(map(str, found[:_MOST])) + (" and %d more" % (len(found) - _MOST) if len(found) > _MOST else "")
    return "%s%s %s" % (what, "" if len(found) == 1 else "s", shown)


def _quoted(names, most=_MOST):
    shown = ", ".join('"%s"' % (printable(name) if len(name) <= _LONGEST else printable(name[:_LONGEST]) + "...")
                      for name in names[:most])
    return shown + (" and %d more" % (len(names) - most) if len(names) > most else "")

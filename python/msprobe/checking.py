# SPDX-License-Identifier: Apache-2.0
"""Checks whether two trainings agree: records both, compares them, and records the suspects again with tensors if
statistics do not suffice. msprobe.pytorch.check() and `msprobe bisect` use this module."""

from __future__ import annotations

import glob
import json
import os
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple

from .comparison import Comparison, Finding, compare
from .core.common.exceptions import MsprobeException, NothingCompared

if TYPE_CHECKING:
    # Runs one side, "a" or "b", with settings that replace the recorder's.
    Record = Callable[[str, Dict[str, Any]], None]

_AROUND = 2   # number of entries before and after a suspect that are recorded again, too
_MOST = 8     # limit for the suspects
# The kinds of findings at the edge of a recording. A recording of a few entries consists almost only of edges.
_OF_THE_EDGE = ("data", "unrecorded", "feed")
_STATISTICS = ("Max", "Min", "Mean", "Norm")


class Check:
    """The result of checking two trainings, a and b. It is true if they agree; repr() is the answer in words.

    Attributes:
        statistics: the Comparison of both by statistics.
        tensors: the Comparison of the suspects with tensors; None if they were not recorded again.
        culprit: the Finding where they first diverge, from tensors if these show it, or None.
        is_final: True if recording again would show nothing more; False if statistics show a likely culprit and tensors
            did not confirm it.
        notes: sentences about the limits of the answer.
        folder: where the dumps are.
    """

    statistics: Comparison
    tensors: Optional[Comparison]
    notes: List[str]
    folder: str

    def __init__(self, statistics: Comparison, tensors: Optional[Comparison], notes: List[str], folder: str) -> None:
        self.statistics = statistics
        self.tensors = tensors
        self.notes = notes
        self.folder = folder
        self._temporary: Any = None  # the same, if it is removed with this object

    def __bool__(self) -> bool:
        return bool(self.statistics)

    @property
    def culprit(self) -> Optional[Finding]:
        """The Finding where the trainings first diverge, or None."""
        return self._of_tensors() or self.statistics.culprit

    @property
    def is_final(self) -> bool:
        """False if statistics show a likely culprit and tensors did not confirm it."""
        found = self.statistics.culprit
        return found is None or found.confidence == "certain" or self._of_tensors() is not None

    @property
    def comparison(self) -> Comparison:
        """The comparison that found the culprit."""
        return self.tensors if self.tensors is not None and self._of_tensors() is not None else self.statistics

    def _of_tensors(self) -> Optional[Finding]:
        found = self.tensors.culprit if self.tensors is not None else None
        return None if found is None or found.kind in _OF_THE_EDGE else found

    def __repr__(self) -> str:
        parts = [repr(self.comparison)]
        if self.comparison is self.tensors and self.statistics.culprit is not None:
            parts.append("recorded again with tensors: by statistics %s was likely" % self.statistics.culprit.entry)
        elif self.tensors is not None:
            parts.append("with tensors of the suspects:\n" + repr(self.tensors))
        parts += ["note: " + note for note in self.notes]
        return "\n\n".join(parts)

    __str__ = __repr__


def check(record: Record, names: Dict[str, str], folder: str, steps: int, noise_floor: Any = None,
          allowed: float = 0) -> Check:
    """Runs both sides once, and a second time if statistics find a likely culprit.

    names: the names of both sides for messages, by "a" and "b". folder: where the dumps go. steps: the number of steps
    to record. noise_floor: as for msprobe.compare(). allowed: the percentage of tensors (0 to 100) that may remain
    uncompared.

    Raises MsprobeException if a side recorded nothing, or if the two recordings cannot be compared.
    """
    _record_both(record, names, folder, "statistics", {side: {"task": "statistics", "step": list(range(steps))}
                                                        for side in names})
    statistics = compare(*_dumps(folder, "statistics"), noise_floor=noise_floor,
                         options=["--allow-uncompared", str(allowed)])
    found = statistics.culprit
    if found is None or found.confidence != "likely":
        return Check(statistics, None, [], folder)
    suspects = [one for one in statistics.findings if one.confidence == "likely" and one.step == found.step][:_MOST]
    number = re.search(r"\d+$", found.step)
    settings: Dict[str, Dict[str, Any]] = {
        side: {"task": "tensor", "list": listed} for side, listed in zip("ab", names_of(suspects, statistics))}
    for one in settings.values():
        if number:
            one["step"] = [int(number.group())]
    notes = []
    try:
        _record_both(record, names, folder, "tensors", settings)
        tensors = compare(*_dumps(folder, "tensors"))
    except NothingCompared as error:
        notes.append("the suspects were recorded again with tensors, and could not be compared: %s" % error)
        return Check(statistics, None, notes, folder)
    for side, name in names.items():
        other = first_other(os.path.join(folder, "statistics", side), os.path.join(folder, "tensors", side))
        if other:
            notes.append("%s is not deterministic: in the second run %s has other values, so tensors may show another "
                         "difference than statistics" % (name, other))
    result = Check(statistics, tensors, notes, folder)
    if not result.is_final:
        notes.append("by statistics %s is likely, and tensors do not show it: the elements of its inputs may be in "
                     "another order, or the difference begins before the entries that were recorded again" % found.entry)
    return result


def names_of(suspects: List[Finding], comparison: Comparison) -> Tuple[List[str], List[str]]:
    """Returns the entries to record again, as the "list" of each side: the suspects, their modules, and neighbouring
    operations."""
    entries: Dict[Tuple[str, str], List[Tuple[str, str]]] = {}
    for row in comparison.rows():
        of_rank = entries.setdefault((row.get("Step", ""), row.get("Rank", "")), [])
        pair = _base(row.get("NPU Name")), _base(row.get("Bench Name"))
        if pair not in of_rank[-1:]:
            of_rank.append(pair)
    listed: Tuple[Dict[str, None], Dict[str, None]] = {}, {}
    for one in suspects:
        own = _base(one.entry), _base(one.golden_entry)
        chosen = [own]
        of_rank = entries.get((one.step, one.rank)) or next(iter(entries.values()), [])
        # A module's name covers everything inside it, so only operations are taken from the neighbourhood.
        around = [pair for pair in of_rank if pair == own or not pair[0].startswith(("Module.", "Cell."))]
        if own in around:
            at = around.index(own)
            chosen += around[max(0, at - _AROUND):at + _AROUND + 1]
        if one.module:
            chosen.append(("Module.%s." % one.module,) * 2)
        for pair in chosen:
            for names, name in zip(listed, pair):
                if name:
                    names[name] = None
    first, second = list(listed[0]), list(listed[1])
    return first or second, second or first  # an empty list would mean everything


def _base(name: Optional[str]) -> str:
    """The common beginning of all names of a call: Functional.linear.0. of Functional.linear.0.forward.input.0"""
    found = re.match(r"(.*?\.)(\d+\.(forward|backward)|(forward|backward)\.\d+|parameters_grad)(\.|$)", name or "")
    if not found:
        return ""
    return found.group(1) + (found.group(2).split(".")[0] + "." if found.group(2)[0].isdigit() else "")


def first_other(path: str, again: str) -> Optional[str]:
    """The first entry that both dumps have and whose results differ; None if there is no such entry."""
    for dump in sorted(glob.glob(os.path.join(glob.escape(again), "step*", "*", "dump.json"))):
        rank = os.path.dirname(dump)
        step = os.path.join(path, os.path.basename(os.path.dirname(rank)))
        first = os.path.join(step, os.path.basename(rank), "dump.json")
        if not os.path.exists(first):  # processes without a rank have a different number each time
            others = glob.glob(os.path.join(glob.escape(step), "*", "dump.json"))
            if len(others) != 1:
                continue
            first = others[0]
        with open(first, encoding="utf-8") as file:
            before = json.load(file)["data"]
        with open(dump, encoding="utf-8") as file:
            for name, entry in json.load(file)["data"].items():
                if name not in before or not _computes(entry):
                    continue
                if list(_statistics(_made(before[name]))) != list(_statistics(_made(entry))):
                    return str(name)
    return None


def _made(entry: Any) -> Any:
    """The values that the entry itself computed. Its inputs may be memory that it only writes to, as in
    `torch.empty(3).bernoulli_()`: their content differs each time and means nothing."""
    return entry.get("output", entry) if isinstance(entry, dict) else entry


def _computes(entry: Any) -> bool:
    """Whether an entry has results other than the one tensor that it received. A view such as `torch.empty(2, 3).t()`
    computes nothing, and its memory may not be written yet; if other data come in, the call that computes something from
    them differs, too."""
    if not isinstance(entry, dict) or "output" not in entry:
        return True
    received = list(_statistics([entry.get(name) for name in ("input_args", "input_kwargs", "input")]))
    return len(received) != 1 or not set(received).issuperset(_statistics(entry["output"]))


def _statistics(entry: Any) -> Iterator[str]:
    if isinstance(entry, dict):
        if "Max" in entry:
            yield str([entry.get(name) for name in _STATISTICS])  # as text, because NaN equals itself as text
        entry = list(entry.values())
    if isinstance(entry, list):
        for one in entry:
            yield from _statistics(one)


def _record_both(record: Record, names: Dict[str, str], folder: str, what: str,
                 settings: Dict[str, Dict[str, Any]]) -> None:
    for side, name in names.items():
        path = os.path.join(folder, what, side)
        record(side, dict(settings[side], dump_path=path))
        if not glob.glob(os.path.join(glob.escape(path), "step*", "*", "dump.json")):
            raise MsprobeException(
                MsprobeException.INTERFACE_USAGE_ERROR,
                "%s recorded nothing: its steps must run in `with msprobe.record(model):`, with a RecordCallback, or "
                "between start() and stop() of a PrecisionDebugger" % name)


def empty_folder(path: Any) -> str:
    """Creates the folder and returns its absolute path. Raises MsprobeException if it contains anything, since that
    could be mistaken for a dump of these runs."""
    path = str(os.path.abspath(os.fspath(path)))
    try:
        os.makedirs(path, exist_ok=True)
        holds = os.listdir(path)
    except OSError as error:
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, str(error)) from None
    if holds:
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, "%s is not empty: name another folder" % path)
    return str(path)


def _dumps(folder: str, what: str) -> List[str]:
    return [os.path.join(folder, what, side) for side in "ab"]


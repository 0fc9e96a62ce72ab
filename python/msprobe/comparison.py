# SPDX-License-Identifier: Apache-2.0
"""msprobe.compare(): compares two dumps and gives the answer as an object. The native command does the work."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import re
import tempfile
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from .core import command
from .core.common.exceptions import ComparisonError, NothingCompared

if TYPE_CHECKING:
    import pandas
    import polars

    Path = Union[str, os.PathLike[str]]

_NO_EVIDENCE = ("no_culprit", "not_clear")
_MOST_LINES = 40  # the most lines of warnings that are shown
_PERCENTAGE = re.compile(r"-?\d[\d.]*(e[+-]?\d+)?%$")
_NOT_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


@dataclasses.dataclass(frozen=True)
class Finding:
    """Evidence of where two runs diverge, or a hint of it. data/finding.schema.json describes the fields.

    `confidence` is "certain", "likely" or "hint"; `excess` is how many times larger the error is than what explains it
    (None: infinite).
    """

    kind: str
    entry: str
    golden_entry: str = ""
    place: str = ""
    step: str = ""
    rank: str = ""
    other_ranks: Tuple[str, ...] = ()
    module: str = ""
    excess: Optional[float] = None
    confidence: str = ""
    side: str = ""
    text: str = ""
    where: str = ""
    next: str = ""
    concerned: int = 0
    propagated: int = 0
    golden_where: str = ""
    operations: Tuple[str, ...] = ()
    golden_operations: Tuple[str, ...] = ()

    @classmethod
    def _read(cls, told: Dict[str, Any]) -> Finding:
        known = {field.name for field in dataclasses.fields(cls)}
        fields: Dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
                                  for name, value in told.items() if name in known}
        return cls(**fields)


class Rows:
    """The rows of a comparison, one for each tensor, in the order of execution: an iterator over dicts.

    The keys are the columns of docs/formats.md ("Tables of compare"); `Step` and `Rank` are there if there are several.
    """

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison  # keeps the file
        self._lines = _objects(comparison._file)

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> Dict[str, Any]:
        for told in self._lines:
            if told.pop("kind", None) == "row":
                return told
        raise StopIteration

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the remaining rows as a pandas DataFrame. In columns of numbers, percentages become fractions, and
        missing or non-numeric values become NaN; shapes and other lists are text.

        Raises ImportError if pandas is not installed.
        """
        import pandas
        return pandas.DataFrame(_columns(list(self), float("nan")))

    def to_polars(self) -> polars.DataFrame:
        """Returns the remaining rows as a Polars DataFrame, like to_pandas(), but missing values are null.

        Raises ImportError if Polars is not installed.
        """
        import polars
        columns = _columns(list(self), None)
        return polars.DataFrame([polars.Series(name, values, strict=False) for name, values in columns.items()])


class Comparison:
    """The result of `msprobe compare`.

    It is true if the runs agree: everything that was compared is equal or differs only by rounding, and nothing was left out
    that could differ. So `assert msprobe.compare(a, b)` fails in the same cases as the command with `--fail-on culprit`.
    `repr()` and `print()` show the answer as the command does.

    Attributes:
        culprit: the Finding where the runs first diverge; None if there is no evidence.
        findings: a list of all Findings, including hints; the culprit is the first.
        notes: a list of sentences about the whole comparison.
        meeting_points: dicts of places where two code bases compute the same values.
        text: the complete output of the command.
    """

    culprit: Optional[Finding]
    findings: List[Finding]
    notes: List[str]
    meeting_points: List[Dict[str, Any]]
    text: str

    def __init__(self, arguments: List[str], folder: Any, status: int, out: str, err: str) -> None:
        self._arguments = arguments
        self._folder = folder  # removed with this object
        self._file = os.path.join(folder.name, "rows.jsonl")
        # The name of the temporary folder means nothing to users.
        out = "\n".join(line for line in out.split("\n") if folder.name not in line)
        out, err = out.strip("\n"), err.strip("\n")
        self.text = "\n\n".join(part for part in (out, err) if part)
        self._answer, self._warnings = out, err
        self.findings, self.notes, self.meeting_points = [], [], []
        conclusions = []
        compared = judged = False
        all_pass = True
        for told in _objects(self._file):
            kind = told["kind"]
            if kind == "row":
                judged = judged or "Origin" in told
                compared = compared or told.get("Origin") != "not compared"
                all_pass = all_pass and told.get("Result", "pass") == "pass"
            elif kind in _NO_EVIDENCE:
                conclusions.append(told["text"])
            elif kind == "note":
                self.notes.append(told["text"])
            elif kind == "meeting_points":
                self.meeting_points.append(told)
            else:
                self.findings.append(Finding._read(told))
        evident = bool(self.findings) and not conclusions and self.findings[0].confidence != "hint"
        self.culprit = self.findings[0] if evident else None
        if not compared and not self.culprit:
            raise NothingCompared(conclusions[0] if conclusions else _last_line(self.text), self.text)
        # Comparisons of other layouts have verdicts, but no diagnosis.
        diagnosed = judged or bool(conclusions) or bool(self.findings)
        self._status = status  # of --fail-on culprit
        self._agree = status == 0 if diagnosed else all_pass

    def __bool__(self) -> bool:
        return self._agree

    def rows(self) -> Rows:
        """All rows, as an iterator over dicts; it can also be turned into a table: `rows().to_pandas()`. Raises nothing."""
        return Rows(self)

    def report(self, path: Path) -> str:
        """Writes the comparison as one HTML file, which any browser shows offline. Compares again, so both dumps must
        still be there.

        Returns the path. Raises ComparisonError.
        """
        path = os.path.abspath(os.fspath(path))
        _asked(self._arguments + ["--format", "html", "--output-file", path, "--overwrite"])
        return path

    def __repr__(self) -> str:
        lines = self._warnings.splitlines()
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = ["%d more lines in .text" % (len(lines) - _MOST_LINES)]
        return "\n".join([self._answer, ""] + lines) if lines else self._answer

    __str__ = __repr__

    def _repr_html_(self) -> str:
        shown = "".join(_as_html(line, self._agree) for line in repr(self).split("\n"))
        shown = '<div style="font-family: monospace; white-space: pre-wrap; max-width: 60em">%s</div>' % shown
        if len(self.findings) < 2:
            return shown
        names = ("confidence", "step", "rank", "entry", "text", "where")
        head = "".join("<th>%s</th>" % name for name in names)
        body = "".join("<tr>%s</tr>" % "".join("<td>%s</td>" % html.escape(str(getattr(one, name))) for name in names)
                       for one in self.findings)
        return "%s<table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>" % (shown, head, body)


def _as_html(line: str, agree: bool) -> str:
    """A line of the answer as HTML: a headline in colour, the lines below it indented and as wide as the page allows."""
    said = html.escape(line.strip()) or "&nbsp;"
    title = re.match(r"(culprit|also|not clear|no culprit)[^:]*:", said)
    if title:
        named = title[1] in ("culprit", "also")
        color = "#cf222e" if named else "#1a7f37" if agree else "#9a6700"
        said = '<b><span style="color: %s">%s</span>%s</b>' % (color, title[0], said[title.end():])
    indent = len(line) - len(line.lstrip())
    if not indent:
        return "<div>%s</div>" % said
    # "   before   17 entries ...": a wrapped line is aligned with the text after the label.
    label = re.match(r"[a-z]+(?: out)?(?= {2,})", line.strip())
    hang = len(label[0]) + len(line.strip()[label.end():]) - len(line.strip()[label.end():].lstrip()) if label else 0
    return '<div style="padding-left: %dch; text-indent: -%dch">%s</div>' % (indent + hang, hang, said)


def compare(target: Path, golden: Path, *, noise_floor: Optional[Path] = None, rules: Optional[Path] = None,
            layer_mapping: Union[bool, Path] = False, api_mapping: Union[bool, Path] = False,
            cell_mapping: Union[bool, Path] = False, data_mapping: Optional[Path] = None, fuzzy_match: bool = False,
            replay: Optional[str] = None, first: bool = False, options: Sequence[str] = ()) -> Comparison:
    """Compares two dumps and finds where they first diverge.

    Args:
        target: the run under test: a dump, or the folder of one of its steps or ranks, or a dump.json.
        golden: the reference run, of the same kind.
        noise_floor: a third dump of the golden code on other kernels; its differences count as rounding.
        rules: a YAML file with thresholds.
        layer_mapping, api_mapping, cell_mapping: True, or a YAML file: pair entries whose names differ.
        data_mapping: a YAML file that pairs rows by name.
        fuzzy_match: pair entries whose names differ only in the number of the call.
        replay: "suspects" (what the command does by default), "all" or "never": operations to recompute in float64.
        first: stop at the first certain evidence.
        options: further options of `msprobe compare`, such as ["--merge-ranks"].

    Returns a Comparison.

    Raises:
        NothingCompared: there was nothing in both dumps that could be compared.
        ComparisonError: a dump cannot be read, or a part could not be compared. Both are MsprobeException.
    """
    arguments = ["--color", "never", "--progress", "never", "compare", "-tp", os.path.abspath(os.fspath(target)), "-gp",
                 os.path.abspath(os.fspath(golden)), "--fail-on", "culprit"]
    for option, value in (("-lm", layer_mapping), ("-am", api_mapping), ("-cm", cell_mapping), ("-dm", data_mapping),
                          ("--noise-floor", noise_floor), ("--rules", rules), ("--replay", replay),
                          ("-fm", fuzzy_match), ("--first", first)):
        if value is True:
            arguments.append(option)
        elif value:
            arguments += [option, os.fspath(value)]
    arguments += [str(one) for one in options]
    folder = tempfile.TemporaryDirectory(prefix="msprobe-")
    told = _asked(arguments + ["--format", "jsonl", "-o", folder.name, "--output-file",
                               os.path.join(folder.name, "rows.jsonl")])
    return Comparison(arguments, folder, *told)


def _asked(arguments: List[str]) -> Tuple[int, str, str]:
    status, out, err = command.ask(arguments)
    if status not in (0, 1) and not _is_not_judged(err):
        output = "\n\n".join(part for part in (out.strip("\n"), err.strip("\n")) if part)
        raise ComparisonError(
            _last_line(err) or _last_line(out) or "msprobe compare ended with status %d" % status, output)
    return status, out, err


def _is_not_judged(err: str) -> bool:
    """Did nothing fail, although a part could not be judged?"""
    errors = [line for line in err.splitlines() if line.startswith("msprobe: error: ")]
    return bool(errors) and all(line.startswith("msprobe: error: not judged: ") for line in errors)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    found = next((line for line in lines if line.startswith("msprobe: error: ")), lines[-1] if lines else "")
    return found[len("msprobe: error: "):] if found.startswith("msprobe: error: ") else found.strip()


def _objects(path: str) -> Iterator[Dict[str, Any]]:
    """Yields the JSON objects of a file with one object per line. Yields nothing if the file does not exist, because
    the command writes no file if there is nothing to compare."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            yield json.loads(line)


def _columns(rows: List[Dict[str, Any]], missing: Optional[float]) -> Dict[str, List[Any]]:
    """Turns rows into columns, each with values of one type."""
    names: Dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return {name: _column([row.get(name) for row in rows], missing) for name in names}


def _column(values: List[Any], missing: Optional[float]) -> List[Any]:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds & {int, float} or (kinds == {str} and any(_PERCENTAGE.match(value) for value in values if value)):
        return [_number(value, missing) for value in values]
    if list in kinds:
        return [json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value for value in values]
    if len(kinds) > 1:
        return [None if value is None else str(value) for value in values]
    return values


def _number(value: Any, missing: Optional[float]) -> Optional[float]:
    if isinstance(value, str):
        if _PERCENTAGE.match(value):
            return float(value[:-1]) / 100
        return _NOT_FINITE.get(value.strip().lower(), missing)
    return missing if value is None or isinstance(value, list) else float(value)

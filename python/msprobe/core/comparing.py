# SPDX-License-Identifier: Apache-2.0
"""Comparisons under the names that scripts know from the Python tool. The native command performs them."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any, Dict, List, Union

from . import command
from .common.exceptions import MsprobeException

if TYPE_CHECKING:
    from .files import Path

_OPTIONS = {"data_mapping": "-dm", "api_mapping": "-am", "cell_mapping": "-cm", "layer_mapping": "-lm",
            "format": "--format"}
_SWITCHES = {"fuzzy_match": "-fm", "xlsx": "--xlsx", "diff_analyze": "-da", "first_diff_analyze": "-da"}
# The Python tool takes these; here they change nothing.
_IGNORED = ("auto_analyze", "highlight", "suffix", "compress")
_PATHS = {"npu_path": ("npu_path", "npu_json_path", "target_path"),
          "bench_path": ("bench_path", "bench_json_path", "golden_path"),
          "stack_path": ("stack_path", "stack_json_path")}


def compare(input_param: Union[Dict[str, Any], Path], output_path: Path = "./output", stack_mode: bool = False,
            **options: Any) -> None:
    """Compares two dumps with `msprobe compare`, which writes its tables to output_path.

    Args:
        input_param: a dict with npu_path, bench_path and optionally stack_path and is_print_compare_log, or the path of a
            JSON file with such an object.
        output_path: the folder for the tables.
        stack_mode: add columns with the call stacks.
        options: fuzzy_match, data_mapping, api_mapping, cell_mapping, layer_mapping, format, xlsx, diff_analyze, ...

    Raises MsprobeException if input_param is invalid or the command fails; TypeError for an unknown option.
    """
    if isinstance(input_param, (str, os.PathLike)):
        return _compare(["-i", input_param], output_path, stack_mode, options)
    if not isinstance(input_param, dict):
        raise _invalid("compare: input_param must be a dict or the path of a JSON file")
    paths: Dict[str, Any] = {}
    for name, spellings in _PATHS.items():
        found = next((input_param[spelling] for spelling in spellings if input_param.get(spelling)), None)
        if found is not None:
            paths[name] = os.path.abspath(os.fspath(found))
        elif name != "stack_path":
            raise _invalid("compare: input_param has no %s" % " or ".join(spellings))
    paths["is_print_compare_log"] = bool(input_param.get("is_print_compare_log", False))
    with tempfile.TemporaryDirectory(prefix="msprobe-") as folder:
        path = os.path.join(folder, "compare.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(paths, file)
        return _compare(["-i", path], output_path, stack_mode, options)


def compare_distributed(npu_dump_dir: Path, bench_dump_dir: Path, output_path: Path = "./output", **options: Any) -> None:
    """Compares all ranks of two steps, or all steps of two dumps.

    Args:
        npu_dump_dir: the run under test: the folder of a step or of a dump.
        bench_dump_dir: the reference run, likewise.
        output_path: the folder for the tables, which are workbooks unless `format` asks for others, or xlsx=False for csv.
        options: those of compare().

    Raises MsprobeException if the command fails; TypeError for an unknown option.
    """
    if not options.get("format"):
        options.setdefault("xlsx", True)
    _compare(["-tp", npu_dump_dir, "-gp", bench_dump_dir], output_path, False, options)


def _compare(arguments: List[Any], output_path: Path, stack_mode: bool, options: Dict[str, Any]) -> None:
    arguments = ["compare"] + arguments + ["-o", output_path] + (["-s"] if stack_mode else [])
    for name, value in options.items():
        if name in _OPTIONS:
            if value:
                arguments += [_OPTIONS[name]] if value is True else [_OPTIONS[name], value]
        elif name in _SWITCHES:
            arguments += [_SWITCHES[name]] if value else []
        elif name == "is_print_compare_log":
            arguments += ["-tensor_log"] if value else []
        elif name not in _IGNORED:
            raise TypeError("compare() got an unexpected keyword argument %r" % name)
    command.run(arguments)


def _invalid(text: str) -> MsprobeException:
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)

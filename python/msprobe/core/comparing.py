# SPDX-License-Identifier: Apache-2.0
"""Comparisons under the names that scripts know from the Python tool. The native command performs them."""

import json
import os
import tempfile

from . import command
from .common.exceptions import MsprobeException

_OPTIONS = {"data_mapping": "-dm", "api_mapping": "-am", "cell_mapping": "-cm", "layer_mapping": "-lm",
            "format": "--format"}
_SWITCHES = {"fuzzy_match": "-fm", "xlsx": "--xlsx", "diff_analyze": "-da", "first_diff_analyze": "-da"}
# What the Python tool takes and what changes nothing here.
_IGNORED = ("auto_analyze", "highlight", "suffix", "compress")
_PATHS = {"npu_path": ("npu_path", "npu_json_path", "target_path"),
          "bench_path": ("bench_path", "bench_json_path", "golden_path"),
          "stack_path": ("stack_path", "stack_json_path")}


def compare(input_param, output_path="./output", stack_mode=False, **options):
    """Compares two dumps. input_param: a dict with npu_path, bench_path and optionally stack_path and
    is_print_compare_log, or the path of a JSON file that holds one."""
    if isinstance(input_param, (str, os.PathLike)):
        return _compare(["-i", input_param], output_path, stack_mode, options)
    if not isinstance(input_param, dict):
        raise _invalid("compare: input_param must be a dict or the path of a JSON file")
    paths = {}
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


def compare_distributed(npu_dump_dir, bench_dump_dir, output_path="./output", **options):
    """Compares all ranks of two steps, or all steps of two dumps."""
    _compare(["-tp", npu_dump_dir, "-gp", bench_dump_dir], output_path, False, options)


def _compare(arguments, output_path, stack_mode, options):
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


def _invalid(text):
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)

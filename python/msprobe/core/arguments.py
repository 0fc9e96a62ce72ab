# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of PrecisionDebugger's public calls."""

from msprobe.core.common.exceptions import FileCheckException, MsprobeException

from . import session

_TASKS = ("tensor", "statistics", "overflow_check", "acc_check", "free_benchmark", "grad_probe", "structure", "diff_check",
          "exception_dump", "nan_check")


def invalid(text):
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def models_in(given):
    """Returns the models in an argument of start() as a list or tuple."""
    return given if isinstance(given, (list, tuple)) else [given] if given is not None else []


def check_constructor(config_path, task, dump_path, level, step):
    if config_path is not None:
        if not isinstance(config_path, str):
            raise FileCheckException(FileCheckException.INVALID_FILE_ERROR, "config_path must be a string")
        if not config_path.endswith(".json"):
            raise FileCheckException(FileCheckException.INVALID_FILE_ERROR,
                                     "config_path must name a .json file: " + config_path)
    if task is not None and task not in _TASKS:
        raise invalid("task must be one of %s" % ", ".join(_TASKS))
    if dump_path is not None and not isinstance(dump_path, str):
        raise invalid("dump_path must be a string")
    if level is not None and level not in session.LEVELS:
        raise invalid("level must be one of %s" % ", ".join(session.LEVELS))
    if step is not None and not isinstance(step, list):
        raise invalid("step must be a list")


def check_token_range(token_range):
    if token_range is None:
        return
    if not isinstance(token_range, (list, tuple)) or len(token_range) != 2:
        raise invalid("token_range must be a list or tuple of two numbers")
    begin, end = token_range
    if any(isinstance(number, bool) or not isinstance(number, int) for number in token_range):
        raise invalid("token_range must hold whole numbers")
    if not 0 <= begin <= end:
        raise invalid("token_range must be [begin, end] with 0 <= begin <= end")


def check_rank(rank_id):
    if rank_id is not None and (isinstance(rank_id, bool) or not isinstance(rank_id, int) or rank_id < 0):
        raise invalid("rank_id must be a whole number, 0 or more")

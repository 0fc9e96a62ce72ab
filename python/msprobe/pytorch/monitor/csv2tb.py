# SPDX-License-Identifier: Apache-2.0
"""TensorBoard event files, made from a monitor's csv files by the native command."""

from datetime import datetime

from ...core import command

_TYPES = ("actv", "actv_grad", "exp_avg", "exp_avg_sq", "grad_unreduced", "grad_reduced", "param_origin", "param_updated")


def csv2tensorboard_by_step(monitor_path, time_start=None, time_end=None, process_num=1, data_type_list=None,
                            output_dirpath=None):
    """As in the Python tool: raises RuntimeError for an invalid time, ValueError for other invalid arguments."""
    start, end = _time(time_start), _time(time_end)
    if start is not None and end is not None and start > end:
        raise ValueError("time_start (%s) is after time_end (%s)" % (time_start, time_end))
    if isinstance(process_num, bool) or not isinstance(process_num, int) or process_num <= 0:
        raise ValueError("process_num must be a positive integer, not %s" % (process_num,))
    for name in data_type_list or ():
        if name not in _TYPES:
            raise ValueError("data_type_list: %s is not one of %s" % (name, list(_TYPES)))
    arguments = ["monitor", "csv2tb", "--monitor_path", monitor_path]
    for option, value in (("--time_start", time_start), ("--time_end", time_end), ("--output_dirpath", output_dirpath)):
        if value is not None:
            arguments += [option, value]
    if data_type_list:
        arguments += ["--data_type_list", ",".join(data_type_list)]
    command.run(arguments)


def _time(text):
    if text is None:
        return None
    try:
        return datetime.strptime("2024 %s" % text, "%Y %b%d_%H-%M-%S")
    except ValueError:
        raise RuntimeError("%s is not a time such as Dec03_21-34-40, with which the name of an output folder begins"
                           % text) from None

# SPDX-License-Identifier: Apache-2.0
"""Settings that replace those of a training script, with any recorder: `msprobe bisect` and msprobe.pytorch.check()
record the same script several times.

They are a dict with any of dump_path, task, level, step and list, in the environment variable MSPROBE_SETTINGS as
JSON, or set by replaced() within a process.
"""

import contextlib
import json
import os

from .common import log

VARIABLE = "MSPROBE_SETTINGS"

_KEYS = ("dump_path", "task", "level", "step", "list")
_here = []


@contextlib.contextmanager
def replaced(settings):
    """Inside the `with` block, recorders of this process have these settings."""
    _here.append(settings)
    try:
        yield
    finally:
        _here.remove(settings)


def wanted():
    """Returns the settings that replace others; an empty dict by default."""
    if _here:
        return _here[-1]
    text = os.environ.get(VARIABLE)
    if not text:
        return {}
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict) or set(settings) - set(_KEYS):
        log.warn_once("%s in the environment has no effect: it must be a JSON object with some of %s" % (
            VARIABLE, ", ".join(_KEYS)))
        return {}
    return settings


def applied(config_path, text, arguments):
    """Applies the settings to a configuration. Returns (config_path, text, arguments), unchanged if there are no
    settings. text: the configuration if there is no path; arguments: a dict of overriding values, or None for each."""
    settings = wanted()
    if not settings:
        return config_path, text, arguments
    if config_path is not None:
        try:
            with open(config_path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            return config_path, text, arguments  # the extension reports what is wrong with it
    try:
        config = json.loads(text)
    except ValueError:
        config = None
    if not isinstance(config, dict):
        return config_path, text, arguments
    for key in ("task", "dump_path", "level", "step"):
        if key in settings:
            config[key] = settings[key]
        elif arguments.get(key) is not None:
            config[key] = arguments[key]
    config.pop("dump_enable", None)
    task = config.get("task", "statistics")
    if "task" in settings:  # sections of other tasks have no effect
        for other in ("statistics", "tensor", "structure", "overflow_check", "free_benchmark", "grad_probe", "acc_check"):
            if other != task:
                config.pop(other, None)
    if "list" in settings:
        section = config.get(task)
        config[task] = dict(section if isinstance(section, dict) else {}, list=settings["list"], scope=[])
    return None, json.dumps(config), dict.fromkeys(arguments)

# SPDX-License-Identifier: Apache-2.0
"""Call stacks as text. Each distinct stack is formatted once."""

import linecache
import os
import traceback

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def format_stack(frame):
    """(code objects, texts) of a frame and its callers, innermost first."""
    codes = []
    texts = []
    while frame is not None:
        code = frame.f_code
        codes.append(code)
        path = code.co_filename
        if not path.startswith(_OWN_FOLDER):
            line = linecache.getline(path, frame.f_lineno, frame.f_globals).strip()
            if line:
                texts.append("File %s, line %d, in %s, \n %s" % (path, frame.f_lineno, code.co_name, line))
        frame = frame.f_back
    return codes, texts


def format_exception(error):
    """(kind, text) for the error log."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return "%s" % type(error).__name__, text + "call stack\n" + "".join(traceback.format_stack(limit=30))

# SPDX-License-Identifier: Apache-2.0
"""Call stacks as text. Each distinct stack is formatted once."""

import linecache
import os
import threading
import traceback

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# The attribute `texts` has frames that no longer exist because they were compiled; innermost first.
compiled = threading.local()


def format_stack(frame):
    """(code objects, texts) of a frame and its callers, innermost first."""
    codes = []
    texts = list(getattr(compiled, "texts", ()))
    while frame is not None:
        code = frame.f_code
        codes.append(code)
        path = code.co_filename
        if not path.startswith(_OWN_FOLDER):
            line = linecache.getline(path, frame.f_lineno, frame.f_globals).strip()
            if line:
                texts.append(_text(path, frame.f_lineno, code.co_name, line))
        frame = frame.f_back
    return codes, texts


def _text(path, number, function, line):
    return "File %s, line %d, in %s, \n %s" % (path, number, function, line)


def texts_of(summary):
    """The texts of a traceback.StackSummary, innermost first."""
    return tuple(_text(one.filename, one.lineno, one.name, one.line) for one in reversed(summary)
                 if one.line and not one.filename.startswith(_OWN_FOLDER))


def format_exception(error):
    """(kind, text) for the error log."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return "%s" % type(error).__name__, text + "call stack\n" + "".join(traceback.format_stack(limit=30))

# SPDX-License-Identifier: Apache-2.0
"""The exceptions that a script may want to catch. The package raises no others."""

from __future__ import annotations

from typing import Dict
class CodedException(Exception):
    """An error with a code; the text begins with the kind of error."""

    categories: Dict[int, str] = {}

    def __init__(self, code: int, error_info: str = "") -> None:
        super().__init__(code, error_info)
        self.code = code
        self.error_info = "[msprobe] " + self.categories.get(code, "error: ") + error_info

    def __str__(self) -> str:
        return self.error_info


class MsprobeException(CodedException):
    INVALID_PARAM_ERROR = 0
    OVERFLOW_NUMS_ERROR = 1
    RECURSION_LIMIT_ERROR = 2
    INTERFACE_USAGE_ERROR = 3
    UNSUPPORTED_TYPE_ERROR = 4
    INVALID_CHAR_ERROR = 5

    categories = {
        INVALID_PARAM_ERROR: "invalid parameter: ",
        OVERFLOW_NUMS_ERROR: "too many overflows: ",
        RECURSION_LIMIT_ERROR: "nested too deeply: ",
        INTERFACE_USAGE_ERROR: "invalid usage: ",
        UNSUPPORTED_TYPE_ERROR: "unsupported type: ",
        INVALID_CHAR_ERROR: "invalid character: ",
    }


class FileCheckException(CodedException):
    INVALID_FILE_ERROR = 0
    FILE_PERMISSION_ERROR = 1
    SOFT_LINK_ERROR = 2
    ILLEGAL_PATH_ERROR = 3
    ILLEGAL_PARAM_ERROR = 4
    FILE_TOO_LARGE_ERROR = 5

    categories = {
        INVALID_FILE_ERROR: "invalid file: ",
        FILE_PERMISSION_ERROR: "file permission: ",
        SOFT_LINK_ERROR: "symbolic link: ",
        ILLEGAL_PATH_ERROR: "illegal path: ",
        ILLEGAL_PARAM_ERROR: "invalid parameter: ",
        FILE_TOO_LARGE_ERROR: "file too large: ",
    }


class ScopeException(CodedException):
    INVALID_SCOPE = 0
    ARG_ERROR = 1

    categories = {
        INVALID_SCOPE: "invalid scope: ",
        ARG_ERROR: "invalid argument: ",
    }


class ComparisonError(MsprobeException):
    """The command could not compare. `output` is all that it said."""

    FAILED = 100
    categories = {**MsprobeException.categories, FAILED: ""}

    def __init__(self, error_info: str = "", output: str = "") -> None:
        super().__init__(self.FAILED, error_info)
        self.output = output


class NothingCompared(ComparisonError):
    """Both dumps could be read, but they have nothing that could be compared."""

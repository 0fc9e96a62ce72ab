# SPDX-License-Identifier: Apache-2.0
"""Lists of names in groups, such as support_wrap_ops.yaml: a parser for the subset of YAML that they need."""

from .common.exceptions import FileCheckException

_LARGEST = 1 << 20  # characters


def read_lists(path):
    """{group: names}. Raises FileCheckException if the file is malformed or unreadable."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(path, str(error)) from None
    if len(text) > _LARGEST:
        raise _wrong(path, "is larger than a list of functions")
    groups = {}
    names = None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split(" #")[0].strip()
        if not line or line.startswith("#") or line == "---":
            continue
        if line.startswith("- "):
            name = line[2:].strip().strip("\"'")
            if names is None or not _is_name(name[1:] if name.startswith("-") else name):
                raise _wrong(path, "line %d is not the name of a function below a group" % number)
            names.append(name)
            continue
        group, colon, rest = line.partition(":")
        if not colon or rest.strip() not in ("", "[]") or not _is_name(group):
            raise _wrong(path, "line %d must be a group (`tensor:`) or a name (`- add`)" % number)
        names = groups.setdefault(group, [])
    return groups


def _is_name(text):
    return bool(text) and all(part.isidentifier() for part in text.split("."))


def _wrong(path, reason):
    return FileCheckException(FileCheckException.INVALID_FILE_ERROR, "%s: %s" % (path, reason))

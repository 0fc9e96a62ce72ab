# SPDX-License-Identifier: Apache-2.0
"""Rows of data/operations.yaml and of a user's own file in that form: a parser for the part of YAML that they need. A row
is `name: {key: value, ...}` over as many lines as it takes, or `name:` with a line for each key. A value is a text or a
list of texts."""

import re

_LARGEST = 1 << 20  # characters
_TOKEN = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([{}\[\]:,])|([^\s"'{}\[\]:,]+))""")


class RowError(Exception):
    pass


def _tokens(text):
    """(is it a sign, text), to the end."""
    at = 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise RowError("cannot be read at " + text[at:at + 20])
        at = found.end()
        yield (True, found[3]) if found[3] else (False, next(group for group in found.groups() if group is not None))


def _row(text):
    """(name, {key: text or list}) of `name: {...}`."""
    tokens = list(_tokens(text)) + [(True, "the end")]

    def take(*signs):
        is_sign, token = tokens.pop(0)
        if (is_sign and token not in signs) or (not is_sign and signs):
            raise RowError("%s where %s should be" % (token, " or ".join(signs) or "a word"))
        return token

    def words():
        found = [take()]
        while not tokens[0][0]:
            found.append(take())
        return " ".join(found)

    name = take()
    take(":")
    take("{")
    row = {}
    while True:
        key = take()
        if key in row:
            raise RowError("%s appears twice" % key)
        take(":")
        if tokens[0] != (True, "["):
            row[key] = words()
        else:
            row[key] = []
            take("[")
            while tokens[0] != (True, "]"):
                row[key].append(words())
                if take(",", "]") == "]":
                    break
            else:
                take("]")
        if take(",", "}") == "}":
            take("the end")
            return name, row


def _in_braces(lines):
    """A row with a line for each key, as it is written in braces."""
    if lines[0].find(":") != len(lines[0]) - 1 or lines[1:2] == [] or lines[1].startswith("{"):
        return " ".join(lines)
    members = []
    for line in lines[1:]:
        if line.startswith("- ") and members:
            members[-1][1].append(line[2:])
        else:
            key, _, value = line.partition(":")
            members.append((key, [], value))
    return "%s {%s}" % (lines[0], ", ".join(
        "%s: %s" % (key, value if value.strip() else "[%s]" % ", ".join(items)) for key, items, value in members))


def read(path, check):
    """{name: row} of a file, in its order. check(name, row) raises a RowError for a row that is wrong."""
    with open(path, encoding="utf-8") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise RowError("%s: is larger than a table of operations" % path)
    entries = []  # (number of its first line, its lines)
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if not line or line == "---":
            continue
        if line[0] not in " -":
            entries.append((number, [line]))
        elif entries:
            entries[-1][1].append(line.strip())
        else:
            raise RowError("%s:%d: must begin with the name of an operation" % (path, number))
    rows = {}
    for number, lines in entries:
        try:
            name, row = _row(_in_braces(lines))
            check(name, row)
            if name in rows:
                raise RowError("appears twice")
        except RowError as error:
            raise RowError("%s:%d: %s: %s" % (path, number, lines[0].split(":")[0], error)) from None
        rows[name] = row
    return rows


# ---------------------------------------------------------------------- a user's rows

_OWN_KEYS = ("kind", "nature", "risk", "recorded", "also", "is", "signature", "parameters", "running_statistics")


def _check_own(name, row):
    """Checks what the collector needs. `msprobe compare --operations` checks the rest."""
    for key in row:
        if key not in _OWN_KEYS:
            raise RowError("unknown key %s; there are %s" % (key, ", ".join(_OWN_KEYS)))
    if "kind" not in row:
        raise RowError("needs a kind")
    if row.get("risk", "core") not in ("core", "low"):
        raise RowError("risk must be core or low")
    for key in ("also", "recorded"):
        if not isinstance(row.get(key, []), list):
            raise RowError("%s must be a list of names" % key)
    for function in row.get("recorded", []):
        if "." not in function or not all(part.isidentifier() for part in function.split(".")):
            raise RowError("recorded: %s is not a function with its module, as in my_package.kernels.my_rms_norm" % function)


def read_own(path):
    """The rows of a user's file. Raises FileCheckException if it is malformed or unreadable."""
    from .common.exceptions import FileCheckException  # the build reads the table without the package

    try:
        return read(path, _check_own)
    except RowError as error:
        reason = str(error)
    except (OSError, UnicodeDecodeError) as error:
        reason = "%s: %s" % (path, error)
    raise FileCheckException(FileCheckException.INVALID_FILE_ERROR, reason)

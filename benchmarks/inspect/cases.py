# SPDX-License-Identifier: Apache-2.0
"""A case is a folder as it is downloaded, and the Python lines that load it; `folder` is its path there.

Each payload is harmless: it makes an empty file or folder in the current folder whose name begins with PWNED.
"""

import pickle
import struct
from typing import Callable, Dict, NamedTuple, Tuple, Union

SHELL = "touch PWNED"
CODE = "open('PWNED', 'w')"
Content = Union[bytes, str]


class Case(NamedTuple):
    name: str
    format: str
    # The content of each file, or a function that writes the files into the folder it is given.
    files: Union[Dict[str, Content], Callable[[str], object]]
    load: str
    # The modules that have to be there; a case without one of them is skipped.
    needs: Tuple[str, ...] = ()
    # Whether the kind was known when `inspect` was written against a list.
    known: bool = False


# An assembler for pickles.
def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def named(path: str) -> bytes:
    """GLOBAL of "module:name"."""
    module, name = path.split(":")
    return f"c{module}\n{name}\n".encode()


def value(thing: object) -> bytes:
    """The opcodes of a plain value, without PROTO and STOP; bytes are opcodes already."""
    return thing if isinstance(thing, bytes) else pickle.dumps(thing, 2)[2:-1].replace(b"q\x00", b"").replace(b"q\x01", b"")


def call(path: Union[str, bytes], *arguments: object) -> bytes:
    function = named(path) if isinstance(path, str) else path
    return function + b"(" + b"".join(map(value, arguments)) + b"tR"


def proto(opcodes: bytes, version: int = 2) -> bytes:
    return b"\x80" + bytes([version]) + opcodes + b"."


SYSTEM = call("os:system", SHELL)
EXEC = call("builtins:exec", CODE)

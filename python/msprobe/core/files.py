# SPDX-License-Identifier: Apache-2.0
"""Files that get their name when they are whole."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from typing import IO, TYPE_CHECKING, Any, Iterator, Union

if TYPE_CHECKING:
    Path = Union[str, os.PathLike[str]]


@contextlib.contextmanager
def whole_file(path: Path, mode: str = "w", **options: Any) -> Iterator[IO[Any]]:
    """Opens a file for writing. When it is complete, it replaces an earlier file, or a symbolic link (never the link's
    target). After an error no file is left behind."""
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "not a regular file, so it cannot be replaced", path)
    half = "%s.%d-%d.part" % (path, os.getpid(), threading.get_ident())
    with contextlib.suppress(FileNotFoundError):
        os.unlink(half)
    try:
        with open(half, mode.replace("w", "x"), **options) as file:
            yield file
        os.replace(half, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(half)
        raise

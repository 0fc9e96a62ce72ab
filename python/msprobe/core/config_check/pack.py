# SPDX-License-Identifier: Apache-2.0
"""Packs: zip archives to which several processes of one host can add."""

import contextlib
import json
import os
import zipfile

try:
    import fcntl
except ImportError:  # another system than Linux
    fcntl = None

_LIMIT = 10 * 1024 ** 3
_FORMAT = b"msprobe pack 1"  # the same text as in src/pack/pack_format.hpp
_SECRET = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "ACCESS_KEY", "API_KEY")


class Pack:
    def __init__(self, path):
        self.path = os.path.abspath(path)

    def create(self):
        """Starts a new pack; an existing file of this name is removed, and so is a link."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if os.path.islink(self.path):
            os.unlink(self.path)
        with zipfile.ZipFile(self.path, "w") as archive:
            archive.comment = _FORMAT

    def add(self, name, text):
        data = text.encode("utf-8", "surrogateescape")
        with self._locked():
            size = os.path.getsize(self.path) if os.path.exists(self.path) else 0
            if size + len(data) > _LIMIT:
                raise ValueError("the pack would be larger than 10 GiB: " + self.path)
            member = zipfile.ZipInfo(name)  # the time stamp is that of 1980: equal packs are equal files
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o600 << 16
            with zipfile.ZipFile(self.path, "a") as archive:
                archive.writestr(member, data)

    def add_json(self, name, value):
        self.add(name, json.dumps(value, indent=4, default=lambda odd: None))

    @contextlib.contextmanager
    def _locked(self):
        with open(self.path, "ab") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def environment():
    """Returns all environment variables of the process; the values of variables that hold keys are masked."""
    return {name: "******" if any(word in name.upper() for word in _SECRET) else value
            for name, value in os.environ.items()}


def packages():
    """`Name=version` of every installed package."""
    try:
        from importlib.metadata import distributions
    except ImportError:
        return ""
    lines = []
    for package in distributions():
        name = package.metadata["Name"]
        if name:
            lines.append("%s=%s" % (name, package.version))
    return "\n".join(lines)

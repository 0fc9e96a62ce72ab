# SPDX-License-Identifier: Apache-2.0
"""Level L2: the files of kernels that the runtime of an NPU has written."""

import collections
import os

from .closing import counted

# Its settings, written by the front end or by itself.
_SETTINGS = ("kernel_", "acl_dump_")


class Files:
    """The files that appear below a folder from now on."""

    def __init__(self, folder):
        self._folder = os.path.abspath(folder)
        self._before = _below(self._folder)

    def told(self):
        """Returns the number of kernels, their kinds and their place; None if there is no file yet."""
        found = _below(self._folder) - self._before
        if not found:
            return None
        kinds = sorted(collections.Counter(map(_kind, found)).items(), key=lambda one: (-one[1], one[0]))
        return "%s of kernels (%s) in %s" % (
            counted(len(found), "file", "files"), ", ".join("%d %s" % (count, kind) for kind, count in kinds[:3]),
            os.path.commonpath([os.path.dirname(path) for path in found]))

    def none(self):
        return "the runtime has written no file of kernels to " + self._folder


def _below(folder):
    return {os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
            if not (name.startswith(_SETTINGS) and name.endswith(".json"))}


def _kind(path):
    """The name of a file in the vendor's own format ends in the time."""
    name = os.path.basename(path)
    ending = os.path.splitext(name)[1]
    return name if ending == ".csv" else "without ending" if ending[1:].isdigit() or not ending else ending

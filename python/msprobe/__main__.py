# SPDX-License-Identifier: Apache-2.0
"""`python -m msprobe ...` is the command `msprobe ...` of this package."""

import os
import sys

from .core import command
from .core.common.exceptions import MsprobeException


def main(arguments):
    if arguments[:1] == ["bisect"]:  # needs this interpreter, not the command
        from . import bisect
        return bisect.run(arguments[1:])
    try:
        path = command.located()
        os.execv(path, [path] + arguments)
    except (MsprobeException, OSError) as error:
        sys.stderr.write("msprobe: error: %s\n" % error)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

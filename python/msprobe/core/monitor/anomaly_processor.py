# SPDX-License-Identifier: Apache-2.0
"""python3 -m msprobe.core.monitor.anomaly_processor: ranks alerts with the native command."""

import os
import sys

from .. import command


def main(arguments=None):
    """Does not return: the command replaces this process."""
    found = command.find()
    if found is None:
        sys.exit("the command msprobe of this package is not installed")
    os.execv(found, [found, "monitor", "analyze"] + list(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    main()

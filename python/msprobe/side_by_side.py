# SPDX-License-Identifier: Apache-2.0
"""The Python tool (mindstudio-probe) in the folder of this package: its package has the same name."""

import os
import sys


def warn():
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        names = os.listdir(folder)
    except OSError:
        return
    if any(name.startswith("mindstudio_probe-") and name.endswith(".dist-info") for name in names):
        try:
            sys.stderr.write("msprobe: warning: mindstudio-probe is installed in the same place (%s), and its files have the "
                             "names of this msprobe's: removing either breaks the other. pip uninstall both, then install "
                             "one of them, or each into a separate environment\n" % folder)
        except Exception:  # a closed stderr is no reason to disturb the training
            pass

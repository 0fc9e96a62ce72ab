# SPDX-License-Identifier: Apache-2.0
"""Prints, for Meson, the module folder of this Python below a prefix. Debian's Python searches a different folder
than Meson's default.

usage: find_folder.py PREFIX
"""

import os
import site
import sys


def main(prefix):
    library = os.path.join(os.path.realpath(prefix), "lib", "")
    for folder in site.getsitepackages() + [site.getusersitepackages()]:
        if os.path.realpath(folder).startswith(library):
            print(folder)
            return


main(sys.argv[1])

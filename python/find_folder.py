# SPDX-License-Identifier: Apache-2.0
"""Where this Python looks for modules below a prefix, for Meson: Debian's looks elsewhere than Meson puts them.

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

# SPDX-License-Identifier: Apache-2.0
"""usage: exported_symbols.py NM LIBRARY HEADER...

The shared library defines the functions that the headers declare, and no other symbol for others to see.
"""

import re
import subprocess
import sys


def main():
    nm, library, *headers = sys.argv[1:]
    listing = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    defined = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    declared = set()
    for header in headers:
        with open(header, encoding="utf-8") as file:
            declared.update(re.findall(r"^MSPROBE_API [^;]*?\b(msprobe_\w+)\(", file.read(), re.MULTILINE))
    if not declared or defined != declared:
        sys.exit(f"not declared: {sorted(defined - declared)}; not defined: {sorted(declared - defined)}")


main()

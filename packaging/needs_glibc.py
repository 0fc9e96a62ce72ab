#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the oldest glibc on which an ELF file loads, such as 2.17; 0 for a file that needs none. Exits with status 1 if
the file needs libraries other than glibc and libgcc_s, or a version of their symbols that manylinux_2_17 does not allow.

usage: needs_glibc.py FILE
"""

import re
import subprocess
import sys

# Parts of glibc, and what every system with a C++ program has.
LIBRARIES = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux[-\w]*\.so\.\d|libgcc_s\.so\.1")


def main(path):
    text = subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", path], check=True, capture_output=True,
                          text=True).stdout
    strange = [name for name in re.findall(r"\(NEEDED\).*\[(.*)\]", text) if not LIBRARIES.fullmatch(name)]
    needs = text.partition("Version needs section")[2]
    versions = set(re.findall(r"Name: (\w+)_([\d.]+)", needs))
    strange += [f"{name}_{version}" for name, version in sorted(versions)
                if name not in ("GLIBC", "GCC") or (name == "GCC" and version.split(".") > ["4", "8"])]
    if strange:
        sys.exit(f"{path} needs {', '.join(strange)}")
    oldest = max(([int(part) for part in version.split(".")] for name, version in versions if name == "GLIBC"),
                 default=[0])
    print(".".join(map(str, oldest[:2])))


if __name__ == "__main__":
    main(*sys.argv[1:])

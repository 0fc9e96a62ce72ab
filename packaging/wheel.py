#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a reproducible wheel from a folder. metadata.py gives the metadata.

usage: wheel.py TREE PLATFORM TARGET_FOLDER
  TREE      purelib content: msprobe/..., and scripts, data and licences in folders of these names beside it
  PLATFORM  manylinux_2_17_x86_64, say; SOURCE_DATE_EPOCH is the time of the files
Prints the name of the wheel.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

import metadata

TAG = "cp38-abi3"  # one build for every CPython from 3.8 on


def entries(tree, name, platform):
    """(name in the wheel, bytes, whether it is run), the metadata last, as the standard of wheels asks."""
    files = sorted(one for one in tree.rglob("*") if one.is_file())
    info = f"{name}.dist-info"
    kept = []
    for path in files:
        top, _, rest = str(path.relative_to(tree)).partition("/")
        runs = os.access(path, os.X_OK)
        if top == "msprobe":
            kept.append((f"{top}/{rest}", path.read_bytes(), runs))
        elif top in ("scripts", "data"):
            kept.append((f"{name}.data/{top}/{rest}", path.read_bytes(), runs))
        elif top == "licences":
            kept.append((f"{info}/licenses/{rest}", path.read_bytes(), False))
        else:
            sys.exit(f"{path}: no place for it in a wheel")
    tags = "".join(f"Tag: {TAG}-{one}\n" for one in platform.split("."))
    kept.sort(key=lambda entry: (entry[0].startswith(info), entry[0]))
    kept.append((f"{info}/METADATA", metadata.text().encode(), False))
    points = metadata.entry_points()
    if points:
        kept.append((f"{info}/entry_points.txt", points.encode(), False))
    kept.append((f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: msprobe\nRoot-Is-Purelib: false\n{tags}".encode(), False))
    record = "".join(
        "{},sha256={},{}\n".format(entry, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(),
                                   len(data))
        for entry, data, _ in kept
    )
    kept.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), False))
    return kept


def main(tree, platform, target):
    name = metadata.file_name()
    wheel = pathlib.Path(target) / f"{name}-{TAG}-{platform}.whl"
    when = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]  # a zip begins in 1980
    part = wheel.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for entry, data, runs in entries(pathlib.Path(tree), name, platform):
            info = zipfile.ZipInfo(entry, when)
            info.create_system = 3
            info.external_attr = (0o100755 if runs else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, data)
    part.replace(wheel)
    print(wheel.name)


if __name__ == "__main__":
    main(*sys.argv[1:])

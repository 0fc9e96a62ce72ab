#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate `inspect --fail-on`: whatever hides a call behind something that msprobe does not understand, the file is
never clean. Every pickle here is one that Python follows to the call; none is ever loaded.

usage: inspect_gate.py MSPROBE
"""

import struct

import harness

CALL = b"cposix\nsystem\n(U\x04truetR"
LEGACY_MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
LEGACY_START = LEGACY_MAGIC + b"\x80\x02M\xe9\x03." + b"\x80\x02}X\x0d\x00\x00\x00little_endian\x88s."
STORAGE = b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuK\x02tQ"
MODULE = b"(U\x06modulecargparse\nNamespace\nU\x01fU\x04texttQ"


def legacy(data):
    """A legacy PyTorch file with one storage of two elements."""
    return LEGACY_START + b"\x80\x02" + data + b"." + b"\x80\x02]U\x010a." + struct.pack("<Q2f", 2, 0, 0)


def status_of(msprobe, path, level):
    result = harness.run(msprobe, ["inspect", "--fail-on", level, path.name], path.parent)
    return result.returncode, result


def never_clean(msprobe, scratch, name, data):
    path = scratch / name
    path.write_bytes(data)
    for level in ("unknown", "dangerous"):
        status, result = status_of(msprobe, path, level)
        harness.check(status in (1, 2), f"{name}: --fail-on {level} ends with {status}: {result.stdout}{result.stderr}")


ODD = {
    "int_with_blanks": b"I 5 \n0",
    "int_beyond_64_bits": b"I123456789012345678901234567890\n0",
    "long_beyond_64_bits": b"L123456789012345678901234567890L\n0",
    "get_with_sign": b"Np7\n0g+7\n0",
    "build_on_a_global": b"cargparse\nNamespace\n(N}tb0",
    "append_to_bytes": b"\x96\x00\x00\x00\x00\x00\x00\x00\x00K\x01a0",
    "called_module": MODULE + b")R0",
}


def behind_storages(msprobe, scratch):
    for name, odd in ODD.items():
        for before in (STORAGE, MODULE, b"]"):
            never_clean(msprobe, scratch, f"{name}.pt", legacy(before + b"0" + odd + CALL))
            never_clean(msprobe, scratch, f"{name}.pkl", b"\x80\x02" + before + b"0" + odd + CALL + b".")


def behind_many_pickles(msprobe, scratch):
    for count in (5, 6, 16, 17, 9_999, 10_001):
        never_clean(msprobe, scratch, f"{count}.pkl", b"N." * count + CALL + b".")


def tests(msprobe):
    return [
        ("calls behind storages and what is not understood", lambda scratch: behind_storages(msprobe, scratch)),
        ("calls behind many pickles", lambda scratch: behind_many_pickles(msprobe, scratch)),
    ]


harness.main(tests)

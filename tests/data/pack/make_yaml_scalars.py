#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes yaml_scalars.json: plain scalars and what PyYAML's safe loader makes of them. Needs PyYAML.

usage: make_yaml_scalars.py >yaml_scalars.json
"""

import itertools
import json

import yaml

WORDS = """yes Yes YES yEs no No NO on On ON off OFF oFf true True TRUE tRue false FALSE y n null Null NULL nULL ~ None
.inf .Inf .INF -.inf +.inf .iNf .nan .NaN .NAN -.nan inf nan 0 00 07 08 017 0o17 -017 +1 -0 -1 1_000 1__0 _1 1_ 0_ 0x1F 0X1F 0x
0x_ 0xg 0b101 0b2 0b -0b1 -0x10 1:30 1:60 190:20:30 -1:30 1:3 1:030 0:30 1:30.5 1:30. 20:59.1e+1 1. .5 ._5 .5_ 1.5 1.5e3 1.5e+3
1.5e-3 1.e+3 1e5 1e-5 1e+5 1.0e-5 1.0E-5 .5e+3 .5e3 -1.5 +1.5 -.5 +.5 1.2.3 . - -- + 1.5_0 1_0.5 12345678901234567890 -99999999999999999999
0x7fffffffffffffffffff 017777777777777777777777777 0b1111111111111111111111111111111111111111111111111111111111111111111
2024-01-02 2024-1-2 2024-01-02T03:04:05 2024-01-02t03:04:05Z 2024-1-2T3:04:05.5+01:00 2024-01-02T03:04:05-7
2024-01-02T03:04 2024/01/02 24-01-02 2024-01-02x 1.7976931348623157e+308 4.9e-324 1e400 1.0e+400 0.1 123456789.123456789
hello a.b a-b a_b /path x:y 1e 1e+ 0.0 -0.0 00.5 08.5 1,000 1,5 3.14_15 0777_7 9:00:00 9:59:59.9 09:30 0x1_F = <""".split()


def describe(text):
    value = yaml.safe_load(text)
    if value is None or hasattr(value, "year"):
        return ["null", ""]
    if isinstance(value, float):
        return ["real", repr(value)]
    names = {bool: "boolean", int: "integer", str: "text"}
    return [names[type(value)], str(value)]


def main():
    numbers = ["".join(parts) for parts in itertools.product(["-", "+"], ["0", "1", "9", "07", "1_2"], ["", ".", ".5", ":5", "e3", ".e+3"])]
    table = {}
    for text in WORDS + numbers:
        try:
            if not isinstance(yaml.safe_load(text), (dict, list)):
                table[text] = describe(text)
        except (yaml.YAMLError, ValueError):
            pass  # impossible dates, and texts that are not plain scalars
    print("{\n" + ",\n".join(f"{json.dumps(scalar)}: {json.dumps(read)}" for scalar, read in table.items()) + "\n}")


if __name__ == "__main__":
    main()

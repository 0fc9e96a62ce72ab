#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes repr_table.hpp: doubles and how Python prints them. Usage: make_repr_table.py > repr_table.hpp"""

import math
import random
import struct

random.seed(2026)
values = [0.0, -0.0, 1.0, -1.0, 3.0, 0.1, 0.1 + 0.2, 1 / 3, 2 / 3, 100.0, 123456.789, 5e-324, -5e-324, 2.5e-323,
          2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1e300,
          1e22, 1e23, 9007199254740991.0, 9007199254740992.0, 9007199254740994.0, 9999999999999998.0, 1e15, 1e16,
          1.5e16, 123456789012345680.0, 0.0001, 0.00009999999999999999, 0.00011, 1e-5, 1.5e-5, 1e-10, 1e-100, 4.35,
          0.000123456789012345678, 65504.0, 3.4028234663852886e38, 1.401298464324817e-45, 1e-6, 2.0**-126, 2.0**52]
values += [10.0**k for k in range(-20, 21)]
values += [math.nextafter(10.0**k, 0) for k in (-5, -4, -3, 0, 15, 16, 17)]
values += [math.nextafter(10.0**k, math.inf) for k in (-5, -4, -3, 0, 15, 16, 17)]
values += [struct.unpack("<f", struct.pack("<f", random.uniform(-10, 10)))[0] for _ in range(60)]  # widened float32
values += [random.uniform(-1, 1) for _ in range(40)]
values += [float(random.randrange(-10**15, 10**15)) for _ in range(20)]
while len(values) < 340:  # any bits
    value = struct.unpack("<d", struct.pack("<Q", random.getrandbits(64)))[0]
    if math.isfinite(value):
        values.append(value)
while len(values) < 360:  # subnormals
    values.append(struct.unpack("<d", struct.pack("<Q", random.getrandbits(random.randrange(1, 52))))[0])

print("""// SPDX-License-Identifier: Apache-2.0
// Made by make_repr_table.py: the bits of doubles and repr() of Python.
#pragma once

#include <cstdint>

namespace msprobe::test {

struct ReprRow {
  std::uint64_t bits;
  const char* text;
};

// clang-format off
inline constexpr ReprRow kReprTable[] = {""")
for value in values:
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    print(f'  {{0x{bits:016x}, "{value!r}"}},')
print("""};
// clang-format on

}  // namespace msprobe::test""")

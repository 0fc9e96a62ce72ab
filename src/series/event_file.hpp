// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files: records of a length, its checksum, an event as a protocol buffer, its checksum.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace msprobe::series {

struct Scalar {
  std::string_view tag;  // its parts are those of `tag` and `suffix` together
  std::string_view suffix;
  float value = 0;
};

/// What every file begins with. `time`: seconds since 1970.
void append_event_version(std::string& out, double time);

/// One event: the values of a step. A tag's steps have to ascend.
void append_event(std::string& out, double time, std::int64_t step, std::span<const Scalar> scalars);

/// The number nearest to a double, infinite if it is too large.
float event_value(double value);

}  // namespace msprobe::series

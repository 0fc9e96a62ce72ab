// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files. A record is a length, its checksum, an event as a protocol buffer, and its
// checksum.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace msprobe::series {

struct Scalar {
  std::string_view tag;  // the tag is `tag` and `suffix` together
  std::string_view suffix;
  float value = 0;
};

/// Appends the start of every file. `time`: seconds since 1970.
void append_event_version(std::string& out, double time);

/// Appends one event: the values of a step. The steps of a tag must ascend.
void append_event(std::string& out, double time, std::int64_t step, std::span<const Scalar> scalars);

/// The float nearest to a double; infinite if the double is too large.
float event_value(double value);

}  // namespace msprobe::series

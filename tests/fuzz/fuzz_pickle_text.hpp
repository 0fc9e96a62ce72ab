// SPDX-License-Identifier: Apache-2.0
// Pickles put together from their parts, each of which leaves one value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "unit/archive/zip_builder.hpp"

namespace msprobe::pickles {

using Values = std::vector<std::string>;

inline std::string joined(const Values& values) {
  std::string out;
  for (const std::string& value : values) out += value;
  return out;
}
inline std::string none() {
  return "N";
}
inline std::string boolean(bool value) {
  return value ? "\x88" : "\x89";
}
inline std::string integer(std::int64_t value) {
  return archive::Bytes().text("\x8a\x08").u64(static_cast<std::uint64_t>(value)).str();
}
inline std::string text(const std::string& value) {
  return archive::Bytes().text("X").u32(value.size()).text(value).str();
}
inline std::string tuple(const Values& values) {
  return "(" + joined(values) + "t";
}
inline std::string list(const Values& values) {
  return "](" + joined(values) + "e";
}
/// `values`: keys and values in turns.
inline std::string dict(const Values& values) {
  return "}(" + joined(values) + "u";
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string call(const std::string& function, const Values& arguments) {
  return function + tuple(arguments) + "R";
}
inline std::string object(const std::string& type, const std::string& state) {
  return type + ")\x81" + state + "b";
}
inline std::string whole(const std::string& value) {
  return "\x80\x02" + value + ".";
}

}  // namespace msprobe::pickles

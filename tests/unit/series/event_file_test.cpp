// SPDX-License-Identifier: Apache-2.0
#include "series/event_file.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <string>

#include "support/crc32.hpp"

namespace msprobe::series_event_file_test {

using namespace msprobe;
using namespace msprobe::series;

namespace {

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::uint32_t checksum(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

TEST_CASE("CRC-32C of the examples in RFC 3720") {
  CHECK(checksum("123456789") == 0xe3069283);
  CHECK(checksum(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(checksum(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(checksum("") == 0);
}

TEST_CASE("records are, byte by byte, those that TensorBoard's own writer makes") {
  // Events of TensorBoard 2.21's own classes and its RecordWriter: a version at time 1, a/b = 1.5 of step 3
  // at time 2. add_scalar("a/b", 1.5, 3).
  std::string out;
  append_event_version(out, 1.0);
  CHECK(hex(out) == "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
  out.clear();
  const std::array<Scalar, 1> one = {{{"a", "/b", 1.5F}}};
  append_event(out, 2.0, 3, one);
  CHECK(hex(out) == "19000000000000008bf1082809000000000000004010032a0c0a0a0a03612f62150000c03fdf9f3d80");
}

TEST_CASE("doubles become the nearest float") {
  CHECK(event_value(0.1) == 0.1F);
  CHECK(event_value(1e300) == std::numeric_limits<float>::infinity());
  CHECK(event_value(-1e300) == -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace msprobe::series_event_file_test

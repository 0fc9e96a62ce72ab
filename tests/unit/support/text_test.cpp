// SPDX-License-Identifier: Apache-2.0
#include "support/text.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "unit/support/repr_table.hpp"

namespace msprobe::support_text_test {

using namespace msprobe;

TEST_CASE("python_repr prints doubles as Python does") {
  for (const test::ReprRow& row : test::kReprTable) {
    const double value = std::bit_cast<double>(row.bits);
    CHECK(python_repr(value) == row.text);
    CHECK(std::bit_cast<std::uint64_t>(parse_number(row.text).value()) == row.bits);
  }
  CHECK(python_repr(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(python_repr(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(python_repr(std::nan("")) == "nan");
  CHECK(python_repr(-std::nan("")) == "nan");
  std::string out = "x=";
  append_python_repr(out, 1e-5);
  CHECK(out == "x=1e-05");
}

// The expected texts are what repr() of Python 3.11 gives.
TEST_CASE("python_repr quotes text as Python does") {
  const auto repr = [](std::string_view text) { return python_repr(text); };
  CHECK(repr("plain") == "'plain'");
  CHECK(repr("") == "''");
  CHECK(repr("a'b") == "\"a'b\"");
  CHECK(repr("a\"b") == "'a\"b'");
  CHECK(repr("a'b\"c") == "'a\\'b\"c'");
  CHECK(repr(std::string_view("x\\y\n\r\t\x00\x1b\x7f", 9)) == "'x\\\\y\\n\\r\\t\\x00\\x1b\\x7f'");
  CHECK(repr("\xC2\x85\xC2\xA0\xC2\xAD") == "'\\x85\\xa0\\xad'");
  CHECK(repr("\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80") == "'\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80'");
  CHECK(repr("\xE2\x80\x8B\xE2\x80\xA8\xEF\xBB\xBF\xF3\xA0\x80\x81") == "'\\u200b\\u2028\\ufeff\\U000e0001'");
  CHECK(repr("a\xFF\xE4") == "'a\\udcff\\udce4'");
}

TEST_CASE("parse_number takes what float() of Python takes") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::string zeros(400, '0');
  CHECK(parse_number("1.") == 1.0);
  CHECK(parse_number(".5") == 0.5);
  CHECK(parse_number(" +12\n") == 12.0);
  CHECK(parse_number("-1e-5") == -1e-5);
  CHECK(parse_number("-inf") == -kInf);
  CHECK(parse_number("+Infinity") == kInf);
  CHECK(std::isnan(parse_number("NaN").value()));
  CHECK(std::signbit(parse_number("-0.0").value()));
  // Outside the range of double.
  CHECK(parse_number("1e400") == kInf);
  CHECK(parse_number("-1e400") == -kInf);
  CHECK(parse_number("1e-400") == 0.0);
  CHECK(parse_number("1e999999999999999999999999") == kInf);
  CHECK(parse_number("1e-999999999999999999999999") == 0.0);
  CHECK(parse_number("0.0000e999999999999999999999") == 0.0);
  CHECK(parse_number("." + zeros + "1") == 0.0);
  CHECK(parse_number("00000." + zeros + "1") == 0.0);
  CHECK(parse_number("1" + zeros + "e-395") == 1e5);
  CHECK(parse_number("1" + zeros + "e-5") == kInf);
  CHECK(parse_number("0." + zeros + "1e5000") == kInf);
  for (const char* text :
       {"", " ", ".", "1e", "+-1", "--1", "0x10", "nan(1)", "1e5 x", "1,5", "inff", "e5", "-"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number(text).has_value());
  }
}

TEST_CASE("utf8_at knows valid UTF-8 and nothing else") {
  CHECK(utf8_at("A", 0).code == U'A');
  CHECK(utf8_at("x\xF0\x9F\x98\x80", 1).code == 0x1F600);
  CHECK(utf8_at("\xF4\x8F\xBF\xBF", 0).code == 0x10FFFF);
  for (const char* bad : {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xE4\xB8", "\xE4\x28\xA1", "\xFF"}) {
    CAPTURE(display(bad));
    CHECK_FALSE(utf8_at(bad, 0).valid);
    CHECK(utf8_at(bad, 0).length == 1);
    CHECK_FALSE(is_utf8(bad));
  }
  CHECK(is_utf8("\xED\x9F\xBF\xEE\x80\x80"));
  CHECK(is_utf8(""));
  CHECK(valid_utf8("a\xFF\xC3\xA9\xE4\xB8") == "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("display leaves nothing that drives a terminal") {
  CHECK(display("Module.conv1.input.0") == "Module.conv1.input.0");
  CHECK(display("\x1b[31mred\x07\n") == "\\x1b[31mred\\x07\\x0a");
  CHECK(display("\xC2\x9B"
                "31m") == "\\x9b31m");
  CHECK(display("a\x9B\xFF") == "a\\x9b\\xff");
  CHECK(display("x\xE2\x80\xAEtxt.exe") == "x\\u202etxt.exe");  // right-to-left override
  CHECK(display("\xE4\xB8\xAD\xC3\xA9") == "\xE4\xB8\xAD\xC3\xA9");
  // Characters without width and mark: two names must not look like one.
  CHECK(display("a\xE2\x80\x8B"
                "b") == "a\\u200bb");  // zero width space
  CHECK(display("a\xE2\x80\x8D\xE2\x80\x8C") == "a\\u200d\\u200c");
  CHECK(display("\xEF\xBB\xBF"
                "a") == "\\ufeffa");      // byte order mark
  CHECK(display("\xC2\xAD") == "\\xad");  // soft hyphen
  CHECK(display("\xE2\x81\xA0\xE2\x81\xA6") == "\\u2060\\u2066");
  CHECK(display("\xEF\xB8\x8F") == "\\ufe0f");                                     // variation selector
  CHECK(display("\xF3\xA0\x81\x81\xF3\xA0\x84\x80") == "\\U000e0041\\U000e0100");  // a tag, a selector
  CHECK(display("\xE1\x85\x9F\xE3\x85\xA4") == "\\u115f\\u3164");                  // fillers of Hangul
  CHECK(display("e\xCC\x81") == "e\xCC\x81");                                      // an accent is seen
}

TEST_CASE("crc32_hex is the checksum of zip and zlib") {
  CHECK(crc32_hex("123456789") == "cbf43926");
  CHECK(crc32_hex("") == "00000000");
}

TEST_CASE("sizes and counts for people") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(999) == "999 B");
  CHECK(human_bytes(1000) == "1.0 kB");
  CHECK(human_bytes(999'949) == "999.9 kB");
  CHECK(human_bytes(999'950) == "1.0 MB");
  CHECK(human_bytes(226'000'000'000) == "226.0 GB");
  CHECK(human_bytes(std::numeric_limits<std::uint64_t>::max()) == "18446.7 PB");
  CHECK(human_count(0) == "0");
  CHECK(human_count(999) == "999");
  CHECK(human_count(1000) == "1,000");
  CHECK(human_count(1234567) == "1,234,567");
}

}  // namespace msprobe::support_text_test

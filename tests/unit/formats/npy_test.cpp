// SPDX-License-Identifier: Apache-2.0
// Headers that lie. What honest files give is in fixtures_test.cpp.
#include "formats/npy.hpp"

#include <doctest/doctest.h>

#include <string>

#include "formats/tensor_file.hpp"
#include "support/byte_source.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/formats/elements.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::formats::npy_test {
namespace {

using namespace std::string_literals;

std::string npy(const std::string& header, const std::string& data, int major = 1) {
  archive::Bytes length;
  if (major == 1) {
    length.u16(header.size());
  } else {
    length.u32(header.size());
  }
  return "\x93NUMPY" + std::string(1, static_cast<char>(major)) + '\0' + length.str() + header + data;
}

std::string complaint(const std::string& bytes) {
  return test::complaint_about("some.npy",
                               [&] { element_hex(open_tensor(memory_source(bytes, "some.npy"))); });
}

std::string with_shape(const std::string& shape, const std::string& data = "",
                       const std::string& descr = "'<i2'") {
  return npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}\n", data);
}

}  // namespace

TEST_CASE("headers as any Python literal spells them") {
  for (const char* header : {
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }          \n",
           "{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"i2\"}",
           "  { 'shape' : ( 2 , ) , 'fortran_order' : False , 'descr' : '=i2' , } ",
           "{'descr': '|i2', 'fortran_order': False, 'shape': (2L,)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2)}",
       }) {
    CAPTURE(header);
    for (const int major : {1, 2, 3}) {
      CHECK(element_hex(open_tensor(memory_source(npy(header, "abcd", major)))) == "61626364");
    }
  }
}

TEST_CASE("malformed headers are refused") {
  for (const char* header : {
           "",
           "{",
           "}",
           "{}",
           "{'descr': '<i2'}",
           "{'descr': '<i2', 'fortran_order': False}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), 'more': 1}",
           "{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<i2', 'fortran_order': 0, 'shape': (2,)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': [2]}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': 2}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2,}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (,)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2,,)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (1 2)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (+2,)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (0x2,)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2.0,)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': ((2,),)}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)} {}",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)",
           "{'descr': '<i2",
           "{'descr' '<i2', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': None, 'fortran_order': False, 'shape': (2,)}",
           "{'des\\x63r': '<i2', 'fortran_order': False, 'shape': (2,)}",
           "((((((((((((((((((((((((((((((((",
       }) {
    CAPTURE(header);
    CHECK_FALSE(complaint(npy(header, "abcd")).empty());
  }
  CHECK_REFUSED(npy("{'descr': '<i2',\0 'fortran_order': False, 'shape': (2,)}"s, "abcd"), "zero byte");
  CHECK_REFUSED(npy(std::string(60'000, '{'), ""), "malformed");
}

TEST_CASE("shapes that overflow, or promise other data than there is, are refused") {
  CHECK(complaint(with_shape("()", "ab")).empty());
  CHECK(complaint(with_shape("(0, 5)")).empty());
  CHECK_REFUSED(with_shape("(3,)", "abcd"), "says 6 bytes of data, but it has 4");
  CHECK_REFUSED(with_shape("(2,)", "abcde"), "says 4 bytes of data, but it has 5");
  CHECK_REFUSED(with_shape("(0,)", "a"), "says 0 bytes of data, but it has 1");
  CHECK_REFUSED(with_shape("(-1,)"), "negative size");
  CHECK_REFUSED(with_shape("(113000000000,)"), "says 226000000000 bytes");
  CHECK_REFUSED(with_shape("(4611686018427387904,)"), "more elements than memory");
  CHECK_REFUSED(with_shape("(9223372036854775807, 9223372036854775807)"), "more elements than memory");
  CHECK_REFUSED(with_shape("(4294967296, 4294967296)"), "more elements than memory");
  CHECK_REFUSED(with_shape("(0, 4294967296, 4294967296)"), "more elements than memory");
  CHECK_REFUSED(with_shape("(99999999999999999999,)"), "more elements than memory");
  std::string ones = "(";
  for (int i = 0; i < 64; ++i) ones += "1,";
  CHECK(complaint(with_shape(ones + ")", "ab")).empty());
  CHECK_REFUSED(with_shape(ones + "1)", "ab"), "more than 64 dimensions");
}

TEST_CASE("a header length is checked before it is believed") {
  CHECK_REFUSED("\x93NUMPY\x02\x00\xff\xff\xff\xff{"s, "refused: a header of 4294967295 bytes");
  CHECK_REFUSED("\x93NUMPY\x03\x00\x01\x00\x01\x00{"s, "refused: a header of 65537 bytes");
  CHECK_REFUSED("\x93NUMPY\x01\x00\xff\xff{"s, "truncated");
  CHECK_REFUSED("\x93NUMPY\x04\x00\x01\x00{"s, "version 4.0");
  CHECK_REFUSED("\x93NUMPY\x01\x01\x01\x00{"s, "version 1.1");
  CHECK_REFUSED("\x93NUM"s, "truncated");
  CHECK_REFUSED("\x93NUMBER\x00\x01\x00{"s, "magic is missing");
}

TEST_CASE("element types that are no numbers are refused by name") {
  CHECK_REFUSED(with_shape("(1,)", "abcdefgh", "'|O'"), "an object array");
  CHECK_REFUSED(with_shape("(1,)", "ab", "'|S2'"), "a text array");
  CHECK_REFUSED(with_shape("(1,)", "abcdefgh", "'<U2'"), "a text array");
  CHECK_REFUSED(with_shape("(1,)", "abcdefgh", "'<M8[s]'"), "an array of dates");
  CHECK_REFUSED(with_shape("(1,)", "a", "'|V1'"), "an array of raw records");
  CHECK_REFUSED(with_shape("(1,)", "ab", "[('a', '<i2')]"), "structured");
  for (const char* descr :
       {"''", "'<'", "'<<i2'", "'i3'", "'i'", "'<f16'", "'<c32'", "'b2'", "'i2x'", "'x2'"}) {
    CAPTURE(descr);
    CHECK_REFUSED(with_shape("(1,)", "abcdefgh", descr), "not supported");
  }
}

TEST_CASE("every truncation and any single damaged byte ends well") {
  const std::string whole = with_shape("(2, 3)", "abcdefghijkl");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(complaint(whole.substr(0, length)).empty());
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char value : {'\0', '(', '\'', '9', '\xff'}) {
      std::string damaged = whole;
      damaged[i] = value;
      complaint(damaged);
    }
  }
}

}  // namespace msprobe::formats::npy_test

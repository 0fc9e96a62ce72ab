// SPDX-License-Identifier: Apache-2.0
// Headers that lie. What honest files give is in tensor_sets_test.cpp.
#include "formats/safetensors.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/formats/elements.hpp"
#include "unit/formats/peak_memory.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::formats::safetensors_test {
namespace {

using namespace std::string_literals;

std::string file_of(const std::string& header, const std::string& data = "") {
  archive::Bytes length;
  length.u64(header.size());
  return length.str() + header + data;
}

/// The message without the file's name; empty if nothing is wrong.
std::string complaint(const std::string& bytes) {
  return test::complaint_about("some.safetensors", [&] {
    const SafetensorsFile file(memory_source(bytes, "some.safetensors"));
    for (std::size_t i = 0; i < file.size(); ++i) element_hex(file.tensor(i));
  });
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         offsets + "]}";
}

}  // namespace

TEST_CASE("what the format allows") {
  CHECK(complaint(file_of("{}")).empty());
  CHECK(complaint(file_of("{}    \n")).empty());
  CHECK(complaint(file_of("{\"__metadata__\":{}}")).empty());
  CHECK(complaint(file_of("{" + tensor("a", "U8", "", "0,1") + "}", "x")).empty());
  CHECK(complaint(
            file_of("{" + tensor("a", "F32", "0,5", "0,0") + "," + tensor("", "U8", "1", "0,1") + "}", "x"))
            .empty());
  const SafetensorsFile swapped(memory_source(
      file_of("{" + tensor("b", "U8", "2", "1,3") + "," + tensor("a", "I8", "1", "0,1") + "}", "xyz")));
  REQUIRE(swapped.size() == 2);
  CHECK(swapped.name(0) == "a");
  CHECK(element_hex(swapped.tensor(0)) == "78");
  CHECK(element_hex(swapped.tensor(1)) == "797a");
}

TEST_CASE("headers that do not fit their file") {
  CHECK_REFUSED("", "too short");
  CHECK_REFUSED("1234567", "too short");
  CHECK_REFUSED(file_of("{}").substr(0, 9), "longer than the file");
  CHECK_REFUSED("\xff\xff\xff\xff\xff\xff\xff\xff{}", "longer than the file");
  CHECK_REFUSED(file_of(" {}"), "does not begin with {");
  CHECK_REFUSED(file_of("[]"), "does not begin with {");
}

TEST_CASE("a header above the cap is refused before it is read") {
  // A sparse stand-in: only the length field and the brace are ever looked at.
  class Huge final : public ByteSource {
   public:
    std::uint64_t size() const override { return SafetensorsFile::kMaxHeader * 2; }
    void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
      REQUIRE(out.size() <= 16);
      archive::Bytes length;
      length.u64(SafetensorsFile::kMaxHeader + 1);
      const std::string bytes = length.str() + "{";
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(bytes.at(offset + i));
    }
    const std::string& name() const override { return name_; }

   private:
    std::string name_ = "huge";
  };
  CHECK_THROWS_WITH_AS(SafetensorsFile(std::make_shared<Huge>()),
                       doctest::Contains("refused: a header of 100000001 bytes"), FormatError);
}

TEST_CASE("malformed headers") {
  for (const char* header : {
           "{",
           "{}x",
           "{}{}",
           "{\"a\"}",
           "{\"a\":1}",
           "{\"a\":[]}",
           "{\"a\":null}",
           "{\"a\":{}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":1}}",
           "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":\"U8\",\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[[1]],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[{}],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[\"1\"],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[true],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551615],\"data_offsets\":[0,1]}}",
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],}}",
           "{\"__metadata__\":[]}",
           "{\"__metadata__\":{\"a\":1}}",
           "{\"__metadata__\":{\"a\":{}}}",
           "{\"__metadata__\":{},\"__metadata__\":{}}",
           "{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
       }) {
    CAPTURE(header);
    CHECK(!complaint(file_of(header, "x")).empty());
  }
  CHECK_REFUSED(file_of("{" + std::string(100'000, '[') + "}"), "broken JSON");
  CHECK_REFUSED(file_of("{\"a\":" + std::string(100'000, '[')), "refused");
  CHECK_REFUSED(file_of("{\"a\":{\"shape\":" + std::string(100'000, '[')), "refused");
  CHECK_REFUSED(file_of("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"), "duplicate name a");
}

TEST_CASE("offsets that lie") {
  const auto a = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{" + tensor("a", dtype, shape, offsets) + "}";
  };
  CHECK_REFUSED(file_of(a("F32", "1", "0,4"), "xyz"), "truncated");
  CHECK_REFUSED(file_of(a("F32", "1", "0,4"), "wxyz!"), "1 bytes follow");
  CHECK_REFUSED(file_of(a("F32", "2", "0,4"), "wxyz"), "needs 8 bytes");
  CHECK_REFUSED(file_of(a("U8", "0", "0,1"), "x"), "needs 0 bytes");
  CHECK_REFUSED(file_of(a("U8", "1", "1,2"), "xy"), "leaves a gap");
  CHECK_REFUSED(file_of(a("U8", "1", "1,0"), "x"), "ends before it begins");
  CHECK_REFUSED(file_of(a("U8", "18446744073709551615", "0,1"), "x"), "more elements");
  CHECK_REFUSED(file_of(a("F64", "4611686018427387904,4", "0,0")), "more elements");
  CHECK_REFUSED(file_of(a("F64", "0,4611686018427387904,4", "0,0")), "more elements");
  CHECK_REFUSED(file_of(a("U8", "1", "18446744073709551615,18446744073709551615"), "x"), "its shape needs 1");
  CHECK_REFUSED(
      file_of("{" + tensor("a", "U8", "2", "0,2") + "," + tensor("b", "U8", "2", "1,3") + "}", "xyz"),
      "b overlaps");
  CHECK_REFUSED(
      file_of("{" + tensor("a", "U8", "1", "0,1") + "," + tensor("b", "U8", "1", "2,3") + "}", "xyz"),
      "b leaves a gap");
  CHECK_REFUSED(
      file_of("{" + tensor("a", "U8", "1", "0,1") + "," + tensor("a", "U8", "1", "1,2") + "}", "xy"),
      "duplicate name a");
}

TEST_CASE("types of less than a byte are refused one by one, and by name") {
  const SafetensorsFile file(memory_source(
      file_of("{" + tensor("four", "F4", "2", "0,1") + "," + tensor("six", "F6_E2M3", "4", "1,4") + "," +
                  tensor("new", "Q7", "4", "4,9") + "," + tensor("good", "U8", "1", "9,10") + "}",
              "0123456789")));
  REQUIRE(file.size() == 4);
  CHECK_THROWS_WITH_AS(
      file.tensor(0), doctest::Contains("four: element type F4 is not supported (its elements"), FormatError);
  CHECK_THROWS_WITH_AS(file.tensor(1), doctest::Contains("six"), FormatError);
  CHECK_THROWS_WITH_AS(file.tensor(2), doctest::Contains("element type Q7"), FormatError);
  CHECK(element_hex(file.tensor(3)) == "39");
  CHECK(file.dtype_name(0) == "F4");
  CHECK(file.shape(1) == std::vector<std::int64_t>{4});
  CHECK_REFUSED(file_of("{" + tensor("odd", "F4", "3", "0,1") + "}", "x"), "odd: its shape");
  CHECK_REFUSED(file_of("{" + tensor("odd", "F4", "3", "0,2") + "}", "xy"), "odd: its shape");
}

TEST_CASE("a tensor of more dimensions than any is refused") {
  std::string shape = "1";
  for (int i = 0; i < 64; ++i) shape += ",1";
  CHECK_REFUSED(file_of("{" + tensor("a", "U8", shape, "0,1") + "}", "x"), "more than 64 dimensions");
}

TEST_CASE("memory stays a small multiple of the header") {
  std::string header = "{";
  for (int i = 0; i < 50'000; ++i) {
    header += (i > 0 ? "," : "") + tensor(std::to_string(i), "U8", "0", "0,0");
  }
  const std::string bytes = file_of(header + "}");
  const auto source = memory_source(bytes);
  CHECK(peak_growth([&] { CHECK(SafetensorsFile(source).size() == 50'000); }) < 20 * bytes.size());
}

}  // namespace msprobe::formats::safetensors_test

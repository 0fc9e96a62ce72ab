// SPDX-License-Identifier: Apache-2.0
#include "formats/mindspore_ckpt.hpp"

#include <doctest/doctest.h>

#include <map>

#include "support/error.hpp"
#include "unit/formats/elements.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::formats::mindspore_ckpt_test {
namespace {

std::string fixture(const std::string& name) {
  return read_all(*open_file(test::in_source("tests/data/ckpt/" + name)), 1 << 20);
}

std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}

std::string value(const std::string& name, const std::string& dims, const std::string& type,
                  const std::string& content) {
  return field(1, field(1, name) + field(2, dims + field(2, type) + field(3, content)));
}

/// The complaint of a reader of everything; empty if all is well.
std::string complaint(const std::string& bytes) {
  return test::complaint_about("some.ckpt", [&] {
    const MindSporeCkpt file(memory_source(bytes, "some.ckpt"));
    for (std::size_t i = 0; i < file.size(); ++i) element_hex(file.tensor(i));
  });
}

}  // namespace

TEST_CASE("what Google's protobuf library encoded") {
  for (const char* name : {"mindspore.ckpt", "mindspore_crc.ckpt"}) {
    const auto source = memory_source(fixture(name), name);
    CHECK(looks_like_mindspore_ckpt(*source));
    const MindSporeCkpt file(source);
    std::map<std::string, StoredTensor> tensors;
    for (std::size_t i = 0; i < file.size(); ++i) tensors[file.name(i)] = file.tensor(i);
    CHECK(tensors.size() == 5);
    CHECK(tensors.at("backbone.weight").shape == std::vector<std::int64_t>{3, 4});
    CHECK(element_hex(tensors.at("backbone.weight")).starts_with("0000b0c0000090c0"));  // -5.5, -4.5
    // Three values of one name, 0 to 9, whatever the size of the pieces.
    const StoredTensor& cut = tensors.at("backbone.cut");
    const std::string hex = element_hex(cut);
    CHECK(hex == "000000000000803f0000004000004040000080400000a0400000c0400000e0400000004100001041");
    CHECK(element_hex(cut, 3) == hex);
    CHECK(tensors.at("half").dtype == tensor::DType::bfloat16);
    CHECK(tensors.at("step").shape.empty());
    CHECK(element_hex(tensors.at("step")) == "07000000");
  }
}

TEST_CASE("broken and lying files are refused with the reason") {
  const std::string dims2 = "\x08\x02";
  CHECK(complaint(value("w", dims2, "Float32", "12345678")).empty());
  CHECK(complaint(value("w", dims2, "Float32", "1234")).find("4 bytes for elements that need 8") !=
        std::string::npos);
  CHECK(complaint(value("w", dims2, "Float99", "12345678")).find("Float99 is not supported") !=
        std::string::npos);
  const std::string minus_one = "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  CHECK(complaint(value("w", minus_one, "Int8", "")).find("larger than memory can hold") !=
        std::string::npos);
  const std::string huge = "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40";  // 2^62
  const std::string zero("\x08\x00", 2);
  CHECK(complaint(value("w", zero + huge + huge, "Int8", "")).find("larger than memory can hold") !=
        std::string::npos);
  std::string many;
  for (int i = 0; i < 65; ++i) many += "\x08\x01";
  // Longer than one byte of length can say.
  const std::string tensor = many + field(2, "Int8") + field(3, "1");
  const auto long_field = [](int number, const std::string& bytes) {
    const std::size_t size = bytes.size();
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>((size & 0x7f) | 0x80) +
           static_cast<char>(size >> 7) + bytes;
  };
  CHECK(complaint(long_field(1, field(1, "w") + long_field(2, tensor))).find("more than 64 dimensions") !=
        std::string::npos);
  CHECK(complaint("\x0a\x7f").find("a field is longer than the rest of it") != std::string::npos);
  CHECK(complaint("\x0b").find("unknown kind") != std::string::npos);
  const std::string whole = fixture("mindspore.ckpt");
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    // A cut between two values leaves a shorter checkpoint; every other one is noticed.
    const std::string message = complaint(whole.substr(0, cut));
    if (message.empty()) CHECK(whole[cut] == '\x0a');
  }
}

TEST_CASE("other files do not look like one") {
  for (const std::string& bytes : {std::string("PK\x03\x04"), std::string("{\"a\": 1}"),
                                   std::string("\x80\x02}."), std::string("\n"), std::string("\n\n\n\n")}) {
    CHECK(!looks_like_mindspore_ckpt(*memory_source(bytes, "other")));
  }
}

}  // namespace msprobe::formats::mindspore_ckpt_test

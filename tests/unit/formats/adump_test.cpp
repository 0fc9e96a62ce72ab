// SPDX-License-Identifier: Apache-2.0
#include "formats/adump.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/npy.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "tensor/convert.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/formats/elements.hpp"
#include "unit/formats/golden_parse.hpp"
#include "unit/formats/peak_memory.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::formats::adump_test {
namespace {

using namespace std::string_literals;
using archive::Bytes;

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}
std::string number(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}
std::string bytes(int field, const std::string& value) {
  return varint((static_cast<std::uint64_t>(field) << 3) | 2) + varint(value.size()) + value;
}
std::string shape(const std::vector<std::uint64_t>& dims) {
  std::string packed;
  for (const std::uint64_t dim : dims) packed += varint(dim);
  return bytes(3, bytes(1, packed));
}
std::string input(int type, const std::string& shape_field, std::uint64_t size) {
  return bytes(4, number(1, static_cast<std::uint64_t>(type)) + shape_field + number(5, size));
}
std::string file_of(const std::string& header, const std::string& data) {
  return Bytes().u64(header.size()).str() + header + data;
}

AdumpFile open_text(const std::string& text, const std::string& name = "Add.x.1.2.3") {
  return open_adump(memory_source(text, name));
}
std::string hex_of(const AdumpFile& dump, std::size_t item) {
  return element_hex(adump_tensor(dump, dump.items.at(item)));
}

/// Opens it and all tensors in it.
std::string complaint(const std::string& text, const std::string& name = "Add.x.1.2.3") {
  return test::complaint_about(name, [&] {
    const AdumpFile dump = open_text(text, name);
    for (const AdumpItem& item : dump.items) {
      if (item.role == AdumpRole::input || item.role == AdumpRole::output)
        element_hex(adump_tensor(dump, item));
    }
  });
}

std::string role_name(AdumpRole role) {
  return role == AdumpRole::input ? "input" : "output";
}

}  // namespace

TEST_CASE("kernel dumps hold what the Python tool found in them") {
  const std::string folder = golden_parse() + "adump/";
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "in")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("Bad.") || name.starts_with("Npy.") || name.find("extra_byte") != std::string::npos)
      continue;
    const AdumpFile dump = open_adump(open_file(entry.path().string()));
    CHECK(dump.nano == (name.find("nano") != std::string::npos));
    for (const AdumpItem& item : dump.items) {
      if (item.role != AdumpRole::input && item.role != AdumpRole::output) continue;
      const std::string part = role_name(item.role) + "." + std::to_string(item.index);
      const std::string result = folder + "out/" + name + "." + part + ".npy";
      if (!std::filesystem::exists(result)) continue;
      CAPTURE(result);
      const StoredTensor expected = open_npy(open_file(result));
      const StoredTensor tensor = adump_tensor(dump, item);
      // Where the Python tool has another type on purpose or by mistake, see the cases below.
      if (name.starts_with("Low.") || expected.numel() == 0) continue;
      ++compared;
      CHECK(tensor.dtype == expected.dtype);
      CHECK(tensor.shape == (tensor.shape.empty() ? std::vector<std::int64_t>{} : expected.shape));
      CHECK(element_hex(tensor) == element_hex(expected));
    }
  }
  CHECK(compared == 21);
}

TEST_CASE("one-byte floats are what their formats define, for all 256 codes") {
  const nlohmann::json tables = nlohmann::json::parse(file_text(golden_parse() + "fp8_tables.json"));
  const AdumpFile dump =
      open_adump(open_file(golden_parse() + "adump/in/Low.fp8_all_codes.36.5.1636595794731103"));
  const char* names[] = {"float8_e4m3fn", "float8_e5m2", "hifloat8"};
  REQUIRE(dump.items.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(std::string(names[i]));
    const StoredTensor tensor = adump_tensor(dump, dump.items[i]);
    CHECK(tensor::info(tensor.dtype).name == names[i]);
    std::vector<std::byte> raw(256);
    ElementReader(tensor).read(raw);
    std::vector<double> values(256);
    tensor::to_double(tensor.dtype, raw, values);
    const nlohmann::json& definition = tables.at(names[i]).at("definition");
    REQUIRE(definition.size() == 256);
    for (std::size_t code = 0; code < 256; ++code) {
      CAPTURE(code);
      CHECK(raw[code] == static_cast<std::byte>(code));
      const nlohmann::json& want = definition[code];
      if (want == "nan") {
        CHECK(std::isnan(values[code]));
      } else if (want.is_string()) {
        CHECK(values[code] == (want == "inf" ? HUGE_VAL : -HUGE_VAL));
      } else {
        CHECK(values[code] == want.get<double>());
        CHECK(std::signbit(values[code]) == std::signbit(want.get<double>()));
      }
    }
  }
}

TEST_CASE("kernel dumps cut off anywhere are refused") {
  for (const char* name : {"Add.layer1_add.31.5.1636595794731103", "Conv.nano_op.1.2.1636595794731103",
                           "Custom.buffer_space.37.5.1636595794731103"}) {
    const std::string whole = file_text(golden_parse() + "adump/in/" + name);
    REQUIRE(complaint(whole).empty());
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(std::string(name));
      CAPTURE(length);
      CHECK_FALSE(complaint(whole.substr(0, length)).empty());
    }
  }
}

TEST_CASE("inputs, outputs, buffers and spaces come in this order, whatever the order of the header") {
  const std::string header = bytes(8, number(3, 1)) + bytes(5, number(3, 1)) +
                             bytes(3, number(1, 4) + shape({1}) + number(6, 1)) + input(4, shape({1}), 1) +
                             input(4, shape({1}), 1) + bytes(1, "2.0") + bytes(6, "op") + number(2, 77);
  const AdumpFile dump = open_text(file_of(header, "abcde and more that is ignored"));
  REQUIRE(dump.items.size() == 5);
  const AdumpRole roles[] = {AdumpRole::input, AdumpRole::input, AdumpRole::output, AdumpRole::buffer,
                             AdumpRole::space};
  const std::size_t indices[] = {0, 1, 0, 0, 0};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(dump.items[i].role == roles[i]);
    CHECK(dump.items[i].index == indices[i]);
    CHECK(dump.items[i].offset == 8 + header.size() + i);
  }
  CHECK(hex_of(dump, 1) == "62");
  CHECK(hex_of(dump, 2) == "63");
}

TEST_CASE("dimensions one by one or packed; unknown fields are passed over") {
  const std::string unpacked = bytes(3, number(1, 2) + bytes(9, "later versions") + number(1, 3));
  const std::string header = varint((15 << 3) | 1) + "12345678" + varint((15 << 3) | 5) + "1234" +
                             input(4, unpacked, 6) + bytes(99, "x");
  const AdumpFile dump = open_text(file_of(header, "abcdef"));
  REQUIRE(dump.items.size() == 1);
  CHECK(dump.items[0].shape == std::vector<std::int64_t>{2, 3});
  CHECK(hex_of(dump, 0) == "616263646566");
}

TEST_CASE("one bit a value, high bit first") {
  const AdumpFile dump = open_text(file_of(input(29, shape({3, 3}), 2), "\xA5\x80"));
  CHECK(hex_of(dump, 0) == "010001000001000101");
  CHECK(adump_tensor(dump, dump.items[0]).shape == std::vector<std::int64_t>{3, 3});
  CHECK_REFUSED(file_of(input(29, shape({17}), 2), "ab"), "3 bytes");
  // Read from the middle of a byte on.
  const StoredTensor tensor = adump_tensor(dump, dump.items[0]);
  CHECK(element_hex(tensor, 2) == "010001000001000101");
}

TEST_CASE("sizes that lie are refused before memory is taken for them") {
  const std::size_t grown = peak_growth([] {
    CHECK_REFUSED(Bytes().u64(~std::uint64_t{0}).str() + "x", "not a kernel dump");
    CHECK_REFUSED(Bytes().u64(std::uint64_t{1} << 40).str() + std::string(100, 'x'), "not a kernel dump");
    CHECK_REFUSED(file_of(input(1, shape({1}), ~std::uint64_t{0}), "abcd"), "truncated");
    CHECK_REFUSED(file_of(input(1, shape({1}), 4) + input(1, shape({1}), ~std::uint64_t{3}), "abcd"),
                  "truncated");
    CHECK_REFUSED(file_of(input(1, shape({std::uint64_t{1} << 62}), 4), "abcd"), "more elements");
    CHECK_REFUSED(file_of(input(1, shape({std::uint64_t{1} << 40}), 4), "abcd"), "needs 4398046511104 bytes");
    CHECK_REFUSED(file_of(input(1, shape({0, std::uint64_t{1} << 62}), 4), "abcd"), "more elements");
    CHECK_REFUSED(file_of(input(1, shape({std::uint64_t{1} << 63}), 4), "abcd"), "negative");
    CHECK_REFUSED(file_of(input(1, shape(std::vector<std::uint64_t>(65, 1)), 4), "abcd"), "dimensions");
    CHECK_REFUSED(file_of(input(13, shape({1}), 4), "abcd"), "string");
    CHECK_REFUSED(file_of(input(40, shape({1}), 4), "abcd"), "type 40");
    std::string many;
    for (int i = 0; i < 70'000; ++i) many += bytes(4, "");
    CHECK_REFUSED(file_of(many, ""), "refused: more than");
  });
  CHECK(grown < std::size_t{64} << 20);
}

TEST_CASE("broken protobuf messages are refused") {
  CHECK_REFUSED(file_of(std::string(11, '\xff'), ""), "does not end");
  CHECK_REFUSED(file_of("\x20" + std::string(10, '\xff') + "\x01", ""), "does not end");
  CHECK_REFUSED(file_of("\xff", ""), "cut off");
  CHECK_REFUSED(file_of("\x22\x7fxx", ""), "header: truncated: a field is longer than the rest of it");
  CHECK_REFUSED(file_of("\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ""), "longer than the rest");
  CHECK_REFUSED(file_of("\x23", ""), "unknown kind");
  CHECK_REFUSED(file_of("\x27", ""), "unknown kind");
  CHECK_REFUSED(file_of("\x02\x01x", ""), "without a number");
  CHECK_REFUSED(file_of(varint((15 << 3) | 1) + "1234", ""), "longer than the rest");
  CHECK_REFUSED(file_of(bytes(4, "\x1a\x09"), ""), "longer than the rest");
  CHECK_REFUSED(file_of(bytes(4, bytes(3, bytes(1, "\x80"))), ""), "cut off");
  // A text where a number belongs, and the other way round: not the field we know, so passed over.
  CHECK(complaint(file_of(bytes(4, bytes(5, "size")) + number(3, 1), "")).find("needs 1 bytes") ==
        std::string::npos);
}

TEST_CASE("shapes of a sliced dump come from the thread in its name") {
  const nlohmann::json slices = {
      {"threadMode", 1},
      {"slice_instance_num", 2},
      {"input_tensor_slice",
       {{{{{"lower", 0}, {"higher", 2}}}}, {{{{"lower", 1}, {"higher", 2}}, {{"lower", 0}, {"higher", 3}}}}}},
      {"output_tensor_slice", nlohmann::json::array({nlohmann::json::array(), nlohmann::json::array()})},
  };
  const std::string attribute = bytes(7, bytes(1, "x") + bytes(2, slices.dump()));
  const std::string text = file_of(input(4, shape({6}), 6) + attribute, "abcdef");
  CHECK(open_text(text, "Add.x.1.2.0.99").items[0].shape == std::vector<std::int64_t>{2});
  CHECK(open_text(text, "folder.7.x/Add.x.1.2.1.99").items[0].shape == std::vector<std::int64_t>{1, 3});
  CHECK(complaint(text, "Add.x.1.2.2.99").find("slices") != std::string::npos);
  CHECK(complaint(text, "Add").find("thread") != std::string::npos);
  // Any other attribute changes nothing.
  for (const char* other : {"", "{", "[1]", "{\"threadMode\": 0}", "{\"threadMode\": false}", "text"}) {
    CHECK(open_text(file_of(input(4, shape({6}), 6) + bytes(7, bytes(2, other)), "abcdef")).items[0].shape ==
          std::vector<std::int64_t>{6});
  }
  for (const char* broken :
       {"{\"threadMode\": 1}", "{\"threadMode\": 1, \"input_tensor_slice\": [[[3]]]}",
        "{\"threadMode\": 1, \"input_tensor_slice\": [[[{\"lower\": 2, \"higher\": 1}]]]}"}) {
    const std::string sliced = file_of(input(4, shape({6}), 6) + bytes(7, bytes(2, broken)), "abcdef");
    CHECK(complaint(sliced, "Add.x.0.9").find("malformed") != std::string::npos);
  }
}

TEST_CASE("nano headers that lie are refused") {
  const auto block = [](std::uint32_t tag, const std::string& items, std::uint32_t count) {
    return Bytes().u32(tag).u32(4 + items.size()).u32(count).text(items).str();
  };
  const auto item = [](std::uint64_t size, const std::string& list) {
    return Bytes().u32(2).u32(2).u32(0).u64(0).u64(0).u64(size).u32(list.size()).text(list).str();
  };
  const auto shape_block = [](std::uint64_t length) { return Bytes().u32(0).u32(8).u64(length).str(); };
  const std::string start = Bytes().u32(0x5a5a5a5a).u32(1).str();
  const std::string none = block(5, "", 0);
  const std::string good = start + block(4, item(3, shape_block(3)), 1) + none;
  CHECK(hex_of(open_text(file_of(good, "abc")), 0) == "616263");
  CHECK_REFUSED(file_of(good, "abcd"), "describes 99 of its 100 bytes");
  CHECK_REFUSED(file_of(good, "ab"), "truncated");
  CHECK_REFUSED(file_of(start, ""), "cut off");
  CHECK_REFUSED(file_of(start + none, ""), "block 5 instead of 4");
  CHECK_REFUSED(file_of(start + block(4, "", 0xffffffff) + none, ""), "cut off");
  CHECK_REFUSED(file_of(start + Bytes().u32(4).u32(0xffffffff).str(), ""), "cut off");
  CHECK_REFUSED(file_of(start + block(4, item(3, "\0\0\0\0\xff\xff\xff\xff"s), 1) + none, "abc"), "cut off");
  CHECK_REFUSED(file_of(start + block(4, item(3, shape_block(~std::uint64_t{0})), 1) + none, "abc"),
                "negative");
  CHECK_REFUSED(file_of(start + block(4, item(~std::uint64_t{0}, shape_block(3)), 1) + none, "abc"),
                "truncated");
}

TEST_CASE("overflow records") {
  const std::string name = "Opdebug.Node_OpDebug.45.5.1636595794731103";
  CHECK(is_op_debug_name(name));
  CHECK_FALSE(is_op_debug_name("Add.Opdebug.Node_OpDebug.1.2.3"));
  const AdumpFile dump = open_adump(open_file(golden_parse() + "adump/in/" + name));
  const std::string whole = file_text(golden_parse() + "adump/in/" + name);
  const std::string record = whole.substr(static_cast<std::size_t>(dump.items.at(0).offset));
  CHECK(op_debug_json(record, "f") == file_text(golden_parse() + "adump/out/" + name + ".output.0.json"));
  for (std::size_t length = 0; length < record.size(); ++length)
    CHECK_THROWS_AS(op_debug_json(record.substr(0, length), "f"), FormatError);

  // Version 1 has four words of status; other processors have other fields.
  const auto words = [](std::uint64_t first, int count) {
    Bytes out;
    for (int i = 0; i < count; ++i) out.u64(first + static_cast<std::uint64_t>(i));
    return out.str();
  };
  const auto header = [](std::uint32_t version, std::uint32_t type) {
    return Bytes().u32(0x5a5a5a5a).u32(version).u32(1).u32(type).u32(0).u32(0).str();
  };
  const auto data = [](const std::string& text) {
    return nlohmann::json::parse(op_debug_json(text, "f")).at("acc_list").at("data");
  };
  CHECK(data(header(1, 1) + words(1, 14)).at("status") == nlohmann::json({11, 12, 13, 14}));
  CHECK(data(header(0, 2) + words(1, 8)).at("cpu_id") == 6);
  CHECK(data(header(0, 3) + words(1, 10)).at("dst_addr") == "0x8");
  CHECK_THROWS_AS(op_debug_json(header(0, 4) + words(1, 14), "f"), FormatError);

  std::string old(2048, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { old.replace(at, text.size(), text); };
  put(0, words(1, 6));
  put(512, words(40, 1));
  put(128, words(11, 6));
  put(768, words(50, 1));
  put(256, words(21, 6));
  put(1024, words(16, 3));
  const auto parsed = nlohmann::json::parse(op_debug_json(old, "f"));
  CHECK(parsed.at("DHA Atomic Add") == nlohmann::json({{"model_id", 1},
                                                       {"stream_id", 2},
                                                       {"task_id", 3},
                                                       {"task_type", 4},
                                                       {"pc_start", "0x5"},
                                                       {"para_base", "0x6"},
                                                       {"status", 40}}));
  CHECK(parsed.at("L2 Atomic Add").at("status") == 50);
  CHECK(parsed.at("AI Core").at("kernel_code") == "0x10");
  CHECK(parsed.at("AI Core").at("block_idx") == 17);
  CHECK(parsed.at("AI Core").at("status") == 18);
  CHECK_THROWS_AS(op_debug_json(old + "x", "f"), FormatError);
}

TEST_CASE("names of types") {
  CHECK(adump_type_name(33) == "hifloat8");
  CHECK(adump_type_name(29) == "uint1");
  CHECK(adump_type_name(18) == "type 18");
}

}  // namespace msprobe::formats::adump_test

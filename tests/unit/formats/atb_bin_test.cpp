// SPDX-License-Identifier: Apache-2.0
#include "formats/atb_bin.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>

#include "formats/npy.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/formats/elements.hpp"
#include "unit/formats/golden_parse.hpp"
#include "unit/formats/peak_memory.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::formats::atb_bin_test {
namespace {

namespace fs = std::filesystem;

StoredTensor open_text(const std::string& text, const OpenBeside& beside = {}) {
  return open_atb_bin(memory_source(text, "a.bin"), beside);
}

std::string complaint(const std::string& text, const OpenBeside& beside = {}) {
  return test::complaint_about("a.bin", [&] { element_hex(open_text(text, beside)); });
}

}  // namespace

TEST_CASE("ATB files hold what the Python tool found in them") {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(golden_parse() + "atb/in/ok")) {
    ++files;
    const std::string stem = entry.path().stem().string();
    CAPTURE(stem);
    const StoredTensor tensor = open_atb_bin(open_file(entry.path().string()));
    const StoredTensor expected = open_npy(open_file(golden_parse() + "atb/out/" + stem + ".npy"));
    CHECK(tensor.shape == expected.shape);
    if (tensor.dtype == tensor::DType::bfloat16) {  // NumPy has it as float32: the same bits, and 16 zeros
      std::string widened;
      const std::string hex = element_hex(tensor);
      for (std::size_t i = 0; i < hex.size(); i += 4) widened += "0000" + hex.substr(i, 4);
      CHECK(widened == element_hex(expected));
    } else {
      CHECK(tensor.dtype == expected.dtype);
      CHECK(element_hex(tensor) == element_hex(expected));
    }
  }
  CHECK(files == 17);
}

TEST_CASE("ATB files that the Python tool refuses are refused") {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(golden_parse() + "atb/in/bad")) {
    ++files;
    CAPTURE(entry.path().string());
    CHECK_THROWS_AS(open_atb_bin(open_file(entry.path().string())), FormatError);
  }
  CHECK(files == 15);
}

TEST_CASE("an ATB file cut off anywhere is refused") {
  const std::string whole = file_text(golden_parse() + "atb/in/ok/b01_float32.bin");
  REQUIRE(complaint(whole).empty());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(complaint(whole.substr(0, length)).empty());
  }
  CHECK_FALSE(complaint(whole + "x").empty());
}

TEST_CASE("what an ATB header says is checked before it is believed") {
  CHECK_REFUSED("dims=4611686018427387904,4\n$End=1\n", "more elements");
  CHECK_REFUSED("dims=9223372036854775807\n$End=1\n", "more elements");
  CHECK_REFUSED("dims=9223372036854775808\n$End=1\n", "list of sizes");
  CHECK_REFUSED("dims=1,,1\n$End=1\nabcd", "list of sizes");
  CHECK_REFUSED("dims=0x1\n$End=1\nabcd", "list of sizes");
  CHECK_REFUSED("dims=1000000000000\n$End=1\nabcd", "4000000000000 bytes");
  CHECK_REFUSED("dtype=+-1\n$End=1\nabcd", "not an integer");
  CHECK_REFUSED("dtype=1.0\n$End=1\nabcd", "not an integer");
  std::string dims = "dims=1";
  for (int i = 0; i < 64; ++i) dims += ",1";
  CHECK_REFUSED(dims + "\n$End=1\nabcd", "dimensions");
  CHECK_REFUSED("dims=1\n$End=1\nabcd$Version=1.0\ndims=1\n$End=1\nabcd", "two dumps");
}

TEST_CASE("a header that does not end costs neither time nor memory") {
  std::string lines;
  while (lines.size() < (std::size_t{3} << 20)) lines += "$x=\n";
  const std::size_t grown = peak_growth([&] {
    CHECK_REFUSED(lines, "$End");
    CHECK_REFUSED("$x=" + std::string(std::size_t{3} << 20, 'a'), "$End");
  });
  CHECK(grown < std::size_t{64} << 20);
}

TEST_CASE("a link to another file of the folder is followed, and only there") {
  std::map<std::string, std::string> folder = {
      {"b.bin", "dtype=1\ndims=9\n$End=1\nabcdefgh"},  // only its payload is taken
      {"far.bin", "data=near.bin\n$End=1\n"},
      {"near.bin", "data=b.bin\n$End=1\n"},
      {"loop.bin", "data=loop.bin\n$End=1\n"},
  };
  const OpenBeside beside = [&](const std::string& name) {
    const auto found = folder.find(name);
    if (found == folder.end()) throw FormatError("a.bin", "there is no " + name);
    return memory_source(found->second, name);
  };
  CHECK(element_hex(open_text("dims=2\ndata=b.bin\n$End=1\n", beside)) == "6162636465666768");
  CHECK(element_hex(open_text("dtype=9\ndims=1\ndata= far.bin \r\n$End=1\n", beside)) == "6162636465666768");
  CHECK(complaint("dims=2\ndata=b.bin\n$End=1\n").find("another file") != std::string::npos);
  CHECK(complaint("dims=3\ndata=b.bin\n$End=1\n", beside).find("12 bytes") != std::string::npos);
  CHECK(complaint("dims=2\ndata=loop.bin\n$End=1\n", beside).find("never end") != std::string::npos);
  CHECK(complaint("dims=2\ndata=none.bin\n$End=1\n", beside).find("no none.bin") != std::string::npos);
  for (const char* name : {"../b.bin", "/b.bin", "sub/b.bin", "..", "."}) {
    CAPTURE(name);
    CHECK(complaint("dims=2\ndata=" + std::string(name) + "\n$End=1\n", beside).find("outside") !=
          std::string::npos);
  }
}

}  // namespace msprobe::formats::atb_bin_test

// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_scan.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "formats/pickle_search.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats::pickle_scan_test {
namespace {

using namespace std::string_literals;

PickleScan scan(const std::string& bytes, const ScanLimits& limits = {}) {
  return scan_pickle(*memory_source(bytes, "some.pkl"), 0, 0, limits);
}

std::vector<std::string> names(const PickleScan& found) {
  std::vector<std::string> all;
  for (const PickleGlobal& global : found.globals) all.push_back(global.full_name());
  return all;
}

using Names = std::vector<std::string>;

const std::string kCall = "cposix\nsystem\n)R";

}  // namespace

// tests/cli/inspect_gate.py holds the scanner to CPython's own readers; here is what they cannot show.
TEST_CASE("every way of naming and calling is found, to STOP and no further") {
  for (const auto& bytes : {"cm\nf\n)R."s, "cm\nf\n)\x81."s, "cm\nf\n)}\x92."s, "(im\nf\n."s, "(cm\nf\no."s,
                            "\x8c\x01m\x8c\x01\x66\x93)R."s, "U\x01mVf\n\x93)R."s}) {
    CAPTURE(bytes);
    const PickleScan found = scan(bytes + "cx\ny\n.");
    CHECK(found.failure.empty());
    CHECK(found.end == bytes.size());
    CHECK(names(found) == Names{"m.f"});
    CHECK(found.globals[0].called);
    CHECK_FALSE(found.globals[0].computed);
  }
  CHECK_FALSE(scan("cm\nf\n."s).globals[0].called);
  CHECK_FALSE(scan("ccollections\nOrderedDict\n)R."s).globals[0].called);
  CHECK(names(scan("\x82\x05)R."s)) == Names{"copyreg._inverted_registry[5]"});
}

TEST_CASE("bytes that no reader of values takes hide nothing after them") {
  for (const auto& odd :
       {"K\x01)R"s, "NK\x01K\x02s"s, "(NNN"s, "cm\nf\n(N}tb"s, "\x97\x98"s, "Fabc\n"s, "Iabc\n"s, "\x80\x09"s,
        "\x95\x01\0\0\0\0\0\0\0\x8c\x01x"s, "Q"s, "h\x09"s, "0000"s}) {
    CAPTURE(odd);
    const PickleScan found = scan("N" + odd + kCall + ".");
    REQUIRE_FALSE(found.globals.empty());
    CHECK(found.globals.back().full_name() == "posix.system");
  }
}

TEST_CASE("names that no reading tells are marked as computed") {
  for (const auto& bytes : {"cbuiltins\nstr\n)R\x8c\x01\x66\x93."s, "NN\x93."s, "Vm\nVq\\u12\n\x93."s,
                            "X\xe8\x03\0\0"s + std::string(1000, 'm') + "\x8c\x01\x66\x93."s}) {
    CAPTURE(bytes);
    const PickleScan found = scan(bytes);
    CHECK(found.failure.empty());
    REQUIRE_FALSE(found.globals.empty());
    CHECK(found.globals.back().computed);
    const std::string& module = found.globals.back().module;
    CHECK(is_importable(found.globals.back()) == (module == "?" || module == "m"));
  }
}

TEST_CASE("a pickle that cannot be followed says so, and the names before are listed") {
  CHECK(scan(kCall + "\xff").failure.find("unknown opcode 0xff") != std::string::npos);
  CHECK(scan(kCall).failure.find("truncated") != std::string::npos);
  CHECK(scan(kCall + "X\xff\xff\xff\xffhi.").failure.find("truncated") != std::string::npos);
  CHECK(scan(kCall + "\x8e" + std::string(8, '\xff') + ".").failure.find("truncated") != std::string::npos);
  CHECK(scan("\x95\x09\0\0\0\0\0\0\0"s + kCall.substr(0, 2) + "N.").failure.empty() == false);
  CHECK(scan("\x95\x09\0\0\0\0\0\0\0N."s).failure.find("inside a frame") != std::string::npos);
  const PickleScan straddling = scan("\x95\2\0\0\0\0\0\0\0cxposix\nsystem\n."s);
  CHECK(straddling.failure.find("beyond its frame") != std::string::npos);
  CHECK(straddling.straddles);
  CHECK(scan("h\x05."s).failure.find("never set") != std::string::npos);
  CHECK(names(scan("(iposix\nsystem!")) == Names{"posix.system"});
  for (const auto& bytes : {kCall + "\xff", kCall, kCall + "h\x05."})
    CHECK(names(scan(bytes)) == Names{"posix.system"});
}

TEST_CASE("beyond its limits it still looks at opcodes") {
  const std::string nones = std::string(1000, 'N');
  for (const ScanLimits limits : {ScanLimits{.max_steps = 500}, ScanLimits{.max_stack = 500}}) {
    const PickleScan found = scan(nones + kCall + "\x8c\x01m\x8c\x01\x66\x93.", limits);
    CHECK(found.failure.find("500") != std::string::npos);
    CHECK(names(found) == Names{"posix.system", "?.?"});
    CHECK_FALSE(found.globals[1].computed);
  }
  const PickleScan few = scan("ca\nb\ncc\nd\nce\nf\n.", {.max_globals = 2});
  CHECK(few.globals.size() == 2);
  CHECK(few.failure.find("more than 2 names") != std::string::npos);
}

TEST_CASE("long values are passed over, wherever the pieces end that the file is read in") {
  for (const std::size_t length : {4000U, 4095U, 4096U, 65536U, 300'000U}) {
    const std::string text(length, 'a');
    const auto size = [&](int bytes) {
      std::string out;
      for (int i = 0; i < bytes; ++i) out += static_cast<char>(length >> (8 * i));
      return out;
    };
    for (const auto& value :
         {"X" + size(4) + text, "\x8e" + size(8) + text, "V" + text + "\n", "I" + text + "\n"}) {
      const PickleScan found = scan(value + "0" + kCall + ".");
      CHECK(found.failure.empty());
      CHECK(names(found) == Names{"posix.system"});
      CHECK(found.globals[0].offset == value.size() + 1);
    }
  }
}

TEST_CASE("an Unpickler that reads several pickles keeps its memo") {
  const std::string first = "\x8c\x05posix\x94.";
  const std::string second = "\x8c\x01m\x94h\0\x8c\x06system\x93."s;
  const auto source = memory_source(first + second, "some.pkl");
  CHECK(names(scan_pickle(*source, first.size())) == Names{"m.system"});
  CHECK(names(scan_pickle(*source, 0, first.size() + 1)) == Names{"posix.system"});
  CHECK(scan_pickle(*source, 0, first.size()).end == first.size());
}

TEST_CASE("dangerous names are found among bytes that are no pickle") {
  const auto search = [](const std::string& bytes, std::uint64_t offset) {
    PickleScan found;
    found.globals = search_dangerous_names(*memory_source(bytes, "some.bin"), offset);
    return names(found);
  };
  const std::string noise(3, '\xff');
  CHECK(search(noise + "xcposix\nsystem\n" + noise, 0) == Names{"posix.system"});
  CHECK(search(noise + "\x8c\x05posix\x94\x8c\x06system\x94\x93", 0) == Names{"posix.system"});
  CHECK(search(noise + "ccollections\nOrderedDict\n", 0).empty());
  CHECK(search("cposix\nsystem\n", 1).empty());
  // Across the border of two pieces.
  for (std::size_t before = (1U << 20) - 16; before < (1U << 20) + 2; ++before) {
    CHECK(search(std::string(before, '\0') + "cposix\nsystem\n", 0) == Names{"posix.system"});
  }
}

}  // namespace msprobe::formats::pickle_scan_test

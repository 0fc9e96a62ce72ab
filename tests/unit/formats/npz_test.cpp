// SPDX-License-Identifier: Apache-2.0
// Archives that lie. What NumPy writes is in tensor_sets_test.cpp, the zip container itself in archive/.
#include "formats/npz.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/formats/elements.hpp"
#include "unit/formats/peak_memory.hpp"

namespace msprobe::formats::npz_test {
namespace {

std::string npy(const std::string& shape, const std::string& data) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + "}\n";
  return "\x93NUMPY" + archive::Bytes().u16(1).u16(header.size()).str() + header + data;
}

NpzFile open(const std::vector<archive::Piece>& pieces) {
  return NpzFile(memory_source(archive::build_zip(pieces), "some.npz"));
}

}  // namespace

TEST_CASE("members are opened one by one") {
  const std::string good = npy("(3,)", "abc");
  const NpzFile file = open({{.name = "stored.npy", .payload = good},
                             {.name = "no ending", .payload = good},
                             {.name = "packed.npy",
                              .payload = archive::deflated(good),
                              .method = 8,
                              .size = good.size(),
                              .crc = archive::crc_of(good)},
                             {.name = "short.npy", .payload = npy("(4,)", "abc")},
                             {.name = "text.npy", .payload = "no array"},
                             {.name = "empty.npy", .payload = ""}});
  REQUIRE(file.size() == 6);
  CHECK(file.name(0) == "stored");
  CHECK(file.name(1) == "no ending");
  for (const std::size_t i : {0, 1, 2}) CHECK(element_hex(file.tensor(i)) == "616263");
  CHECK_THROWS_WITH_AS(file.tensor(3), doctest::Contains("some.npz: its header says 4 bytes"), FormatError);
  CHECK_THROWS_WITH_AS(file.tensor(4), doctest::Contains("not a .npy file"), FormatError);
  CHECK_THROWS_AS(file.tensor(5), FormatError);
}

TEST_CASE("two members of one name") {
  const std::string good = npy("(3,)", "abc");
  CHECK_THROWS_WITH_AS(open({{.name = "a.npy", .payload = good}, {.name = "a", .payload = good}}),
                       doctest::Contains("two arrays are named a"), FormatError);
}

TEST_CASE("a bomb costs nothing until it is opened, and then little") {
  // One kilobyte that claims to unpack to as much as deflate could make of it at most; it is zeros to the
  // end.
  const std::string zeros(std::size_t{1} << 20, '\0');
  const NpzFile file =
      open({{.name = "bomb.npy",
             .payload = archive::deflated(zeros),
             .method = 8,
             .size = zeros.size(),
             .crc = archive::crc_of(zeros)},
            {.name = "liar.npy", .payload = archive::deflated("x"), .method = 8, .size = 1032, .crc = 0}});
  REQUIRE(file.size() == 2);
  CHECK(peak_growth([&] { CHECK_THROWS_AS(file.tensor(0), FormatError); }) < 8 * zeros.size());
  CHECK_THROWS_AS(file.tensor(1), FormatError);
  CHECK_THROWS_WITH_AS(
      open({{.name = "liar.npy", .payload = archive::deflated("x"), .method = 8, .size = 1 << 30}}),
      doctest::Contains("cannot unpack"), FormatError);
}

}  // namespace msprobe::formats::npz_test

// SPDX-License-Identifier: Apache-2.0
#include "inspect/second_archives.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/byte_source.hpp"
#include "unit/archive/zip_builder.hpp"

namespace msprobe::inspect::second_archives_test {
namespace {

std::string archive_of(const std::string& name, const std::string& content) {
  return archive::build_zip({{.name = name, .payload = content}});
}

std::size_t count(const std::string& bytes) {
  return consecutive_zips(memory_source(bytes, "some.distcp")).size();
}

}  // namespace

TEST_CASE("inspect: consecutive archives are separated, from the back") {
  const std::string a = archive_of("a", "1");
  const std::string b = archive_of("bb", "22");
  const auto archives = consecutive_zips(memory_source(a + b + a, "some.distcp"));
  REQUIRE(archives.size() == 3);
  CHECK(read_all(*archives[0], 1000) == a);
  CHECK(read_all(*archives[1], 1000) == b);
  CHECK(read_all(*archives[2], 1000) == a);
}

TEST_CASE("inspect: bytes that belong to no archive make it none") {
  const std::string a = archive_of("a", "some bytes that are long enough to be cut");
  CHECK(count(a) == 1);
  CHECK(count("x" + a) == 0);
  CHECK(count(a + "x" + a) == 0);
  CHECK(count(a + a + "x") == 0);
  CHECK(count("") == 0);
  for (std::size_t length = 0; length < a.size(); ++length) CHECK(count(a.substr(0, length)) == 0);
}

}  // namespace msprobe::inspect::second_archives_test

// SPDX-License-Identifier: Apache-2.0
#include "report/packed_table.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "unit/report/fake_table.hpp"

namespace msprobe::packed_table_test {

using namespace msprobe::report;
using test::FakeTable;
using test::kInf;
using test::kNan;
using test::written;

namespace {

std::string packed(const Table* table) {
  PacketWriter packet;
  pack_table(table, packet);
  return packet.take();
}

}  // namespace

TEST_CASE("a table that travelled is written as if it had not") {
  const std::vector<std::string> frames = {"File a.py, line 1", "\xff not UTF-8"};
  const FakeTable table({"text", "structured", "list", "real", "integer", "flag", "spelled"},
                        {{Text{"a,\"b\"\n"}, Structured{"[1]", "[1]"}, Structured{"x", "", &frames}, 0.1,
                          std::int64_t{-5}, true, Spelled{Spelled::Kind::percent, 12.5, 0}},
                         {Text{""}, Structured{"[1]", "[1]"}, Structured{"x", "", &frames}, kNan, INT64_MIN,
                          false, Spelled{Spelled::Kind::integer, 3, 3}},
                         {Text{"a,\"b\"\n"}, Structured{"", "{}"}, Structured{"y", "[]"}, -kInf,
                          std::int64_t{0}, true, Spelled{Spelled::Kind::real, -0.0, 0}}});
  const std::string bytes = packed(&table);
  PacketReader packet(bytes);
  const std::shared_ptr<const Table> unpacked = unpack_table(packet);
  REQUIRE(unpacked != nullptr);
  CHECK(packet.left().empty());
  for (std::size_t i = 0; i < table.rows(); ++i) CHECK(unpacked->severity(i) == table.severity(i));
  for (const Format format : {Format::csv, Format::json, Format::jsonl})
    CHECK(written(*unpacked, format) == written(table, format));
}

TEST_CASE("no table travels, too") {
  const std::string bytes = packed(nullptr);
  PacketReader packet(bytes);
  CHECK(unpack_table(packet) == nullptr);
}

}  // namespace msprobe::packed_table_test

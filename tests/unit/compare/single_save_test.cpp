// SPDX-License-Identifier: Apache-2.0
#include "compare/single_save/single_save.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "compare/sinks/summary.hpp"
#include "unit/compare/dumps.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_single_save_test {

using namespace msprobe;
using namespace msprobe::compare;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// A `.npy` of float64.
void put_array(const std::string& path, const std::vector<double>& values, const std::string& shape) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118, ' ');
  header.back() = '\n';
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header;
  const auto raw = std::as_bytes(std::span(values));
  bytes.append(reinterpret_cast<const char*>(raw.data()), raw.size());
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  test::put_file(path, bytes);
}

std::string flat(std::size_t size) {
  return "(" + std::to_string(size) + ",)";
}

/// Equal %, first unequal, max abs, max relative, within 1/1000 %, within 1/100 % of two arrays.
std::string compared(const std::vector<double>& target, const std::string& target_shape,
                     const std::vector<double>& golden, const std::string& golden_shape) {
  test::ScratchDirectory scratch;
  put_array(scratch / "t.npy", target, target_shape);
  put_array(scratch / "g.npy", golden, golden_shape);
  const SavedArrays targets = {{{0, 0, 0, 0}, scratch / "t.npy"}};
  const SavedArrays goldens = {{{0, 0, 0, 0}, scratch / "g.npy"}};
  const RowList list = compare_saved(targets, goldens, nullptr);
  const ListRows table(measuring::Mode::tensor, list);
  std::string out;
  for (std::size_t i = 6; i < 12; ++i) out += cell(table, 0, list.columns[i]) + "|";
  return out;
}

std::string compared(const std::vector<double>& target, const std::vector<double>& golden) {
  return compared(target, flat(target.size()), golden, flat(golden.size()));
}

std::string numbers(const std::vector<double>& values, const std::string& first) {
  std::string out = "number " + std::to_string(values[0]) + "|" + first + "|";
  for (std::size_t i = 1; i < values.size(); ++i) out += "number " + std::to_string(values[i]) + "|";
  return out;
}

}  // namespace

TEST_CASE("saved arrays: shares, first mismatch and largest errors") {
  CHECK(compared({1, 2, 4}, {1, 2, 4}) == numbers({100, 0, 0, 100, 100}, ""));
  CHECK(compared({1, 2, 4, 0}, {1, 2, 5, 0}) == numbers({75, 1, 0.2, 75, 75}, "integer 2"));
  CHECK(compared({1000, 1000}, {1000.5, 1005}) == numbers({0, 5, 5 / 1005.0, 50, 100}, "integer 0"));
}

TEST_CASE("saved arrays: NaN and Inf are equal to themselves, and far from everything else") {
  CHECK(compared({kNan, 1}, {kNan, 1}) == numbers({100, 0, 0, 100, 100}, ""));
  CHECK(compared({kInf, 1}, {kInf, 1}) == numbers({100, 0, 0, 100, 100}, ""));
  CHECK(compared({kInf, 1}, {-kInf, 1}) == numbers({50, kInf, kInf, 50, 50}, "integer 0"));
  CHECK(compared({kNan, 1}, {2, 1}) == numbers({50, kNan, kInf, 50, 50}, "integer 0"));
}

TEST_CASE("saved arrays: of different shapes the common part is compared") {
  const std::vector<double> six = {1, 2, 3, 4, 5, 6};
  // Rows 0 and 1, columns 0 and 1: 1 2 4 5 against 1 2 3 4.
  CHECK(compared(six, "(2, 3)", six, "(3, 2)") == numbers({50, 1, 0.25, 50, 50}, "integer 2"));
  // Another number of axes: as they lie.
  CHECK(compared(six, "(2, 3)", {1, 2, 3, 4, 5}, "(5,)") == numbers({100, 0, 0, 100, 100}, ""));
  CHECK(compared(six, "(2, 3)", {1}, "()") == numbers({100, 0, 0, 100, 100}, ""));
}

TEST_CASE("saved arrays: empty and broken ones are rows that say so") {
  CHECK(compared({}, "(0,)", {1}, "(1,)").find("N/A") == 0);
  test::ScratchDirectory scratch;
  put_array(scratch / "t.npy", {1}, "(1,)");
  test::put_file(scratch / "g.npy", "\x93NUMPY");
  const SavedArrays targets = {{{0, 0, 0, 0}, scratch / "t.npy"}};
  const SavedArrays goldens = {{{0, 0, 0, 0}, scratch / "g.npy"}};
  const RowList list = compare_saved(targets, goldens, nullptr);
  REQUIRE(list.rows.size() == 1);
  CHECK(list.rows[0].unreadable);
  CHECK(list.rows[0].verdict == verdict::Verdict::warning);
  CHECK(list.rows[0].cells.size() == list.columns.size());
  CHECK(summarize(ListRows(measuring::Mode::tensor, list)).unreadable == 1);
}

}  // namespace msprobe::compare_single_save_test

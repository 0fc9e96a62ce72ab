// SPDX-License-Identifier: Apache-2.0
// Lays the results of two dumps, each judged by itself, side by side: shows whose outputs do not follow from
// their inputs, and where that begins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/side.hpp"
#include "pairing/alignment.hpp"
#include "precheck/judgement/output.hpp"
#include "precheck/result_files/result_files.hpp"
#include "report/table.hpp"

namespace msprobe::precheck {

/// One direction of an operation on one side.
struct SideDirection {
  PrecheckVerdict verdict = PrecheckVerdict::none;
  bool missing = false;  // the other side has it
  std::string reason;
};

struct SideOperation {
  std::string name;  // empty: the other side alone has it
  std::array<SideDirection, 2> directions;

  const SideDirection& operator[](CallDirection direction) const {
    return directions[static_cast<std::size_t>(direction)];
  }
  SideDirection& operator[](CallDirection direction) {
    return directions[static_cast<std::size_t>(direction)];
  }
};

/// The verdicts of a report.
SideOperation side_operation(const OperationReport& report);

/// The side that is wrong. `open`: neither is known to be wrong, but one was not judged, or one side lacks
/// the operation.
enum class WrongSide : std::uint8_t { neither, open, a, b, both };

struct SidesRow {
  std::array<SideOperation, 2> sides;  // A, B
  WrongSide wrong = WrongSide::neither;
  PrecheckVerdict verdict =
      PrecheckVerdict::none;  // error or warning of the wrong side, pass if neither is wrong, else skip
  bool missing = false;       // one side lacks a direction that the other one has
};

/// The first wrong direction of both runs, in the order of execution: a backward comes where it ran.
struct FirstWrong {
  std::size_t row = 0;
  CallDirection direction = CallDirection::forward;
  WrongSide wrong = WrongSide::neither;              // in this direction
  PrecheckVerdict verdict = PrecheckVerdict::error;  // a warning if no operation has an error
};

struct SideCounts {
  std::size_t operations = 0;
  std::size_t follow = 0;
  std::size_t errors = 0;
  std::size_t warnings = 0;
  std::size_t open = 0;     // not judged
  std::size_t missing = 0;  // operations, or backwards of them, that the other side has
};

struct SidesResult {
  std::vector<SidesRow> rows;  // in the order of execution of the forward passes
  std::array<SideCounts, 2> counts;
  std::optional<FirstWrong> first;
  bool renamed = false;  // operations with different names belong together
};

/// Pairs the operations of both sides as the alignment pairs the entries of the two dumps.
SidesResult lay_side_by_side(std::array<std::vector<SideOperation>, 2> operations, const dump::Side& a,
                             const dump::Side& b, const pairing::Alignment& alignment);

/// `A`, `B`, `both`, `neither`, `not judged`.
std::string_view word(WrongSide wrong);

/// The result in one sentence.
std::string sentence(const SidesResult& result);

std::unique_ptr<report::Table> sides_table(const SidesResult& result);

}  // namespace msprobe::precheck

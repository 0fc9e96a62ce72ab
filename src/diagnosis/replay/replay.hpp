// SPDX-License-Identifier: Apache-2.0
// Does a recorded output follow from the recorded inputs? The operation is done again in double precision,
// and the distance of what was recorded is given beside the distance that rounding explains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/imports.hpp"
#include "diagnosis/replay/call.hpp"

namespace msprobe::diagnosis::replay {

enum class Status : std::uint8_t {
  computed,
  unknown_operation,
  unknown_argument,  // one that we do not know, or a value or a form of it
  argument_not_recorded,
  random,  // depends on numbers that nobody recorded
  too_large,
  broken_off,  // a file could not be read, or memory has run out: nobody knows what would have been said
};

std::string_view to_text(Status status);

struct ReplayLimits {
  std::uint64_t elements = std::uint64_t{1} << 28;  // doubles in memory for one call
  std::uint64_t work = std::uint64_t{1} << 33;      // multiplications for one call
};

struct ReplayedOutput {
  std::string place;  // `output.0`
  Status status = Status::unknown_operation;
  std::string reason;  // of one that was broken off
  // Of computed ones: r = norm(recorded - f) / norm(f), infinite if other elements are finite than should be;
  // and what rounding explains of it: 3 u(output) + 16 * 2^-24, and more where the operation subtracts what
  // is nearly equal.
  double r = 0;
  double tolerance = 0;
  double covered = 1;  // less where only a part of the rows was looked at, evenly spread (long attention)
};

using ReplayResult = std::vector<ReplayedOutput>;

/// One item for each recorded output tensor. Integer and bool outputs are exact: their tolerance is that of u
/// = 0.
ReplayResult replay(const Call& call, const ReplayLimits& limits = {});

/// The same for an entry of a dump.json; empty for what is no forward entry. `directory` holds its tensors.
ReplayResult replay_entry(std::string_view name, const dump::Entry& entry, const std::string& directory,
                          const ReplayLimits& limits = {});

}  // namespace msprobe::diagnosis::replay

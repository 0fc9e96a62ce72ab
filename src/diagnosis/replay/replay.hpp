// SPDX-License-Identifier: Apache-2.0
// Checks whether a recorded output follows from the recorded inputs. It computes the operation again in
// double precision, and gives the distance of the recorded output together with the distance that rounding
// explains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/replay/call.hpp"

namespace msprobe::diagnosis::replay {

enum class Status : std::uint8_t {
  computed,
  unknown_operation,
  unknown_argument,  // an argument, or a value or form of it, that replay does not know
  argument_not_recorded,
  random,  // depends on random numbers, which no recorder writes
  too_large,
  broken_off,  // a file could not be read, or memory ran out: the result is not known
};

std::string_view to_text(Status status);

struct ReplayLimits {
  std::uint64_t elements = std::uint64_t{1} << 28;  // doubles in memory for one call
  std::uint64_t work = std::uint64_t{1} << 33;      // multiplications for one call
};

struct ReplayedOutput {
  std::string place;  // `output.0`
  Status status = Status::unknown_operation;
  std::string reason;  // of Status::broken_off
  // For Status::computed: r = norm(recorded - f) / norm(f), infinite if other elements are finite than should
  // be. The tolerance is what rounding explains of r: 3 u(output) + 16 * 2^-24, and more where the operation
  // subtracts nearly equal numbers.
  double r = 0;
  double tolerance = 0;
  double covered = 1;  // less where only a part of the rows was looked at, evenly spread (long attention)
};

using ReplayResult = std::vector<ReplayedOutput>;

/// One item for each recorded output tensor. Integer and bool outputs are exact: their tolerance is that of u
/// = 0.
ReplayResult replay(const Call& call, const ReplayLimits& limits = {});

/// The same for an entry of a dump.json; empty for an entry that is not a forward entry. `directory` holds
/// its tensors.
ReplayResult replay_entry(std::string_view name, const dump::Entry& entry, const std::string& directory,
                          const ReplayLimits& limits = {});

}  // namespace msprobe::diagnosis::replay

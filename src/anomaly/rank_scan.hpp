// SPDX-License-Identifier: Apache-2.0
// One pass over the dump.json of a rank: what the search needs, and nothing that grows with its length beyond
// the communication entries and the suspects.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "anomaly/badness.hpp"
#include "anomaly/rules.hpp"
#include "dump/communication.hpp"
#include "dump/dump_json.hpp"
#include "support/byte_source.hpp"
#include "support/coverage.hpp"

namespace msprobe::anomaly {

/// An entry, and the place of its value in the file.
struct EntryPlace {
  std::string name;
  std::uint32_t position = 0;  // among the entries of the rank
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct CommNode : dump::Communication {
  EntryPlace place;
  std::uint32_t sub_layer = 0;  // compute entries since the communication before it
  EntryBadness bad;
};

/// A compute entry that may be a root.
struct Suspect {
  EntryPlace place;
  std::uint32_t interval = 0;   // communication entries before it
  std::uint32_t sub_layer = 0;  // compute entries between those and it
  Bad inputs = 0;
  Bad outputs = 0;
  /// Something took its bad values and gave clean ones, and nothing was bad behind that: a mask, most likely.
  bool contained = false;
};

/// The first entry of the backward with a bad value.
struct BadGradient {
  EntryPlace place;
  /// What is bad there is of float16; if the entry made it of clean values, of large ones, and no NaN: as
  /// numbers beyond its range are made.
  bool overflow = false;
};

struct RankScan {
  dump::Header header;
  std::uint32_t entries = 0;
  Coverage coverage;  // of the entries: those with values to judge by
  std::vector<CommNode> comms;
  /// Entries that made bad values of clean ones, in order.
  std::vector<Suspect> suspects;
  /// The first entry with a bad value of any kind.
  std::optional<EntryPlace> first_bad;
  std::uint32_t bad_entries = 0;
  /// That entry, if its bad value is an input: nothing recorded made it. `interval` is that of a
  /// communication entry's own index where it is one.
  std::optional<Suspect> external;
  bool external_is_comm = false;
  /// The first entry that made NaN of inputs with Inf.
  std::optional<Suspect> inf_to_nan;
  /// Task nan_check records no values. These count the entries for which the dump says whether the device
  /// raised NaN or Inf, and those in which it did; the last is the first of these.
  std::uint32_t checked_entries = 0;
  std::uint32_t raised_entries = 0;
  std::optional<Suspect> raised;
  std::optional<BadGradient> bad_gradient;
  bool nan_in_forward = false;  // before it
};

/// Throws FormatError and IoError. `on_bytes`, if it is not empty, gets now and then how many bytes more were
/// read.
RankScan scan_rank(const ByteSource& file, const Rules& rules,
                   const std::function<void(std::uint64_t)>& on_bytes = {});

}  // namespace msprobe::anomaly

// SPDX-License-Identifier: Apache-2.0
// Reads the dump.json of a rank in one pass and keeps what the search needs. Only the lists of communication
// entries and suspects grow with the length of the file.
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
struct ScannedEntry {
  std::string name;
  std::uint32_t position = 0;  // among the entries of the rank
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct ScannedCommunication : dump::Communication {
  ScannedEntry place;
  std::uint32_t sub_layer = 0;  // compute entries since the previous communication
  EntryBadness bad;
};

/// A compute entry that may be a root.
struct SuspectEntry {
  ScannedEntry place;
  std::uint32_t interval = 0;   // number of earlier communication entries
  std::uint32_t sub_layer = 0;  // number of compute entries after the last of those
  Bad inputs = 0;
  Bad outputs = 0;
  /// An entry took its bad values and gave clean ones, and all later entries were clean: it is probably a
  /// mask.
  bool contained = false;
};

/// The first entry of the backward with a bad value.
struct BadGradient {
  ScannedEntry place;
  /// True if the gradient probably overflowed the range of float16: the bad values are float16 and, if the
  /// entry made them from clean ones, those were large and no result is NaN.
  bool overflow = false;
};

struct RankScan {
  dump::Header header;
  std::uint32_t entries = 0;
  Coverage coverage;  // entries with values to judge by count as covered
  std::vector<ScannedCommunication> comms;
  /// The entries that made bad values from clean ones, in order.
  std::vector<SuspectEntry> suspects;
  /// The first entry with a bad value of any kind.
  std::optional<ScannedEntry> first_bad;
  std::uint32_t bad_entries = 0;
  /// The entry `first_bad`, if its bad value is an input: no recorded entry made the value. For a
  /// communication entry, `interval` is its own index.
  std::optional<SuspectEntry> external;
  bool external_is_comm = false;
  /// The first entry that made NaN of inputs with Inf.
  std::optional<SuspectEntry> inf_to_nan;
  /// Task nan_check records no values. `checked_entries` counts the entries for which the dump says whether
  /// the device raised NaN or Inf, `raised_entries` those in which it did; `raised` is the first of them.
  std::uint32_t checked_entries = 0;
  std::uint32_t raised_entries = 0;
  std::optional<SuspectEntry> raised;
  std::optional<BadGradient> bad_gradient;
  bool nan_in_forward = false;  // before the bad gradient
};

/// Throws FormatError and IoError. If `on_bytes` is not empty, it receives from time to time the number of
/// bytes read since the last call.
RankScan scan_rank(const ByteSource& file, const AnomalyRules& rules,
                   const std::function<void(std::uint64_t)>& on_bytes = {});

}  // namespace msprobe::anomaly

// SPDX-License-Identifier: Apache-2.0
// Judges entries one by one, without a search: by overflow levels, or by their statistics alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "anomaly/rules.hpp"
#include "dump/entry.hpp"
#include "support/byte_source.hpp"
#include "support/coverage.hpp"

namespace msprobe::anomaly {

enum class AnomalyListing : std::uint8_t { none, levels, statistics };

enum class AnomalyLevel : std::uint8_t { none, medium, high, critical };

enum class Scene : std::uint8_t {
  none,
  input_normal_output_bad,
  input_bad_output_bad,
  input_bad_output_normal,
  norm_jump,
};

std::string_view level_name(AnomalyLevel level);
std::string_view scene_name(Scene scene);

/// The rule that applies to the entry, before the ignore rules.
Scene find_scene(const dump::Entry& entry, const AnomalyRules& rules);
AnomalyLevel level_of(Scene scene);
/// Do the ignore rules exempt the entry?
bool is_expected_bad(std::string_view name, const dump::Entry& entry, const AnomalyRules& rules);

/// One line of a listing.
struct EntryFinding {
  std::string name;
  AnomalyLevel level = AnomalyLevel::none;
  // Listing::levels
  Scene scene = Scene::none;
  std::vector<std::size_t> bad_arguments;
  std::vector<std::string> bad_keywords;
  std::vector<std::size_t> bad_outputs;
  // Listing::statistics
  std::string what;   // "saturated", "norm_jump", "bad_mean", "bad_norm"
  std::string where;  // "output.0"; empty for norm_jump
  std::string text;   // "Max 65504.0 is the largest float16"
};

/// Counts the entry as covered if it has values to judge by. An entry without elements needs none.
void cover_entry(const dump::Entry& entry, std::string_view name, Coverage& coverage);

struct EntryFindings {
  std::uint32_t entries = 0;
  Coverage coverage;  // entries with values to judge by count as covered
  std::string task;   // the task of the rank's recorder
  std::vector<EntryFinding> found;
};

/// Finds problems of one entry beyond NaN and Inf: outputs at the largest finite number of their dtype, norms
/// that jump, and a mean or norm that is not finite although maximum and minimum are.
std::vector<EntryFinding> find_statistics(std::string_view name, const dump::Entry& entry,
                                          const AnomalyRules& rules);

/// Lists the entries of a rank. Throws FormatError and IoError.
EntryFindings list_entries(const ByteSource& file, AnomalyListing listing, const AnomalyRules& rules);

}  // namespace msprobe::anomaly

// SPDX-License-Identifier: Apache-2.0
// Dumps with a dump.json: files, ranks, steps, whole trees. One task for each pair of ranks, in which each is
// loaded once, rows are paired, measured and judged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/imports.hpp"
#include "compare/task.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "dump/tree.hpp"
#include "measuring/bytes_ahead.hpp"
#include "measuring/tensor_rows.hpp"
#include "pairing/match.hpp"
#include "pairing/rules.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

struct RankPair {
  std::string step;
  dump::RankDump target;
  dump::RankDump golden;
  // Of the third dump, if there is one, or with a csv file of free_benchmark in place of its dump.json.
  std::optional<dump::RankDump> noise = {};
  // Further ranks of the same model (--merge-ranks).
  bool merged = false;
  std::vector<dump::RankDump> more_targets = {};
  std::vector<dump::RankDump> more_goldens = {};
};

struct RankPairs {
  std::vector<RankPair> pairs;
  std::vector<std::string> one_sided;  // "step0/rank3: only in target", …
  std::vector<std::string> remarks;    // on how ranks were paired, where that needs a word
};

/// Finds the ranks of both sides and pairs them: by number; by position where no number is common.
/// UsageError if the two are not of the same kind, FormatError if they have no step in
/// common.
RankPairs pair_ranks(const dump::Tree& target, const dump::Tree& golden);

/// Has one side several ranks, in the first step that both have, and each of them a part of what the other's
/// one process has? Reads a dump.json of each side. False also where these cannot be read or merged.
bool are_parts_of_one(const dump::Tree& target, const dump::Tree& golden);

/// The ranks of each step as parts of one model. `group`: how many neighbouring ranks of the target and of
/// the golden side make one up; 0: all. The two may be of different kinds. Throws as pair_ranks() does.
RankPairs pair_merged(const dump::Tree& target, const dump::Tree& golden,
                      const std::array<std::size_t, 2>& group);

struct RankOptions {
  bool merge_ranks = false;                // those of a step are parts of one model
  std::array<std::size_t, 2> merged = {};  // how many of the target and of the golden side; 0: all
  bool stacks = true;
  std::string stack_json;  // empty: beside the dump.json
  MatchOptions match;
  std::shared_ptr<const TensorFactors> factors;  // null: tensors are compared as they were recorded
  std::optional<Backend> backend;                // training against inference, and what trained
  bool print_rows = false;                       // one log line a row in tensor mode
  bool first_difference = false;                 // only what -da looks at: no tensors, no verdicts
  diagnosis::DiagnosisOptions diagnosis;
};

/// A mapping has been loaded. `past`: given, the result is diagnosed, as the next step of that rank.
/// `measured`: rows whose tensors were compared elsewhere. Throws what the readers throw, and FormatError for
/// dumps that do not go together (other task, nothing to compare).
RankResult compare_ranks(const RankPair& pair, const RankOptions& options, const PythonRules& python,
                         const Rules& rules, BytesAhead& bytes, diagnosis::RankHistory* past = nullptr,
                         std::vector<MeasuredRows>&& measured = {});
/// One of so many ranges of its rows in tensor mode; nothing in any other mode. Throws the same.
MeasuredRows measure_part(const RankPair& pair, const RankOptions& options, const PythonRules& python,
                          const Rules& rules, BytesAhead& bytes, std::size_t part, std::size_t parts);
/// The processes that see all of a pair; none if all do.
struct SeenBy {
  std::vector<std::uint32_t> processes;
  std::string apart;  // why nobody can compare it; empty: somebody can
};
SeenBy seen_by(const RankPair& pair);

/// "step0/rank1"; empty for two files.
std::string label_of(const RankPair& pair);
/// What the dump.json files of each pair take; nothing where no units are handed out.
std::vector<std::uint64_t> json_bytes_ahead(const std::vector<RankPair>& pairs);

/// Gives the rank its rows. Throws what match() throws.
void pair_rows(MeasuredRank& rank, const MatchOptions& options, const Rules& rules);

/// The arguments must outlive the plan. UsageError, FormatError as pair_ranks().
Plan plan_dump_trees(const dump::Tree& target, const dump::Tree& golden, const RankOptions& options,
                     const PythonRules& python, const Rules& rules, Progress* progress);

}  // namespace msprobe::compare

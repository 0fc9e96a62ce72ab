// SPDX-License-Identifier: Apache-2.0
// Compares dumps with a dump.json: files, ranks, steps, whole trees. Each pair of ranks is a task, which
// loads both ranks once, and pairs, measures and judges their rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  // The third dump's rank, if there is a third dump; free_benchmark's csv file may replace its dump.json.
  std::optional<dump::RankDump> noise = {};
  // Further ranks of the same model (--merge-ranks).
  bool merged = false;
  std::vector<dump::RankDump> more_targets = {};
  std::vector<dump::RankDump> more_goldens = {};
};

struct RankPairs {
  std::vector<RankPair> pairs;
  std::vector<std::string> one_sided;  // "step0/rank3: only in target", …
  std::vector<std::string> remarks;    // on how ranks were paired, if that needs an explanation
};

/// Finds the ranks of both sides and pairs them by number, or by position if they have no number in common.
/// Throws UsageError if the two are of different kinds, and FormatError if they have no step in common.
RankPairs pair_ranks(const dump::Tree& target, const dump::Tree& golden);

/// True if one side has several ranks in the first step that both have, and each of them holds a part of what
/// the other side's single process has. Reads a dump.json of each side. False also if these cannot be read or
/// merged.
bool are_parts_of_one(const dump::Tree& target, const dump::Tree& golden);

/// Treats the ranks of each step as parts of one model. `group`: how many neighbouring ranks of the target
/// and of the golden side make up a model; 0: all. The two sides may be of different kinds. Throws as
/// pair_ranks() does.
RankPairs pair_merged(const dump::Tree& target, const dump::Tree& golden,
                      const std::array<std::size_t, 2>& group);

struct RankOptions {
  bool merge_ranks = false;                // the ranks of a step are parts of one model
  std::array<std::size_t, 2> merged = {};  // how many of the target and of the golden side; 0: all
  bool stacks = true;
  std::string stack_json;  // empty: beside the dump.json
  pairing::MatchOptions match;
  std::shared_ptr<const measuring::TensorFactors>
      factors;                              // null: tensors are compared as they were recorded
  std::optional<pairing::Backend> backend;  // training against inference, and the backend that trained
  bool print_rows = false;                  // one log line a row in tensor mode
  bool first_difference = false;            // only the data that -da needs: no tensors, no verdicts
  diagnosis::DiagnosisOptions diagnosis;
};

/// The mapping must be loaded before. With `past`, the result is diagnosed as the next step of that rank.
/// `measured`: rows whose tensors were compared elsewhere. Throws whatever the readers throw, and FormatError
/// for dumps that cannot be compared (another task, nothing in common).
verdict::RankResult compare_ranks(const RankPair& pair, const RankOptions& options,
                                  const measuring::PythonRules& python, const pairing::Rules& rules,
                                  measuring::BytesAhead& bytes, diagnosis::RankHistory* past = nullptr,
                                  std::vector<measuring::MeasuredRows>&& measured = {});
/// The processes that see all of a pair; empty if all processes do.
struct SeenBy {
  std::vector<std::uint32_t> processes;
  std::string apart;  // why no process can compare it; empty if one can
};
SeenBy seen_by(const RankPair& pair);

/// "step0/rank1"; empty for two files.
std::string label_of(const RankPair& pair);
/// The size of the dump.json files of each pair; empty if no units are handed out.
std::vector<std::uint64_t> json_bytes_ahead(const std::vector<RankPair>& pairs);

/// Fills in the rows of the rank. Throws as match() does.
void pair_rows(measuring::MeasuredRank& rank, const pairing::MatchOptions& options,
               const pairing::Rules& rules);

/// The arguments must outlive the plan. Throws UsageError and FormatError as pair_ranks() does.
TaskPlan plan_dump_trees(const dump::Tree& target, const dump::Tree& golden, const RankOptions& options,
                         const measuring::PythonRules& python, const pairing::Rules& rules,
                         Progress* progress);

}  // namespace msprobe::compare

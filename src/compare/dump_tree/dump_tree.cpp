// SPDX-License-Identifier: Apache-2.0
#include "compare/dump_tree/dump_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <system_error>

#include "compare/dump_tree/rank_rows.hpp"
#include "diagnosis/content_partners.hpp"
#include "diagnosis/other_code.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "dump/data_size.hpp"
#include "dump/side.hpp"
#include "measuring/choose_mode.hpp"
#include "measuring/packets.hpp"
#include "measuring/rank_coverage.hpp"
#include "measuring/scalar_xors.hpp"
#include "measuring/settle_joins.hpp"
#include "measuring/sum_precision.hpp"
#include "pairing/join_sides.hpp"
#include "support/check.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/log.hpp"
#include "support/parallel.hpp"
#include "support/stage.hpp"
#include "support/team.hpp"
#include "support/text.hpp"
#include "support/units.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {
namespace {

using dump::load_side;
using dump::LoadOptions;
using dump::Side;
using measuring::BytesAhead;
using measuring::MeasuredRank;
using measuring::MeasuredRows;
using measuring::Mode;
using measuring::PythonRules;
using pairing::Matching;
using pairing::OtherName;
using pairing::Pair;
using pairing::RankSide;
using pairing::Rules;
using pairing::Unmatched;

void take_pairs(pairing::PairedRank& result, Matching&& matching) {
  result.golden_only = matching.golden_only;
  result.mapping_applies = matching.mapping_applies;
  result.rows = std::move(matching.pairs);
}

/// Compares training with inference (--consistent_check); makes rows of both sides.
void pair_consistent_rows(MeasuredRank& result, pairing::Backend backend) {
  if (result.mode == Mode::md5) {
    throw FormatError(display(result.target.json),
                      "--consistent_check cannot compare checksums: those of a tensor's parts differ from "
                      "that of the whole");
  }
  result.consistent = backend;
  Matching matching = pairing::match_consistent(result.target, result.golden, backend);
  if (matching.conflict) {
    log_warning("training and inference ran modules in different orders: rows are in the order of training");
  }
  take_pairs(result, std::move(matching));
}

/// Loads all ranks of both sides, side by side.
void load_merged(pairing::PairedRank& result, const RankPair& pair, const LoadOptions& target_options,
                 const LoadOptions& golden_options) {
  const std::size_t targets = 1 + pair.more_targets.size();
  std::vector<RankSide> sides(targets + 1 + pair.more_goldens.size());
  parallel_for(sides.size(), [&](std::size_t i) {
    const bool golden = i >= targets;
    const std::size_t place = golden ? i - targets : i;
    const dump::RankDump& first = golden ? pair.golden : pair.target;
    const dump::RankDump& rank =
        place == 0 ? first : (golden ? pair.more_goldens : pair.more_targets)[place - 1];
    LoadOptions options = golden ? golden_options : target_options;
    if (place > 0) options.stacks = false;
    sides[i] = {rank.number.value_or(0), load_side(rank, options)};
  });
  const auto take = [&](std::size_t begin, std::size_t end) {
    std::vector<RankSide> ranks;
    for (std::size_t i = begin; i < end; ++i) ranks.push_back(std::move(sides[i]));
    for (const RankSide& rank : ranks) {
      if (rank.side.header.task != ranks.front().side.header.task) {
        throw FormatError(fmt::format("the ranks of one model have different tasks: {}, {}",
                                      display(ranks.front().side.json), display(rank.side.json)));
      }
      if (rank.side.has_md5) {
        throw FormatError(
            display(rank.side.json),
            "ranks with checksums cannot be merged: the checksum of a whole tensor does not follow from "
            "those of its parts");
      }
    }
    return pairing::join_sides(std::move(ranks));
  };
  pairing::JoinedSides target = take(0, targets);
  pairing::JoinedSides golden = take(targets, sides.size());
  result.target = std::move(target.side);
  result.target_joins = std::move(target.joins);
  result.golden = std::move(golden.side);
  result.golden_joins = std::move(golden.joins);
}

/// The table of free_benchmark in a rank's folder without a dump; empty if there is no table.
std::string unstable_calls_in(const std::string& folder) {
  const std::string csv = folder + "/" + std::string(diagnosis::kUnstableCalls);
  return path_exists(csv) ? csv : std::string();
}

/// Pairs the third tree with the golden one: both have the same ranks.
void add_noise_floor(RankPairs& ranks, const dump::Tree& golden, const std::string& path) {
  const std::string table = path.ends_with(".csv") ? path : unstable_calls_in(path);
  if (!table.empty()) {
    if (ranks.pairs.size() != 1) {
      throw UsageError(
          fmt::format("--noise-floor: {} covers one rank of one step, but {} are compared: pass the "
                      "folder of its steps",
                      display(table), ranks.pairs.size()));
    }
    ranks.pairs.front().noise.emplace().json = table;
    return;
  }
  dump::Tree third = dump::discover(path);
  for (dump::StepDump& step : third.steps) {
    for (dump::RankDump& rank : step.ranks) {
      std::string csv = unstable_calls_in(rank.directory);
      if (!csv.empty() && !path_exists(rank.json)) rank.json = std::move(csv);
    }
  }
  const RankPairs noise = pair_ranks(golden, third);
  for (RankPair& pair : ranks.pairs) {
    for (const RankPair& beside : noise.pairs) {
      if (beside.target.json == pair.golden.json) pair.noise = beside.golden;
    }
    if (!pair.noise) throw FormatError(display(path), "has no rank for " + display(pair.golden.json));
  }
}

}  // namespace

void pair_rows(MeasuredRank& result, const pairing::MatchOptions& options, const Rules& rules) {
  const pairing::Constructs constructs = {result.target_construct.get(), result.golden_construct.get()};
  Matching matching = pairing::match(result.target, result.golden, options, rules, constructs);
  result.alignment = std::move(matching.alignment);
  take_pairs(result, std::move(matching));
  for (const Pair& row : result.rows) {
    check((!row.has_target() || row.target < result.target.items.size()) &&
              (!row.has_golden() || row.golden < result.golden.items.size()),
          "a row pairs items that exist");
  }
  if (result.alignment && result.alignment->renamed) {
    pairing::mark_other_names(result, OtherName::aligned, [](const Side& side, const dump::Item& item) {
      return side.text(side.apis[item.api].name);
    });
  }
  if (!options.fuzzy) return;
  pairing::mark_other_names(result, OtherName::fuzzy,
                            [](const Side& side, const dump::Item& item) { return side.name(item); });
}

namespace {

/// The name of a stage of the work, for --verbose.
std::string stage_of(const RankPair& pair, std::string_view what) {
  const std::string label = label_of(pair);
  return label.empty() ? std::string(what) : fmt::format("{} {}", label, what);
}

/// Reads both sides and pairs their rows. `diagnosed`: the diagnosis will examine communication.
MeasuredRank read_and_pair(const RankPair& pair, const RankOptions& options, const PythonRules& python,
                           const Rules& rules, BytesAhead& bytes, bool diagnosed) {
  if (dump::is_debug_json(pair.target.json) != dump::is_debug_json(pair.golden.json)) {
    throw FormatError(fmt::format("a debug.json can only be compared with a debug.json: {}, {}",
                                  display(pair.target.json), display(pair.golden.json)));
  }
  MeasuredRank result;
  result.step = pair.step;
  result.rank = pair.target.label;
  result.number = pair.target.number.value_or(0);
  result.python = python;
  result.factors = options.factors;
  LoadOptions target_options{.stacks = options.stacks, .stack_json = options.stack_json};
  if (options.first_difference || diagnosed) target_options.communication = &rules.communication;
  LoadOptions golden_options{.stacks = false, .stack_json = {}};
  if (bytes.wanted()) {
    target_options.on_bytes = [&](std::uint64_t count) { bytes.advance(count); };
    golden_options.on_bytes = target_options.on_bytes;
  }
  std::optional<Stage> timed(std::in_place,
                             stage_of(pair, "read: " + pair.target.json + " and " + pair.golden.json));
  if (pair.merged) {
    load_merged(result, pair, target_options, golden_options);
  } else {
    parallel_for(2, [&](std::size_t side) {
      if (side == 0) result.target = load_side(pair.target, target_options);
      if (side == 1) result.golden = load_side(pair.golden, golden_options);
    });
  }
  result.target_construct = std::make_shared<dump::ConstructBeside>(pair.target.json);
  result.golden_construct = std::make_shared<dump::ConstructBeside>(pair.golden.json);
  result.mode = measuring::choose_mode(result.target, result.golden);
  if (result.mode == Mode::md5 && !python.xors_as_written) {
    for (Side* side : {&result.target, &result.golden}) measuring::show_scalar_xors_as_numbers(*side);
  }
  timed.emplace(stage_of(pair, "paired"));
  if (options.first_difference && result.mode == Mode::tensor) result.mode = Mode::statistics;
  measuring::guess_whole_shapes(result);
  if (options.backend) {
    pair_consistent_rows(result, *options.backend);
  } else {
    pair_rows(result, options.match, rules);
  }
  measuring::refuse_missing_ranks(result);
  measuring::settle_joins(result);
  return result;
}

/// Pairs the rows of two code bases by content: equal names are equal by chance there.
void pair_rows_by_content(MeasuredRank& rank) {
  const std::vector<std::uint32_t> partners = diagnosis::partners_by_content(rank);
  std::vector<bool> used(rank.golden.items.size());
  for (Pair& row : rank.rows) {
    if (!row.has_target()) continue;
    const std::uint32_t partner = partners[row.target];
    // Values that are no tensors say nothing.
    const Unmatched alone = rank.target_item(row).is_tensor ? Unmatched::other_code : Unmatched::nothing;
    row = partner == pairing::kNone
              ? Pair{.target = row.target, .reason = alone}
              : Pair{.target = row.target, .golden = partner, .other_name = OtherName::content};
    if (partner != pairing::kNone) used[partner] = true;
  }
  rank.golden_only = static_cast<std::uint64_t>(std::count(used.begin(), used.end(), false));
}

}  // namespace

verdict::RankResult compare_ranks(const RankPair& pair, const RankOptions& options, const PythonRules& python,
                                  const Rules& rules, BytesAhead& bytes, diagnosis::RankHistory* past,
                                  std::vector<MeasuredRows>&& measured) {
  MeasuredRank rank = read_and_pair(pair, options, python, rules, bytes, past != nullptr);
  // The search for the first difference may still change the number of rows.
  if (!options.first_difference && !python.sums_as_recorded) measuring::learn_precision(rank);
  const bool mapped = options.match.method != pairing::Method::exact || options.match.fuzzy;
  if (past != nullptr) {
    dump::join_steps(rank.target.header.training, rank.golden.header.training);
    pairing::align_entries(rank, mapped);
  }
  // Tensors may have their elements in another order, and processes that share work pair tensors by name.
  const bool two_code_bases = past != nullptr && diagnosis::are_two_code_bases(rank);
  const bool by_content = two_code_bases && !mapped && rank.mode == Mode::statistics && !rank.target_joins &&
                          !rank.golden_joins && !options.backend;
  if (by_content) pair_rows_by_content(rank);
  std::optional<measuring::TensorRows> tensors;
  if (rank.mode == Mode::tensor) tensors.emplace(rank, bytes);
  for (MeasuredRows& rows : measured) {
    if (tensors) tensors->take(std::move(rows));
  }
  std::unique_ptr<diagnosis::NoiseFloor> noise;
  if (past != nullptr && pair.noise) noise = diagnosis::noise_floor(*pair.noise, rank.golden, python);
  const auto finish_tensors = [&] {
    if (!tensors) return;
    const Stage stage(stage_of(pair, "tensors measured"));
    tensors->finish(options.print_rows);
  };
  const auto diagnosed = [&] {
    const Stage stage(stage_of(pair, "diagnosed"));
    diagnosis::DiagnosisOptions asked = options.diagnosis;
    asked.two_code_bases = two_code_bases;
    // The inputs of an operation of the merged ranks as a whole were not recorded.
    if (pair.merged) asked.replay = diagnosis::ReplayMode::never;
    return std::make_shared<const diagnosis::RankDiagnosis>(diagnosis::diagnose(
        rank, asked, rules.framework_frames, *past, noise.get(),
        tensors ? [&](std::uint32_t api) { tensors->measure_entry(api); } : diagnosis::MeasureEntry()));
  };
  std::shared_ptr<const diagnosis::RankDiagnosis> diagnosis;
  const bool may_stop = past != nullptr && options.diagnosis.first;
  if (may_stop) {
    diagnosis = diagnosed();
    if (diagnosis->stopped) rank.entries_reached = diagnosis->looked_at;
  }
  finish_tensors();
  verdict::Judgement judgement;
  parallel_for(2, [&](std::size_t which) {
    if (which == 0) {
      judgement = options.first_difference ? verdict::marks_of(rank) : verdict::judge(rank, rules);
    }
    if (which == 1 && past != nullptr && !may_stop) diagnosis = diagnosed();
  });
  // The diagnosis usually pairs items as the rows do, and has counted them already.
  const std::vector<std::uint32_t> partners = measuring::partners_in_rows(rank);
  Coverage coverage = diagnosis && diagnosis->golden_item == partners
                          ? diagnosis->coverage
                          : measuring::coverage_of(rank, partners, rank.entries_reached);
  return {std::move(rank), rules.framework_frames, std::move(judgement), std::move(diagnosis),
          std::move(coverage)};
}

std::string label_of(const RankPair& pair) {
  return pair.step.empty() ? pair.target.label : pair.step + "/" + pair.target.label;
}

SeenBy seen_by(const RankPair& pair) {
  SeenBy seen;
  if (!pair.target.seen || !pair.golden.seen) return seen;
  std::vector<const dump::RankDump*> others = {&pair.golden};
  for (const dump::RankDump& rank : pair.more_targets) others.push_back(&rank);
  for (const dump::RankDump& rank : pair.more_goldens) others.push_back(&rank);
  seen.processes = pair.target.seen->processes;
  for (const dump::RankDump* other : others) {
    seen.processes = processes_in_both(seen.processes, other->seen->processes);
    if (!seen.processes.empty()) continue;
    seen.apart = fmt::format(
        "no process can read both {} (on {}) and {} (on {}): copy one to the machine of the other",
        display(pair.target.json), display(pair.target.seen->host), display(other->json),
        display(other->seen->host));
    return seen;
  }
  return seen;
}

namespace {

std::uint64_t json_bytes(const RankPair& pair) {
  std::uint64_t bytes = 0;
  const auto add = [&](const dump::RankDump& rank) {
    if (rank.seen) {
      bytes += rank.seen->bytes;
      return;
    }
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(rank.json, error);
    if (!error) bytes += size;
  };
  add(pair.target);
  add(pair.golden);
  for (const dump::RankDump& rank : pair.more_targets) add(rank);
  for (const dump::RankDump& rank : pair.more_goldens) add(rank);
  return bytes;
}

}  // namespace

std::vector<std::uint64_t> json_bytes_ahead(const std::vector<RankPair>& pairs) {
  std::vector<std::uint64_t> bytes(pairs.size());
  if (team().hands_out()) std::ranges::transform(pairs, bytes.begin(), json_bytes);
  return bytes;
}

namespace {

/// Steps of a rank that one process compares, each of which continues from the one before.
struct StepChain {
  std::shared_ptr<diagnosis::RankHistory> history = std::make_shared<diagnosis::RankHistory>();
  std::vector<std::uint32_t> processes;  // that see all its steps; empty: all do
  std::size_t number = 0;                // among those of its rank

  /// If no process sees both this step and the earlier ones, the chain begins anew.
  void add(const std::vector<std::uint32_t>& seeing) {
    if (seeing.empty()) return;
    const std::vector<std::uint32_t> all = processes_in_both(processes, seeing);
    if (!processes.empty() && all.empty()) {
      history = std::make_shared<diagnosis::RankHistory>();
      ++number;
    }
    processes = all.empty() ? seeing : all;
  }
};

/// Measures one of `parts` ranges of the rows in tensor mode; does nothing in other modes.
MeasuredRows measure_part(const RankPair& pair, const RankOptions& options, const PythonRules& python,
                          const Rules& rules, BytesAhead& bytes, std::size_t part, std::size_t parts) {
  MeasuredRank rank = read_and_pair(pair, options, python, rules, bytes, false);
  if (rank.mode != Mode::tensor) return {};
  return measuring::TensorRows(rank, bytes).measure_range(part, parts);
}

/// Tensors are most of what the task reads, so many processes may share this work.
void share_tensors(CompareTask& task, const std::shared_ptr<const RankPair>& pair,
                   const std::shared_ptr<std::vector<MeasuredRows>>& measured, const RankOptions& options,
                   const PythonRules& python, const Rules& rules, const std::shared_ptr<BytesAhead>& bytes) {
  if (team().hands_out()) {
    const auto bytes_of = [](const dump::RankDump& rank) {
      return rank.seen ? rank.seen->data_bytes : dump::estimated_data_bytes(rank);
    };
    const std::uint64_t target = bytes_of(pair->target);
    const std::uint64_t golden = bytes_of(pair->golden);
    if (target > 0 && golden > 0) task.parted_bytes = target + golden;
    task.bytes += task.parted_bytes;
  }
  task.compute_part = [pair, &options, &python, &rules, bytes](std::size_t part, std::size_t parts) {
    PacketWriter packet;
    try {
      packet(measure_part(*pair, options, python, rules, *bytes, part, parts));
    } catch (const Error&) {
      return std::string();  // the whole task will report the error
    }
    return packet.take();
  };
  task.take_part = [measured](std::string&& computed) {
    MeasuredRows rows;
    PacketReader packet(computed);
    if (!computed.empty()) packet(rows);
    if (rows.rows > 0) measured->push_back(std::move(rows));
  };
}

}  // namespace

TaskPlan plan_dump_trees(const dump::Tree& target, const dump::Tree& golden, const RankOptions& options,
                         const PythonRules& python, const Rules& rules, Progress* progress) {
  const bool by_itself = !options.merge_ranks && options.diagnosis.wanted && !options.backend &&
                         !options.diagnosis.first && !options.first_difference &&
                         are_parts_of_one(target, golden);
  if (by_itself) {
    log_warning(
        "one side has several ranks, each with a part of what the other's one process has: they are merged, "
        "as with "
        "--merge-ranks");
  }
  RankPairs ranks = options.merge_ranks || by_itself ? pair_merged(target, golden, options.merged)
                                                     : pair_ranks(target, golden);
  for (const std::string& remark : ranks.remarks) log_warning(remark);
  if (!options.diagnosis.noise_floor.empty()) add_noise_floor(ranks, golden, options.diagnosis.noise_floor);
  const std::vector<std::uint64_t> sizes = json_bytes_ahead(ranks.pairs);
  const auto bytes = std::make_shared<BytesAhead>(
      progress, sizes.size(), std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}));
  TaskPlan plan;
  plan.entries = true;
  std::map<std::string, StepChain> chains;  // by rank
  plan.one_sided = std::move(ranks.one_sided);
  for (RankPair& pair : ranks.pairs) {
    CompareTask& task = plan.tasks.emplace_back();
    task.step = pair.step;
    task.rank = pair.target.label;
    task.label = label_of(pair);
    task.bytes = sizes[plan.tasks.size() - 1];
    SeenBy seen = seen_by(pair);
    task.processes = std::move(seen.processes);
    task.unreachable = std::move(seen.apart);
    task.target = pair.target.json;
    task.golden = pair.golden.json;
    if (!pair.step.empty()) task.folder = pair.step + "/";
    if (dump::is_debug_json(pair.target.json)) task.prefix = "debug_";
    if (!task.rank.empty()) task.suffix = "_" + task.rank;
    std::shared_ptr<diagnosis::RankHistory> history;
    if (options.diagnosis.first && !task.prefix.empty())
      throw UsageError("--first needs the entries of a dump.json: values saved by name are not diagnosed");
    if (options.diagnosis.wanted && !options.backend && task.prefix.empty()) {
      StepChain& chain = chains[pair.target.label];
      chain.add(task.processes);
      task.chain = pair.target.label + '\n' + std::to_string(chain.number);
      history = chain.history;
    }
    const auto shared = std::make_shared<const RankPair>(std::move(pair));
    const auto measured = std::make_shared<std::vector<MeasuredRows>>();
    // Rows depend on each other if the comparison may stop early and if ranks are merged.
    if (team().processes() > 1 && !shared->merged && !options.diagnosis.first && !options.first_difference)
      share_tensors(task, shared, measured, options, python, rules, bytes);
    task.run = [shared, measured, history = std::move(history), &options, &python, &rules,
                bytes]() mutable -> std::shared_ptr<const Rows> {
      // The history is not needed after the last step, so it is freed independent of other ranks.
      const std::shared_ptr<diagnosis::RankHistory> past = std::move(history);
      if (past && options.diagnosis.first && past->history.certain) return nullptr;
      if (past) past->history.ends = past.use_count() == 1;
      const auto result = std::make_shared<const verdict::RankResult>(
          compare_ranks(*shared, options, python, rules, *bytes, past.get(), std::move(*measured)));
      if (past && result->mode == Mode::tensor) past->before = result;
      return std::make_shared<RankRows>(result);
    };
  }
  return plan;
}

}  // namespace msprobe::compare

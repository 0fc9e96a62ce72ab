// SPDX-License-Identifier: Apache-2.0
#include "anomaly/analyze.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "anomaly/input.hpp"
#include "anomaly/packets.hpp"
#include "dump/names.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/progress.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

/// Reads all ranks in parallel, each into the `result` of its index. The reason why a rank is broken goes
/// into its `failure`. Throws the error of a single rank, and if all ranks are broken.
template <typename Read, typename Result>
void read_ranks(std::vector<RankInput>& ranks, Progress* progress, Read&& read, Result&& result) {
  std::vector<std::shared_ptr<const ByteSource>> files(ranks.size());
  const auto attempt = [&](std::size_t r, auto&& work) {
    if (!ranks[r].failure.empty()) return;
    try {
      work();
    } catch (const Error& error) {
      if (ranks.size() == 1) throw;
      ranks[r].failure = error.what();
    }
  };
  SharedWork work;
  work.units = "ranks";
  work.progress = progress;
  work.name = [&](std::size_t r) { return display(ranks[r].directory); };
  work.bytes.resize(ranks.size());
  std::uint64_t bytes = 0;
  for (std::size_t r = 0; team().hands_out() && r < ranks.size(); ++r) {
    if (ranks[r].processes.empty()) attempt(r, [&] { files[r] = open_file(ranks[r].json); });
    work.bytes[r] = files[r] ? files[r]->size() : ranks[r].bytes;
    bytes += work.bytes[r];
  }
  for (const RankInput& rank : ranks) {
    work.plan = fingerprint(work.plan, rank.json);
    work.processes.push_back(rank.processes);
  }
  if (progress != nullptr) progress->begin("reading", bytes, "B");
  work.compute = [&](std::size_t r) {
    attempt(r, [&] {
      if (!files[r]) files[r] = open_file(ranks[r].json);
      read(r, *files[r]);
    });
    files[r].reset();
  };
  work.pack = [&](std::size_t r, PacketWriter& packet) { packet(ranks[r].failure, result(r)); };
  work.unpack = [&](std::size_t r, PacketReader& packet) { packet(ranks[r].failure, result(r)); };
  team().share(work);
  if (progress != nullptr) progress->end();
  if (!team().is_root()) return;
  const bool all_failed = !ranks.empty() && std::ranges::all_of(ranks, [](const RankInput& rank) {
    return !rank.failure.empty();
  });
  if (all_failed) throw FormatError(ranks[0].failure + " (and no other rank could be read)");
}

std::string rank_text(std::int64_t number) {
  return "rank " + std::to_string(number);
}

std::string step_text(const Analysis& analysis) {
  return analysis.step.empty() ? "" : display(analysis.step) + " ";
}

/// The entries of a rank whose details are needed, and the details found there.
struct Wanted {
  std::size_t rank = 0;
  std::vector<ScannedEntry> places;
  std::vector<RootDetails> details;
  std::vector<std::string> problems;
};

/// The entries of all roots, by rank. Only the root process of the job knows them.
std::vector<Wanted> wanted_of(const Analysis& analysis) {
  std::map<std::size_t, Wanted> by_rank;
  for (const AnomalyRoot& root : analysis.roots) by_rank[root.rank].places.push_back(root.entry);
  std::vector<Wanted> wanted;
  for (auto& [rank, one] : by_rank) {
    one.rank = rank;
    wanted.push_back(std::move(one));
  }
  return wanted;
}

/// The process that can read a rank reads the details of that rank.
void add_details(Analysis& analysis, const Tell& tell) {
  std::vector<Wanted> wanted = wanted_of(analysis);
  std::mutex mutex;
  std::map<std::size_t, Wanted> learned;
  const auto slot = [&](std::size_t unit) -> Wanted& {
    if (team().hands_out()) return wanted[unit];
    const std::lock_guard lock(mutex);
    return learned[unit];
  };
  SharedWork work;
  work.units = "ranks";
  work.name = [&](std::size_t unit) { return display(analysis.ranks[wanted[unit].rank].directory); };
  work.bytes.resize(wanted.size());
  for (const Wanted& one : wanted) work.processes.push_back(analysis.ranks[one.rank].processes);
  work.brief = [&](std::size_t unit, PacketWriter& packet) {
    packet(wanted[unit].rank, wanted[unit].places);
  };
  work.learn = [&](std::size_t unit, PacketReader& packet) {
    packet(slot(unit).rank, slot(unit).places);
    if (slot(unit).rank >= analysis.ranks.size()) refuse_packet();
  };
  work.compute = [&](std::size_t unit) {
    Wanted& one = slot(unit);
    one.details = read_details(analysis.ranks[one.rank], one.places, one.problems);
  };
  work.pack = [&](std::size_t unit, PacketWriter& packet) {
    packet(slot(unit).details, slot(unit).problems);
  };
  work.unpack = [&](std::size_t unit, PacketReader& packet) {
    packet(slot(unit).details, slot(unit).problems);
  };
  team().share(work);
  analysis.details.resize(analysis.roots.size());
  std::vector<std::size_t> taken(wanted.size());
  for (std::size_t i = 0; i < analysis.roots.size(); ++i) {
    const auto of_rank = std::ranges::lower_bound(wanted, analysis.roots[i].rank, {}, &Wanted::rank);
    std::size_t& next = taken[static_cast<std::size_t>(of_rank - wanted.begin())];
    analysis.details[i] = std::move(of_rank->details[next++]);
  }
  for (const Wanted& one : wanted) {
    for (const std::string& problem : one.problems) tell(Remark::warning, problem);
  }
}

/// Explains why a rank has no value to judge by. `reads_raised`: the search also reads is_nan.
std::string why_not_judged(std::uint32_t entries, std::string_view task, bool reads_raised) {
  if (entries == 0) return "has no dump data";
  if (task == "structure")
    return "was recorded with task structure, which has no values: nothing can be found in it; record with "
           "task statistics";
  if (task == "nan_check" && !reads_raised)
    return "was recorded with task nan_check, which has no Max or Min to judge by";
  if (task == "nan_check")
    return "was recorded with task nan_check, and its dump does not record whether any entry raised NaN or "
           "Inf (is_nan)";
  return fmt::format("has no Max or Min in any of its {} entries, as with summary_mode md5", entries);
}

void note_not_judged(Analysis& analysis, const RankInput& rank, std::uint32_t entries,
                     const Coverage& coverage, std::string_view task, bool reads_raised) {
  analysis.coverage.add(coverage);
  if (!rank.failure.empty() || coverage.compared > 0) return;
  analysis.not_judged.push_back(step_text(analysis) + rank_text(rank.number) + ' ' +
                                why_not_judged(entries, task, reads_raised));
}

/// Warns about entries of task nan_check that were not checked: a clean result says nothing about them.
void warn_of_task(const RankInput& rank, const Tell& tell) {
  const RankScan& scan = rank.scan;
  if (scan.header.task != "nan_check" || scan.checked_entries == 0 || scan.checked_entries == scan.entries)
    return;
  tell(Remark::warning, rank_text(rank.number) + ": for " +
                            std::to_string(scan.entries - scan.checked_entries) + " of " +
                            std::to_string(scan.entries) +
                            " entries the dump does not record whether they raised NaN or Inf (is_nan)");
}

void warn_of_listed_task(std::int64_t rank, const std::string& task, const Tell& tell) {
  if (task != "nan_check") return;
  tell(Remark::warning, rank_text(rank) +
                            " was recorded with task nan_check, which has no values to list by; without "
                            "--levels or --statistics, the entries that raised NaN or Inf are listed");
}

/// Are all bad values in the entry's output -inf, as masks and log(0) make them?
bool gives_minus_infinity(const dump::Entry& entry) {
  const dump::Entry::Index output = entry.find(0, "output");
  if (output == dump::Entry::kNone) return false;
  bool only = true;
  each_bad(entry, output, [&](dump::Entry::Index item) {
    for (const dump::Entry::Index value : entry.find_all<2>(item, {"Max", "Min"})) {
      const Bad bad = value == dump::Entry::kNone ? Bad{0} : dump::bad_statistic(entry, value);
      only = only && (bad == 0 || (bad == kInf && entry.text(value).starts_with('-')));
    }
  });
  return only;
}

/// Removes the roots for which `harmless(root, details)` is true.
template <typename Harmless>
void leave_out(Analysis& analysis, const Harmless& harmless) {
  std::vector<AnomalyRoot> roots;
  std::vector<RootDetails> details;
  for (std::size_t i = 0; i < analysis.roots.size(); ++i) {
    if (harmless(analysis.roots[i], analysis.details[i])) continue;
    roots.push_back(analysis.roots[i]);
    details.push_back(analysis.details[i]);
  }
  analysis.roots = std::move(roots);
  analysis.details = std::move(details);
}

/// Removes roots of -inf that softmax or a cast ended: they are harmless.
void leave_out_contained(Analysis& analysis, const Tell& tell) {
  leave_out(analysis, [&](const AnomalyRoot& root, const RootDetails& details) {
    if (!root.contained || !gives_minus_infinity(details.entry)) return false;
    tell(Remark::progress,
         fmt::format("{}{}: {} produces -inf from clean inputs, as masks do; it spreads no further",
                     step_text(analysis), rank_text(analysis.ranks[root.rank].number),
                     display(root.entry.name)));
    return true;
  });
}

/// Did gradients of float16 overflow because the loss was scaled? The scaler then skips the step and reduces
/// the scale. A scale that has come down to 1 is no explanation.
bool is_skipped(const RankScan& scan) {
  const auto& scaling = scan.header.training.loss_scale;
  return scaling && scaling->skipped && scaling->scale > 1 && scan.bad_gradient &&
         scan.bad_gradient->overflow && !scan.nan_in_forward;
}

void leave_out_skipped(Analysis& analysis, const Tell& tell) {
  std::set<std::size_t> told;
  leave_out(analysis, [&](const AnomalyRoot& root, const RootDetails& details) {
    const RankInput& rank = analysis.ranks[root.rank];
    const auto name = dump::parse_entry_name(root.entry.name);
    if (!is_skipped(rank.scan) || !name) return false;
    // A forward entry explains bad gradients unless all it makes is -inf, as a mask does.
    if (name->direction == dump::Direction::forward && !gives_minus_infinity(details.entry)) return false;
    if (told.insert(root.rank).second) {
      tell(Remark::progress,
           fmt::format(
               "{}{}: gradients overflow from {} on, as the loss is scaled by {:g}; the scaler skips this "
               "step. If that goes on while the scale falls, an operation is to blame",
               step_text(analysis), rank_text(rank.number), display(rank.scan.bad_gradient->place.name),
               rank.scan.header.training.loss_scale->scale));
    }
    return true;
  });
}

void analyze_step(Analysis& analysis, const AnalyzeOptions& options, const AnomalyRules& rules,
                  Progress* progress, const Tell& tell) {
  std::vector<RankInput>& ranks = analysis.ranks;
  if (options.listing != AnomalyListing::none) {
    analysis.findings.resize(ranks.size());
    read_ranks(
        ranks, progress,
        [&](std::size_t r, const ByteSource& file) {
          analysis.findings[r] = list_entries(file, options.listing, rules);
          if (progress != nullptr) progress->advance(file.size());
        },
        [&](std::size_t r) -> EntryFindings& { return analysis.findings[r]; });
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const EntryFindings& found = analysis.findings[r];
      warn_of_listed_task(ranks[r].number, found.task, tell);
      note_not_judged(analysis, ranks[r], found.entries, found.coverage, found.task, false);
    }
    return;
  }
  std::function<void(std::uint64_t)> on_bytes;
  if (progress != nullptr) on_bytes = [progress](std::uint64_t bytes) { progress->advance(bytes); };
  read_ranks(
      ranks, progress,
      [&](std::size_t r, const ByteSource& file) { ranks[r].scan = scan_rank(file, rules, on_bytes); },
      [&](std::size_t r) -> RankScan& { return ranks[r].scan; });
  if (!team().is_root()) return add_details(analysis, tell);
  for (const RankInput& rank : ranks) {
    if (rank.failure.empty()) warn_of_task(rank, tell);
  }
  analysis.roots = search_roots(ranks, rules, options.all, tell);
  for (const RankInput& rank : ranks) {
    const RankScan& each = rank.scan;
    note_not_judged(analysis, rank, each.entries, each.coverage, each.header.task, true);
  }
  add_details(analysis, tell);
  leave_out_skipped(analysis, tell);
  leave_out_contained(analysis, tell);
}

}  // namespace

bool Analysis::anomaly() const {
  return fault() || !roots.empty();
}

bool Analysis::fault() const {
  return std::ranges::any_of(roots, [](const AnomalyRoot& root) { return !root.contained; }) ||
         std::ranges::any_of(findings, [](const EntryFindings& rank) { return !rank.found.empty(); });
}

Analysis analyze(const AnalyzeOptions& options, const AnomalyRules& rules, Progress* progress,
                 const Tell& tell) {
  std::vector<StepInput> steps = resolve_input(options.input, options.local);
  Analysis analysis;
  std::optional<Analysis> mask;  // the first step whose only roots may be masks
  bool failed = false;
  std::vector<std::string> not_judged;
  Coverage coverage;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    analysis = Analysis();
    analysis.step = steps[s].label;
    analysis.steps_before = s;
    analysis.with_path = options.all;
    analysis.ranks = std::move(steps[s].ranks);
    if (!analysis.step.empty()) tell(Remark::detail, "Step " + display(analysis.step));
    analyze_step(analysis, options, rules, progress, tell);
    if (!team().is_root()) continue;  // only the root process knows whether another step follows
    for (const RankInput& rank : analysis.ranks) {
      if (rank.failure.empty()) continue;
      tell(Remark::warning, "rank " + std::to_string(rank.number) + " left out: " + rank.failure);
      failed = true;
    }
    std::ranges::move(analysis.not_judged, std::back_inserter(not_judged));
    coverage.add(analysis.coverage);
    if (analysis.fault()) break;
    if (analysis.anomaly() && !mask) mask = std::exchange(analysis, {});
  }
  if (mask && !analysis.fault()) analysis = *std::move(mask);
  analysis.failed = failed;
  analysis.not_judged = std::move(not_judged);
  analysis.coverage = std::move(coverage);
  return analysis;
}

}  // namespace msprobe::anomaly

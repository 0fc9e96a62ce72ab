// SPDX-License-Identifier: Apache-2.0
#include "anomaly/analyze.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "anomaly/input.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

/// Reads all ranks in parallel. A broken rank keeps its reason, unless all are, or one stops the analysis.
template <typename Read>
void read_ranks(std::vector<RankInput>& ranks, const Traits& traits, Progress* progress, Read&& read) {
  std::vector<std::shared_ptr<const ByteSource>> files(ranks.size());
  const auto attempt = [&](std::size_t r, auto&& work) {
    if (!ranks[r].failure.empty()) return;
    try {
      work();
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      if (traits.stops_at_broken_rank || ranks.size() == 1) throw;
      ranks[r].failure = error.what();
    }
  };
  std::uint64_t bytes = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    attempt(r, [&] { files[r] = open_file(ranks[r].json); });
    if (files[r]) bytes += files[r]->size();
  }
  if (progress != nullptr) progress->begin("reading", bytes, "B");
  // The largest first, so that no thread is left alone with one at the end.
  std::vector<std::size_t> order(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) order[r] = r;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return (files[a] ? files[a]->size() : 0) > (files[b] ? files[b]->size() : 0);
  });
  parallel_for(ranks.size(), [&](std::size_t i) {
    const std::size_t r = order[i];
    attempt(r, [&] { read(r, *files[r]); });
    files[r].reset();
  });
  if (progress != nullptr) progress->end();
  const bool all_failed =
      !ranks.empty() &&
      std::all_of(ranks.begin(), ranks.end(), [](const RankInput& rank) { return !rank.failure.empty(); });
  if (all_failed) throw FormatError(ranks[0].failure + " (and no other rank could be read)");
}

void require_files(const std::vector<RankInput>& ranks) {
  for (const RankInput& rank : ranks) {
    for (const char* name : {"dump.json", "construct.json", "stack.json"}) {
      const std::string path = rank.directory + "/" + name;
      std::error_code error;
      if (!std::filesystem::exists(path, error))
        throw IoError(display(path), "The file path does not exist.");
    }
  }
}

void check_framework(const std::vector<RankInput>& ranks) {
  if (ranks.empty() || ranks[0].scan.header.framework == "pytorch") return;
  throw FormatError(display(ranks[0].json),
                    "overflow check is only available for PyTorch, though the data is stored in a different "
                    "framework.");
}

void add_details(Analysis& analysis, const Tell& tell) {
  std::map<std::size_t, std::vector<std::size_t>> by_rank;
  for (std::size_t i = 0; i < analysis.roots.size(); ++i) by_rank[analysis.roots[i].rank].push_back(i);
  analysis.details.resize(analysis.roots.size());
  std::vector<std::size_t> ranks;
  for (const auto& [rank, roots] : by_rank) ranks.push_back(rank);
  std::vector<std::vector<std::string>> problems(ranks.size());
  parallel_for(ranks.size(), [&](std::size_t k) {
    const std::vector<std::size_t>& indices = by_rank.at(ranks[k]);
    std::vector<const Root*> roots;
    for (const std::size_t i : indices) roots.push_back(&analysis.roots[i]);
    std::vector<RootDetails> details =
        read_details(analysis.ranks[ranks[k]], roots, analysis.traits, problems[k]);
    for (std::size_t j = 0; j < indices.size(); ++j) analysis.details[indices[j]] = std::move(details[j]);
  });
  for (const std::vector<std::string>& one : problems) {
    for (const std::string& problem : one) tell(Remark::warning, problem);
  }
}

void analyze_step(Analysis& analysis, const AnalyzeOptions& options, const Rules& rules, Progress* progress,
                  const Tell& tell) {
  std::vector<RankInput>& ranks = analysis.ranks;
  const Traits& traits = options.traits;
  if (traits.needs_all_files) require_files(ranks);
  if (options.listing != Listing::none) {
    analysis.findings.resize(ranks.size());
    read_ranks(ranks, traits, progress, [&](std::size_t r, const ByteSource& file) {
      analysis.findings[r] = list_entries(file, options.listing, rules);
      if (progress != nullptr) progress->advance(file.size());
    });
    return;
  }
  ScanOptions scan;
  scan.traits = traits;
  if (progress != nullptr) scan.on_bytes = [progress](std::uint64_t bytes) { progress->advance(bytes); };
  read_ranks(ranks, traits, progress,
             [&](std::size_t r, const ByteSource& file) { ranks[r].scan = scan_rank(file, rules, scan); });
  if (traits.pytorch_only) check_framework(ranks);
  if (traits.search_by_rank) {
    analysis.roots = search_as_python(ranks, tell);
  } else {
    for (const RankInput& rank : ranks) {
      if (rank.failure.empty() && rank.scan.entries == 0)
        tell(Remark::warning, "Rank " + std::to_string(rank.number) + " has no dump data!");
      if (rank.failure.empty() && rank.scan.header.task == "structure") {
        tell(Remark::warning,
             "rank " + std::to_string(rank.number) +
                 " was recorded with task structure, which has no values: nothing can be found in it; "
                 "record with task statistics");
      }
    }
    analysis.roots = search_roots(ranks, rules, options.all, tell);
  }
  add_details(analysis, tell);
}

}  // namespace

bool Analysis::anomaly() const {
  return !roots.empty() || std::any_of(findings.begin(), findings.end(),
                                       [](const RankFindings& rank) { return !rank.found.empty(); });
}

Analysis analyze(const AnalyzeOptions& options, const Rules& rules, Progress* progress, const Tell& tell) {
  std::vector<StepInput> steps = resolve_input(options.input, options.traits);
  Analysis analysis;
  bool failed = false;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    analysis = Analysis();
    analysis.step = steps[s].label;
    analysis.steps_before = s;
    analysis.traits = options.traits;
    analysis.with_path = options.all;
    analysis.ranks = std::move(steps[s].ranks);
    if (!analysis.step.empty()) tell(Remark::detail, "Step " + display(analysis.step));
    analyze_step(analysis, options, rules, progress, tell);
    for (const RankInput& rank : analysis.ranks) {
      if (rank.failure.empty()) continue;
      tell(Remark::warning, "rank " + std::to_string(rank.number) + " left out: " + rank.failure);
      failed = true;
    }
    if (analysis.anomaly()) break;
  }
  analysis.failed = failed;
  return analysis;
}

}  // namespace msprobe::anomaly

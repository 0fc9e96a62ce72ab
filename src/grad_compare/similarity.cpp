// SPDX-License-Identifier: Apache-2.0
#include "grad_compare/similarity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <unordered_set>
#include <utility>

#include "formats/npy.hpp"
#include "sheets/csv_rows.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/file_name.hpp"
#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::grad_compare {
namespace {

constexpr std::size_t kMostGaps = 20;  // lines that report them; the rest is counted
constexpr std::size_t kMostParameters = 1'000'000;

/// The folders `<word><number>` in a folder.
std::map<std::uint64_t, std::string> numbered_folders(const std::string& folder, std::string_view word) {
  std::map<std::uint64_t, std::string> found;
  for (const std::string& name : names_in(folder, WhichNames::folders)) {
    if (!name.starts_with(word)) continue;
    const auto number = whole_number<std::uint64_t>(std::string_view(name).substr(word.size()));
    if (number) found.emplace(*number, folder + "/" + name);
  }
  return found;
}

using Folders = std::map<std::uint64_t, std::string>;

std::vector<std::uint64_t> common(const Folders& first, const Folders& second) {
  std::vector<std::uint64_t> both;
  for (const auto& [number, path] : first) {
    if (second.contains(number)) both.push_back(number);
  }
  return both;
}

class Gaps {
 public:
  void add(std::string line) {
    if (lines_.size() < kMostGaps) return lines_.push_back(std::move(line));
    ++more_;
  }
  /// Reports numbers that one side lacks.
  void add_one_sided(std::string_view what, const Folders& first, const Folders& second) {
    for (const auto& [side, other] : {std::pair(&first, &second), std::pair(&second, &first)}) {
      for (const auto& [number, path] : *side) {
        if (!other->contains(number))
          add(fmt::format("{}: the other side has no {}{}", display(path), what, number));
      }
    }
  }
  std::vector<std::string> take() {
    if (more_ != 0) lines_.push_back(fmt::format("and {} more of that kind", human_count(more_)));
    return std::move(lines_);
  }

 private:
  std::vector<std::string> lines_;
  std::uint64_t more_ = 0;
};

/// The parameters of grad_summary_<step>.csv, in its order.
std::vector<std::string> parameters_of(const std::string& path) {
  const auto file = open_file(path);
  sheets::CsvRows rows(*file);
  std::vector<std::string> fields;
  if (!rows.next(fields) || fields.empty() || fields.front() != "param_name")
    throw FormatError(display(path), "is not a summary of gradients: its first column is not param_name");
  std::vector<std::string> names;
  while (rows.next(fields)) {
    if (names.size() == kMostParameters)
      throw FormatError(display(path), "names more than 1000000 parameters");
    names.push_back(fields.front());
  }
  return names;
}

/// One step of one rank, as its two folders.
struct StepPair {
  std::uint64_t step = 0;
  std::string first;
  std::string second;
};

formats::StoredTensor open_signs(const std::string& folder, const std::string& parameter) {
  formats::StoredTensor signs = formats::open_npy(open_file_beneath(folder, file_name(parameter, "npy")));
  if (signs.dtype != tensor::DType::boolean)
    throw FormatError(display(signs.storage->name()), "holds no signs: its elements are not booleans");
  return signs;
}

EqualShare compare_elements(const formats::StoredTensor& first, const formats::StoredTensor& second) {
  constexpr std::size_t kAtOnce = std::size_t{64} << 10;
  std::vector<std::byte> a(kAtOnce);
  std::vector<std::byte> b(kAtOnce);
  formats::ElementReader from_first(first);
  formats::ElementReader from_second(second);
  EqualShare share;
  while (from_first.remaining() > 0) {
    check_interrupt();
    const auto count = std::min(kAtOnce, static_cast<std::size_t>(from_first.remaining()));
    from_first.read(std::span(a.data(), count));
    from_second.read(std::span(b.data(), count));
    std::uint64_t equal = 0;
    for (std::size_t i = 0; i < count; ++i) equal += (a[i] != std::byte{0}) == (b[i] != std::byte{0});
    share.equal += equal;
    share.total += count;
  }
  return share;
}

/// Reports steps that a summary names but for which neither side has signs.
void add_steps_without_signs(const std::string& rank, const Folders& first, const Folders& second,
                             Gaps& gaps) {
  constexpr std::string_view kBegin = "grad_summary_";
  constexpr std::string_view kEnd = ".csv";
  for (const std::string& name : names_in(rank, WhichNames::regular_files)) {
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    const std::string_view number =
        std::string_view(name).substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
    const auto step = whole_number<std::uint64_t>(number);
    if (step && !first.contains(*step) && !second.contains(*step))
      gaps.add(fmt::format("{}/{}: there is no step{} with signs", display(rank), display(name), *step));
  }
}

/// Reports files of signs that no summary names.
void add_unnamed_signs(const StepPair& step, const std::vector<std::string>& parameters, Gaps& gaps) {
  std::unordered_set<std::string> named;
  for (const std::string& parameter : parameters) named.insert(file_name(parameter, "npy"));
  for (const std::string& folder : {step.first, step.second}) {
    for (const std::string& name : names_in(folder, WhichNames::regular_files)) {
      if (name.ends_with(".npy") && !named.contains(name))
        gaps.add(fmt::format("{}/{}: no summary names it", display(folder), display(name)));
    }
  }
}

/// A share, or the reason why it is missing.
struct Compared {
  std::optional<EqualShare> share;
  std::string gap;
};

Compared compare_parameter(const StepPair& step, const std::string& parameter) {
  try {
    const formats::StoredTensor first = open_signs(step.first, parameter);
    const formats::StoredTensor second = open_signs(step.second, parameter);
    if (first.shape != second.shape)
      throw FormatError(display(first.storage->name()), "has a different shape on the other side");
    return {compare_elements(first, second), {}};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

/// The parameters of both sides in all steps: in the order of the first side's summaries, then those that
/// only the second side names.
std::vector<std::string> all_parameters(const std::vector<StepPair>& steps, const std::string& first_rank,
                                        const std::string& second_rank) {
  std::vector<std::string> names;
  std::unordered_set<std::string> known;
  for (const std::string* rank : {&first_rank, &second_rank}) {
    for (const StepPair& step : steps) {
      for (std::string& name : parameters_of(fmt::format("{}/grad_summary_{}.csv", *rank, step.step))) {
        if (known.insert(name).second) names.push_back(std::move(name));
      }
    }
  }
  return names;
}

RankSimilarity compare_rank(std::uint64_t number, const std::string& first_rank,
                            const std::string& second_rank, Gaps& gaps, Progress* progress) {
  RankSimilarity result;
  result.rank = number;
  const Folders first = numbered_folders(first_rank, "step");
  const Folders second = numbered_folders(second_rank, "step");
  gaps.add_one_sided("step", first, second);
  std::vector<StepPair> steps;
  for (const std::uint64_t step : common(first, second))
    steps.push_back({step, first.at(step), second.at(step)});
  if (steps.empty()) {
    gaps.add(fmt::format("{}: no step has signs of gradients on both sides; grad_level L1 and L2 record them",
                         display(first_rank)));
    return result;
  }
  result.parameters = all_parameters(steps, first_rank, second_rank);
  for (const std::string* rank : {&first_rank, &second_rank})
    add_steps_without_signs(*rank, first, second, gaps);
  for (const StepPair& step : steps) add_unnamed_signs(step, result.parameters, gaps);
  const std::size_t count = result.parameters.size();
  std::vector<Compared> compared(count * steps.size());
  if (progress != nullptr) progress->begin(fmt::format("rank{}", number), compared.size(), "gradients");
  parallel_for(compared.size(), [&](std::size_t i) {
    compared[i] = compare_parameter(steps[i % steps.size()], result.parameters[i / steps.size()]);
    if (progress != nullptr) progress->advance();
  });
  for (const StepPair& step : steps) result.steps.push_back(step.step);
  result.summary.resize(steps.size());
  result.shares.resize(count);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    if (compared[i].share) {
      result.summary[i % steps.size()].equal += compared[i].share->equal;
      result.summary[i % steps.size()].total += compared[i].share->total;
    } else {
      gaps.add(std::move(compared[i].gap));
    }
    result.shares[i / steps.size()].push_back(compared[i].share);
  }
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const bool told = std::ranges::any_of(
        result.shares, [&](const std::vector<std::optional<EqualShare>>& shares) { return !shares[step]; });
    if (result.summary[step].total == 0 && !told)
      gaps.add(fmt::format("{}/step{}: no gradient has an element", display(first_rank), steps[step].step));
  }
  return result;
}

SuspectStep suspect_at(const RankSimilarity& rank, std::size_t step) {
  SuspectStep suspect{rank.rank, rank.steps[step], rank.summary[step].value(), {}, {}, 0};
  for (std::size_t i = 0; i < rank.parameters.size(); ++i) {
    const std::optional<EqualShare>& share = rank.shares[i][step];
    if (!share || share->total == 0) continue;
    if (!suspect.parameter.empty() && share->value() >= suspect.least) continue;
    suspect.parameter = rank.parameters[i];
    suspect.least = share->value();
  }
  return suspect;
}

void find_suspects(const RankSimilarity& rank, std::vector<SuspectStep>& suspects) {
  std::optional<double> before;
  for (std::size_t step = 0; step < rank.steps.size(); ++step) {
    if (rank.summary[step].total == 0) continue;  // nothing was compared, as the gaps report
    const double now = rank.summary[step].value();
    const bool sinks = now < kLeast && (!before || *before >= kLeast);
    const bool falls = before && now < *before - kLargestFall;
    if (sinks || falls) {
      suspects.push_back(suspect_at(rank, step));
      suspects.back().before = before;
    }
    before = now;
  }
}

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", human_count(count), count == 1 ? one : many);
}

}  // namespace

Coverage coverage_of(const Similarity& similarity) {
  Coverage coverage;
  for (const RankSimilarity& rank : similarity.ranks) {
    for (const auto& steps : rank.shares) {
      for (const std::optional<EqualShare>& share : steps) {
        if (share && share->total > 0) {
          ++coverage.compared;
        } else {
          coverage.miss("there are no signs on both sides", rank.parameters[&steps - rank.shares.data()]);
        }
      }
    }
  }
  return coverage;
}

bool all_equal(const Similarity& similarity) {
  return std::ranges::all_of(similarity.ranks, [](const RankSimilarity& rank) {
    return std::ranges::all_of(rank.summary,
                               [](const EqualShare& share) { return share.equal == share.total; });
  });
}

Similarity compare_signs(const std::string& first, const std::string& second, Progress* progress) {
  const Folders first_ranks = numbered_folders(first, "rank");
  const Folders second_ranks = numbered_folders(second, "rank");
  for (const auto& [path, ranks] : {std::pair(&first, &first_ranks), std::pair(&second, &second_ranks)}) {
    if (ranks->empty()) throw FormatError(display(*path), "has no folder rank<N> of a gradient probe");
  }
  Similarity result;
  Gaps gaps;
  gaps.add_one_sided("rank", first_ranks, second_ranks);
  bool any = false;
  for (const std::uint64_t rank : common(first_ranks, second_ranks)) {
    RankSimilarity one = compare_rank(rank, first_ranks.at(rank), second_ranks.at(rank), gaps, progress);
    any = any || std::ranges::any_of(one.summary, [](const EqualShare& share) { return share.total != 0; });
    find_suspects(one, result.suspects);
    result.ranks.push_back(std::move(one));
  }
  if (progress != nullptr) progress->end();
  result.gaps = gaps.take();
  if (!any)
    throw FormatError(
        display(first) + " and " + display(second),
        "the two sides have no gradient in common" + (result.gaps.empty() ? "" : ": " + result.gaps.front()));
  return result;
}

std::string sentence(const SuspectStep& suspect) {
  std::string text = fmt::format("rank {}, step {}: {} of all signs are equal, {}; ", suspect.rank,
                                 suspect.step, short_number(suspect.similarity, 4),
                                 suspect.before ? short_number(*suspect.before, 4) + " one step before"
                                                : fmt::format("below {} at the first step", kLeast));
  return text +
         fmt::format("{} agrees least: {}", display(suspect.parameter), short_number(suspect.least, 4));
}

std::string headline(const Similarity& similarity) {
  std::size_t steps = 0;
  for (const RankSimilarity& rank : similarity.ranks) steps = std::max(steps, rank.steps.size());
  const std::string what =
      fmt::format("gradient signs of {} over {}", counted(similarity.ranks.size(), "rank", "ranks"),
                  counted(steps, "step", "steps"));
  const bool whole = similarity.gaps.empty();
  std::string outcome = "no step is suspect";
  if (!similarity.suspects.empty())
    outcome = counted(similarity.suspects.size(), "step is suspect", "steps are suspect");
  else if (all_equal(similarity))
    outcome = whole ? "all are equal" : "all that were compared are equal";
  if (!whole) outcome += ", but not all could be compared";
  return what + ": " + outcome;
}

}  // namespace msprobe::grad_compare

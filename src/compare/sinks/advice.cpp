// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dump/names.hpp"
#include "dump/side.hpp"
#include "pairing/names.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using pairing::MatchOptions;
using pairing::Method;
using pairing::Unmatched;
using verdict::RankResult;

/// If fewer than this share of the rows lack a partner, advice is not needed.
constexpr double kManyRows = 0.1;
/// An explanation holds if it is true for this share of the entries.
constexpr double kMostEntries = 0.5;
constexpr int kRootParts = 3;  // a renamed root has at most this many path elements

/// Names of the entries that have no partner at all.
struct LooseNames {
  std::vector<std::string_view> target;
  std::vector<std::string_view> golden;
};

LooseNames loose_entries(const RankResult& result) {
  const PairedEntries paired = paired_entries(result);
  const auto names = [](const dump::Side& side, const std::vector<bool>& used) {
    std::vector<std::string_view> list;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i] && side.apis[i].count > 0) list.push_back(side.text(side.apis[i].name));
    }
    return list;
  };
  return {names(result.target, paired.target), names(result.golden, paired.golden)};
}

double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

bool are_modules(const std::vector<std::string_view>& names) {
  const auto modules = std::ranges::count_if(
      names, [](std::string_view name) { return name.starts_with("Module.") || name.starts_with("Cell."); });
  return share(static_cast<std::size_t>(modules), names.size()) > kMostEntries;
}

/// True if most of the entries would have a partner without their call numbers.
bool only_call_numbers_differ(const LooseNames& loose) {
  std::unordered_set<std::string> golden;
  for (const std::string_view name : loose.golden) golden.insert(pairing::without_call(name));
  const auto found = std::ranges::count_if(
      loose.target, [&](std::string_view name) { return golden.contains(pairing::without_call(name)); });
  return share(static_cast<std::size_t>(found), loose.target.size()) > kMostEntries;
}

/// Splits the path of a module after `Module.` before its n-th element, for each n up to kRootParts.
template <typename Visit>
void each_root(std::string_view name, Visit&& visit) {
  if (!name.starts_with("Module.") && !name.starts_with("Cell.")) return;
  const std::size_t begin = name.find('.') + 1;
  std::size_t at = begin;
  for (int n = 0; n <= kRootParts; ++n) {
    // The rest must be a module: name, class, direction, call.
    if (std::count(name.begin() + static_cast<std::ptrdiff_t>(at), name.end(), '.') < 3) return;
    visit(name.substr(begin, at - begin), name.substr(at));
    at = name.find('.', at);
    if (at == std::string_view::npos) return;
    ++at;
  }
}

using Root = std::pair<std::string_view, std::string_view>;

/// The path before the modules' names on both sides, if most modules pair under another root.
std::optional<Root> renamed_root(const LooseNames& loose) {
  std::unordered_map<std::string_view, std::string_view> roots;  // the path after a root -> the root
  for (const std::string_view name : loose.golden)
    each_root(name, [&](std::string_view root, std::string_view rest) { roots.emplace(rest, root); });
  std::map<Root, std::size_t> counts;
  for (const std::string_view name : loose.target) {
    bool counted = false;
    each_root(name, [&](std::string_view root, std::string_view rest) {
      const auto found = counted ? roots.end() : roots.find(rest);
      if (found == roots.end() || found->second == root) return;
      counted = true;
      ++counts[{root, found->second}];
    });
  }
  const auto most = std::ranges::find_if(
      counts, [&](const auto& one) { return share(one.second, loose.target.size()) > kMostEntries; });
  return most == counts.end() ? std::nullopt : std::optional(most->first);
}

Advice advice_of(Advice::Cause cause, std::string_view option = {}, std::string_view target = {},
                 std::string_view golden = {}) {
  return {cause, option, std::string(target), std::string(golden), 0, 0};
}

/// Finds the cause and a helpful option; nothing if every entry has a partner.
std::optional<Advice> explained(const RankResult& result, const MatchOptions& options) {
  using enum Advice::Cause;
  const std::string& level = result.target.header.level;
  const std::string& golden_level = result.golden.header.level;
  const bool part_of_one = level == "mix" || golden_level == "mix";
  if (!level.empty() && !golden_level.empty() && level != golden_level && !part_of_one)
    return advice_of(levels, {}, level, golden_level);
  const LooseNames loose = loose_entries(result);
  if (loose.target.empty()) return std::nullopt;
  if (result.target.header.is_mindspore() != result.golden.header.is_mindspore()) {
    const bool exact = options.method == Method::exact;
    const bool by_names = options.method == Method::api || options.method == Method::cell;
    if (level == "mix" && golden_level == "mix" && (exact || by_names)) return advice_of(operations, "-lm");
    if (exact) return are_modules(loose.target) ? advice_of(modules, "-cm") : advice_of(operations, "-am");
  }
  if (!options.fuzzy && only_call_numbers_differ(loose)) {
    const bool names_rows = options.method == Method::data || options.method == Method::layer;
    return advice_of(call_numbers, names_rows ? "" : "-fm");
  }
  if (const auto root_names = renamed_root(loose))
    return advice_of(root, "--suggest-mapping", root_names->first, root_names->second);
  if (level != golden_level && part_of_one) return advice_of(part_of_mix, {}, level, golden_level);
  if (loose.golden.empty()) return advice_of(nothing_left);
  return advice_of(names, "--suggest-mapping");
}

std::string words(const Advice& advice) {
  const auto shown = [](std::string_view path) {
    return path.empty() ? std::string("nothing") : "'" + display(path) + "'";
  };
  const std::string levels = fmt::format("the dumps have different levels ({} and {})",
                                         display(advice.target), display(advice.golden));
  switch (advice.cause) {
    case Advice::Cause::levels:
      return levels + "; dump both at one level, or one at mix";
    case Advice::Cause::operations:
      return fmt::format(
          "the dumps are from different frameworks, which name operations differently; {} pairs {}",
          advice.option, advice.option == "-lm" ? "them by their position in the model" : "them");
    case Advice::Cause::modules:
      return fmt::format(
          "the dumps are from different frameworks, which name modules differently; {} pairs them",
          advice.option);
    case Advice::Cause::call_numbers:
      return std::string("the call numbers differ; ") +
             (advice.option.empty() ? "check the mapping" : "-fm pairs calls in order");
    case Advice::Cause::root:
      return fmt::format("module names begin with {}, in golden with {}; {} FILE writes a mapping for -dm",
                         shown(advice.target), shown(advice.golden), advice.option);
    case Advice::Cause::part_of_mix:
      return levels + ": the dump of level mix also has entries that the other level does not record";
    case Advice::Cause::nothing_left:
      return "golden has no entries left to pair them with";
    case Advice::Cause::names:
      break;
  }
  return fmt::format("golden does not have their names; {} FILE suggests partners for -dm", advice.option);
}

}  // namespace

std::optional<Advice> find_advice(const RankResult& result, const MatchOptions& options) {
  std::size_t rows = 0;
  std::size_t unmatched = 0;
  for (const pairing::Pair& row : result.rows) {
    if (!row.has_target()) continue;
    ++rows;
    if (!row.has_golden() && row.reason != Unmatched::dtype && row.reason != Unmatched::other_code)
      ++unmatched;
  }
  if (unmatched < 2 || share(unmatched, rows) < kManyRows) return std::nullopt;
  std::optional<Advice> advice = explained(result, options);
  if (advice) {
    advice->unmatched = unmatched;
    advice->rows = rows;
  }
  return advice;
}

std::string advise(const RankResult& result, const MatchOptions& options) {
  const std::optional<Advice> advice = find_advice(result, options);
  return !advice ? ""
                 : fmt::format("{} of {} rows have no partner: {}", human_count(advice->unmatched),
                               human_count(advice->rows), words(*advice));
}

PairedEntries paired_entries(const RankResult& result) {
  PairedEntries paired{std::vector<bool>(result.target.apis.size(), false),
                       std::vector<bool>(result.golden.apis.size(), false)};
  for (const pairing::Pair& row : result.rows) {
    if (row.has_golden()) paired.golden[result.golden_item(row).api] = true;
    if (row.has_target() && (row.has_golden() || row.reason != Unmatched::entry_missing))
      paired.target[result.target_item(row).api] = true;
  }
  return paired;
}

}  // namespace msprobe::compare

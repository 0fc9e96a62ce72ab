// SPDX-License-Identifier: Apache-2.0

#include "dump/tree.hpp"
#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include "dump/dump_json.hpp"
#include "dump/names.hpp"
#include "inspect/facts.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTensorFolder = "dump_tensor_data";
// The type is the part before the first dot; hostile names must not fill the table.
constexpr std::size_t kMostTypes = 200;

std::string direction_name(std::string_view name) {
  const auto parsed = dump::parse_entry_name(name);
  if (!parsed) return "other";
  constexpr const char* kNames[] = {"forward", "backward", "parameters_grad", "debug"};
  return kNames[static_cast<std::size_t>(parsed->direction)];
}

class RankInspector {
 public:
  explicit RankInspector(const dump::RankDump& rank) : rank_(rank) { facts_.label = rank.label; }

  RankFacts run() {
    facts_.json = rank_.json;
    const std::string debug = rank_.directory + "/debug.json";
    const bool is_debug = !path_exists(facts_.json) && path_exists(debug);
    if (is_debug) facts_.json = debug;
    try {
      const auto file = open_file(facts_.json);
      const dump::Header header = dump::read_dump_json(
          *file, [this](std::string_view name, const dump::Entry& entry) { visit(name, entry); });
      facts_.task = header.task;
      facts_.level = header.level;
      facts_.framework = header.framework;
      if (!header.has_data) facts_.problem = "it has no 'data'";
    } catch (const Error& error) {
      facts_.problem = error.what();
    }
    if (facts_.level != "debug") {
      for (const char* name : {"stack.json", "construct.json"}) {
        if (!path_exists(rank_.directory + "/" + name)) facts_.absent.emplace_back(name);
      }
    }
    compare_with_folder();
    return std::move(facts_);
  }

 private:
  void visit(std::string_view name, const dump::Entry& entry) {
    ++facts_.entries;
    const std::string direction = direction_name(name);
    std::string type = direction == "debug" ? direction : std::string(name.substr(0, name.find('.')));
    if (facts_.types.size() >= kMostTypes && !facts_.types.contains(type)) type = "other";
    ++facts_.types[type];
    ++facts_.directions[direction];
    walk(entry, 0);
  }

  // The recursion is safe, because the reader bounds the depth.
  void walk(const dump::Entry& entry, dump::Entry::Index node) {
    if (entry.is(node, dump::NodeKind::object)) {
      if (entry.find(node, "dtype") != dump::Entry::kNone) ++facts_.tensors;
      const dump::Entry::Index name = entry.find(node, "data_name");
      if (entry.is(name, dump::NodeKind::string)) names_.emplace_back(entry.text(name));
    } else if (!entry.is(node, dump::NodeKind::array)) {
      return;
    }
    entry.children(node, [&](dump::Entry::Index child) { walk(entry, child); });
  }

  void compare_with_folder() {
    std::ranges::sort(names_);
    names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
    facts_.named_files = names_.size();
    std::vector<std::string> there;
    const std::string folder = rank_.directory + "/" + kTensorFolder;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      check_interrupt();
      there.push_back(entry->path().filename().string());
    }
    if (error && error != std::errc::no_such_file_or_directory && facts_.problem.empty())
      facts_.problem = display(folder) + ": " + error.message();
    std::ranges::sort(there);
    facts_.files = there.size();
    note_difference(names_, there, facts_.missing_files, facts_.missing_count);
    // A dump that was not read to its end may name more files.
    if (facts_.problem.empty()) note_difference(there, names_, facts_.stray_files, facts_.stray_count);
  }

  static void note_difference(const std::vector<std::string>& of, const std::vector<std::string>& less,
                              std::vector<std::string>& names, std::uint64_t& count) {
    std::vector<std::string> difference;
    std::set_difference(of.begin(), of.end(), less.begin(), less.end(), std::back_inserter(difference));
    count = difference.size();
    difference.resize(std::min(difference.size(), kMostNames));
    names = std::move(difference);
  }

  const dump::RankDump& rank_;
  RankFacts facts_;
  std::vector<std::string> names_;
};

std::string_view kind_text(dump::TreeKind kind) {
  constexpr std::string_view kNames[] = {"file", "rank", "step", "root"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// Ranks that another step has, and the gaps in the numbers of all ranks.
std::vector<std::string> missing_ranks(const dump::StepDump& step, const std::set<std::int64_t>& all) {
  // A single rank with a high number is no reason to list all lower numbers.
  constexpr std::int64_t kMostRanks = 1024;
  std::vector<std::string> missing;
  if (all.empty() || *all.rbegin() < 0) return missing;
  const auto has = [&](std::int64_t number) {
    return std::ranges::any_of(step.ranks, [&](const dump::RankDump& rank) { return rank.number == number; });
  };
  for (std::int64_t number = 0; number <= std::min(*all.rbegin(), kMostRanks); ++number) {
    if ((step.ranks.size() > 1 || all.size() > 1) && !has(number))
      missing.push_back("rank" + std::to_string(number));
  }
  return missing;
}

}  // namespace

void inspect_tree(const std::string& path, PathFacts& facts) {
  dump::Tree tree;
  const std::string debug = path + "/debug.json";
  if (is_folder(path) && !path_exists(path + "/dump.json") && path_exists(debug)) {
    tree.kind = dump::TreeKind::rank;
    tree.path = path;
    tree.steps.push_back(
        {"", std::nullopt, {{fs::path(path).filename().string(), std::nullopt, path, debug}}});
  } else {
    tree = dump::discover(path);
  }
  std::set<std::int64_t> numbers;
  for (const dump::StepDump& step : tree.steps) {
    for (const dump::RankDump& rank : step.ranks) {
      if (rank.number) numbers.insert(*rank.number);
    }
  }
  TreeFacts& found = facts.tree.emplace();
  found.kind = kind_text(tree.kind);
  for (const dump::StepDump& step : tree.steps) {
    StepFacts& step_facts = found.steps.emplace_back();
    step_facts.label = step.label;
    const bool listed = tree.kind == dump::TreeKind::step || tree.kind == dump::TreeKind::root;
    if (listed) step_facts.missing_ranks = missing_ranks(step, numbers);
    for (const dump::RankDump& rank : step.ranks) {
      check_interrupt();
      step_facts.ranks.push_back(RankInspector(rank).run());
    }
  }
}

}  // namespace msprobe::inspect

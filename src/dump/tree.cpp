// SPDX-License-Identifier: Apache-2.0
#include "dump/tree.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "dump/names.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::dump {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDumpJson = "dump.json";
constexpr std::string_view kDebugJson = "debug.json";

/// Whether the number after `prefix` has leading zeros.
bool has_zeros(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() + 1 && name[prefix.size()] == '0';
}

bool is_proc(std::string_view name) {
  return name.starts_with("proc") && is_digits(name.substr(4));
}

/// dump.json, unless there is only a debug.json.
std::string json_in(const std::string& directory) {
  std::string dump = directory + "/" + std::string(kDumpJson);
  std::string debug = directory + "/" + std::string(kDebugJson);
  return !path_exists(dump) && path_exists(debug) ? debug : dump;
}

class TreeFinder {
 public:
  TreeFinder(TreeSearch& search, RankNames names) : search_(search), names_(names) {}

  void run(const std::string& given) {
    std::string path = given;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status))
      return search_.refuse(path, error ? error.message() : "no such file or directory", true);
    search_.is_folder = fs::is_directory(status);
    Tree tree;
    tree.path = path;
    if (!search_.is_folder) {
      const std::string directory = fs::path(path).parent_path().string();
      RankDump rank;
      rank.directory = directory.empty() ? "." : directory;
      rank.json = path;
      tree.steps.push_back({"", std::nullopt, {std::move(rank)}});
    } else if (!find_in(path, tree)) {
      return;
    }
    search_.tree = std::move(tree);
  }

 private:
  bool list(const std::string& folder, Listing& listing) {
    std::error_code error;
    listing = list_folder(folder, error);
    if (error) search_.refuse(folder, error.message(), true);
    return !error;
  }

  bool find_in(const std::string& path, Tree& tree) {
    if (!list(path, search_.top)) return false;
    if (std::error_code ignored; fs::exists(json_in(path), ignored)) {
      tree.kind = TreeKind::rank;
      std::string name = fs::path(path).filename().string();
      if (!rank_number(name, names_) && !is_proc(name)) name.clear();
      tree.steps.push_back({"", std::nullopt, {rank_in(path, std::move(name))}});
      return true;
    }
    std::vector<RankDump> ranks;
    if (!find_ranks(path, search_.top, ranks)) return false;
    if (!ranks.empty()) {
      tree.kind = TreeKind::step;
      tree.steps.push_back({"", std::nullopt, std::move(ranks)});
      return true;
    }
    tree.kind = TreeKind::root;
    for (const std::string& name : search_.top.folders) {
      const auto number = number_after(name, "step");
      if (!number || (has_zeros(name, "step") && names_ == RankNames::exact)) continue;
      Listing step;
      std::vector<RankDump> of_step;
      if (!list(path + "/" + name, step) || !find_ranks(path + "/" + name, step, of_step)) return false;
      if (!of_step.empty()) tree.steps.push_back({name, number, std::move(of_step)});
    }
    if (tree.steps.empty()) {
      search_.refuse(path, "no dump here: found neither dump.json nor rank, proc or step folders", false);
      return false;
    }
    std::ranges::stable_sort(tree.steps,
                             [](const StepDump& a, const StepDump& b) { return a.number < b.number; });
    return true;
  }

  bool find_ranks(const std::string& step, const Listing& listing, std::vector<RankDump>& ranks) {
    std::vector<RankDump> procs;
    for (const std::string& name : listing.folders) {
      if (rank_number(name, names_)) {
        ranks.push_back(rank_in(step + "/" + name, name));
      } else if (is_proc(name)) {
        procs.push_back(rank_in(step + "/" + name, name));
      }
    }
    std::ranges::stable_sort(ranks, [](const RankDump& a, const RankDump& b) { return a.number < b.number; });
    if (!ranks.empty()) return true;
    ranks = std::move(procs);
    if (ranks.size() < 2) return true;
    search_.refuse(
        step,
        "several proc folders and no rank folder, as after two runs into one dump_path: give one of them as "
        "the path, for example " +
            display(ranks.front().directory),
        false);
    return false;
  }

  RankDump rank_in(const std::string& directory, std::string label) const {
    RankDump rank;
    rank.number = rank_number(label, names_);
    // A single process is rank 0. Its process number, which changes in every run, would separate results of
    // the same name.
    rank.label = is_proc(label) ? "rank0" : std::move(label);
    rank.directory = directory;
    rank.json = json_in(directory);
    return rank;
  }

  TreeSearch& search_;
  RankNames names_;
};

}  // namespace

std::optional<std::int64_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  return is_digits(name) ? whole_number<std::int64_t>(name) : std::nullopt;
}

std::optional<std::int64_t> rank_number(std::string_view folder, RankNames names) {
  if (folder == "rank") return -1;
  if (names == RankNames::exact && has_zeros(folder, "rank")) return std::nullopt;
  return number_after(folder, "rank");
}

bool is_debug_json(const std::string& path) {
  return fs::path(path).filename() == kDebugJson;
}

void SearchOutcome::refuse(const std::string& path, const std::string& reason, bool by_system) {
  problem = display(path) + ": " + reason;
  unreadable = by_system;
}

void SearchOutcome::check() const {
  if (unreadable) throw IoError(problem);
  if (!problem.empty()) throw FormatError(problem);
}

TreeSearch search_tree(const std::string& path, RankNames names) {
  TreeSearch search;
  TreeFinder(search, names).run(path);
  return search;
}

Tree discover(const std::string& path, RankNames names) {
  TreeSearch search = search_tree(path, names);
  search.check();
  return *std::move(search.tree);
}

}  // namespace msprobe::dump

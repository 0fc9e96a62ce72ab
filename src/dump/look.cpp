// SPDX-License-Identifier: Apache-2.0
#include "dump/look.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "support/folder.hpp"
#include "support/interrupt.hpp"

namespace msprobe::dump {
namespace {

/// 1 of `x.1.npy`, 5 of `tag2_5.npy`; 0 of other names. `mark` is the character before the number.
std::int64_t id_of(std::string_view name, char mark) {
  name.remove_suffix(4);
  const std::size_t at = name.rfind(mark);
  if (at == std::string_view::npos) return mark == '.' ? number_after(name, "").value_or(0) : 0;
  return number_after(name.substr(at + 1), "").value_or(0);
}

class SavedFinder {
 public:
  explicit SavedFinder(SavedSearch& search) : search_(search) {}

  void run(const std::string& data) {
    for (const std::string& tag : list(data).folders) {
      SavedArrays arrays;
      const std::string tag_folder = data + "/" + tag;
      numbered(tag_folder, list(tag_folder), "step", [&](const std::string& step, std::int64_t step_number) {
        numbered(step, list(step), "rank", [&](const std::string& rank, std::int64_t rank_number) {
          const Listing listing = list(rank);
          add(rank, listing, '_', {step_number, rank_number, 0, 0}, arrays);
          numbered(rank, listing, "micro_step", [&](const std::string& micro, std::int64_t number) {
            add(micro, list(micro), '.', {step_number, rank_number, number, 0}, arrays);
          });
        });
      });
      if (!arrays.empty()) search_.tags.emplace(tag, std::move(arrays));
    }
    if (!search_.problem.empty()) search_.tags.clear();
  }

 private:
  /// A folder that cannot be read counts as empty.
  Listing list(const std::string& folder) {
    check_interrupt();
    std::error_code error;
    Listing listing = list_folder(folder, error);
    if (error && search_.problem.empty()) search_.refuse(folder, error.message(), true);
    return listing;
  }

  template <typename Visit>
  static void numbered(const std::string& folder, const Listing& listing, std::string_view prefix,
                       Visit&& visit) {
    for (const std::string& name : listing.folders) {
      if (const auto number = number_after(name, prefix)) visit(folder + "/" + name, *number);
    }
  }

  static void add(const std::string& folder, const Listing& listing, char mark, SavedKey key,
                  SavedArrays& arrays) {
    for (const std::string& name : listing.files) {
      if (!name.ends_with(".npy")) continue;
      key[3] = id_of(name, mark);
      arrays.insert_or_assign(key, folder + "/" + name);
    }
  }

  SavedSearch& search_;
};

struct GraphWalk {
  GraphSearch& search;
  std::size_t folders = 0;

  bool refuse(const std::string& folder, const std::string& reason, bool unreadable = false) {
    search.folders.clear();
    search.refuse(folder, reason, unreadable);
    return false;
  }

  bool visit(const std::string& folder, int depth) {
    check_interrupt();
    // Links in a circle would make an endless number of folders.
    if (++folders > kMaxGraphFolders)
      return refuse(folder, fmt::format("more than {} folders", kMaxGraphFolders));
    if (depth > kMaxGraphDepth)
      return refuse(folder, fmt::format("folders nested deeper than {} levels", kMaxGraphDepth));
    std::error_code error;
    const Listing listing = list_folder(folder, error);
    if (error) return refuse(folder, error.message(), true);
    const bool data = std::ranges::any_of(listing.files, [](const std::string& name) {
      return name == "statistic.csv" || name.ends_with(".npy");
    });
    if (const auto place = data ? graph_place(folder) : std::nullopt)
      search.folders[*place].push_back(folder);
    return std::ranges::all_of(
        listing.folders, [&](const std::string& name) { return visit(folder + "/" + name, depth + 1); });
  }
};

}  // namespace

SavedSearch find_saved_arrays(const std::string& root) {
  SavedSearch search;
  if (is_folder(root + "/data")) SavedFinder(search).run(root + "/data");
  return search;
}

std::optional<GraphPlace> graph_place(std::string_view path) {
  constexpr std::size_t kParts = 4;
  std::string_view parts[kParts];  // from the end
  std::size_t count = 0;
  while (count < kParts && !path.empty()) {
    const std::size_t slash = path.rfind('/');
    parts[count++] = slash == std::string_view::npos ? path : path.substr(slash + 1);
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
  if (count < 3) return std::nullopt;
  const auto step = number_after(parts[0], "");
  if (!step) return std::nullopt;
  std::string_view rank_folder = count == kParts ? parts[3] : std::string_view();
  if (const std::size_t mark = rank_folder.rfind('_');
      rank_folder.find("rank_") != std::string_view::npos && mark != std::string_view::npos) {
    rank_folder.remove_prefix(mark + 1);
  }
  auto rank = number_after(rank_folder, "");
  if (!rank) rank = number_after(parts[2], "");
  if (!rank) return std::nullopt;
  return GraphPlace{*rank, *step};
}

GraphSearch find_graph_folders(const std::string& root) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path whole = fs::absolute(root, error).lexically_normal();
  std::string path = error ? root : whole.string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  GraphSearch search;
  GraphWalk{search}.visit(path, 0);
  return search;
}

Look look_at(const std::string& path) {
  Look look;
  look.tree = search_tree(path);
  if (look.tree.tree) {
    look.layout = Layout::tree;
  } else if (look.tree.is_folder) {
    look.saved = find_saved_arrays(path);
    if (!look.saved.tags.empty()) {
      look.layout = Layout::saved_arrays;
      return look;
    }
    look.graph = find_graph_folders(path);
    if (!look.graph.folders.empty()) look.layout = Layout::static_graph;
  }
  return look;
}

}  // namespace msprobe::dump

// SPDX-License-Identifier: Apache-2.0
#include "dump/graph_folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "dump/tree.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::dump {
namespace {

struct Walk {
  GraphSearch& search;
  std::size_t folders = 0;

  bool refuse(const std::string& folder, const std::string& reason, bool unreadable = false) {
    search = {{}, display(folder) + ": " + reason, unreadable};
    return false;
  }

  bool visit(const std::string& folder, int depth) {
    check_interrupt();
    // Links in a circle make folders without end.
    if (++folders > kMaxGraphFolders)
      return refuse(folder, fmt::format("more than {} folders", kMaxGraphFolders));
    if (depth > kMaxGraphDepth)
      return refuse(folder, fmt::format("folders nested deeper than {} levels", kMaxGraphDepth));
    std::error_code error;
    const Listing listing = list_folder(folder, error);
    if (error) return refuse(folder, error.message(), true);
    const bool data = std::any_of(listing.files.begin(), listing.files.end(), [](const std::string& name) {
      return name == "statistic.csv" || name.ends_with(".npy");
    });
    if (const auto place = data ? graph_place(folder) : std::nullopt) search.folders[*place].push_back(folder);
    return std::all_of(listing.folders.begin(), listing.folders.end(), [&](const std::string& name) {
      return visit(folder + "/" + name, depth + 1);
    });
  }
};

}  // namespace

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
  Walk{search}.visit(path, 0);
  return search;
}

}  // namespace msprobe::dump

// SPDX-License-Identifier: Apache-2.0
#include "compare/static_graph/graph_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostNumber = 1'000'000;

std::optional<std::int64_t> to_number(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool holds_data(const std::vector<std::string>& files) {
  return std::any_of(files.begin(), files.end(), [](const std::string& name) {
    return name == "statistic.csv" || name.ends_with(".npy");
  });
}

struct Walk {
  const GraphSelection& selection;
  GraphFolders found;
  std::size_t folders = 0;
};

void walk(const std::string& folder, int depth, Walk& state) {
  if (++state.folders > kMaxGraphFolders) {  // links in a circle make folders without end
    throw FormatError(display(folder), fmt::format("more than {} folders", kMaxGraphFolders));
  }
  if (depth > kMaxGraphDepth) {
    throw FormatError(display(folder), fmt::format("folders nested deeper than {} levels", kMaxGraphDepth));
  }
  if (holds_data(names_in(folder, Named::regular_files))) {
    const auto place = graph_place(folder);
    if (place && state.selection.ranks.contains(place->first) &&
        state.selection.steps.contains(place->second)) {
      state.found[*place].push_back(folder);
    }
  }
  for (const std::string& name : names_in(folder, Named::folders)) {
    walk(folder + "/" + name, depth + 1, state);
  }
}

}  // namespace

NumberList NumberList::parse(std::string_view option, std::string_view text) {
  NumberList list;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = trimmed(text.substr(0, comma));
    const std::size_t dash = part.find('-');
    const auto first = to_number(trimmed(part.substr(0, dash)));
    const auto last = dash == std::string_view::npos ? first : to_number(trimmed(part.substr(dash + 1)));
    if (!first || !last || *last > kMostNumber) {
      throw UsageError(fmt::format("{}: '{}' is neither a number up to {} nor a range such as 2-5", option,
                                   display(part), kMostNumber));
    }
    if (*first > *last) {
      throw UsageError(fmt::format("{}: the range '{}' runs backwards", option, display(part)));
    }
    list.add(*first, *last);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) throw UsageError(fmt::format("{}: a number is missing behind the last comma", option));
  }
  return list;
}

bool NumberList::contains(std::int64_t number) const {
  return empty() || std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
           return range.first <= number && number <= range.second;
         });
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
  const auto step = to_number(parts[0]);
  if (!step) return std::nullopt;
  std::string_view rank_folder = count == kParts ? parts[3] : std::string_view();
  if (const std::size_t mark = rank_folder.rfind('_');
      rank_folder.find("rank_") != std::string_view::npos && mark != std::string_view::npos) {
    rank_folder.remove_prefix(mark + 1);
  }
  auto rank = to_number(rank_folder);
  if (!rank) rank = to_number(parts[2]);
  if (!rank) return std::nullopt;
  return GraphPlace{*rank, *step};
}

GraphFolders find_graph_folders(const std::string& root, const GraphSelection& selection) {
  std::error_code error;
  const fs::path whole = fs::absolute(root, error).lexically_normal();
  std::string path = error ? root : whole.string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  Walk state{selection, {}, 0};
  walk(path, 0, state);
  return std::move(state.found);
}

bool is_graph_dump(const std::string& root) {
  try {
    return fs::is_directory(root) && !find_graph_folders(root, {}).empty();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include "dump/tree_everywhere.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "dump/data_size.hpp"
#include "support/error.hpp"
#include "support/packet.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::dump {

void carry(auto& packet, Carried<Seen> auto& seen) {
  packet(seen.processes, seen.host, seen.bytes, seen.data_bytes);
}

void carry(auto& packet, Carried<RankDump> auto& rank) {
  packet(rank.label, rank.number, rank.directory, rank.json, rank.seen);
}

void carry(auto& packet, Carried<StepDump> auto& step) {
  packet(step.label, step.number, step.ranks);
}

void carry(auto& packet, Carried<Tree> auto& tree) {
  packet(tree.kind, tree.path, tree.steps);
}

namespace {

/// Of one process.
struct View {
  std::optional<Tree> tree;
  std::string problem;
};

void carry(auto& packet, Carried<View> auto& view) {
  packet(view.tree, view.problem);
}

View own_view(const std::string& path, RankNames names) {
  TreeSearch search = search_tree(path, names);
  View view{std::move(search.tree), search.problem};
  if (!view.tree) return view;
  for (StepDump& step : view.tree->steps) {
    for (RankDump& rank : step.ranks) {
      Seen& seen = rank.seen.emplace();
      seen.host = team().host();
      std::error_code error;
      const std::uintmax_t size = std::filesystem::file_size(rank.json, error);
      if (!error) seen.bytes = size;
      seen.data_bytes = estimated_data_bytes(rank);
    }
  }
  return view;
}

/// The element of that label; it is added if there is none.
template <typename T>
T& of_label(std::vector<T>& all, const T& like) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const T& one) { return one.label == like.label; });
  return found == all.end() ? all.emplace_back(like) : *found;
}

template <typename T>
void sort_by_number(std::vector<T>& all) {
  std::stable_sort(all.begin(), all.end(), [](const T& a, const T& b) { return a.number < b.number; });
}

void add_view(Tree& tree, const Tree& other, std::uint32_t process) {
  for (const StepDump& step : other.steps) {
    StepDump empty = step;
    empty.ranks.clear();
    StepDump& known = of_label(tree.steps, empty);
    for (const RankDump& rank : step.ranks) of_label(known.ranks, rank).seen->processes.push_back(process);
  }
}

}  // namespace

Tree discover_everywhere(const std::string& path, RankNames names) {
  PacketWriter own;
  own(own_view(path, names));
  std::optional<Tree> tree;
  std::string problem;
  const std::vector<std::string> views = team().gather(own.take());
  for (std::uint32_t process = 0; process < views.size(); ++process) {
    if (views[process].empty()) continue;  // it has left
    View view;
    PacketReader packet(views[process]);
    packet(view);
    if (problem.empty()) problem = view.problem;
    if (!view.tree) continue;
    if (!tree) tree = Tree{view.tree->kind, view.tree->path, {}};
    if (tree->kind != view.tree->kind)
      throw FormatError(display(path),
                        "is not the same kind of dump on all machines: a step, a dump root or a rank");
    add_view(*tree, *view.tree, process);
  }
  if (!tree) throw IoError(problem);
  sort_by_number(tree->steps);
  for (StepDump& step : tree->steps) sort_by_number(step.ranks);
  return *std::move(tree);
}

}  // namespace msprobe::dump

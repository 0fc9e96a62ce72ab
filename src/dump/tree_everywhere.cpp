// SPDX-License-Identifier: Apache-2.0
#include "dump/tree_everywhere.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "dump/data_size.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/packet.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::dump {

void carry(auto& packet, Carried<SeenRank> auto& seen) {
  packet(seen.processes, seen.host, seen.bytes, seen.content, seen.data_bytes, seen.saved_values);
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

/// The tree that one process sees.
struct View {
  std::optional<Tree> tree;
  std::string problem;
  bool broken = false;  // something is there that cannot be taken for a tree
  std::string host;
};

void carry(auto& packet, Carried<View> auto& view) {
  packet(view.tree, view.problem, view.broken, view.host);
}

/// Notes size and beginning of a file. It ignores errors: the code that reads the file later reports why it
/// cannot be read.
void look_at(const std::string& json, SeenRank& seen) {
  constexpr std::size_t kBeginning = std::size_t{64} << 10;
  try {
    const auto file = open_file(json);
    seen.bytes = file->size();
    seen.content = fingerprint(seen.bytes, first_bytes(*file, kBeginning));
  } catch (const Error&) {
    seen.bytes = 0;
  }
}

View own_view(const std::string& path, RankNames names, bool with_tensors) {
  TreeSearch search = search_tree(path, names);
  View view{std::move(search.tree), search.problem, false, team().host()};
  std::error_code error;
  view.broken = !view.problem.empty() &&
                std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::not_found;
  if (!view.tree) return view;
  for (StepDump& step : view.tree->steps) {
    for (RankDump& rank : step.ranks) {
      SeenRank& seen = rank.seen.emplace();
      seen.host = view.host;
      look_at(rank.json, seen);
      if (with_tensors) seen.data_bytes = estimated_data_bytes(rank);
      seen.saved_values =
          !is_debug_json(rank.json) && std::filesystem::exists(rank.directory + "/debug.json", error);
    }
  }
  return view;
}

/// The element with the label of `like`; adds it if no element has that label.
template <typename T>
T& of_label(std::vector<T>& all, const T& like) {
  const auto found = std::ranges::find_if(all, [&](const T& one) { return one.label == like.label; });
  return found == all.end() ? all.emplace_back(like) : *found;
}

template <typename T>
void sort_by_number(std::vector<T>& all) {
  std::ranges::stable_sort(all, [](const T& a, const T& b) { return a.number < b.number; });
}

void add_view(Tree& tree, const Tree& other, std::uint32_t process) {
  for (const StepDump& step : other.steps) {
    StepDump empty = step;
    empty.ranks.clear();
    StepDump& known = of_label(tree.steps, empty);
    for (const RankDump& rank : step.ranks) {
      SeenRank& seen = *of_label(known.ranks, rank).seen;
      if (seen.bytes != rank.seen->bytes || seen.content != rank.seen->content) {
        throw FormatError(display(rank.json), fmt::format("differs between {} and {}",
                                                          display(rank.seen->host), display(seen.host)));
      }
      seen.processes.push_back(process);
    }
  }
}

}  // namespace

Tree discover_everywhere(const std::string& path, RankNames names, bool with_tensors) {
  PacketWriter own;
  own(own_view(path, names, with_tensors));
  std::optional<Tree> tree;
  std::string problem;
  const std::vector<std::string> views = team().gather(own.take());
  for (std::uint32_t process = 0; process < views.size(); ++process) {
    if (views[process].empty()) continue;  // it has left
    View view;
    PacketReader packet(views[process]);
    packet(view);
    if (view.broken) throw IoError(fmt::format("on {}: {}", display(view.host), view.problem));
    if (problem.empty()) problem = view.problem;
    if (!view.tree) {
      log_warning(fmt::format("{}: not found on {}", display(path), display(view.host)));
      continue;
    }
    if (!tree) tree = Tree{view.tree->kind, view.tree->path, {}};
    if (tree->kind != view.tree->kind)
      throw FormatError(display(path),
                        "must be the same kind of dump on all machines: a step, a dump root or a rank");
    add_view(*tree, *view.tree, process);
  }
  if (!tree) throw IoError(problem);
  sort_by_number(tree->steps);
  for (StepDump& step : tree->steps) sort_by_number(step.ranks);
  return *std::move(tree);
}

}  // namespace msprobe::dump

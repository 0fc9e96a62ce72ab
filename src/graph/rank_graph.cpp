// SPDX-License-Identifier: Apache-2.0
#include "graph/rank_graph.hpp"

#include <filesystem>

#include "dump/member_stream.hpp"
#include "dump/stack_json.hpp"
#include "dump/tree.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

namespace fs = std::filesystem;

void read_entries(RankGraph& graph, dump::Side* items) {
  graph.places.resize(1);
  const auto add = [&](std::string_view name, std::uint64_t offset, std::uint64_t size) {
    const std::uint32_t number = graph.entries.intern(name);
    if (number == graph.places.size()) graph.places.emplace_back();
    graph.places[number] = {offset, size};
  };
  if (items == nullptr) {
    graph.header = dump::read_values(*graph.json, [&](dump::MemberStream& stream, std::string_view name) {
      const std::uint64_t size = stream.skip().size();
      add(name, stream.value_offset(), size);
    });
    return;
  }
  dump::RankDump rank;
  rank.directory = graph.folder;
  rank.json = graph.json->name();
  dump::LoadOptions options;
  options.stacks = false;
  options.on_entry = add;
  *items = dump::load_side(rank, options);
  graph.header = items->header;
}

}  // namespace

std::optional<std::string> RankGraph::tensor_folder() const {
  if (!header.data_directory || header.data_directory->empty()) return header.data_directory;
  return (fs::absolute(folder).lexically_normal() / "dump_tensor_data").string();
}

const dump::EntryPlace* RankGraph::place(std::string_view name) const {
  const std::uint32_t number = entries.find(name);
  return number == TextIndex::kNone || number == 0 ? nullptr : &places[number];
}

RankGraph read_rank_graph(const std::string& folder, dump::Side* items) {
  RankGraph graph;
  graph.folder = folder;
  const model_tree::Construct construct = model_tree::read_construct(*open_file(folder + "/construct.json"));
  if (construct.members.size() == 1 && !construct.numbered) {
    throw FormatError(display(folder + "/construct.json"),
                      "is empty: only level L0 and mix record the structure of a model");
  }
  graph.json = open_file(folder + "/dump.json");
  read_entries(graph, items);
  const dump::StackTable stacks =
      dump::read_stacks_if_any(folder + "/stack.json").value_or(dump::StackTable());
  graph.built = model_tree::build_tree({construct, graph.entries, stacks, graph.header.is_mindspore()});
  return graph;
}

}  // namespace msprobe::graph

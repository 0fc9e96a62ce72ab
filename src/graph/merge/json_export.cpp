// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>
#include <utility>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "graph/merge/merged_source.hpp"
#include "graph/merge/node_content.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

/// A file of one object, written while it is made.
class ObjectFile {
 public:
  ObjectFile(const std::string& path, std::vector<OutputFile>& files) : files_(files), index_(files.size()) {
    files.emplace_back(path);
    json.open_object();
  }

  JsonWriter json{{.indent = 2}};
  void write() {
    files_[index_].write(json.text());
    json.text().clear();
  }
  void end() {
    json.close();
    write();
  }

 private:
  std::vector<OutputFile>& files_;
  std::size_t index_;
};

void put_entry(JsonWriter& json, const JoinedContent& joined) {
  const dump::Entry& entry = joined.content->entry;
  if (joined.sentences.empty() || !entry.is(0, dump::NodeKind::object))
    return dump::append_json(json, entry, 0);
  json.open_object();
  entry.children(0, [&](dump::Entry::Index member) {
    json.key(entry.key(member));
    dump::append_json(json, entry, member);
  });
  json.member("parallel_merge_info", joined.sentences);
  json.close();
}

}  // namespace

std::size_t export_json(const MergedSource& source, const std::string& folder,
                        std::vector<OutputFile>& files) {
  create_directories(folder);
  const model_tree::ModelTree& tree = source.tree();
  std::vector<NodeIndex> order = tree.post_order();
  order.pop_back();  // the root

  ObjectFile construct(folder + "/construct.json", files);
  for (const NodeIndex node : order) {
    construct.json.member(tree.name(node), tree.name(tree.node(node).parent));
    construct.write();
  }
  construct.end();

  const dump::Header& header = source.graph().main_rank().graph.header;
  ObjectFile dump(folder + "/dump.json", files);
  dump.json.member("task", header.task);
  dump.json.member("level", header.level);
  dump.json.member("framework", header.framework);
  dump.json.key("dump_data_dir");
  if (header.data_directory) {
    dump.json.value(*header.data_directory);
  } else {
    dump.json.null();
  }
  dump.json.member("is_merged", true);
  dump.json.open_object("data");
  for (const NodeIndex node : order) {
    const JoinedContent joined = joined_content(source.graph(), source.origin(node));
    if (!joined.content) continue;
    dump.json.key(tree.name(node));
    put_entry(dump.json, joined);
    dump.write();
  }
  dump.json.close();
  dump.end();

  std::vector<std::pair<std::uint32_t, std::vector<NodeIndex>>> stacks;
  std::unordered_map<std::uint32_t, std::size_t> places;
  for (const NodeIndex node : order) {
    const std::uint32_t stack = tree.node(node).stack;
    if (tree.stack(stack) == "[]") continue;
    const auto [known, is_new] = places.try_emplace(stack, stacks.size());
    if (is_new) stacks.emplace_back(stack, std::vector<NodeIndex>());
    stacks[known->second].second.push_back(node);
  }
  ObjectFile stack_file(folder + "/stack.json", files);
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const dump::Entry lines = dump::read_json(tree.stack(stacks[i].first), folder);
    stack_file.json.open_list(std::to_string(i));
    stack_file.json.element();
    stack_file.json.open_list();
    for (const NodeIndex node : stacks[i].second) stack_file.json.value(tree.name(node));
    stack_file.json.close();
    stack_file.json.element();
    dump::append_json(stack_file.json, lines, 0);
    stack_file.json.close();
    stack_file.write();
  }
  stack_file.end();
  return order.size() + 1;
}

}  // namespace msprobe::graph

// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/json_export.hpp"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "graph/merge/node_content.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

constexpr int kIndent = 2;

/// A file of one object, written member by member.
class ObjectFile {
 public:
  ObjectFile(const std::string& path, std::vector<OutputFile>& files) : files_(files), index_(files.size()) {
    files.emplace_back(path);
    write("{");
  }

  void end() { write(count_[0] > 0 ? "\n}" : "}"); }

  /// `value`: as it stands at the level of the member.
  void member(std::string_view name, std::string_view value) {
    begin(name);
    write(value);
  }
  void open(std::string_view name) {
    begin(name);
    write("{");
    level_ = 1;
  }
  void close() {
    level_ = 0;
    write(std::exchange(count_[1], 0) > 0 ? "\n  }" : "}");
  }

 private:
  void write(std::string_view text) { files_[index_].write(text); }
  void begin(std::string_view name) {
    std::string text = count_[level_]++ > 0 ? "," : "";
    append_json_line(text, level_ + 1, kIndent);
    append_json_string(text, name);
    text += ": ";
    write(text);
  }

  std::vector<OutputFile>& files_;
  std::size_t index_;
  std::size_t count_[2] = {0, 0};
  int level_ = 0;
};

std::string json_text(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string entry_text(const JoinedContent& joined) {
  const dump::Entry& entry = joined.content->entry;
  constexpr int kLevel = 2;
  std::string out;
  dump::append_json(out, entry, 0, kLevel, kIndent);
  if (joined.sentences.empty() || !entry.is(0, dump::NodeKind::object)) return out;
  // Before the brace that ends the object, and the line that it stands on.
  out.resize(entry.empty(0) ? out.size() - 1 : out.find_last_of('\n'));
  if (!entry.empty(0)) out += ',';
  append_json_line(out, kLevel + 1, kIndent);
  out += "\"parallel_merge_info\": ";
  JsonWriter sentences({.indent = kIndent}, kLevel + 1);
  sentences.value(joined.sentences);
  out += sentences.take();
  append_json_line(out, kLevel, kIndent);
  return out += '}';
}

}  // namespace

std::size_t export_json(const MergedSource& source, const std::string& folder,
                        std::vector<OutputFile>& files) {
  create_directories(folder);
  const model_tree::ModelTree& tree = source.tree();
  std::vector<NodeIndex> order = tree.post_order();
  order.pop_back();  // the root

  ObjectFile construct(folder + "/construct.json", files);
  for (const NodeIndex node : order)
    construct.member(tree.name(node), json_text(tree.name(tree.node(node).parent)));
  construct.end();

  const dump::Header& header = source.graph().main_rank().graph.header;
  ObjectFile dump(folder + "/dump.json", files);
  dump.member("task", json_text(header.task));
  dump.member("level", json_text(header.level));
  dump.member("framework", json_text(header.framework));
  dump.member("dump_data_dir", header.data_directory ? json_text(*header.data_directory) : "null");
  dump.member("is_merged", "true");
  dump.open("data");
  for (const NodeIndex node : order) {
    const JoinedContent joined = joined_content(source.graph(), source.origin(node));
    if (joined.content) dump.member(tree.name(node), entry_text(joined));
  }
  dump.close();
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
    dump::Entry lines;
    dump::read_json(tree.stack(stacks[i].first), lines, folder);
    JsonWriter value({.indent = kIndent}, 1);
    value.open_list();
    value.element();
    value.open_list();
    for (const NodeIndex node : stacks[i].second) value.value(tree.name(node));
    value.close();
    value.element();
    dump::append_json(value, lines, 0);
    value.close();
    stack_file.member(std::to_string(i), value.take());
  }
  stack_file.end();
  return order.size() + 1;
}

}  // namespace msprobe::graph

// SPDX-License-Identifier: Apache-2.0
#include "graph/vis/vis_file.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "graph/pair/release8.hpp"
#include "graph/vis/short_stack.hpp"
#include "graph/vis/vis_words.hpp"
#include "support/json_writer.hpp"
#include "support/parallel.hpp"

namespace msprobe::graph {
namespace {

using model_tree::kNoNode;
using model_tree::kRoot;
using model_tree::ModelTree;
using model_tree::NodeIndex;

constexpr int kVisIndent = 4;
// The number of nodes whose texts are made before they are written.
constexpr std::size_t kVisNodesAtOnce = 512;
constexpr std::size_t kVisNodesInTurn = 16;

struct MadeNode {
  NodeData data;
  std::string text;
  std::size_t gap = 0;  // the place after the last member
};

class NodeMaker {
 public:
  NodeMaker(const NodeSource& source, bool whole_stacks, int level)
      : source_(source), tree_(source.tree()), whole_stacks_(whole_stacks), level_(level) {
    is_top_.resize(tree_.size());
    for (const NodeIndex child : tree_.node(kRoot).children) is_top_[child] = true;
  }

  MadeNode make(NodeIndex index) const {
    MadeNode made;
    made.data = source_.data(index);
    const model_tree::Node& node = tree_.node(index);
    const std::string_view name = tree_.name(index);
    JsonWriter json({.indent = kVisIndent}, level_);
    if (index != kRoot) json.text() += ',';
    append_json_line(json.text(), level_, kVisIndent);
    append_json_string(json.text(), name);
    json.text() += ": ";
    json.open_object();
    json.member("id", name);
    json.member("node_type", static_cast<int>(node.type));
    json.key("output_data");
    put_items(json, made.data.items, true);
    json.key("input_data");
    put_items(json, made.data.items, false);
    json.member("upnode", node.parent == kNoNode ? "None" : tree_.name(node.parent));
    json.open_list("subnodes");
    for (const NodeIndex child : node.children) json.value(tree_.name(child));
    json.close();
    json.member("matched_node_link", made.data.partner);
    json.open_object("suggestions");
    json.close();
    json.key("stack_info");
    put_stack(json, name, tree_.stack(node.stack));
    if (is_top_[index]) json.member("micro_step_id", node.micro_step);
    json.open_object("data");
    if (made.data.release8.index) {
      json.key("precision_index");
      json.raw(index_text(made.data.release8));
    }
    if (!made.data.release8.result.empty()) json.member("Result", made.data.release8.result);
    if (!made.data.overflow_level.empty()) json.member("overflow_level", made.data.overflow_level);
    json.close();
    made.gap = json.text().size();
    json.close();
    made.text = json.take();
    return made;
  }

 private:
  void put_stack(JsonWriter& json, std::string_view node, std::string_view stack) const {
    const dump::Entry lines = dump::read_json(stack, std::string(node));
    const dump::Entry::Index kept = whole_stacks_ ? dump::Entry::kNone : line_that_counts(node, lines);
    if (kept == dump::Entry::kNone) {
      dump::append_json(json, lines, 0);
    } else {
      json.value(std::array{lines.text(kept)});
    }
  }

  const NodeSource& source_;
  const ModelTree& tree_;
  bool whole_stacks_;
  int level_;
  std::vector<bool> is_top_;
};

}  // namespace

VisWriter::VisWriter(OutputFile& out, bool compared, bool whole_stacks)
    : out_(out), compared_(compared), whole_stacks_(whole_stacks) {
  put("{");
}

std::size_t VisWriter::add(const NodeSource& source, const GraphObserver& observer) {
  const ModelTree& tree = source.tree();
  const int own_level = level() + 1;
  JsonWriter head({.indent = kVisIndent}, level());
  if (compared_) {
    if (sides_ > 0) head.text() += ',';
    append_json_line(head.text(), 1, kVisIndent);
    head.text() += sides_ == 0 ? "\"NPU\": " : "\"Bench\": ";
  }
  ++sides_;
  head.open_object();
  head.member("root", model_tree::kRootName);
  head.key("dump_data_dir");
  if (const std::optional<std::string> folder = source.tensor_folder()) {
    head.value(*folder);
  } else {
    head.null();
  }
  head.open_object("node");
  // A file of a single run has one object for both the file and its graph, and that object is open already.
  put(head.take().substr(compared_ ? 0 : 1));
  const NodeMaker maker(source, whole_stacks_, own_level + 1);
  std::vector<MadeNode> nodes;
  for (NodeIndex begin = kRoot; begin < tree.size(); begin += static_cast<NodeIndex>(nodes.size())) {
    nodes = std::vector<MadeNode>(std::min(kVisNodesAtOnce, tree.size() - begin));
    parallel_for((nodes.size() + kVisNodesInTurn - 1) / kVisNodesInTurn, [&](std::size_t turn) {
      const std::size_t end = std::min(nodes.size(), (turn + 1) * kVisNodesInTurn);
      for (std::size_t i = turn * kVisNodesInTurn; i < end; ++i)
        nodes[i] = maker.make(begin + static_cast<NodeIndex>(i));
    });
    std::string block;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::uint64_t gap = out_.size() + block.size() + nodes[i].gap;
      block += nodes[i].text;
      if (observer.node)
        observer.node(static_cast<std::int64_t>(gap), tree.name(begin + static_cast<NodeIndex>(i)),
                      nodes[i].data);
    }
    put(block);
    if (observer.written) observer.written(nodes.size());
  }
  std::string tail;
  append_json_line(tail, own_level, kVisIndent);
  tail += '}';
  if (compared_) {
    append_json_line(tail, 1, kVisIndent);
    tail += '}';
  }
  put(tail);
  return tree.size() - 1;
}

void VisWriter::end(const VisFrame& frame) {
  JsonWriter json({.indent = kVisIndent});
  json.open_object();
  if (frame.task) {
    json.member("ToolTip", vis_tool_tip(*frame.task));
    json.key("Colors");
    put_vis_colors(json, *frame.task);
  }
  json.member("MicroSteps", frame.micro_steps);
  if (frame.task) json.member("task", task_name(*frame.task));
  json.member("OverflowCheck", frame.overflow_check);
  json.close();
  // More members follow those already written.
  put("," + json.take().substr(1));
}

void VisWriter::put(std::string_view text) {
  failed_ = true;
  out_.write(text);
  failed_ = false;
}

JsonWriter communication_text(bool compared) {
  return JsonWriter({.indent = kVisIndent}, compared ? 4 : 3);
}

std::string communication_member(std::string_view json, bool compared) {
  std::string out = ",";
  append_json_line(out, compared ? 4 : 3, kVisIndent);
  out += "\"matched_distributed\": ";
  return out += json;
}

}  // namespace msprobe::graph

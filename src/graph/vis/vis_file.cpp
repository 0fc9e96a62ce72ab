// SPDX-License-Identifier: Apache-2.0
#include "graph/vis/vis_file.hpp"

#include <algorithm>
#include <vector>

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
// So many nodes are made into texts before they are written.
constexpr std::size_t kVisNodesAtOnce = 512;
constexpr std::size_t kVisNodesInTurn = 16;

/// JSON of one line, spread over lines; its own begins at `level`.
std::string spread(std::string_view json, int level) {
  std::string out;
  out.reserve(json.size() * 2);
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      out += c;
      if (c == '\\' && i + 1 < json.size()) {
        out += json[++i];
      } else if (c == '"') {
        in_text = false;
      }
      continue;
    }
    if (c == '"') in_text = true;
    const bool opens = c == '{' || c == '[';
    if (opens && i + 1 < json.size() && (json[i + 1] == '}' || json[i + 1] == ']')) {
      out += c;
      out += json[++i];
    } else if (opens) {
      out += c;
      append_json_line(out, ++level, kVisIndent);
    } else if (c == '}' || c == ']') {
      append_json_line(out, --level, kVisIndent);
      out += c;
    } else if (c == ',') {
      out += c;
      append_json_line(out, level, kVisIndent);
      if (i + 1 < json.size() && json[i + 1] == ' ') ++i;
    } else {
      out += c;
    }
  }
  return out;
}

struct MadeNode {
  NodeData data;
  std::string text;
  std::size_t gap = 0;  // where in the text more members may follow
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
    const std::string_view name = tree_.name(index);
    made.text = index == kRoot ? "" : ",";
    append_json_line(made.text, level_, kVisIndent);
    append_json_string(made.text, name);
    made.text += ": ";
    made.text += spread(json_of(index, made.data), level_);
    // Behind the last member stand the end of the line, the indentation and the brace.
    made.gap = made.text.size() - 2 - static_cast<std::size_t>(level_) * kVisIndent;
    return made;
  }

 private:
  std::string json_of(NodeIndex index, const NodeData& data) const {
    const model_tree::Node& node = tree_.node(index);
    JsonWriter json;
    json.open_object();
    json.member("id", tree_.name(index));
    json.member("node_type", static_cast<int>(node.type));
    json.key("output_data");
    json.raw(joined(data.items, true));
    json.key("input_data");
    json.raw(joined(data.items, false));
    json.member("upnode", node.parent == kNoNode ? "None" : tree_.name(node.parent));
    json.key("subnodes");
    json.open_list();
    for (const NodeIndex child : node.children) json.value(tree_.name(child));
    json.close();
    json.key("matched_node_link");
    json.raw(data.matched_node_link);
    json.key("suggestions");
    json.raw("{}");
    json.key("stack_info");
    const std::string_view stack = tree_.stack(node.stack);
    json.raw(whole_stacks_ ? std::string(stack) : short_stack(tree_.name(index), stack));
    if (is_top_[index]) json.member("micro_step_id", node.micro_step);
    json.key("data");
    json.open_object();
    if (data.release8.index) {
      json.key("precision_index");
      json.raw(index_text(data.release8));
    }
    if (!data.release8.result.empty()) json.member("Result", data.release8.result);
    if (!data.overflow_level.empty()) json.member("overflow_level", data.overflow_level);
    json.close();
    json.close();
    return json.take();
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

std::size_t VisWriter::add(const NodeSource& source, const std::optional<std::string>& tensor_folder,
                           const GraphObserver& observer) {
  const ModelTree& tree = source.tree();
  const int own_level = level() + 1;
  std::string head;
  if (compared_) {
    if (sides_ > 0) head += ',';
    append_json_line(head, 1, kVisIndent);
    head += sides_ == 0 ? "\"NPU\": {" : "\"Bench\": {";
  }
  ++sides_;
  append_json_line(head, own_level, kVisIndent);
  head += "\"root\": ";
  append_json_string(head, model_tree::kRootName);
  head += ',';
  append_json_line(head, own_level, kVisIndent);
  head += "\"dump_data_dir\": ";
  if (tensor_folder) {
    append_json_string(head, *tensor_folder);
  } else {
    head += "null";
  }
  head += ',';
  append_json_line(head, own_level, kVisIndent);
  put(head + "\"node\": {");
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
  JsonWriter json;
  json.open_object();
  if (frame.task) {
    json.member("ToolTip", vis_tool_tip(*frame.task));
    json.key("Colors");
    json.raw(vis_colors(*frame.task));
  }
  json.member("MicroSteps", frame.micro_steps);
  if (frame.task) json.member("task", task_name(*frame.task));
  json.member("OverflowCheck", frame.overflow_check);
  json.close();
  // The members follow those that are there.
  put("," + spread(json.take(), 0).substr(1));
}

void VisWriter::put(std::string_view text) {
  failed_ = true;
  out_.write(text);
  failed_ = false;
}

std::string communication_member(std::string_view json, bool compared) {
  const int level = compared ? 4 : 3;
  std::string out = ",";
  append_json_line(out, level, kVisIndent);
  out += "\"matched_distributed\": ";
  return out + spread(json, level);
}

}  // namespace msprobe::graph

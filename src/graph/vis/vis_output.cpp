// SPDX-License-Identifier: Apache-2.0
// The .vis files of releases 8.x: the graph of a rank, or of a rank beside its reference, as JSON
// (docs/formats.md, ".vis files"). They are written node by node.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "graph/output.hpp"
#include "graph/pair/release8.hpp"
#include "graph/vis/short_stack.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/result_name.hpp"

namespace msprobe::graph {
namespace {

using model_tree::kNoNode;
using model_tree::kRoot;
using model_tree::ModelTree;
using model_tree::NodeIndex;

constexpr std::size_t kLevels = 5;
constexpr std::array<std::string_view, kLevels> kLevelColors = {"#FFFCF3", "#FFEDBE", "#FFDC7F", "#FFC62E",
                                                                "#FF704D"};
constexpr std::string_view kUnmatchedColor = "#C7C7C7";

// Users of the Python tool know these words.
constexpr std::string_view kErrorWords =
    "此节点所有输入输出的统计量相对误差, 值越大代表测量值与标杆值的偏差越大, 相对误差计算方式:"
    "|(测量值-标杆值)/标杆值|";
constexpr std::string_view kRatioWords =
    "此节点所有输入的最小双千分之一和所有输出的最小双千分之一的差值的绝对值, 代表双千指标的变化情况, "
    "值越大代表测量值与标杆值的偏差越大, 双千分之一指标计算方式："
    "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之一的比例占总元素个数的比例，比例越接近1越好";
constexpr std::string_view kSameWords = "与标杆相比, 此节点所有输入输出的md5值相同";
constexpr std::string_view kOtherWords = "与标杆相比, 此节点任意输入输出的md5值不同";
constexpr std::string_view kAloneWords = "比对过程中节点未匹配上";

using Bounds = std::vector<std::string_view>;

void put_range(JsonWriter& json, std::string_view color, const Bounds& bounds, std::string_view words) {
  json.open_object(color);
  json.open_list("value");
  for (const std::string_view bound : bounds) json.raw(bound);
  json.close();
  json.member("description", words);
  json.close();
}

/// Writes the ranges of the index that each colour represents.
void put_vis_colors(JsonWriter& json, ComparedBy task) {
  static constexpr std::array<std::string_view, kLevels + 1> kErrors = {"0", "0.2", "0.4", "0.6", "0.8", "1"};
  static constexpr std::array<std::string_view, kLevels + 1> kRatios = {"0",    "0.05", "0.1",
                                                                        "0.15", "0.2",  "1"};
  json.open_object();
  if (task == ComparedBy::md5) {
    put_range(json, kLevelColors.front(), {"1", "1"}, kSameWords);
    put_range(json, kLevelColors.back(), {"0", "0"}, kOtherWords);
  } else if (task != ComparedBy::structure) {
    const bool tensors = task == ComparedBy::tensors;
    const auto& bounds = tensors ? kRatios : kErrors;
    for (std::size_t i = 0; i < kLevels; ++i)
      put_range(json, kLevelColors[i], {bounds[i], bounds[i + 1]}, tensors ? kRatioWords : kErrorWords);
  }
  put_range(json, kUnmatchedColor, {}, kAloneWords);
  json.close();
}

/// The meanings of the columns, as JSON.
std::string vis_tool_tip(ComparedBy task) {
  if (task == ComparedBy::statistics || task == ComparedBy::md5) return tool_tip_of(task);
  JsonWriter json;
  json.open_object();
  json.member("One Thousandth Err Ratio",
              "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之一的比例占总元素个数的比例，比例越接"
              "近1越好");
  json.member("Five Thousandths Err Ratio",
              "Tensor中的元素逐个与对应的标杆数据对比，相对误差小于千分之五的比例占总元素个数的比例，比例越接"
              "近1越好");
  json.member("Cosine",
              "通过计算两个向量的余弦值来判断其相似度，数值越接近于1说明计算出的两个张量越相似，实际可接受阈"
              "值为大于0.99。"
              "在计算中可能会存在nan，主要由于可能会出现其中一个向量为0");
  json.member("MaxAbsErr", "当最大绝对误差越接近0表示其计算的误差越小，实际可接受阈值为小于0.001");
  json.member("MaxRelativeErr",
              "当最大相对误差越接近0表示其计算的误差越小。当dump数据中存在0或Nan时，"
              "比对结果中最大相对误差则出现inf或Nan的情况，属于正常现象");
  json.close();
  return json.take();
}

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

/// Writes a file, or a part of a file that holds several: one or two sides, end().
class VisWriter {
 public:
  /// `whole_stacks`: write whole call stacks, not the lines that releases 8.x show.
  VisWriter(OutputFile& out, bool compared, bool whole_stacks)
      : out_(out), compared_(compared), whole_stacks_(whole_stacks) {
    put("{");
  }

  /// Writes a graph and returns the number of its nodes. The observer's row is the place in `out` for the
  /// node's communication.
  std::size_t add(const NodeSource& source, const GraphObserver& observer) {
    const ModelTree& tree = source.tree();
    const int level = compared_ ? 1 : 0;
    JsonWriter head({.indent = kVisIndent}, level);
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
    const NodeMaker maker(source, whole_stacks_, level + 2);
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
    append_json_line(tail, level + 1, kVisIndent);
    tail += '}';
    if (compared_) {
      append_json_line(tail, 1, kVisIndent);
      tail += '}';
    }
    put(tail);
    return tree.size() - 1;
  }

  void end(const GraphFrame& frame, bool overflow_check) {
    JsonWriter json({.indent = kVisIndent});
    json.open_object();
    if (frame.task) {
      json.member("ToolTip", vis_tool_tip(*frame.task));
      json.key("Colors");
      put_vis_colors(json, *frame.task);
    }
    json.member("MicroSteps", frame.micro_steps);
    if (frame.task) json.member("task", task_name(*frame.task));
    json.member("OverflowCheck", overflow_check);
    json.close();
    // More members follow those already written.
    put("," + json.take().substr(1));
  }

  /// Has the writer refused anything? Then nothing can be added any more.
  bool failed() const { return failed_; }

 private:
  void put(std::string_view text) {
    failed_ = true;
    out_.write(text);
    failed_ = false;
  }

  OutputFile& out_;
  bool compared_;
  bool whole_stacks_;
  std::size_t sides_ = 0;
  bool failed_ = false;
};

/// A JSON writer in the style of the file, for the communication of a node.
JsonWriter communication_text(bool compared) {
  return JsonWriter({.indent = kVisIndent}, compared ? 4 : 3);
}

/// The communication of a node as a member of its object, for insertion at its place.
std::string communication_member(std::string_view json, bool compared) {
  std::string out = ",";
  append_json_line(out, compared ? 4 : 3, kVisIndent);
  out += "\"matched_distributed\": ";
  return out += json;
}

void copy(OutputFile& from, std::uint64_t begin, std::uint64_t end, OutputFile& to) {
  constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 20;
  std::string bytes;
  for (; begin < end; begin += bytes.size()) {
    bytes.resize(std::min(kAtOnce, end - begin));
    from.read_at(begin, bytes);
    to.write(bytes);
  }
}

/// The files of a step wait for each other, because communication between ranks is known only after the last
/// rank.
class VisOutput final : public GraphOutput {
 public:
  explicit VisOutput(const GraphOptions& options)
      : options_(options), time_(claim_time_stamp(options.output)) {}

  void begin(const GraphPlace& place) override {
    if (scratch_ && place.step != place_.step) finish_step();
    create_directories(options_.output);
    place_ = place;
    draft_ = {path_of(place), 0, 0, {}};
    if (!scratch_) scratch_.emplace(draft_.path);
    draft_.begin = scratch_->size();
    writer_.emplace(*scratch_, options_.compares(), options_.whole_stacks);
  }

  std::size_t add(std::string_view, const NodeSource& source, const GraphObserver& observer) override {
    return writer_->add(source, observer);
  }

  void end(GraphFrame&& frame) override {
    writer_->end(frame, options_.overflow_check);
    for (auto& [side, calls] : frame.calls) edges_.add(side, place_.step, place_.rank, std::move(calls));
    draft_.end = scratch_->size();
    if (files_++ == 0) first_ = draft_.path;
    drafts_.emplace(place_.rank, std::move(draft_));
  }

  void take_back() override {}
  bool failed() const override { return writer_->failed(); }

  std::string finish(const GraphExtent&) override {
    finish_step();
    return files_ == 1 ? first_ : fmt::format("{} and {} more", first_, files_ - 1);
  }

 private:
  /// A file that is written but for the communication of its nodes, within another one.
  struct Draft {
    std::string path;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<std::pair<std::uint64_t, std::string>> gaps;  // texts to insert, by place
  };

  std::string path_of(const GraphPlace& place) const {
    std::string label = place.label;
    std::replace(label.begin(), label.end(), '/', '_');
    return fmt::format("{}/{}_{}{}{}.vis", options_.output, options_.compares() ? "compare" : "build", label,
                       label.empty() ? "" : "_", time_);
  }

  void finish_step() {
    if (drafts_.size() > 1) {
      edges_.tell(
          [&](std::int64_t rank, std::int64_t gap, const std::string& json) {
            drafts_.at(rank).gaps.emplace_back(gap, communication_member(json, options_.compares()));
          },
          communication_text(options_.compares()));
    }
    const Draft* const only = drafts_.size() == 1 ? &drafts_.begin()->second : nullptr;
    if (only != nullptr && only->begin == 0 && only->end == scratch_->size()) {
      scratch_->commit();
    } else {
      for (auto& [rank, draft] : drafts_) write(draft);
    }
    drafts_.clear();
    scratch_.reset();
    edges_ = Edges();
  }

  /// Copies a draft to its final place and inserts the texts for the gaps.
  void write(Draft& draft) {
    std::ranges::sort(draft.gaps);
    OutputFile file(draft.path);
    std::uint64_t at = draft.begin;
    for (const auto& [gap, member] : draft.gaps) {
      copy(*scratch_, at, gap, file);
      file.write(member);
      at = gap;
    }
    copy(*scratch_, at, draft.end, file);
    file.commit();
  }

  const GraphOptions& options_;
  std::string time_;
  GraphPlace place_;
  Draft draft_;                        // of that place
  std::optional<OutputFile> scratch_;  // the drafts of a step; it has the name of the first
  std::optional<VisWriter> writer_;
  std::map<std::int64_t, Draft> drafts_;  // by rank
  Edges edges_;
  std::string first_;  // file
  std::size_t files_ = 0;
};

}  // namespace

std::unique_ptr<GraphOutput> vis_output(const GraphOptions& options) {
  return std::make_unique<VisOutput>(options);
}

}  // namespace msprobe::graph

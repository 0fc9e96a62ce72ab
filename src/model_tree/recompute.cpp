// SPDX-License-Identifier: Apache-2.0
// Finds layers that activation checkpointing ran again, by their call stacks.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "dump/names.hpp"
#include "model_tree/build_tree.hpp"
#include "support/text.hpp"

namespace msprobe::model_tree {
namespace {

struct CodeFrame {
  std::string_view file;
  std::string_view function;
};

/// Parses `File {file}, line {n}, in {function}, \n {source}`.
CodeFrame frame_of(std::string_view line) {
  CodeFrame frame;
  if (line.starts_with("File ")) line.remove_prefix(5);
  const std::size_t file_end = line.find(", line ");
  frame.file = line.substr(0, file_end);
  if (file_end == std::string_view::npos) return frame;
  line.remove_prefix(file_end);
  const std::size_t in = line.find(", in ");
  if (in == std::string_view::npos) return frame;
  line.remove_prefix(in + 5);
  frame.function = line.substr(0, line.find_first_of(",\n"));
  while (frame.function.ends_with(' ')) frame.function.remove_suffix(1);
  return frame;
}

bool shows_recompute(const dump::StackTable::Frames& lines) {
  std::vector<CodeFrame> frames;
  for (const std::string& line : lines) frames.push_back(frame_of(line));
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const CodeFrame& frame = frames[i];
    if (frame.function == "recompute_fn" && frame.file.ends_with("torch/utils/checkpoint.py")) return true;
    if (frame.function != "backward" && (frame.function != "checkpoint_function_backward" ||
                                         frame.file.find("megatron") == std::string_view::npos))
      continue;
    for (std::size_t next = i + 1; next < std::min(i + 3, frames.size()); ++next) {
      if (frames[next].file.ends_with("torch/autograd/function.py")) return true;
    }
  }
  return false;
}

/// True if the name is deep enough in the model to be a layer with a parent.
bool is_nested(std::string_view name) {
  const auto parts = split(name, ".");
  if (parts.size() == 7) return !dump::is_digits(parts[1]) || !dump::is_digits(parts[3]);
  if (parts.size() == 6) return !dump::is_digits(parts[1]);
  return parts.size() > 7;
}

std::string_view layer_of(std::string_view name) {
  return dump::split_last(dump::split_last(name).first).first;
}

class RecomputeFinder {
 public:
  RecomputeFinder(ModelTree& tree, const TreeInput& input) : tree_(tree), in_(input) {}

  void place() {
    std::vector<NodeIndex> candidates;
    for (const NodeIndex top : tree_.node(kRoot).children) {
      const std::string_view name = tree_.name(top);
      if (tree_.node(top).type != NodeType::module || !is_nested(name) || !was_recomputed(name)) continue;
      const bool forward = is_call_of(name, "forward");
      if (!forward && !is_call_of(name, "backward")) continue;
      const std::string twin =
          forward ? turned(name, "forward", "backward") : turned(name, "backward", "forward");
      const NodeIndex other = tree_.find(twin);
      if (other != kNoNode && tree_.node(other).parent == kRoot && was_recomputed(twin))
        candidates.push_back(top);
    }
    if (candidates.empty()) return;
    find_originals(candidates);
    for (const NodeIndex candidate : candidates) move(candidate);
    std::erase_if(tree_.node(kRoot).children, [&](NodeIndex top) { return tree_.node(top).parent != kRoot; });
  }

 private:
  bool was_recomputed(std::string_view name) const {
    if (in_.is_mindspore) return true;
    const dump::StackTable::Frames* frames = in_.stacks.find(turned(name, "backward", "forward"));
    if (frames == nullptr) return false;
    const auto [known, is_new] = judged_.try_emplace(frames, false);
    if (is_new) known->second = shows_recompute(*frames);
    return known->second;
  }

  void find_originals(const std::vector<NodeIndex>& candidates) {
    for (const NodeIndex candidate : candidates) originals_[layer_of(tree_.name(candidate))];
    for (NodeIndex index = kRoot + 1; index < tree_.size(); ++index) {
      const Node& node = tree_.node(index);
      if (node.type != NodeType::module || node.parent == kRoot || !is_call_of(tree_.name(index), "forward"))
        continue;
      if (const auto found = originals_.find(layer_of(tree_.name(index))); found != originals_.end())
        found->second.nodes.push_back(index);
    }
  }

  void move(NodeIndex candidate) {
    const std::string_view name = tree_.name(candidate);
    Originals& originals = originals_[layer_of(name)];
    std::size_t& next = is_call_of(name, "forward") ? originals.next_forward : originals.next_backward;
    if (next == originals.nodes.size()) return;
    const NodeIndex forward_parent = tree_.node(originals.nodes[next++]).parent;
    const NodeIndex parent = tree_.find(turned(tree_.name(forward_parent), "forward", "backward"));
    if (parent != kNoNode && !is_below(parent, candidate)) tree_.attach(candidate, parent);
  }

  /// True also for a node that is deeper than any model.
  bool is_below(NodeIndex index, NodeIndex above) const {
    constexpr int kMostLevels = 1000;
    int levels = 0;
    while (index != above && index > kRoot && levels++ < kMostLevels) index = tree_.node(index).parent;
    return index > kRoot;
  }

  struct Originals {
    std::vector<NodeIndex> nodes;
    std::size_t next_forward = 0;
    std::size_t next_backward = 0;
  };

  ModelTree& tree_;
  const TreeInput& in_;
  std::map<std::string_view, Originals> originals_;
  mutable std::map<const dump::StackTable::Frames*, bool> judged_;
};

}  // namespace

void place_recomputed(ModelTree& tree, const TreeInput& input) {
  RecomputeFinder(tree, input).place();
}

}  // namespace msprobe::model_tree

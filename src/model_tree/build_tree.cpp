// SPDX-License-Identifier: Apache-2.0
#include "model_tree/build_tree.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dump/construct_json.hpp"
#include "dump/names.hpp"
#include "support/ascii.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::model_tree {
namespace {

constexpr std::string_view kStepsKey = "megatron_micro_step_number";
constexpr std::string_view kNoForward =
    "[\"This backward node cannot find the forward node and cannot retrieve stack information.\"]";

/// A count in a file; 0 for a value that is no count.
std::uint32_t small_count(const dump::Entry& value, dump::Entry::Index node) {
  constexpr double kMost = 1e9;
  if (!value.is(node, dump::NodeKind::integer)) return 0;
  const double number = value.number(node);
  return number >= 0 && number <= kMost ? static_cast<std::uint32_t>(number) : 0;
}

std::string replaced_everywhere(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

/// The name without its last `count` parts; unchanged if it has no more than those.
std::string_view without_last(std::string_view name, int count) {
  for (; count > 0; --count) name = dump::split_last(name).first;
  return name;
}

std::size_t part_count(std::string_view name) {
  return static_cast<std::size_t>(std::count(name.begin(), name.end(), '.')) + 1;
}

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

/// Activation checkpointing runs layers a second time, outside of their parents. Moves these to the place of
/// their first run (docs/rules.md, "Recomputed layers"), which call stacks show. Top nodes are the root's
/// children.
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
    for (const NodeIndex candidate : candidates) originals_[without_last(tree_.name(candidate), 2)];
    for (NodeIndex index = kRoot + 1; index < tree_.size(); ++index) {
      const Node& node = tree_.node(index);
      if (node.type != NodeType::module || node.parent == kRoot || !is_call_of(tree_.name(index), "forward"))
        continue;
      if (const auto found = originals_.find(without_last(tree_.name(index), 2)); found != originals_.end())
        found->second.nodes.push_back(index);
    }
  }

  void move(NodeIndex candidate) {
    const std::string_view name = tree_.name(candidate);
    Originals& originals = originals_[without_last(name, 2)];
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

class TreeBuilder {
 public:
  explicit TreeBuilder(const TreeInput& input) : in_(input) {}

  BuiltTree build() {
    for (std::uint32_t member = 1; member < in_.construct.members.size(); ++member) add_member(member);
    connect_all();
    RecomputeFinder(tree(), in_).place();
    collect_free_apis();
    add_gradients();
    in_.construct.numbered ? take_micro_steps() : find_micro_steps();
    return std::move(built_);
  }

 private:
  ModelTree& tree() { return built_.tree; }

  void add_member(std::uint32_t member) {
    const std::string_view name = in_.construct.names.at(member);
    if (name == kRootName) return;
    const std::string parent = parent_of(member, name);
    const NodeIndex above = parent.empty() ? kRoot : add_node(parent);
    const NodeIndex index = add_node(name);
    if (tree().node(index).parent == kNoNode) tree().attach(index, above);
  }

  NodeIndex add_node(std::string_view name) {
    if (const NodeIndex known = tree().find(name); known != kNoNode) return known;
    const std::uint32_t stack = stack_of(name);
    const NodeIndex index = tree().add(name);
    tree().node(index).stack = stack;
    return index;
  }

  /// The parent's name; empty for a top node.
  std::string parent_of(std::uint32_t member, std::string_view name) const {
    const Construct& construct = in_.construct;
    const std::string_view parent = construct.parent(member);
    if (parent.empty()) return parent_of_twin(name);
    if (is_call_of(name, "backward") && part_count(name) >= 5 && part_count(parent) >= 4 &&
        without_last(name, 4) != without_last(parent, 3)) {
      // A layer that works in place confuses the hooks, so its forward call decides.
      if (const std::uint32_t twin = construct.number_of(turned(name, "backward", "forward"))) {
        std::string backward = turned(construct.parent(twin), "forward", "backward");
        if (backward.empty() || construct.has(backward)) return backward;
      }
    }
    return std::string(parent);
  }

  std::string parent_of_twin(std::string_view name) const {
    const Construct& construct = in_.construct;
    std::string backward;
    if (is_call_of(name, "backward")) {
      if (const std::uint32_t twin = construct.number_of(turned(name, "backward", "forward")))
        backward = turned(construct.parent(twin), "forward", "backward");
    } else if (name.ends_with(".backward")) {
      if (const std::uint32_t twin = construct.number_of(replaced_everywhere(name, "backward", "forward")))
        backward = replaced_everywhere(construct.parent(twin), "forward", "backward");
    }
    return construct.has(backward) ? backward : std::string();
  }

  std::uint32_t stack_of(std::string_view name) {
    if (const dump::StackTable::Frames* frames = in_.stacks.find(name);
        frames != nullptr && !frames->empty()) {
      const auto [known, is_new] = stacks_.try_emplace(frames, 0);
      if (is_new) {
        JsonWriter json;
        json.value(*frames);
        known->second = tree().add_stack(json.take());
      }
      return known->second;
    }
    NodeIndex forward = kNoNode;
    if (is_call_of(name, "backward")) {
      forward = tree().find(std::string(without_last(name, 2)) + ".forward.0");
    } else if (name.ends_with(".backward")) {
      forward = tree().find(replaced_everywhere(name, "backward", "forward"));
    } else {
      return 0;
    }
    return forward == kNoNode ? tree().add_stack(kNoForward) : tree().node(forward).stack;
  }

  /// Connects chains of parents that do not lead to the root: they end in a node without a parent, or are
  /// circular.
  void connect_all() {
    std::vector<std::uint32_t> seen_by(tree().size(), 0);  // the walk that reached the node first
    seen_by[kRoot] = kRoot;
    const std::size_t count = tree().size();
    for (NodeIndex start = kRoot + 1; start < count; ++start) {
      NodeIndex at = start;
      while (seen_by[at] == 0) {
        seen_by[at] = start;
        if (tree().node(at).parent == kNoNode) break;
        at = tree().node(at).parent;
      }
      const bool loose = tree().node(at).parent == kNoNode && at != kRoot && seen_by[at] == start;
      const bool circle = !loose && seen_by[at] == start && at != kRoot;
      if (loose) connect(at);
      if (circle) cut(at);
    }
  }

  /// Takes those nodes out of a circle that are below an operation, where they would be invisible; if there
  /// are no such nodes, takes the first one.
  void cut(NodeIndex member) {
    std::vector<NodeIndex> circle = {member};
    for (NodeIndex at = tree().node(member).parent; at != member; at = tree().node(at).parent)
      circle.push_back(at);
    std::ranges::sort(circle);
    std::vector<NodeIndex> taken;
    for (const NodeIndex each : circle) {
      if (tree().node(tree().node(each).parent).type == NodeType::api) taken.push_back(each);
    }
    if (taken.empty()) taken.push_back(circle.front());
    for (const NodeIndex each : taken) {
      auto& siblings = tree().node(tree().node(each).parent).children;
      siblings.erase(std::find(siblings.begin(), siblings.end(), each));
      connect(each);
    }
  }

  void connect(NodeIndex index) {
    built_.unconnected.emplace_back(tree().name(index));
    tree().attach(index, kRoot);
  }

  void collect_free_apis() {
    std::vector<NodeIndex> tops = std::exchange(tree().node(kRoot).children, {});
    std::uint32_t number = 0;
    for (std::size_t begin = 0; begin < tops.size();) {
      std::size_t end = begin;
      while (end < tops.size() && tree().node(tops[end]).type == NodeType::api) ++end;
      if (end - begin < 2) {
        tree().attach(tops[begin++], kRoot);
        continue;
      }
      std::string name;
      do {
        name = std::string(kCollectionName) + '.' + std::to_string(number++);
      } while (tree().find(name) != kNoNode);
      const NodeIndex collection = tree().add(name);
      tree().node(collection).type = NodeType::collection;
      tree().attach(collection, kRoot);
      for (; begin < end; ++begin) tree().attach(tops[begin], collection);
    }
  }

  /// Gradients of parameters are not in construct.json: they go to the last backward call of their module.
  void add_gradients() {
    std::unordered_map<std::string_view, std::pair<std::uint64_t, NodeIndex>>
        last;  // by the name of the module
    for (NodeIndex index = kRoot + 1; index < tree().size(); ++index) {
      const std::string_view name = tree().name(index);
      if (!is_call_of(name, "backward")) continue;
      const auto number = whole_number<std::uint64_t>(dump::split_last(name).second);
      if (!number) continue;
      auto& place = last[without_last(name, 2)];
      if (place.second == kNoNode || *number > place.first) place = {*number, index};
    }
    for (std::uint32_t entry = 1; entry < in_.entries.size(); ++entry) {
      const std::string_view name = in_.entries.at(entry);
      std::string_view module = name;
      if (is_call_of(name, "parameters_grad")) {
        module = without_last(name, 2);
      } else if (name.ends_with(".parameters_grad")) {
        module = without_last(name, 1);
      } else {
        continue;
      }
      const auto parent = last.find(module);
      if (parent == last.end() || tree().find(name) != kNoNode) continue;
      const NodeIndex index = tree().add(name);
      tree().node(index).type = NodeType::module;
      tree().attach(index, parent->second.second);
    }
  }

  /// Takes the numbers of micro steps from the dump.
  void take_micro_steps() {
    const Construct& construct = in_.construct;
    tree().micro_steps = construct.last_step + 1;
    tree().steps_recorded = true;
    for (std::uint32_t member = 1; member < construct.members.size(); ++member) {
      if (const NodeIndex index = tree().find(construct.names.at(member)); index > kRoot)
        tree().node(index).micro_step = construct.members[member].micro_step;
    }
    for (NodeIndex index = kRoot + 1; index < tree().size(); ++index) {
      Node& node = tree().node(index);
      if (construct.has(tree().name(index))) continue;
      if (node.type == NodeType::collection && !node.children.empty()) {
        node.micro_step = tree().node(node.children.front()).micro_step;
      } else if (node.parent > kRoot) {
        node.micro_step = tree().node(node.parent).micro_step;
      }
    }
  }

  /// A forward pass after anything else begins a micro step.
  void find_micro_steps() {
    bool first = true;
    bool forward_before = true;
    std::uint32_t step = 0;
    for (const NodeIndex top : tree().node(kRoot).children) {
      Node& node = tree().node(top);
      if (node.type == NodeType::module) {
        const bool forward = tree().name(top).find(".forward.") != std::string_view::npos;
        if (!first && forward && !forward_before) ++step;
        forward_before = forward;
        first = false;
      }
      node.micro_step = step;
    }
    tree().micro_steps = step + 1;
    const std::vector<NodeIndex> order = tree().post_order();
    std::for_each(order.rbegin(), order.rend(), [&](NodeIndex index) {
      if (const NodeIndex parent = tree().node(index).parent; parent > kRoot)
        tree().node(index).micro_step = tree().node(parent).micro_step;
    });
  }

  const TreeInput& in_;
  BuiltTree built_;
  std::unordered_map<const dump::StackTable::Frames*, std::uint32_t> stacks_;
};

}  // namespace

std::uint32_t Construct::number_of(std::string_view name) const {
  const std::uint32_t found = names.find(name);
  return found == TextIndex::kNone ? 0 : found;
}

Construct read_construct(const ByteSource& file) {
  Construct construct;
  construct.members.resize(1);
  dump::read_construct_members(file, [&](std::string_view name, const dump::Entry& value) {
    if (name == kStepsKey) {
      construct.numbered = true;
      construct.last_step = small_count(value, 0);
      return;
    }
    const std::uint32_t number = construct.names.intern(name);
    if (number == 0) return;  // an empty name
    if (number == construct.members.size()) construct.members.emplace_back();
    Construct::ConstructMember& member = construct.members[number];
    member.parent = construct.parents.intern(dump::construct_parent(value));
    member.micro_step = 0;
    if (!value.is(0, dump::NodeKind::array)) return;
    std::size_t place = 0;
    value.children(0, [&](dump::Entry::Index child) {
      if (place++ == 1) member.micro_step = small_count(value, child);
    });
  });
  return construct;
}

BuiltTree build_tree(const TreeInput& input) {
  return TreeBuilder(input).build();
}

}  // namespace msprobe::model_tree

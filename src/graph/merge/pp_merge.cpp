// SPDX-License-Identifier: Apache-2.0
// Merges pipeline stages: every stage numbers its layers from 0; the merged model numbers them consecutively.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/merge/merge_steps.hpp"
#include "graph/merge/node_content.hpp"
#include "support/ascii.hpp"

namespace msprobe::graph {

LayerNumber find_layer(std::string_view name, std::size_t from) {
  constexpr std::string_view kLayer = "layer";
  for (std::size_t at = name.find(kLayer, from); at != std::string_view::npos;
       at = name.find(kLayer, at + 1)) {
    std::size_t begin = at + kLayer.size();
    if (begin < name.size() && name[begin] == 's') ++begin;
    if (begin >= name.size() || name[begin++] != '.') continue;
    std::size_t end = begin;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end > begin && end < name.size() && name[end] == '.') return {begin, end};
  }
  return {};
}

std::string with_layer(std::string_view name, std::size_t number) {
  std::string out(name);
  if (const LayerNumber layer = find_layer(name))
    out.replace(layer.begin, layer.end - layer.begin, std::to_string(number));
  return out;
}

namespace {

bool is_backward(std::string_view name) {
  return model_tree::is_call_of(name, "backward");
}

/// Renumbers the layers among the children by their positions.
void number_layers(MergeGraph& graph, NodeIndex parent, const std::unordered_set<NodeIndex>& renamed) {
  std::vector<NodeIndex> layers = graph.node(parent).children;
  std::erase_if(layers, [&](NodeIndex child) { return !find_layer(graph.node(child).name); });
  if (is_backward(graph.node(parent).name)) std::reverse(layers.begin(), layers.end());
  for (std::size_t number = 0; number < layers.size(); ++number) {
    if (!renamed.contains(layers[number])) continue;
    for (const NodeIndex each : graph.below(layers[number]))
      graph.rename(each, with_layer(graph.node(each).name, number));
  }
}

/// Gives the module further children: layers of later stages come behind, but before in the backward.
void add_children(MergeGraph& graph, NodeIndex parent, const std::vector<NodeIndex>& added) {
  auto& children = graph.node(parent).children;
  children.insert(is_backward(graph.node(parent).name) ? children.begin() : children.end(), added.begin(),
                  added.end());
  for (const NodeIndex child : added) graph.node(child).parent = parent;
}

class StageJoiner {
 public:
  explicit StageJoiner(const MergeGroup& group) : main_(*group.front()), group_(group) {}

  void join() {
    for (std::size_t i = 1; i < group_.size(); ++i) {
      found_.push_back(namesakes(main_, *group_[i], [](const MergeNode& node) { return node.name; }));
      places_.emplace_back(group_[i]->size());
      for (const NodeIndex index : group_[i]->below(kRoot)) {
        std::size_t place = 0;
        for (const NodeIndex child : group_[i]->node(index).children) places_.back()[child] = place++;
      }
    }
    // The loop visits the children of a node before the nodes that follow it.
    std::vector<NodeIndex> open = main_.node(kRoot).children;
    std::erase_if(open, [&](NodeIndex top) { return !is_of_model(main_.node(top)); });
    std::reverse(open.begin(), open.end());
    while (!open.empty()) {
      const NodeIndex index = open.back();
      open.pop_back();
      if (!visit(index)) continue;
      const auto& children = main_.node(index).children;
      for (auto child = children.rbegin(); child != children.rend(); ++child) {
        if (main_.node(*child).type == NodeType::module) open.push_back(*child);
      }
    }
    settle_borders();
    add_rest_of_root();
    for (auto& [parent, added] : added_) place(parent, added);
    std::ranges::sort(main_.joined_parents);
  }

 private:
  struct Added {
    std::size_t graph = 0;
    std::size_t place = 0;
    NodeIndex node = kNoNode;  // of that graph
    bool joined = false;       // the first rank has a node of this name
  };

  /// The graphs that also have the module; empty if the module is not to be compared.
  std::vector<std::size_t> others_with(NodeIndex index) const {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i][index] != kNoNode) others.push_back(i);
    }
    return others;
  }

  /// Returns whether the caller should visit the node's children.
  bool visit(NodeIndex index) {
    MergeNode& node = main_.node(index);
    const std::vector<std::size_t> others = others_with(index);
    if (others.empty()) return false;
    ContentDifference different;
    if (const auto own = content_of(node)) {
      for (const std::size_t i : others) {
        const auto other = content_of(group_[i + 1]->node(found_[i][index]), node.name);
        if (!other) continue;
        const ContentDifference each = difference(*own, *other);
        different.inputs = different.inputs || each.inputs;
        different.outputs = different.outputs || each.outputs;
      }
    }
    const bool backward = is_backward(node.name);
    const bool layer = different.inputs && different.outputs && find_layer(node.name);
    if (layer || (backward && joined_.contains(model_tree::turned(node.name, "backward", "forward")))) {
      joined_.insert(node.name);
      main_.joined_parents.push_back(node.parent);
      for (const std::size_t i : others) add(node.parent, i, found_[i][index], true);
      return false;
    }
    const MergeNode& last = group_[others.back() + 1]->node(found_[others.back()][index]);
    if (backward ? different.inputs && !different.outputs : different.outputs && !different.inputs) {
      (backward ? node.inputs : node.outputs) = last.own;
    } else if (backward ? different.inputs : different.outputs) {
      borders_.emplace_back(index, last.own);
    }
    add_missing(index, others);
    return true;
  }

  void add(NodeIndex parent, std::size_t graph, NodeIndex node, bool joined) {
    added_[parent].push_back({graph, places_[graph][node], node, joined});
  }

  /// Adds the children that the first rank does not have.
  void add_missing(NodeIndex index, const std::vector<std::size_t>& others) {
    for (const std::size_t i : others) {
      for (const NodeIndex child : group_[i + 1]->node(found_[i][index]).children) {
        const std::string_view name = group_[i + 1]->node(child).name;
        const NodeIndex here = main_.find(name);
        if (here != kNoNode && main_.node(here).parent == index) continue;
        add(index, i, child, false);
        if (find_layer(name)) main_.joined_parents.push_back(index);
      }
    }
  }

  /// A module that holds layers of all stages gets the inputs of the first stage and the outputs of the last
  /// (for backward, the reverse).
  void settle_borders() {
    std::unordered_set<NodeIndex> holders;
    for (const auto& [parent, added] : added_) {
      for (NodeIndex at = parent; at != kNoNode && holders.insert(at).second;) at = main_.node(at).parent;
    }
    for (const auto& [index, last] : borders_) {
      if (!holders.contains(index)) continue;
      MergeNode& node = main_.node(index);
      (is_backward(node.name) ? node.inputs : node.outputs) = last;
    }
  }

  /// Adds the remaining top nodes of the other stages.
  void add_rest_of_root() {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      for (const NodeIndex top : group_[i + 1]->node(kRoot).children) {
        const MergeNode& node = group_[i + 1]->node(top);
        if (node.type == NodeType::collection) continue;
        const NodeIndex here = main_.find(node.name);
        // An operation of another stage has the same name by chance.
        const bool lacks = here == kNoNode || node.type == NodeType::api || main_.node(here).parent != kRoot;
        if (lacks) {
          add(kRoot, i, top, false);
        } else if (node.name == "optimizer") {
          for (const NodeIndex child : node.children) add(here, i, child, false);
        }
      }
    }
  }

  void place(NodeIndex parent, std::vector<Added>& added) {
    const bool backward = is_backward(main_.node(parent).name);
    std::ranges::stable_sort(added, [&](const Added& a, const Added& b) {
      // Below the root the joined nodes come first.
      const bool a_rest = parent == kRoot && !a.joined;
      const bool b_rest = parent == kRoot && !b.joined;
      const std::size_t a_graph = backward ? group_.size() - a.graph : a.graph;
      const std::size_t b_graph = backward ? group_.size() - b.graph : b.graph;
      return std::tie(a_rest, a_graph, a.place) < std::tie(b_rest, b_graph, b.place);
    });
    std::vector<NodeIndex> copies;
    for (const Added& each : added) {
      copies.push_back(main_.copy(*group_[each.graph + 1], each.node));
      main_.name_apis_by_rank(copies.back());
    }
    add_children(main_, parent, copies);
    number_layers(main_, parent, {copies.begin(), copies.end()});
  }

  MergeGraph& main_;
  const MergeGroup& group_;
  std::vector<std::vector<NodeIndex>> found_;     // of each other graph, by node
  std::vector<std::vector<std::size_t>> places_;  // positions of its nodes among their siblings
  std::unordered_set<std::string> joined_;
  std::map<NodeIndex, std::vector<Added>> added_;
  std::vector<std::pair<NodeIndex, MergeNode::RankEntry>> borders_;
};

class ChunkJoiner {
 public:
  ChunkJoiner(MergeGraph& graph, int chunks) : graph_(graph), chunks_(chunks) {}

  void join() {
    take_last_borders();
    std::set<int> later;  // the later chunks that exist
    for (const NodeIndex index : graph_.joined_parents) {
      if (const int chunk = chunk_of(graph_.node(index).name); chunk > 0) later.insert(chunk);
    }
    for (const NodeIndex parent : holders()) {
      for (const int chunk : later) {
        const NodeIndex other = graph_.find(in_chunk(graph_.node(parent).name, chunk));
        if (other != kNoNode) move_children(other, parent);
      }
      std::unordered_set<NodeIndex> moved;
      for (const NodeIndex child : graph_.node(parent).children) {
        if (moved_.contains(child)) moved.insert(child);
      }
      number_layers(graph_, parent, moved);
    }
    remove_chunks();
  }

 private:
  /// The chunk number in `Module.{chunk}.`; 0 for other names and for numbers beyond the plan's chunks.
  int chunk_of(std::string_view name) const {
    constexpr std::string_view kPrefix = "Module.";
    int chunk = 0;
    if (!name.starts_with(kPrefix)) return 0;
    const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), chunk);
    const bool whole = error == std::errc() && end != name.data() + name.size() && *end == '.';
    return whole && chunk > 0 && chunk < chunks_ ? chunk : 0;
  }
  static bool is_of_first(std::string_view name) { return name.starts_with("Module.0."); }
  static std::string in_chunk(std::string_view name, int chunk) {
    constexpr std::size_t kPrefix = 7;
    const std::size_t end = name.find('.', kPrefix);
    if (!name.starts_with("Module.") || end == std::string_view::npos) return std::string(name);
    return std::string(name.substr(0, kPrefix)).append(std::to_string(chunk)).append(name.substr(end));
  }

  /// The parents of joined layers in the first chunk.
  std::vector<NodeIndex> holders() const {
    std::vector<NodeIndex> parents = graph_.joined_parents;
    parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
    std::erase_if(parents, [&](NodeIndex parent) { return !is_of_first(graph_.node(parent).name); });
    return parents;
  }

  void take_last_borders() {
    std::vector<NodeIndex> open = graph_.node(kRoot).children;
    while (!open.empty()) {
      const NodeIndex index = open.back();
      open.pop_back();
      MergeNode& node = graph_.node(index);
      if (!is_of_first(node.name) || node.type != NodeType::module || find_layer(node.name)) continue;
      open.insert(open.end(), node.children.begin(), node.children.end());
      const NodeIndex last = graph_.find(in_chunk(node.name, chunks_ - 1));
      if (last == kNoNode) continue;
      const MergeNode& other = graph_.node(last);
      if (is_backward(node.name)) {
        node.inputs = other.inputs.rank != nullptr ? other.inputs : other.own;
      } else {
        node.outputs = other.outputs.rank != nullptr ? other.outputs : other.own;
      }
    }
  }

  void move_children(NodeIndex from, NodeIndex to) {
    const std::vector<NodeIndex> moved = std::exchange(graph_.node(from).children, {});
    add_children(graph_, to, moved);
    for (const NodeIndex child : moved) {
      moved_.insert(child);
      rename_below(child);
    }
  }
  std::string in_chunk_zero(std::string_view name) const {
    return chunk_of(name) > 0 ? in_chunk(name, 0) : std::string(name);
  }

  /// Removes the other chunks, after keep_rest() has moved the remaining nodes.
  void remove_chunks() {
    const std::vector<NodeIndex> tops = graph_.node(kRoot).children;
    std::vector<NodeIndex> kept;
    for (const NodeIndex top : tops) {
      const bool is_of_first_chunk = in_chunk_zero(graph_.node(top).name) == graph_.node(top).name;
      if (is_of_first_chunk || !keep_rest(top)) kept.push_back(top);
    }
    graph_.node(kRoot).children = std::move(kept);
  }

  /// Moves modules and operations that the first chunk lacks to the first chunk. False for a top node that
  /// has to stay.
  bool keep_rest(NodeIndex top) {
    std::vector<std::pair<NodeIndex, NodeIndex>> open;  // a node, and the parent that its children get
    const NodeIndex twin = graph_.find(in_chunk_zero(graph_.node(top).name));
    if (twin == kNoNode) {
      rename_below(top);
      return false;
    }
    open.emplace_back(top, twin);
    while (!open.empty()) {
      const auto [from, to] = open.back();
      open.pop_back();
      const std::vector<NodeIndex> children = std::exchange(graph_.node(from).children, {});
      std::vector<NodeIndex> rest;
      for (const NodeIndex child : children) {
        const NodeIndex same = graph_.find(in_chunk_zero(graph_.node(child).name));
        if (same != kNoNode && same != child && graph_.node(same).parent == to) {
          open.emplace_back(child, same);
          continue;
        }
        rename_below(child);
        rest.push_back(child);
      }
      add_children(graph_, to, rest);
    }
    return true;
  }

  void rename_below(NodeIndex top) {
    for (const NodeIndex each : graph_.below(top)) graph_.rename(each, in_chunk_zero(graph_.node(each).name));
  }

  MergeGraph& graph_;
  int chunks_;
  std::unordered_set<NodeIndex> moved_;
};

}  // namespace

void join_stages(const MergeGroup& group) {
  StageJoiner(group).join();
}

void join_chunks(MergeGraph& graph, int chunks) {
  ChunkJoiner(graph, chunks).join();
}

}  // namespace msprobe::graph

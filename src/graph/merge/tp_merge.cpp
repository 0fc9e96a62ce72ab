// SPDX-License-Identifier: Apache-2.0
// Merges tensor-parallel ranks: finds the nodes that hold parts of the same values, and plans how to join
// them.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/names.hpp"
#include "graph/edges.hpp"
#include "graph/merge/merge_steps.hpp"
#include "graph/merge/node_content.hpp"
#include "graph/merge/parallel_plan.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

constexpr std::string_view kColumn = "ColumnParallelLinear";
constexpr std::string_view kRow = "RowParallelLinear";

/// The third part from the end of the name: the class of a module.
std::string_view class_of(std::string_view name) {
  return dump::split_last(dump::split_last(dump::split_last(name).first).first).second;
}
bool is_of_class(std::string_view name, std::string_view direction, std::string_view wanted) {
  return model_tree::is_call_of(name, direction) && class_of(name).find(wanted) != std::string_view::npos;
}
bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

class TensorParallelMerger {
 public:
  TensorParallelMerger(const MergeGroup& group, const RankGroups& groups)
      : main_(*group.front()), group_(group), groups_(groups) {}

  void merge() {
    for (std::size_t i = 1; i < group_.size(); ++i) {
      found_.push_back(
          namesakes(main_, *group_[i], [&](const MergeNode& node) { return name_there(node, i); }));
    }
    const std::vector<NodeIndex> reachable = main_.below(kRoot);
    for (const NodeIndex index : reachable) apply_reduce_rule(index);
    std::vector<NodeIndex> order = reachable;
    std::ranges::sort(order);
    std::erase_if(order, [&](NodeIndex index) { return !is_merged(index); });
    for (const NodeIndex index : order) {
      if (!main_.node(index).joint) main_.node(index).joint = joint_of(index);
    }
    std::erase_if(order, [&](NodeIndex index) { return main_.node(index).joint == nullptr; });
    drop_joints_of_equals(order);
    check_replicas();
    merge_equals();
    take_in_others();
  }

  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  /// The ranks of another stage are found by the first rank of their group.
  const std::vector<std::int64_t>* group_of(const MergeNode& node) const {
    const std::int64_t rank = node.own.rank->number;
    const auto found = std::ranges::find_if(
        groups_, [&](const auto& group) { return !group.empty() && group.front() == rank; });
    return found == groups_.end() ? nullptr : &*found;
  }

  /// The name of a node in the graph of another rank. Operations of other stages have a rank in their names,
  /// which is replaced by the corresponding rank.
  std::string name_there(const MergeNode& node, std::size_t other) const {
    if (node.own.rank == nullptr || !is_name_with_rank(node.name)) return node.name;
    const std::vector<std::int64_t>* ranks = group_of(node);
    if (ranks == nullptr || other >= ranks->size()) return node.name;
    const std::string from = "_rank" + std::to_string(ranks->front()) + ".";
    std::string name = node.name;
    if (const std::size_t at = name.find(from); at != std::string::npos)
      name.replace(at, from.size(), "_rank" + std::to_string((*ranks)[other]) + ".");
    return name;
  }

  bool is_merged(NodeIndex index) const {
    const MergeNode& node = main_.node(index);
    if (node.parent == kNoNode || is_communication(node.name)) return false;
    const MergeNode& parent = main_.node(node.parent);
    return parent.type == NodeType::module && parent.name != "optimizer" && parent.name != "clip_grad";
  }

  /// How the node joins its partners; nothing if a rank has no such node.
  std::unique_ptr<MergedData> joint_of(NodeIndex index) const {
    auto joint = std::make_unique<MergedData>();
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i][index] == kNoNode) return nullptr;
      joint->partners.push_back({group_[i + 1], found_[i][index]});
    }
    const std::vector<std::int64_t>* ranks = group_of(main_.node(index));
    if (ranks != nullptr) {
      joint->ranks = *ranks;
    } else {
      for (const auto& graph : group_) joint->ranks.push_back(graph->rank());
    }
    return joint;
  }

  /// If the ranks hold terms of a product and a reduction sums them up at once, the sum becomes the product's
  /// output.
  void apply_reduce_rule(NodeIndex module) {
    const MergeNode& node = main_.node(module);
    if (node.type != NodeType::module ||
        !(is_of_class(node.name, "forward", kRow) || is_of_class(node.name, "backward", kColumn)))
      return;
    std::vector<NodeIndex> sums;
    for (const NodeIndex child : node.children) {
      if (is_reduce(child)) sums.push_back(child);
    }
    for (const NodeIndex child : node.children) {
      if (sums.empty()) return;
      if (!has(main_.node(child).name, "matmul") || main_.node(child).joint) continue;
      const auto product = content_of(main_.node(child));
      if (!product) continue;
      const auto sum = std::ranges::find_if(sums, [&](NodeIndex each) { return adds_up(*product, each); });
      if (sum == sums.end()) continue;
      std::unique_ptr<MergedData> joint = joint_of(child);
      if (!joint) joint = std::make_unique<MergedData>();
      joint->reduced = *sum;
      main_.node(child).joint = std::move(joint);
      sums.erase(sum);
    }
  }

  bool is_reduce(NodeIndex index) const {
    const std::string_view name = main_.node(index).name;
    return has(name, "all_reduce") || has(name, "_reduce_scatter_base") || has(name, "reduce_scatter_tensor");
  }

  bool adds_up(const NodeContent& product, NodeIndex reduce) const {
    const auto sum = content_of(main_.node(reduce));
    if (!sum) return false;
    const auto& outputs = product.items.side;
    const auto output = std::ranges::find_if(
        outputs.items, [](const dump::Item& item) { return item.state == dump::State::output; });
    if (output == outputs.items.end()) return false;
    const std::size_t wanted = has(main_.node(reduce).name, "all_reduce") ? 0 : 1;
    const auto& inputs = sum->items.side;
    std::size_t place = 0;
    for (const dump::Item& item : inputs.items) {
      if (item.state != dump::State::input || place++ != wanted) continue;
      return equal(outputs, *output, inputs, item);
    }
    return false;
  }

  static bool equal(const dump::Side& a, const dump::Item& a_item, const dump::Side& b,
                    const dump::Item& b_item) {
    for (std::size_t which = 0; which < dump::kStatistics; ++which) {
      if (dump::to_text(a_item.statistics[which], a.pool) != dump::to_text(b_item.statistics[which], b.pool))
        return false;
    }
    return true;
  }

  /// Nodes with equal data on all ranks stay unmerged.
  void drop_joints_of_equals(const std::vector<NodeIndex>& nodes) {
    std::vector<char> merged(nodes.size());
    parallel_blocks(nodes.size(), [&](std::size_t i) {
      merged[i] = main_.node(nodes[i]).joint->reduced != kNoNode || joined_content(main_, nodes[i]).merged;
    });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      MergeNode& node = main_.node(nodes[i]);
      if (merged[i] == 0) node.peers = std::exchange(node.joint, nullptr);
    }
  }

  /// Warns about values that should be equal on all ranks but differ. All ranks hold sums over the ranks and
  /// weights of norms whole and, unless they share the sequence, also the inputs of column-parallel and the
  /// outputs of row-parallel layers and of norms.
  void check_replicas() {
    std::vector<NodeIndex> nodes = main_.below(kRoot);
    std::ranges::sort(nodes);
    const bool by_sequence = std::ranges::any_of(
        nodes, [&](NodeIndex index) { return has(main_.node(index).name, "reduce_scatter"); });
    std::vector<std::vector<std::string>> lines(nodes.size());
    parallel_blocks(nodes.size(), [&](std::size_t i) {
      const MergeNode& node = main_.node(nodes[i]);
      const bool sum = node.name.starts_with("Distributed.all_reduce");
      // A node without a joint has equal data on all ranks, unless it is a sum, which this function compares
      // itself.
      if (!sum && (!node.joint || !model_tree::is_call_of(node.name, "forward"))) return;
      const std::string_view kind = class_of(node.name);
      const bool norm = has(kind, "Norm") || has(kind, "norm");
      const bool row = has(kind, kRow);
      const bool column = has(kind, kColumn);
      if (!sum && !norm && !row && !column) return;
      lines[i] = check_replica(nodes[i], [&](const dump::Side& side, const dump::Item& item, bool first) {
        if (sum) return first && item.state == dump::State::output;
        if (item.state == dump::State::parameters) return norm || (row && side.name(item).ends_with(".bias"));
        if (by_sequence) return false;
        return item.state == dump::State::output ? norm || row : norm || (column && first);
      });
    });
    for (std::vector<std::string>& each : lines)
      std::move(each.begin(), each.end(), std::back_inserter(warnings_));
  }

  /// Returns a line for each item that differs. `is_whole` gets an item and whether it is the first of its
  /// kind.
  template <typename IsWhole>
  std::vector<std::string> check_replica(NodeIndex index, const IsWhole& is_whole) const {
    std::vector<std::string> lines;
    const MergeNode& node = main_.node(index);
    const std::unique_ptr<MergedData> joint = joint_of(index);
    const auto main = joint ? content_of(node) : std::nullopt;
    if (!main) return lines;
    const dump::Side& side = main->items.side;
    if (is_communication(node.name) && ranks_of_call(main->entry) != joint->ranks) return lines;
    std::vector<std::optional<NodeContent>> others;
    for (const MergedData::Partner& partner : joint->partners)
      others.push_back(content_of(partner.graph->node(partner.node), node.name));
    for (std::size_t k = 0; k < side.items.size(); ++k) {
      const dump::Item& item = side.items[k];
      const bool first = k == 0 || side.items[k - 1].state != item.state;
      if (!is_whole(side, item, first)) continue;
      const auto differs = [&](const std::optional<NodeContent>& other) {
        if (!other || k >= other->items.side.items.size()) return false;
        const dump::Item& there = other->items.side.items[k];
        return side.name(item) == other->items.side.name(there) &&
               !same_statistics(side, item, other->items.side, there);
      };
      const auto found = std::ranges::find_if(others, differs);
      if (found == others.end()) continue;
      const auto more = std::count_if(found + 1, others.end(), differs);
      const auto norm_of = [k](const dump::Side& of) {
        return dump::to_text(of.items[k].statistics[dump::kNorm], of.pool);
      };
      lines.push_back(
          fmt::format("{} differs between ranks {} and {}{}, which should be equal: norms {} and {}",
                      display(side.name(item)), joint->ranks.front(),
                      joint->ranks[static_cast<std::size_t>(found - others.begin()) + 1],
                      more == 0 ? "" : fmt::format(" (and {} more)", more), norm_of(side),
                      norm_of((*found)->items.side)));
    }
    return lines;
  }

  /// Merges shards that happen to be equal, from the first column-parallel layer among the children of a node
  /// to the last row-parallel one.
  void merge_equals() {
    std::vector<NodeIndex> columns = main_.below(kRoot);
    std::erase_if(columns, [&](NodeIndex index) {
      return !is_of_class(main_.node(index).name, "forward", kColumn) || main_.node(index).joint;
    });
    std::ranges::sort(columns);
    std::vector<char> parents_seen(main_.size());
    std::vector<char> seen(main_.size());
    for (const NodeIndex column : columns) {
      const NodeIndex parent = main_.node(column).parent;
      // An earlier iteration may have merged it with its siblings.
      if (main_.node(column).joint || std::exchange(parents_seen[parent], 1) != 0) continue;
      const auto& siblings = main_.node(parent).children;
      auto begin = siblings.begin();
      while (!is_of_class(main_.node(*begin).name, "forward", kColumn) || main_.node(*begin).joint) ++begin;
      auto end = siblings.end();
      while (end != begin && !has(class_of(main_.node(*(end - 1)).name), kRow)) --end;
      for (auto each = begin; each < end; ++each) merge_all_below(*each, *begin, *(end - 1), seen);
    }
  }

  void merge_all_below(NodeIndex top, NodeIndex column, NodeIndex row, std::vector<char>& seen) {
    std::vector<NodeIndex> open = {top};
    while (!open.empty()) {
      const NodeIndex index = open.back();
      open.pop_back();
      if (std::exchange(seen[index], 1) != 0) continue;
      merge_equal(index, column, row);
      const auto& children = main_.node(index).children;
      open.insert(open.end(), children.begin(), children.end());
    }
  }

  void merge_equal(NodeIndex index, NodeIndex column, NodeIndex row) {
    MergeNode& node = main_.node(index);
    if (node.joint || is_communication(node.name)) return;
    std::unique_ptr<MergedData> joint = joint_of(index);
    if (!joint) return;
    joint->though_equal = true;
    const NodeIndex module = has(node.name, "matmul") ? node.parent : index;
    const auto is = [&](NodeIndex wanted, std::string_view kind) {
      return module == wanted || is_of_class(main_.node(module).name, "forward", kind);
    };
    joint->keeps_first_input = is(column, kColumn);
    joint->keeps_outputs = joint->keeps_bias = is(row, kRow);
    node.joint = std::move(joint);
  }

  /// Takes in nodes that only other ranks have below a module, such as their experts. Each goes after the
  /// node that precedes it on its own rank.
  void take_in_others() {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const MergeGraph& other = *group_[i + 1];
      std::vector<NodeIndex> here(other.size(), kNoNode);
      for (NodeIndex index = 0; index < found_[i].size(); ++index) {
        if (found_[i][index] != kNoNode) here[found_[i][index]] = index;
      }
      for (const NodeIndex parent : other.below(kRoot)) {
        const MergeNode& node = other.node(parent);
        if (here[parent] != kNoNode && node.type == NodeType::module && node.name != "optimizer" &&
            node.name != "clip_grad")
          take_in_children(other, parent, here);
      }
    }
  }

  void take_in_children(const MergeGraph& other, NodeIndex parent, const std::vector<NodeIndex>& here) {
    std::unordered_map<NodeIndex, std::vector<NodeIndex>> behind;
    NodeIndex before = kNoNode;
    for (const NodeIndex child : other.node(parent).children) {
      const MergeNode& node = other.node(child);
      if (here[child] != kNoNode) {
        before = here[child];
      } else if (node.type != NodeType::collection && !is_communication(node.name) &&
                 main_.find(node.name) == kNoNode) {
        const NodeIndex added = main_.copy(other, child);
        main_.node(added).parent = here[parent];
        behind[before].push_back(added);
      }
    }
    if (behind.empty()) return;
    std::vector<NodeIndex> children = behind[kNoNode];
    for (const NodeIndex child : main_.node(here[parent]).children) {
      children.push_back(child);
      const auto found = behind.find(child);
      if (found != behind.end()) children.insert(children.end(), found->second.begin(), found->second.end());
    }
    main_.node(here[parent]).children = std::move(children);
  }

  MergeGraph& main_;
  const MergeGroup& group_;
  const RankGroups& groups_;
  std::vector<std::vector<NodeIndex>> found_;  // of each other rank, by node
  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> merge_tensor_parallel(const MergeGroup& group, const RankGroups& groups) {
  TensorParallelMerger merger(group, groups);
  merger.merge();
  return merger.take_warnings();
}

}  // namespace msprobe::graph

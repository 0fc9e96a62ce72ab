// SPDX-License-Identifier: Apache-2.0
// Merges tensor-parallel ranks: finds the nodes that hold parts of the same values, and plans how to join
// them.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dump/side.hpp"
#include "dump/value.hpp"
#include "graph/edges.hpp"
#include "graph/merge/merge_steps.hpp"
#include "graph/merge/node_content.hpp"
#include "graph/merge/parallel_plan.hpp"
#include "pairing/joins.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// The statistics as one text, to find equal ones; empty if none is a number.
std::string numbers_of(const dump::Side& side, const dump::Item& item) {
  std::string numbers;
  for (std::size_t which = 0; which < dump::kStatistics; ++which) {
    if (pairing::number_in(item.statistics[which]))
      numbers += dump::to_text(item.statistics[which], side.pool) + ' ';
  }
  return numbers;
}

/// The facts of one node about values that each rank holds whole.
struct Replicas {
  std::vector<std::string> shapes;  // of tensors that are equal on all ranks
  struct RankDrift {
    std::string if_whole;  // it counts if each rank holds tensors of this shape whole; empty: always
    std::string message;
  };
  std::vector<RankDrift> drifts;
};

class TensorParallelMerger {
 public:
  TensorParallelMerger(const MergeGroup& group, const RankGroups& groups)
      : main_(*group.front()), group_(group), groups_(groups) {}

  void merge() {
    for (std::size_t i = 1; i < group_.size(); ++i) {
      found_.push_back(
          namesakes(main_, *group_[i], [&](const MergeNode& node) { return name_there(node, i); }));
    }
    std::vector<NodeIndex> nodes = main_.below(kRoot);
    std::ranges::sort(nodes);
    for (const NodeIndex index : nodes) {
      if (is_merged(index)) main_.node(index).joint = joint_of(index);
    }
    for (const NodeIndex index : nodes) find_sums(index);
    check_replicas(nodes);
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
    return node.parent != kNoNode && !is_communication(node.name) && is_of_model(main_.node(node.parent));
  }

  std::vector<std::int64_t> ranks_of(const MergeNode& node) const {
    if (const std::vector<std::int64_t>* const ranks = group_of(node)) return *ranks;
    std::vector<std::int64_t> ranks;
    for (const auto& graph : group_) ranks.push_back(graph->rank());
    return ranks;
  }

  /// How the node joins its partners; nothing if a rank has no such node.
  std::unique_ptr<MergedData> joint_of(NodeIndex index) const {
    auto joint = std::make_unique<MergedData>();
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i][index] == kNoNode) return nullptr;
      joint->partners.push_back({group_[i + 1], found_[i][index]});
    }
    joint->ranks = ranks_of(main_.node(index));
    return joint;
  }

  /// If the ranks sum up what an operation of the module has made, the sum becomes its output.
  void find_sums(NodeIndex module) {
    const auto& children = main_.node(module).children;
    if (std::ranges::none_of(children, [&](NodeIndex each) { return is_reduction(main_.node(each).name); }))
      return;
    std::unordered_map<std::string, NodeIndex> made;  // by the numbers of the first output
    for (const NodeIndex child : children) {
      const auto content = content_of(main_.node(child));
      if (!content) continue;
      const dump::Side& side = content->items.side;
      if (is_reduction(main_.node(child).name)) {
        if (!is_of_group(child, content->entry)) continue;
        for (const dump::Item& item : side.items) {
          if (item.state != dump::State::input) continue;
          if (const auto found = made.extract(numbers_of(side, item))) take_sum(found.mapped(), child);
        }
      } else if (is_merged(child)) {
        const auto output = std::ranges::find(side.items, dump::State::output, &dump::Item::state);
        if (output == side.items.end()) continue;
        if (const std::string numbers = numbers_of(side, *output); !numbers.empty()) made[numbers] = child;
      }
    }
  }

  void take_sum(NodeIndex term, NodeIndex sum) {
    std::unique_ptr<MergedData>& joint = main_.node(term).joint;
    if (!joint) joint = std::make_unique<MergedData>();
    joint->reduced = sum;
  }

  /// False if the call names other ranks than the merged ones.
  bool is_of_group(NodeIndex index, const dump::Entry& call) const {
    const std::vector<std::int64_t> named = ranks_of_call(call);
    return named.empty() || named == ranks_of(main_.node(index));
  }

  /// Warns about values that should be equal on all ranks but differ.
  void check_replicas(const std::vector<NodeIndex>& nodes) {
    std::vector<Replicas> found(nodes.size());
    parallel_blocks(nodes.size(), [&](std::size_t i) { found[i] = replicas_of(nodes[i]); });
    std::unordered_set<std::string> wholes = {""};
    for (const Replicas& each : found) wholes.insert(each.shapes.begin(), each.shapes.end());
    for (Replicas& each : found) {
      for (Replicas::RankDrift& drift : each.drifts) {
        if (wholes.contains(drift.if_whole)) warnings_.push_back(std::move(drift.message));
      }
    }
  }

  /// Each rank holds a sum over the ranks whole, and so a bias that is added to it. The weights of a module
  /// that keeps the shape of its input and has no matrix, as a norm, are whole, too; its input and output are
  /// if they have the shape of a tensor that is equal on all ranks.
  Replicas replicas_of(NodeIndex index) const {
    Replicas found;
    const MergeNode& node = main_.node(index);
    const bool sum = node.name.starts_with("Distributed.all_reduce");
    if (!sum && (!node.joint || !model_tree::is_call_of(node.name, "forward"))) return found;
    const std::unique_ptr<MergedData> joint = joint_of(index);
    const SplitContent split = joint ? split_content(node, joint.get()) : SplitContent();
    if (!split.content || (sum && ranks_of_call(split.content->entry) != joint->ranks)) return found;
    const dump::Side& side = split.content->items.side;
    const auto shape_of_first = [&](dump::State state) {
      const auto item = std::ranges::find(side.items, state, &dump::Item::state);
      return item == side.items.end() ? std::string_view() : side.text(item->shape);
    };
    const std::string_view output = shape_of_first(dump::State::output);
    const auto axes = pairing::axes_of(output);
    const std::string width = axes && !axes->empty() ? fmt::format("[{}]", axes->back()) : "";
    const auto is_matrix = [&](const dump::Item& item) {
      return item.state == dump::State::parameters && side.text(item.shape) != width;
    };
    const bool norm =
        output == shape_of_first(dump::State::input) &&
        std::ranges::find(side.items, dump::State::parameters, &dump::Item::state) != side.items.end() &&
        std::ranges::none_of(side.items, is_matrix);
    const bool sums = std::ranges::any_of(node.children, [&](NodeIndex child) {
      return main_.node(child).joint && main_.node(child).joint->reduced != kNoNode;
    });
    for (std::size_t k = 0; k < side.items.size(); ++k) {
      const dump::Item& item = side.items[k];
      const bool parameter = item.state == dump::State::parameters;
      const bool result = item.state == dump::State::output;
      const std::string shape(side.text(item.shape));
      const std::vector<std::size_t> differing = differing_partners(split, k);
      if (differing.empty()) {
        if (!parameter && shape.find(',') != std::string::npos) found.shapes.push_back(shape);
      } else if (sum ? result : parameter ? (norm || sums) && !is_matrix(item) : norm || (sums && result)) {
        found.drifts.push_back(
            {sum || parameter ? "" : shape, message_about(split, k, differing, joint->ranks)});
      }
    }
    return found;
  }

  static std::vector<std::size_t> differing_partners(const SplitContent& split, std::size_t item) {
    const dump::Side& side = split.content->items.side;
    const std::vector<const dump::Item*> partners = split.partners(item);
    std::vector<std::size_t> differing;
    for (std::size_t i = 0; i < partners.size(); ++i) {
      if (!same_statistics(side, side.items[item], split.others[i]->items.side, *partners[i]))
        differing.push_back(i);
    }
    return differing;
  }

  static std::string message_about(const SplitContent& split, std::size_t item,
                                   const std::vector<std::size_t>& differing,
                                   const std::vector<std::int64_t>& ranks) {
    const dump::Side& side = split.content->items.side;
    const std::size_t first = differing.front();
    const auto norm_of = [](const dump::Item& of, const dump::Side& in) {
      return dump::to_text(of.statistics[dump::kNorm], in.pool);
    };
    return fmt::format("{} differs between ranks {} and {}{}, which should be equal: norms {} and {}",
                       display(side.name(side.items[item])), ranks.front(), ranks[first + 1],
                       differing.size() == 1 ? "" : fmt::format(" (and {} more)", differing.size() - 1),
                       norm_of(side.items[item], side),
                       norm_of(*split.partners(item)[first], split.others[first]->items.side));
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
        if (here[parent] != kNoNode && is_of_model(other.node(parent))) take_in_children(other, parent, here);
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

// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/merged_source.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/data/overflow.hpp"
#include "graph/merge/node_content.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {

MergedSource::MergedSource(std::shared_ptr<const MergeGraph> graph, const DataOptions& options,
                           bool overflow_check)
    : graph_(std::move(graph)), options_(options), overflow_check_(overflow_check), origins_(1, kNoNode) {
  std::vector<NodeIndex> order = graph_->below(kRoot);
  std::ranges::sort(order);
  std::unordered_map<NodeIndex, model_tree::NodeIndex> added;
  std::unordered_map<std::string_view, std::size_t> times;  // a name was given to two nodes
  for (const NodeIndex index : order) {
    const MergeNode& node = graph_->node(index);
    std::string name = node.name;
    while (index != kRoot && tree_.find(name) != model_tree::kNoNode)
      name = node.name + "_again" + std::to_string(++times[node.name]);
    const model_tree::NodeIndex here = tree_.add(name);
    added[index] = here;
    model_tree::Node& copy = tree_.node(here);
    copy.type = node.type;
    copy.micro_step = node.micro_step;
    if (node.own.rank != nullptr)
      copy.stack = tree_.add_stack(node.own.rank->graph.built.tree.stack(node.stack));
    origins_.resize(tree_.size(), kNoNode);
    origins_[here] = index;
  }
  for (const NodeIndex index : order) {
    for (const NodeIndex child : graph_->node(index).children) tree_.attach(added.at(child), added.at(index));
  }
  tree_.steps_recorded = graph_->main_rank().graph.built.tree.steps_recorded;
  for (const NodeIndex index : order)
    tree_.micro_steps = std::max(tree_.micro_steps, graph_->node(index).micro_step + 1);
  tree_.micro_steps = std::max(tree_.micro_steps, graph_->main_rank().graph.built.tree.micro_steps);
}

std::optional<std::string> MergedSource::tensor_folder() const {
  return graph_->main_rank().graph.tensor_folder();
}

void MergedSource::follow(std::shared_ptr<const pairing::Joins> joins, const dump::Side& items) {
  joins_ = std::move(joins);
  first_items_.assign(tree_.size(), UINT32_MAX);
  for (const dump::Api& api : items.apis) {
    const model_tree::NodeIndex node = tree_.find(items.text(api.name));
    if (node != model_tree::kNoNode) first_items_[node] = api.first;
  }
}

std::string_view MergedSource::level_of(NodeIndex index) const {
  // As each rank found it: a jump of the norm is one between values of one rank.
  const MergeNode& node = graph_->node(index);
  std::string_view worst;
  const auto look = [&](const MergeNode& each) {
    const auto content = content_of(each);
    const std::string_view level =
        content ? overflow_level(each.name, content->entry, options_) : std::string_view();
    const auto rank_of = [](std::string_view text) {
      return text == "critical" ? 3 : text == "high" ? 2 : text == "medium" ? 1 : 0;
    };
    if (rank_of(level) > rank_of(worst)) worst = level;
  };
  look(node);
  if (node.joint) {
    for (const MergedData::Partner& partner : node.joint->partners) look(partner.graph->node(partner.node));
  }
  return worst;
}

NodeData MergedSource::data(model_tree::NodeIndex node) const {
  NodeData data;
  const NodeIndex index = origins_[node];
  Decisions decisions;
  if (joins_ && first_items_[node] != UINT32_MAX) decisions = {joins_.get(), first_items_[node]};
  JoinedContent joined = joined_content(*graph_, index, decisions);
  if (!joined.sentences.empty()) {
    JsonWriter json;
    json.value(joined.sentences);
    data.parallel_merge_info = json.take();
  }
  if (!joined.content) return data;
  const std::string& name = graph_->node(index).name;
  data.items = item_texts(joined.content->items, joined.content->entry, name, options_);
  if (overflow_check_) data.overflow_level = level_of(index);
  return data;
}

}  // namespace msprobe::graph

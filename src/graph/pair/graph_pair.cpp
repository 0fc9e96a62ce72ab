// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/graph_pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "diagnosis/other_code.hpp"
#include "graph/pair/item_pairs.hpp"
#include "graph/pair/release8.hpp"
#include "graph/pair/result_members.hpp"
#include "measuring/bytes_ahead.hpp"
#include "measuring/choose_mode.hpp"
#include "measuring/settle_joins.hpp"
#include "measuring/sum_precision.hpp"
#include "measuring/tensor_rows.hpp"
#include "pairing/alignment.hpp"
#include "pairing/layer_mapping.hpp"
#include "pairing/match.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

using model_tree::kNoNode;
using model_tree::ModelTree;
using model_tree::NodeIndex;
using model_tree::NodeType;
using pairing::kUnmatched;
using verdict::RankResult;
using verdict::Verdict;

NodeEntries entries_of(const ModelTree& tree, const dump::Side& side) {
  NodeEntries entries(tree.size(), kNoEntry);
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    const NodeIndex node = tree.find(side.text(side.apis[api].name));
    if (node != kNoNode) entries[node] = api;
  }
  return entries;
}

/// The names from the root to the node. If a node is so deep that its ancestors' names would fill the file,
/// only its own name is returned.
std::vector<std::string_view> path_to(const ModelTree& tree, NodeIndex node) {
  constexpr std::size_t kMostText = std::size_t{8} << 10;
  std::vector<std::string_view> names;
  std::size_t size = 0;
  for (NodeIndex at = node; at != kNoNode; at = tree.node(at).parent) {
    names.push_back(tree.name(at));
    size += names.back().size();
    if (size > kMostText) {
      names.resize(1);
      break;
    }
  }
  std::reverse(names.begin(), names.end());
  return names;
}

/// Operations whose result is the previous content of the memory.
bool has_undefined_result(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "empty", "empty_like", "empty_with_format", "new_empty_strided", "new_empty", "empty_strided"};
  const auto parts = split(name, ".");
  return parts.size() > 1 && std::find(kNames.begin(), kNames.end(), parts[1]) != kNames.end();
}

/// A graph that knows its partner.
class LinkedSource : public NodeSource {
 public:
  LinkedSource(const NodeSource& source, const ModelTree& other, const std::vector<NodeIndex>& partners)
      : source_(source), other_(other), partners_(partners) {}

  const ModelTree& tree() const override { return source_.tree(); }
  std::optional<std::string> tensor_folder() const override { return source_.tensor_folder(); }
  NodeData data(NodeIndex node) const override {
    NodeData data = source_.data(node);
    if (partners_[node] != kNoNode) data.partner = path_to(other_, partners_[node]);
    return data;
  }

 protected:
  bool is_paired(NodeIndex node) const { return partners_[node] != kNoNode; }

 private:
  const NodeSource& source_;
  const ModelTree& other_;
  const std::vector<NodeIndex>& partners_;
};

/// The side under test, with the results of the comparison.
class JudgedSource final : public LinkedSource {
 public:
  JudgedSource(const LinkedSource& linked, const RankResult& result, const NodeEntries& entries,
               ComparedBy task, const PairOptions& options)
      : LinkedSource(linked), result_(result), entries_(entries), task_(task), options_(options) {}

  NodeData data(NodeIndex node) const override {
    NodeData data = LinkedSource::data(node);
    data.precision_index = precision_index(node);
    if (options_.as_release8) data.release8 = release8(node);
    if (!has_rows(node)) return data;
    if (result_.diagnosis) tell_origin(entries_[node], data);
    const std::uint32_t first = result_.target.apis[entries_[node]].first;
    for (ItemText& item : data.items) {
      if (item.closed) continue;
      TextMembers members = options_.as_release8
                                ? release8_members(result_, first + item.number)
                                : result_members(result_, first + item.number, options_.python_values);
      std::move(members.begin(), members.end(), std::back_inserter(item.members));
    }
    return data;
  }

 private:
  bool has_rows(NodeIndex node) const {
    return task_ != ComparedBy::structure && is_paired(node) && entries_[node] != kNoEntry;
  }

  /// The worst of its items, and the evidence that the node is to blame.
  void tell_origin(std::uint32_t api, NodeData& data) const {
    using diagnosis::Origin;
    const diagnosis::RankDiagnosis& found = *result_.diagnosis;
    const dump::Api& entry = result_.target.apis[api];
    Origin worst = Origin::equal;
    for (const std::uint32_t i : entry.items()) {
      worst = std::max(worst, result_.origin(result_.rows[i]));
      if (!std::isnan(found.error[i])) data.error = std::max<double>(data.error.value_or(0), found.error[i]);
    }
    data.origin = diagnosis::name_of(worst);
    if (is_to_blame(api)) data.finding = found.finding_of(api)->text;
  }

  bool is_to_blame(std::uint32_t api) const {
    const diagnosis::Finding* const finding =
        result_.diagnosis ? result_.diagnosis->finding_of(api) : nullptr;
    return finding != nullptr && finding->is_evidence();
  }

  Release8 release8(NodeIndex node) const {
    if (tree().node(node).type == NodeType::collection) {
      std::vector<Release8> held;
      for (const NodeIndex child : tree().node(node).children) held.push_back(release8(child));
      return release8_collection(held, task_ == ComparedBy::md5);
    }
    if (!has_rows(node) || result_.target.apis[entries_[node]].count == 0) return {};
    Release8 found = release8_node(result_, result_.target.apis[entries_[node]]);
    if (has_undefined_result(tree().name(node))) {
      found.index = task_ == ComparedBy::md5 ? 1 : 0;
      found.is_real = false;
    }
    return found;
  }

  std::optional<double> precision_index(NodeIndex node) const {
    if (tree().node(node).type == NodeType::collection) return index_of_collection(node);
    if (!has_rows(node)) return std::nullopt;
    const dump::Api& entry = result_.target.apis[entries_[node]];
    if (entry.count == 0) return std::nullopt;
    if (has_undefined_result(tree().name(node)))
      return options_.python_values && task_ == ComparedBy::md5 ? 1 : 0;
    Verdict worst = Verdict::pass;
    for (const std::uint32_t i : entry.items()) worst = std::max(worst, result_.verdict(i));
    // A part of a model that is wrong shows little in the numbers of the whole.
    if (result_.target_joins && is_to_blame(entries_[node])) worst = Verdict::error;
    return static_cast<double>(worst) / 2;
  }

  /// The worst index of the nodes in the collection, which may be collections, too.
  std::optional<double> index_of_collection(NodeIndex node) const {
    std::optional<double> worst;
    if (options_.python_values) worst = 0;
    if (options_.python_values && task_ == ComparedBy::tensors) return worst;
    for (const NodeIndex child : tree().node(node).children)
      worst = std::max(worst, precision_index(child));  // without one is less than any
    return worst;
  }

  const RankResult& result_;
  const NodeEntries& entries_;
  ComparedBy task_;
  const PairOptions& options_;
};

measuring::Mode mode_of(ComparedBy task) {
  if (task == ComparedBy::md5) return measuring::Mode::md5;
  return task == ComparedBy::tensors ? measuring::Mode::tensor : measuring::Mode::statistics;
}

const dump::ConstructTable* table_of(const dump::ConstructBeside* construct) {
  return construct == nullptr ? nullptr : &construct->table();
}

}  // namespace

ComparedBy compared_by(const dump::Side& target, const dump::Side& golden) {
  const measuring::Mode mode = measuring::choose_mode(target, golden);
  if (const std::string data = measuring::other_data(target, golden); !data.empty())
    log_warning(fmt::format("{}: {}", display(target.json), data));
  if (target.header.task == "structure" || golden.header.task == "structure") return ComparedBy::structure;
  if (mode == measuring::Mode::tensor) return ComparedBy::tensors;
  return mode == measuring::Mode::md5 ? ComparedBy::md5 : ComparedBy::statistics;
}

GraphPair::GraphPair(GraphSide target, GraphSide golden, ComparedBy task, const PairOptions& options,
                     const pairing::Rules& rules, diagnosis::RankHistory* past)
    : options_(options), task_(task), target_tree_(target.tree), golden_tree_(golden.tree) {
  result_.mode = mode_of(task_);
  result_.python = options_.python;
  result_.merged_ranks = options_.across_ranks;
  result_.framework_frames = rules.framework_frames;
  result_.target = std::move(target.items);
  result_.golden = std::move(golden.items);
  result_.target_joins = std::move(target.joins);
  result_.golden_joins = std::move(golden.joins);
  target_entries_ = entries_of(target_tree_, result_.target);
  golden_entries_ = entries_of(golden_tree_, result_.golden);
  pair_nodes(target, golden);
  if (!golden_tree_.steps_recorded) pair_micro_steps(target_tree_, golden_tree_, pairs_);
  if (task_ != ComparedBy::structure) {
    result_.target_construct = {std::shared_ptr<void>(), target.construct};  // it is kept elsewhere
    result_.golden_construct = {std::shared_ptr<void>(), golden.construct};
    compare_items(rules, past);
  }
  const LinkedSource linked(target.source, golden_tree_, pairs_.golden_of);
  target_ = std::make_unique<JudgedSource>(linked, result_, target_entries_, task_, options_);
  golden_ = std::make_unique<LinkedSource>(golden.source, target_tree_, pairs_.target_of);
}

void GraphPair::pair_nodes(const GraphSide& target, const GraphSide& golden) {
  const TreePair trees = {target_tree_, golden_tree_, target_entries_, golden_entries_};
  if (options_.pairing == NodePairing::calls) {
    pairs_ = pair_calls(trees, options_.across_ranks);
  } else if (options_.pairing == NodePairing::layers) {
    pairs_ = pair_entries(trees, layer_partners(target.construct, golden.construct));
  } else if (options_.python_values || pairing::same_calls(result_.target, result_.golden)) {
    pairs_ = pair_names(trees, options_.python_values);
  } else {
    result_.alignment = std::make_shared<const pairing::Alignment>(pairing::align(
        result_.target, result_.golden, table_of(target.construct), table_of(golden.construct)));
    pairs_ = pair_aligned(trees, result_.alignment->golden_of);
  }
}

std::vector<std::uint32_t> GraphPair::layer_partners(const dump::ConstructBeside* target,
                                                     const dump::ConstructBeside* golden) const {
  auto [partners, applies] =
      pairing::map_layers(result_.target, pairing::read_model_places(result_.target, target), result_.golden,
                          pairing::read_model_places(result_.golden, golden), options_.layers);
  if (!options_.layers.empty() && !applies)
    log_warning(display(result_.target.json) + ": nothing in it has a name of the mapping of -lm");
  // Names of too few parts have no place; they go by themselves.
  constexpr std::size_t kPartsOfPlace = 4;
  for (std::uint32_t api = 0; api < partners.size(); ++api) {
    const std::string_view name = result_.target.text(result_.target.apis[api].name);
    if (partners[api] != kUnmatched || split(name, ".").size() >= kPartsOfPlace) continue;
    const NodeIndex node = golden_tree_.find(name);
    if (node != kNoNode) partners[api] = golden_entries_[node];
  }
  return partners;
}

void GraphPair::compare_items(const pairing::Rules& rules, diagnosis::RankHistory* past) {
  std::vector<std::uint32_t> golden_of(result_.target.apis.size(), kUnmatched);
  for (NodeIndex node = 0; node < target_entries_.size(); ++node) {
    const NodeIndex partner = pairs_.golden_of[node];
    if (target_entries_[node] == kNoEntry || partner == kNoNode) continue;
    golden_of[target_entries_[node]] =
        golden_entries_[partner] == kNoEntry ? kNoData : golden_entries_[partner];
  }
  pair_items(result_, golden_of);
  tell_other_names();
  measuring::settle_joins(result_);
  std::optional<measuring::TensorRows> tensors;
  measuring::BytesAhead uncounted(nullptr, 1, 0);
  if (result_.mode == measuring::Mode::tensor) {
    tensors.emplace(result_, uncounted);
    tensors->finish(options_.print_rows);
  }
  if (!options_.python.sums_as_recorded) measuring::learn_precision(result_);
  result_.judgement = verdict::judge(result_, rules);
  if (past == nullptr) return;
  pairing::align_entries(result_, options_.pairing != NodePairing::automatic);
  diagnosis::DiagnosisOptions diagnosis;
  diagnosis.two_code_bases = diagnosis::are_two_code_bases(result_);
  // No rank recorded the whole inputs of a merged operation, so none can be replayed.
  const bool merged = result_.target_joins || result_.golden_joins;
  if (merged) diagnosis.replay = diagnosis::ReplayMode::never;
  result_.diagnosis = std::make_shared<const diagnosis::RankDiagnosis>(
      diagnosis::diagnose(result_, diagnosis, rules.framework_frames, *past));
  if (tensors && !merged) past->before = shared_result_;
}

void GraphPair::tell_other_names() {
  if (options_.python_values || options_.pairing == NodePairing::layers || options_.across_ranks) return;
  const auto mark =
      options_.pairing == NodePairing::calls ? pairing::OtherName::fuzzy : pairing::OtherName::aligned;
  pairing::mark_other_names(result_, mark, [](const dump::Side& side, const dump::Item& item) {
    return side.text(side.apis[item.api].name);
  });
}

std::uint32_t GraphPair::micro_steps() const {
  std::uint32_t most = std::max(target_tree_.micro_steps, std::uint32_t{1});
  for (NodeIndex node = 1; node < golden_tree_.size(); ++node)
    most = std::max(most, golden_tree_.node(node).micro_step + 1);
  return most;
}

}  // namespace msprobe::graph

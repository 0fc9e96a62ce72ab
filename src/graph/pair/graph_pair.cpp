// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/graph_pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "dump/names.hpp"
#include "graph/pair/arguments.hpp"
#include "graph/pair/item_pairs.hpp"
#include "graph/pair/release8.hpp"
#include "graph/pair/result_members.hpp"
#include "measuring/bytes_ahead.hpp"
#include "measuring/settle_joins.hpp"
#include "measuring/sum_precision.hpp"
#include "measuring/tensor_rows.hpp"
#include "pairing/alignment.hpp"
#include "pairing/layer_mapping.hpp"
#include "pairing/match.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

using compare::kUnmatched;
using compare::Pair;
using compare::RankResult;
using compare::Verdict;
using model_tree::kNoNode;
using model_tree::ModelTree;
using model_tree::NodeIndex;
using model_tree::NodeType;

NodeEntries entries_of(const ModelTree& tree, const dump::Side& side) {
  NodeEntries entries(tree.size(), kNoEntry);
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    const NodeIndex node = tree.find(side.text(side.apis[api].name));
    if (node != kNoNode) entries[node] = api;
  }
  return entries;
}

/// From the root to the node. A node that stands so deep that the names above it would fill the file is named
/// alone.
std::string path_json(const ModelTree& tree, NodeIndex node) {
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
  JsonWriter json;
  json.value(names);
  return json.take();
}

/// Operations whose result is whatever the memory held.
bool has_undefined_result(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "empty", "empty_like", "empty_with_format", "new_empty_strided", "new_empty", "empty_strided"};
  const auto parts = dump::split(name);
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
    if (partners_[node] != kNoNode) data.matched_node_link = path_json(other_, partners_[node]);
    return data;
  }

 protected:
  bool is_paired(NodeIndex node) const { return partners_[node] != kNoNode; }

 private:
  const NodeSource& source_;
  const ModelTree& other_;
  const std::vector<NodeIndex>& partners_;
};

/// The side under test: with what the comparison says.
class JudgedSource final : public LinkedSource {
 public:
  JudgedSource(const LinkedSource& linked, const RankResult& result, const NodeEntries& entries,
               ComparedBy task, const PairOptions& options)
      : LinkedSource(linked),
        result_(result),
        entries_(entries),
        task_(task),
        traits_(options.traits),
        as_release8_(options.as_release8) {}

  NodeData data(NodeIndex node) const override {
    NodeData data = LinkedSource::data(node);
    data.precision_index = precision_index(node);
    if (as_release8_) data.release8 = release8(node);
    if (!has_rows(node)) return data;
    if (result_.diagnosis) tell_origin(entries_[node], data);
    const std::uint32_t first = result_.target.apis[entries_[node]].first;
    for (ItemText& item : data.items) {
      if (item.closed) continue;
      const std::string members =
          as_release8_ ? release8_members(result_, first + item.number, item, traits_.python_texts)
                       : result_members(result_, first + item.number, traits_.python_texts);
      if (members.empty()) continue;
      item.members += item.members.empty() ? members : ", " + members;
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
    static constexpr std::array<Origin, diagnosis::kOrigins> kByWeight = {
        Origin::equal, Origin::rounding, Origin::not_compared, Origin::propagated, Origin::introduced};
    const diagnosis::RankDiagnosis& found = *result_.diagnosis;
    const dump::Api& entry = result_.target.apis[api];
    std::size_t worst = 0;
    for (std::uint32_t i = entry.first; i < entry.first + entry.count; ++i) {
      const Origin origin = result_.rows[i].matched() ? found.origin[i] : Origin::not_compared;
      const auto* const place = std::find(kByWeight.begin(), kByWeight.end(), origin);
      worst = std::max(worst, static_cast<std::size_t>(place - kByWeight.begin()));
      if (!std::isnan(found.error[i])) data.error = std::max<double>(data.error.value_or(0), found.error[i]);
    }
    data.origin = diagnosis::name_of(kByWeight[worst]);
    if (is_to_blame(api)) data.finding = found.finding_of(api)->text;
  }

  bool is_to_blame(std::uint32_t api) const {
    const diagnosis::Finding* const finding =
        result_.diagnosis ? result_.diagnosis->finding_of(api) : nullptr;
    return finding != nullptr && finding->is_evidence();
  }

  Release8 release8(NodeIndex node) const {
    if (tree().node(node).type == NodeType::collection) {
      const bool measured = !traits_.unmeasured_parents || task_ != ComparedBy::tensors;
      std::vector<Release8> held;
      for (const NodeIndex child : tree().node(node).children) {
        if (measured) held.push_back(release8(child));
      }
      return release8_collection(held, task_ == ComparedBy::md5, traits_.unjudged_collections_pass);
    }
    if (!has_rows(node) || result_.target.apis[entries_[node]].count == 0) return {};
    Release8 found = release8_node(result_, result_.target.apis[entries_[node]], traits_.python_texts);
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
      return traits_.empty_differs && task_ == ComparedBy::md5 ? 1 : 0;
    Verdict worst = Verdict::pass;
    for (std::uint32_t i = entry.first; i < entry.first + entry.count; ++i)
      worst = std::max(worst, result_.verdict(i));
    // A part of a model that is wrong shows little in the numbers of the whole.
    if (result_.target_joins && is_to_blame(entries_[node])) worst = Verdict::error;
    return static_cast<double>(worst) / 2;
  }

  /// The worst of what it holds, which may be collections again.
  std::optional<double> index_of_collection(NodeIndex node) const {
    std::optional<double> worst;
    if (traits_.unjudged_collections_pass) worst = 0;
    if (traits_.unmeasured_parents && task_ == ComparedBy::tensors) return worst;
    for (const NodeIndex child : tree().node(node).children)
      worst = std::max(worst, precision_index(child));  // without one is less than any
    return worst;
  }

  const RankResult& result_;
  const NodeEntries& entries_;
  ComparedBy task_;
  const PairTraits& traits_;
  bool as_release8_;
};

compare::Mode mode_of(ComparedBy task) {
  if (task == ComparedBy::md5) return compare::Mode::md5;
  return task == ComparedBy::tensors ? compare::Mode::tensor : compare::Mode::statistics;
}

const dump::ConstructTable* table_of(const dump::ConstructBeside* construct) {
  return construct == nullptr ? nullptr : &construct->table();
}

}  // namespace

PairTraits python_pair_traits() {
  PairTraits traits = {.pairs_by_name = true,
                       .same_ancestors = true,
                       .items_by_position = true,
                       .tells_counts = false,
                       .old_stacks_only = true,
                       .number_from_name = true,
                       .steps_of_target = true,
                       .unmeasured_parents = true,
                       .unjudged_collections_pass = true,
                       .empty_differs = true,
                       .python_texts = true,
                       .rank = compare::python_rank_traits()};
  traits.rank.measure.numbers_only = true;
  traits.rank.judge.finite_growth_only = false;
  traits.rank.judge.null_says_nothing = true;
  traits.rank.judge.surplus_differs = true;
  return traits;
}

struct GraphPair::Impl {
  Impl(GraphSide&& target, GraphSide&& golden, ComparedBy compared_by, const PairOptions& asked,
       const compare::Rules& rules, diagnosis::RankHistory* past)
      : options(asked), task(compared_by), target_tree(target.tree), golden_tree(golden.tree) {
    result.mode = mode_of(task);
    result.traits = options.traits.rank;
    result.measure_traits = result.traits.measure;
    result.framework_frames = rules.framework_frames;
    result.traits.judge.outputs_by_section = !options.traits.python_texts;
    result.target = std::move(target.items);
    result.golden = std::move(golden.items);
    result.target_joins = std::move(target.joins);
    result.golden_joins = std::move(golden.joins);
    target_entries = entries_of(target_tree, result.target);
    golden_entries = entries_of(golden_tree, result.golden);
    pair_nodes(target, golden);
    if (!golden_tree.steps_recorded)
      pair_micro_steps(target_tree, golden_tree, pairs, options.traits.number_from_name);
    if (task != ComparedBy::structure) {
      result.target_construct = {std::shared_ptr<void>(), target.construct};  // it is kept elsewhere
      result.golden_construct = {std::shared_ptr<void>(), golden.construct};
      compare_items(rules, past);
    }
    const LinkedSource linked(target.source, golden_tree, pairs.golden_of);
    judged.emplace(linked, result, target_entries, task, options);
    other.emplace(golden.source, target_tree, pairs.target_of);
  }

  void pair_nodes(const GraphSide& target, const GraphSide& golden) {
    const TreePair trees = {target_tree, golden_tree, target_entries, golden_entries};
    const PairTraits& traits = options.traits;
    MayPair may_pair;
    if (target.arguments != nullptr && golden.arguments != nullptr) {
      may_pair = [&](NodeIndex ours, NodeIndex theirs) {
        return same_arguments(target.arguments->data(ours), golden.arguments->data(theirs),
                              options.pairing == NodePairing::calls);
      };
    }
    if (options.pairing == NodePairing::calls) {
      pairs = pair_calls(trees, traits.tells_counts, traits.across_ranks, may_pair);
    } else if (options.pairing == NodePairing::layers) {
      pairs = pair_entries(trees, layer_partners(target.construct, golden.construct));
    } else if (traits.pairs_by_name || compare::same_calls(result.target, result.golden)) {
      pairs = pair_names(trees, traits.same_ancestors, may_pair);
    } else {
      result.alignment = std::make_shared<const diagnosis::Alignment>(diagnosis::align(
          result.target, result.golden, table_of(target.construct), table_of(golden.construct)));
      pairs = pair_aligned(trees, result.alignment->golden_of);
    }
  }

  std::vector<std::uint32_t> layer_partners(const dump::ConstructBeside* target,
                                            const dump::ConstructBeside* golden) const {
    const auto places = [&](const dump::Side& side, const dump::ConstructBeside* construct) {
      compare::ModelPlaces found = compare::read_model_places(side, construct);
      if (options.traits.old_stacks_only) found.stacks = {};
      return found;
    };
    std::vector<std::uint32_t> partners =
        compare::map_layers(result.target, places(result.target, target), result.golden,
                            places(result.golden, golden), options.layers, options.traits.rank.pairing);
    // Names of too few parts have no place; they go by themselves.
    constexpr std::size_t kPartsOfPlace = 4;
    for (std::uint32_t api = 0; api < partners.size(); ++api) {
      const std::string_view name = result.target.text(result.target.apis[api].name);
      if (partners[api] != kUnmatched || dump::split(name).size() >= kPartsOfPlace) continue;
      const NodeIndex node = golden_tree.find(name);
      if (node != kNoNode) partners[api] = golden_entries[node];
    }
    return partners;
  }

  void compare_items(const compare::Rules& rules, diagnosis::RankHistory* past) {
    std::vector<std::uint32_t> golden_of(result.target.apis.size(), kUnmatched);
    for (NodeIndex node = 0; node < target_entries.size(); ++node) {
      const NodeIndex partner = pairs.golden_of[node];
      if (target_entries[node] == kNoEntry || partner == kNoNode) continue;
      golden_of[target_entries[node]] =
          golden_entries[partner] == kNoEntry ? kNoData : golden_entries[partner];
    }
    pair_items(result, golden_of, options.traits.items_by_position);
    tell_other_names();
    compare::settle_joins(result);
    std::optional<compare::TensorRows> tensors;
    compare::BytesAhead uncounted(nullptr, 1, 0);
    if (result.mode == compare::Mode::tensor) {
      tensors.emplace(result, uncounted);
      tensors->finish(options.print_rows);
    }
    if (!options.traits.rank.judge.sums_as_recorded) compare::learn_precision(result);
    result.judgement = compare::judge(result, result.traits.judge, rules);
    if (past == nullptr) return;
    compare::align_entries(result, options.pairing != NodePairing::automatic);
    diagnosis::DiagnosisOptions diagnosis;
    // Nobody recorded what goes into the operations of merged ranks as a whole.
    const bool merged = result.target_joins || result.golden_joins;
    if (merged) diagnosis.replay = diagnosis::ReplayMode::never;
    result.diagnosis = std::make_shared<const diagnosis::RankDiagnosis>(
        diagnosis::diagnose(result, diagnosis, rules.framework_frames, *past));
    if (tensors && !merged) past->before = shared_result;
  }

  /// Pairs of other names are told, unless the user named them.
  void tell_other_names() {
    if (options.traits.python_texts || options.pairing == NodePairing::layers ||
        options.traits.rank.judge.merged_ranks)
      return;
    const auto mark =
        options.pairing == NodePairing::calls ? compare::OtherName::fuzzy : compare::OtherName::aligned;
    compare::mark_other_names(result, mark, [](const dump::Side& side, const dump::Item& item) {
      return side.text(side.apis[item.api].name);
    });
  }

  std::uint32_t micro_steps() const {
    if (options.traits.steps_of_target) return target_tree.micro_steps;
    std::uint32_t most = std::max(target_tree.micro_steps, std::uint32_t{1});
    for (NodeIndex node = 1; node < golden_tree.size(); ++node)
      most = std::max(most, golden_tree.node(node).micro_step + 1);
    return most;
  }

  PairOptions options;
  ComparedBy task;
  ModelTree& target_tree;
  ModelTree& golden_tree;
  NodeEntries target_entries;
  NodeEntries golden_entries;
  NodePairs pairs;
  std::shared_ptr<RankResult> shared_result = std::make_shared<RankResult>();
  RankResult& result = *shared_result;
  std::optional<JudgedSource> judged;
  std::optional<LinkedSource> other;
};

GraphPair::GraphPair(GraphSide target, GraphSide golden, ComparedBy task, const PairOptions& options,
                     const compare::Rules& rules, diagnosis::RankHistory* past)
    : impl_(std::make_unique<Impl>(std::move(target), std::move(golden), task, options, rules, past)) {}

GraphPair::~GraphPair() = default;

const NodeSource& GraphPair::target() const {
  return *impl_->judged;
}

const NodeSource& GraphPair::golden() const {
  return *impl_->other;
}

std::uint32_t GraphPair::micro_steps() const {
  return impl_->micro_steps();
}

const std::vector<std::string>& GraphPair::warnings() const {
  return impl_->pairs.warnings;
}

const compare::RankResult& GraphPair::result() const {
  return impl_->result;
}

}  // namespace msprobe::graph

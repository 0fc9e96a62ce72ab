// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/node_content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "dump/value.hpp"
#include "graph/data/item_texts.hpp"
#include "graph/merge/entry_edit.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

using dump::Entry;
using dump::Item;
using dump::Side;
using dump::Value;
using dump::ValueKind;

/// An element type whose values are merged, and how exact it is.
struct Precision {
  int digits = 0;  // of the mantissa; 0: the numbers stay as they are
  int least_exponent = 0;
  double largest = 0;
};
std::optional<Precision> precision_of(std::string_view dtype) {
  constexpr Precision kHalf = {11, -13, 65504};
  constexpr Precision kSingle = {FLT_MANT_DIG, FLT_MIN_EXP, FLT_MAX};
  constexpr Precision kBrain = {8, FLT_MIN_EXP, 0x1.FEp127};
  static const std::map<std::string_view, Precision> kKnown = {
      {"torch.int8", {}},         {"torch.int32", {}},  {"torch.int64", {}},      {"torch.float64", {}},
      {"torch.bfloat16", kBrain}, {"BFloat16", kBrain}, {"torch.float16", kHalf}, {"Float16", kHalf},
      {"torch.float32", kSingle}, {"Float32", kSingle}};
  const auto found = kKnown.find(dtype);
  return found == kKnown.end() ? std::nullopt : std::optional(found->second);
}

double rounded(double value, const Precision& precision) {
  if (precision.digits == 0 || !std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int shift = std::max(exponent, precision.least_exponent) - precision.digits;
  const double near = std::ldexp(std::nearbyint(std::ldexp(value, -shift)), shift);
  return std::fabs(near) > precision.largest ? std::copysign(HUGE_VAL, value) : near;
}

std::optional<double> number_of(const Value& value) {
  if (value.kind == ValueKind::real) return value.real;
  if (value.kind == ValueKind::integer) return static_cast<double>(value.integer);
  return std::nullopt;
}

std::string text_of(const Value& value) {
  return value.kind == ValueKind::integer ? std::to_string(value.integer) : python_repr(value.real);
}

/// Relatively, or absolutely beside a zero.
bool near(double main, double other) {
  constexpr double kTolerance = 1e-6;
  if (std::isnan(main) && std::isnan(other)) return true;
  if (main == other) return true;
  const double difference = std::fabs(main - other);
  return main == 0 ? difference < kTolerance : difference / std::fabs(main) < kTolerance;
}

/// The items of another rank's entry by those of the first; nullptr for none.
class ItemPartners {
 public:
  ItemPartners(const Side& main, const Side& other) : main_(main), other_(other) {}

  const Item* of(std::size_t number) const {
    const std::string_view name = main_.name(main_.items[number]);
    if (number < other_.items.size() && other_.name(other_.items[number]) == name)
      return &other_.items[number];
    if (by_name_.empty()) {
      for (const Item& item : other_.items) by_name_.try_emplace(other_.name(item), &item);
    }
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

 private:
  const Side& main_;
  const Side& other_;
  mutable std::unordered_map<std::string_view, const Item*> by_name_;
};

bool is_output(const Item& item) {
  return item.state == dump::State::output;
}

class Joiner {
 public:
  Joiner(const MergeGraph& graph, NodeIndex index)
      : graph_(graph), node_(graph.node(index)), joint_(*node_.joint) {
    joined_.content = content_of(node_);
  }

  JoinedContent join() {
    if (!joined_.content) return std::move(joined_);
    for (const Joint::Partner& partner : joint_.partners) {
      others_.push_back(content_of(partner.graph->node(partner.node), node_.name).value_or(NodeContent()));
    }
    for (const NodeContent& other : others_) lookups_.emplace_back(side(), other.items.side);
    for (const bool outputs : {false, true}) {
      bool first = true;
      for (std::size_t i = 0; i < side().items.size(); ++i) {
        if (is_output(side().items[i]) != outputs) continue;
        if (outputs && first && joint_.reduced != kNoNode) {
          take_reduced(i);
        } else if (!(outputs && joint_.keeps_other_outputs) && !is_kept(side().items[i], first)) {
          join(i);
        }
        first = false;
      }
    }
    if (!edits_.empty()) {
      Entry edited;
      edit_entry(joined_.content->entry, edits_, edited);
      const std::string file = side().json;
      joined_.content->entry = std::move(edited);
      joined_.content->items =
          dump::items_of(node_.name, joined_.content->entry, joined_.content->size, file);
    }
    return std::move(joined_);
  }

 private:
  const Side& side() const { return joined_.content->items.side; }

  bool is_kept(const Item& item, bool first) const {
    if (is_output(item)) return joint_.keeps_outputs;
    if (first && item.state == dump::State::input && joint_.keeps_first_input) return true;
    return item.state == dump::State::parameters && joint_.keeps_bias && side().name(item).ends_with(".bias");
  }

  void join(std::size_t number) {
    const Item& item = side().items[number];
    const std::optional<Precision> precision = precision_of(side().text(item.dtype));
    if (!precision || others_.empty()) return;
    std::vector<const Item*> items = {&item};
    bool same = true;
    for (std::size_t i = 0; i < others_.size(); ++i) {
      const Item* other = lookups_[i].of(number);
      if (other == nullptr || !precision_of(others_[i].items.side.text(other->dtype))) return;
      same = same && same_statistics(side(), item, others_[i].items.side, *other);
      items.push_back(other);
    }
    if (same && !joint_.though_equal) return;
    if (!joined_.merged) {
      joined_.sentences.push_back(
          fmt::format("This data is the merged data after tensor parallelism(TP), and the data is "
                      "merged from rank [{}].",
                      fmt::join(joint_.ranks, ", ")));
    }
    joined_.merged = true;
    for (std::size_t which = 0; which < dump::kStatistics; ++which)
      join_statistic(number, which, items, *precision);
  }

  void join_statistic(std::size_t number, std::size_t which, const std::vector<const Item*>& items,
                      const Precision& precision) {
    std::vector<Value> values;
    for (const Item* item : items) {
      values.push_back(item->statistics[which]);
      if (!number_of(values.back())) return;
    }
    Value result = values.front();
    double sum = 0;
    for (const Value& value : values) {
      const double each = *number_of(value);
      if (which == dump::kMax && each > *number_of(result)) result = value;
      if (which == dump::kMin && each < *number_of(result)) result = value;
      sum += which == dump::kNorm ? each * each : each;
    }
    if (which == dump::kMean) result = Value::of(sum / static_cast<double>(values.size()));
    if (which == dump::kNorm) result = Value::of(std::sqrt(sum));
    if (precision.digits != 0) result = Value::of(rounded(*number_of(result), precision));
    put(number, which, text_of(result));
    joined_.sentences.push_back(sentence(number, which, values, text_of(result)));
  }

  std::string sentence(std::size_t number, std::size_t which, const std::vector<Value>& values,
                       const std::string& result) const {
    std::vector<std::string> texts;
    for (const Value& value : values) texts.push_back(text_of(value) + (which == dump::kNorm ? " ** 2" : ""));
    std::string_view key = side().name(side().items[number]);
    if (key.size() > node_.name.size() && key.starts_with(node_.name))
      key.remove_prefix(node_.name.size() + 1);
    constexpr std::array<std::string_view, dump::kStatistics> kBefore = {"max(", "min(", "(", "("};
    const std::string after = which == dump::kMean   ? fmt::format(") / {}", texts.size())
                              : which == dump::kNorm ? std::string(") ** 0.5")
                                                     : std::string(")");
    return fmt::format("The {} value merging method for {} is: {}{}{} = {}", kStatisticKeys[which], key,
                       kBefore[which], fmt::join(texts, which < dump::kMean ? ", " : " + "), after, result);
  }

  void take_reduced(std::size_t number) {
    const MergeNode& reduced = graph_.node(joint_.reduced);
    const std::optional<NodeContent> content = content_of(reduced);
    if (!content) return;
    const Side& sums = content->items.side;
    const auto output = std::find_if(sums.items.begin(), sums.items.end(), is_output);
    if (output == sums.items.end()) return;
    for (std::size_t which = 0; which < dump::kStatistics; ++which) {
      const Value value = output->statistics[which];
      if (number_of(value)) put(number, which, text_of(value));
    }
    joined_.sentences.push_back(fmt::format("The output of this data is merged from {}", sums.name(*output)));
  }

  void put(std::size_t number, std::size_t which, std::string text) {
    const Entry& entry = joined_.content->entry;
    Entry::Index place = joined_.content->items.places[number];
    if (const Entry::Index tensor = entry.find(place, "tensor"); tensor != Entry::kNone) place = tensor;
    if (const Entry::Index member = entry.find(place, kStatisticKeys[which]); member != Entry::kNone)
      edits_.emplace(member, std::move(text));
  }

  const MergeGraph& graph_;
  const MergeNode& node_;
  const Joint& joint_;
  JoinedContent joined_;
  std::vector<NodeContent> others_;
  std::vector<ItemPartners> lookups_;
  EntryEdits edits_;
};

}  // namespace

bool same_statistics(const Side& a, const Item& a_item, const Side& b, const Item& b_item) {
  if (!precision_of(a.text(a_item.dtype)) || !precision_of(b.text(b_item.dtype))) return true;
  for (std::size_t which = 0; which < dump::kStatistics; ++which) {
    const std::optional<double> main = number_of(a_item.statistics[which]);
    const std::optional<double> other = number_of(b_item.statistics[which]);
    if (!main || !other) continue;
    const bool exact = which == dump::kMax || which == dump::kMin;
    if (exact ? *main != *other : !near(*main, *other)) return false;
  }
  return true;
}

std::optional<NodeContent> content_of(const MergeNode& node, std::string_view name) {
  std::optional<NodeContent> content;
  if (node.own.rank == nullptr) return content;
  Entry own;
  std::uint64_t size = read_place(node.own, own);
  if (node.inputs.rank != nullptr) size += replace_section(own, node.inputs, EntrySection::inputs);
  if (node.outputs.rank != nullptr) size += replace_section(own, node.outputs, EntrySection::outputs);
  if (size == 0) return content;
  content.emplace();
  content->entry = std::move(own);
  content->size = size;
  content->items = dump::items_of(name, content->entry, size, node.own.rank->graph.json->name());
  return content;
}

ContentDifference difference(const NodeContent& a, const NodeContent& b) {
  const Side& main = a.items.side;
  const ItemPartners partners(main, b.items.side);
  ContentDifference found;
  for (std::size_t i = 0; i < main.items.size(); ++i) {
    const Item* other = partners.of(i);
    if (other == nullptr || same_statistics(main, main.items[i], b.items.side, *other)) continue;
    (is_output(main.items[i]) ? found.outputs : found.inputs) = true;
  }
  return found;
}

JoinedContent joined_content(const MergeGraph& graph, NodeIndex index) {
  if (graph.node(index).joint) return Joiner(graph, index).join();
  JoinedContent joined;
  joined.content = content_of(graph.node(index));
  return joined;
}

}  // namespace msprobe::graph

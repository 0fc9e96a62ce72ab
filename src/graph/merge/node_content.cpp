// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/node_content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "dump/member_stream.hpp"
#include "dump/value.hpp"
#include "graph/data/item_texts.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

using dump::Entry;
using dump::Item;
using dump::NodeKind;
using dump::RecordedValue;
using dump::Side;
using dump::ValueKind;

using pairing::Decision;
using pairing::number_in;
using pairing::precision_of;
using pairing::Share;

std::string text_of(const RecordedValue& value) {
  return value.kind == ValueKind::integer ? std::to_string(value.integer) : python_repr(value.real);
}

/// The item that corresponds to the one with that number; null if the other rank has none.
const Item* partner_of(const Side& main, std::size_t number, const Side& other) {
  return other.apis.empty() ? nullptr
                            : pairing::item_of_entry(other, other.apis.front(), main.name(main.items[number]),
                                                     static_cast<std::uint32_t>(number));
}

bool is_output(const Item& item) {
  return item.state == dump::State::output;
}

/// Numbers as JSON or Python spells them, or null, by their places in the entry.
using EntryEdits = std::unordered_map<dump::Entry::Index, std::string>;

void copy_value(const Entry& from, Entry::Index node, const EntryEdits& edits, Entry& out) {
  if (const auto edit = edits.find(node); edit != edits.end()) {
    if (edit->second == "null") {
      out.add_scalar(NodeKind::null, {});
      return;
    }
    const bool real = edit->second.find_first_not_of("-0123456789") != std::string::npos;
    out.add_scalar(real ? NodeKind::real : NodeKind::integer, edit->second);
  } else if (from.is(node, NodeKind::array) || from.is(node, NodeKind::object)) {
    const Entry::Index container = out.open(from.kind(node));
    from.children(node, [&](Entry::Index child) {
      if (from.is(node, NodeKind::object)) out.set_key(from.key(child));
      copy_value(from, child, edits, out);
    });
    out.close(container);
  } else {
    out.add_scalar(from.kind(node), from.text(node), from.boolean(node));
  }
}

void edit_entry(const Entry& from, const EntryEdits& edits, Entry& out) {
  out.clear();
  copy_value(from, 0, edits, out);
}

enum class EntrySection { inputs, outputs };

bool is_of(std::string_view key, EntrySection section) {
  if (section == EntrySection::outputs) return key == "output";
  return key == "input" || key == "input_args" || key == "input_kwargs";
}

void copy_members(const Entry& from, EntrySection section, bool of_section, Entry& out) {
  if (!from.is(0, NodeKind::object)) return;
  from.children(0, [&](Entry::Index child) {
    if (is_of(from.key(child), section) != of_section) return;
    out.set_key(from.key(child));
    copy_value(from, child, {}, out);
  });
}

/// Replaces the inputs or outputs by those of the entry at the other place. Returns the number of bytes of
/// that entry.
std::uint64_t replace_section(Entry& entry, const MergeNode::RankEntry& from, EntrySection section) {
  Entry other;
  const std::uint64_t size = read_place(from, other);
  Entry both;
  const Entry::Index root = both.open(NodeKind::object);
  const auto own_members = [&] {
    // An entry without a place has no tree.
    if (entry.memory() > 0) copy_members(entry, section, false, both);
  };
  if (section == EntrySection::outputs) own_members();
  if (size > 0) copy_members(other, section, true, both);
  if (section == EntrySection::inputs) own_members();
  both.close(root);
  entry = std::move(both);
  return size;
}

class Joiner {
 public:
  Joiner(const MergeGraph& graph, NodeIndex index, const Decisions& decisions)
      : graph_(graph),
        node_(graph.node(index)),
        decisions_(decisions),
        split_(split_content(node_, node_.joint.get())) {}

  JoinedContent join() {
    if (!split_.content) return {};
    bool reduced = node_.joint->reduced == kNoNode;
    for (std::size_t i = 0; i < side().items.size(); ++i) {
      if (!reduced && is_output(side().items[i])) {
        take_reduced(i);
        reduced = true;
      } else if (const Decision decision = decision_of(i); decision.share != Share::copies) {
        join(i, decision);
      }
    }
    joined_.content = std::move(split_.content);
    if (!edits_.empty()) {
      NodeContent& content = *joined_.content;
      Entry edited;
      edit_entry(content.entry, edits_, edited);
      const std::string file = content.items.side.json;
      content.entry = std::move(edited);
      content.items = dump::items_of(node_.name, content.entry, content.size, file);
    }
    return std::move(joined_);
  }

 private:
  const Side& side() const { return split_.content->items.side; }

  Decision decision_of(std::size_t number) const {
    const std::size_t item = decisions_.first + number;
    return decisions_.joins == nullptr || !decisions_.joins->is_split(item)
               ? Decision()
               : decisions_.joins->decision(item);
  }

  void join(std::size_t number, const Decision& decision) {
    const Item& item = side().items[number];
    const std::optional<pairing::Precision> precision = precision_of(side().text(item.dtype));
    const std::vector<const Item*> partners = split_.partners(number);
    if (!precision || partners.empty()) return;
    std::vector<const Item*> items = {&item};
    bool same = true;
    for (std::size_t i = 0; i < partners.size(); ++i) {
      const Side& other = split_.others[i]->items.side;
      if (!precision_of(other.text(partners[i]->dtype))) return;
      same = same && same_statistics(side(), item, other, *partners[i]);
      if ((i + 1) % decision.block == 0) items.push_back(partners[i]);
    }
    const bool decided = decision.share != Share::undecided;
    if (same && !decided) return;
    if (!merged_) {
      joined_.sentences.push_back(
          fmt::format("This data is the merged data after tensor parallelism(TP), and the data is "
                      "merged from rank [{}].",
                      fmt::join(node_.joint->ranks, ", ")));
    }
    merged_ = true;
    std::vector<double> weights;
    if (decided) {
      const auto all = decisions_.joins->parts(decisions_.first + number);
      std::vector<pairing::RankPart> parts;
      for (std::size_t i = 0; i < all.size(); i += decision.block) parts.push_back(all[i]);
      weights = pairing::weights_of(*decisions_.joins, parts);
    }
    for (std::size_t which = 0; which < dump::kStatistics; ++which) {
      std::vector<RecordedValue> values;
      for (const Item* each : items) values.push_back(each->statistics[which]);
      std::optional<RecordedValue> whole = pairing::join_statistic(which, values, weights, decision.share);
      if (!whole) continue;
      if (whole->kind == ValueKind::missing) {
        put(number, which, "null");
        continue;
      }
      // Values that are compared later keep all their digits.
      if (precision->digits != 0 && !decided)
        whole = RecordedValue::of(pairing::rounded(*number_in(*whole), *precision));
      put(number, which, text_of(*whole));
      joined_.sentences.push_back(sentence(number, which, values, weights, decision.share, text_of(*whole)));
    }
    if (decision.share == Share::sums)
      joined_.sentences.push_back(fmt::format(
          "The ranks hold terms of a sum in {}, whose Max, Min and Norm these do not tell", key_of(number)));
  }

  std::string_view key_of(std::size_t number) const {
    std::string_view key = side().name(side().items[number]);
    if (key.size() > node_.name.size() && key.starts_with(node_.name))
      key.remove_prefix(node_.name.size() + 1);
    return key;
  }

  std::string sentence(std::size_t number, std::size_t which, const std::vector<RecordedValue>& values,
                       const std::vector<double>& weights, Share share, const std::string& result) const {
    std::vector<std::string> texts;
    for (const RecordedValue& value : values)
      texts.push_back(text_of(value) + (which == dump::kNorm ? " ** 2" : ""));
    const std::string_view key = key_of(number);
    if (which == dump::kMean && share == Share::sums)
      return fmt::format("The Mean value merging method for {} is: {} = {}", key, fmt::join(texts, " + "),
                         result);
    if (which == dump::kMean && !weights.empty()) {
      for (std::size_t i = 0; i < texts.size(); ++i) texts[i] += fmt::format(" * {:.0f}", weights[i]);
      return fmt::format("The Mean value merging method for {} is: ({}) / {:.0f} = {}", key,
                         fmt::join(texts, " + "), std::accumulate(weights.begin(), weights.end(), 0.0),
                         result);
    }
    constexpr std::array<std::string_view, dump::kStatistics> kBefore = {"max(", "min(", "(", "("};
    const std::string after = which == dump::kMean   ? fmt::format(") / {}", texts.size())
                              : which == dump::kNorm ? std::string(") ** 0.5")
                                                     : std::string(")");
    return fmt::format("The {} value merging method for {} is: {}{}{} = {}", kStatisticKeys[which], key,
                       kBefore[which], fmt::join(texts, which < dump::kMean ? ", " : " + "), after, result);
  }

  void take_reduced(std::size_t number) {
    const MergeNode& reduced = graph_.node(node_.joint->reduced);
    const std::optional<NodeContent> content = content_of(reduced);
    if (!content) return;
    const Side& sums = content->items.side;
    const auto output = std::ranges::find_if(sums.items, is_output);
    if (output == sums.items.end()) return;
    for (std::size_t which = 0; which < dump::kStatistics; ++which) {
      const RecordedValue value = output->statistics[which];
      if (number_in(value)) put(number, which, text_of(value));
    }
    joined_.sentences.push_back(fmt::format("The output of this data is merged from {}", sums.name(*output)));
  }

  void put(std::size_t number, std::size_t which, std::string text) {
    const Entry& entry = split_.content->entry;
    Entry::Index place = split_.content->items.places[number];
    if (const Entry::Index tensor = entry.find(place, "tensor"); tensor != Entry::kNone) place = tensor;
    if (const Entry::Index member = entry.find(place, kStatisticKeys[which]); member != Entry::kNone)
      edits_.emplace(member, std::move(text));
  }

  const MergeGraph& graph_;
  const MergeNode& node_;
  const Decisions& decisions_;
  SplitContent split_;
  JoinedContent joined_;
  bool merged_ = false;  // an item was put together
  EntryEdits edits_;
};

}  // namespace

std::uint64_t read_place(const MergeNode::RankEntry& place, Entry& entry) {
  if (place.entry == 0) return 0;
  const RankGraph& graph = place.rank->graph;
  const dump::EntryPlace& at = graph.places[place.entry];
  dump::read_entry_at(*graph.json, at.offset, at.size, entry, graph.entries.at(place.entry));
  return at.size;
}

bool same_statistics(const Side& a, const Item& a_item, const Side& b, const Item& b_item) {
  return !precision_of(a.text(a_item.dtype)) || !precision_of(b.text(b_item.dtype)) ||
         pairing::same_statistics(a_item.statistics, b_item.statistics);
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
  ContentDifference found;
  for (std::size_t i = 0; i < main.items.size(); ++i) {
    const Item* other = partner_of(main, i, b.items.side);
    if (other == nullptr || same_statistics(main, main.items[i], b.items.side, *other)) continue;
    (is_output(main.items[i]) ? found.outputs : found.inputs) = true;
  }
  return found;
}

JoinedContent joined_content(const MergeGraph& graph, NodeIndex index, const Decisions& decisions) {
  if (graph.node(index).joint) return Joiner(graph, index, decisions).join();
  JoinedContent joined;
  joined.content = content_of(graph.node(index));
  return joined;
}

std::vector<const Item*> SplitContent::partners(std::size_t item) const {
  std::vector<const Item*> found;
  const Side& main = content->items.side;
  if (!main.items[item].is_tensor) return found;
  for (const std::optional<NodeContent>& other : others) {
    const Item* const partner = other ? partner_of(main, item, other->items.side) : nullptr;
    if (partner == nullptr || !partner->is_tensor) return {};
    found.push_back(partner);
  }
  return found;
}

SplitContent split_content(const MergeNode& node, const MergedData* joint) {
  SplitContent split;
  split.content = content_of(node);
  if (joint == nullptr || !split.content) return split;
  for (const MergedData::Partner& partner : joint->partners)
    split.others.push_back(content_of(partner.graph->node(partner.node), node.name));
  return split;
}

const MergeRank& rank_of(const MergeNode& node, const Item& item) {
  const MergeNode::RankEntry& other = is_output(item) ? node.outputs : node.inputs;
  return item.state != dump::State::parameters && other.rank != nullptr ? *other.rank : *node.own.rank;
}

}  // namespace msprobe::graph

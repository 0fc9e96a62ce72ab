// SPDX-License-Identifier: Apache-2.0
#include "pairing/consistent.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <unordered_map>

#include "dump/names.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pairing {
namespace {

constexpr std::string_view kWrapped = "_fsdp_wrapped_module.";
constexpr std::string_view kInner = "module.module.";

using NamePair = std::pair<std::string_view, std::string_view>;
constexpr std::array<NamePair, 5> kFsdpModules = {{{"q_proj", "qkv_proj"},
                                                   {"k_proj", "qkv_proj"},
                                                   {"v_proj", "qkv_proj"},
                                                   {"gate_proj", "gate_up_proj"},
                                                   {"up_proj", "gate_up_proj"}}};
constexpr std::array<NamePair, 10> kMegatronModules = {{{"word_embeddings", "embed_tokens"},
                                                        {"self_attention", "self_attn"},
                                                        {"linear_qkv", "qkv_proj"},
                                                        {"q_layernorm", "q_norm"},
                                                        {"k_layernorm", "k_norm"},
                                                        {"core_attention", "attn"},
                                                        {"linear_proj", "o_proj"},
                                                        {"router", "gate"},
                                                        {"linear_fc1", "gate_up_proj"},
                                                        {"linear_fc2", "down_proj"}}};

template <std::size_t N>
std::string_view mapped(const std::array<NamePair, N>& table, std::string_view name) {
  const auto found = std::ranges::find_if(table, [&](const auto& pair) { return pair.first == name; });
  return found == table.end() ? name : found->second;
}

/// Where `layers.N.` begins and ends, or only `layers.N` if no dot is asked for.
struct LayerMark {
  std::size_t digits = 0;
  std::size_t end = 0;  // after the digits
};
std::optional<LayerMark> find_layer(std::string_view text, std::size_t from) {
  constexpr std::string_view kLayers = "layers.";
  for (std::size_t at = text.find(kLayers, from); at != std::string_view::npos;
       at = text.find(kLayers, at + 1)) {
    LayerMark mark{at + kLayers.size(), at + kLayers.size()};
    while (mark.end < text.size() && is_digit(text[mark.end])) ++mark.end;
    if (mark.end > mark.digits) return mark;
  }
  return std::nullopt;
}

/// `3` of the first `layers.3`, without leading zeros; empty if the name has no layer.
std::string_view layer_of(std::string_view base) {
  const auto mark = find_layer(base, 0);
  if (!mark) return {};
  std::string_view digits = base.substr(mark->digits, mark->end - mark->digits);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

/// The part of a name after the last `layers.N.`.
std::string_view behind_layers(std::string_view text) {
  std::size_t behind = 0;
  for (std::size_t from = 0;;) {
    const auto mark = find_layer(text, from);
    if (!mark) break;
    if (mark->end < text.size() && text[mark->end] == '.') behind = mark->end + 1;
    from = mark->end;
  }
  return text.substr(behind);
}

std::string_view behind_last(std::string_view text, std::string_view mark) {
  const std::size_t at = text.rfind(mark);
  return at == std::string_view::npos ? text : text.substr(at + mark.size());
}

/// The module without its class: `self_attn.q_proj` of `…self_attn.q_proj.Linear`.
std::string_view module_of(std::string_view base, bool training, Backend backend) {
  if (training) {
    base = backend == Backend::fsdp ? behind_last(base, kWrapped) : behind_layers(base);
    base = behind_last(base, kInner);
  } else {
    base = behind_layers(base);
    constexpr std::string_view kModel = "Module.model.";
    if (base.starts_with(kModel)) base.remove_prefix(kModel.size());
  }
  return dump::split_last(base).first;
}

std::string_view mapped_module(std::string_view module, bool training, Backend backend) {
  if (!training && backend == Backend::fsdp) return dump::split_last(module).second;
  const std::size_t dot = module.find('.');
  if (dot == std::string_view::npos) return module;
  module.remove_prefix(dot + 1);
  return backend == Backend::fsdp ? mapped(kFsdpModules, module) : mapped(kMegatronModules, module);
}

class SideKeys {
 public:
  SideKeys(const Side& side, bool training, Backend backend)
      : side_(side), included_(side.apis.size(), true) {
    if (training) choose(backend);
    std::unordered_map<std::string, std::uint64_t> next;
    for (std::size_t i = 0; i < side.apis.size(); ++i) {
      const std::string_view name = side.text(side.apis[i].name);
      const dump::EntryName parsed = side.parsed_name(i);
      const std::string_view base = parsed.base;
      std::string key(name.substr(std::min(base.size() + 1, name.size())));  // direction and call
      if (training && included_[i] && parsed.direction == dump::Direction::forward) {
        const std::string number = std::to_string(next[std::string(base)]++);
        key = parsed.call_first ? number + ".forward" : "forward." + number;
      }
      // Parts are separated by a byte that no name has.
      const std::string_view module = module_of(base, training, backend);
      for (const std::string_view part : {layer_of(base), mapped_module(module, training, backend)})
        (key += '\0') += part;
      keys_.push_back(key += '\0');
    }
  }

  bool includes(const Item& item) const { return included_[item.api]; }
  std::string of(const Item& item) const {
    const std::string_view api = side_.text(side_.apis[item.api].name);
    std::string_view name = side_.name(item);
    if (name.starts_with(api)) name.remove_prefix(api.size());
    return keys_[item.api] + std::string(name);
  }

 private:
  /// A training step continues after its first forward pass. The comparison takes the entries from the
  /// embedding to the backward pass of the model.
  void choose(Backend backend) {
    const auto begins = [&](std::string_view type) {
      const std::string_view first = backend == Backend::fsdp ? "Embedding" : "VocabParallelEmbedding";
      return first == type;
    };
    const auto ends = [&](std::string_view type) {
      if (backend == Backend::megatron) return type == "GPTModel";
      return type == "Qwen2Model" || type == "Qwen3Model" || type == "Qwen3MoeModel";
    };
    bool on = true;
    for (std::size_t i = 0; i < side_.apis.size(); ++i) {
      const auto [front, last] = dump::split_last(side_.text(side_.apis[i].name));
      const auto [base, direction] = dump::split_last(front);
      const std::string_view type = dump::split_last(base).second;
      if (direction == "backward" && ends(type)) on = false;
      if (direction == "forward" && begins(type)) on = true;
      included_[i] = on;
    }
  }

  const Side& side_;
  std::vector<bool> included_;
  std::vector<std::string> keys_;  // by entry
};

/// The texts of the parts with a separator between them.
template <typename TextOf>
std::string joined(const std::vector<std::uint32_t>& parts, std::string_view separator, TextOf&& text_of) {
  std::string text;
  for (const std::uint32_t part : parts) {
    if (!text.empty()) text += separator;
    text += text_of(part);
  }
  return text;
}

/// Takes the maximum of the maxima and the minimum of the minima; lists the other statistics of all parts.
void join_statistics(Side& side, const std::vector<std::uint32_t>& parts, Item& item) {
  for (const Statistic which : {kMax, kMin}) {
    for (const std::uint32_t part : parts) {
      const RecordedValue value = side.items[part].statistics[which];
      const Classified next = classify(value, side.pool);
      const Classified best = classify(item.statistics[which], side.pool);
      const auto is_number = [](const Classified& one) {
        return one.type == ValueClass::number || one.type == ValueClass::inf ||
               one.type == ValueClass::neg_inf;
      };
      // NaN in one part is NaN in the whole.
      if (best.type == ValueClass::nan) break;
      const bool better = which == kMax ? next.number > best.number : next.number < best.number;
      if (next.type == ValueClass::nan || (is_number(next) && (!is_number(best) || better))) {
        item.statistics.set(which, value);
      }
    }
  }
  for (const Statistic which : {kMean, kNorm}) {
    const std::string text = joined(parts, ";", [&](std::uint32_t part) {
      return to_text(side.items[part].statistics[which], side.pool);
    });
    item.statistics.set(which, RecordedValue::of_text(side.pool.intern(text)));
  }
}

/// The item that represents several parts; a single part represents itself.
std::uint32_t merge(Side& side, const std::vector<std::uint32_t>& parts) {
  if (parts.size() == 1) return parts.front();
  const auto text = [&](std::uint32_t Item::*field, std::string_view separator = ";") {
    return joined(parts, separator, [&](std::uint32_t part) { return side.text(side.items[part].*field); });
  };
  Item item = side.items[parts.front()];
  item.name = side.pool.add(text(&Item::name, ";  "));
  item.dtype = side.pool.intern(text(&Item::dtype));
  item.shape = side.pool.intern(text(&Item::shape));
  const bool files =
      std::ranges::all_of(parts, [&](std::uint32_t part) { return side.items[part].data_name != 0; });
  item.data_name = files ? side.pool.add(text(&Item::data_name)) : 0;
  join_statistics(side, parts, item);
  side.items.push_back(item);
  const auto index = static_cast<std::uint32_t>(side.items.size() - 1);
  side.merged.emplace(index, parts);
  return index;
}

struct PlacedRow {
  Pair pair;
  std::uint32_t target_place = kUnmatched;  // index of the first item
  std::uint32_t golden_place = kUnmatched;
};

/// Merges the orders of both sides.
bool put_in_order(std::vector<PlacedRow>& rows) {
  const auto order_by = [&](std::uint32_t PlacedRow::*place) {
    std::vector<std::uint32_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(
        order, [&](std::uint32_t a, std::uint32_t b) { return rows[a].*place < rows[b].*place; });
    return order;
  };
  const std::vector<std::uint32_t> by_target = order_by(&PlacedRow::target_place);
  const std::vector<std::uint32_t> by_golden = order_by(&PlacedRow::golden_place);
  std::vector<bool> used(rows.size(), false);
  std::vector<PlacedRow> sorted;
  sorted.reserve(rows.size());
  bool agree = true;
  std::size_t i = 0;
  std::size_t j = 0;
  while (sorted.size() < rows.size()) {
    while (used[by_target[i]]) ++i;
    while (used[by_golden[j]]) ++j;
    // A row may come if no other comes before it on either side.
    const auto may_come = [&](const PlacedRow& row) {
      return (row.target_place == kUnmatched || row.target_place == rows[by_target[i]].target_place) &&
             (row.golden_place == kUnmatched || row.golden_place == rows[by_golden[j]].golden_place);
    };
    std::uint32_t next = by_target[i];
    if (!may_come(rows[next])) {
      if (may_come(rows[by_golden[j]])) {
        next = by_golden[j];
      } else {
        agree = false;  // the target's order wins
      }
    }
    used[next] = true;
    sorted.push_back(rows[next]);
  }
  rows = std::move(sorted);
  return agree;
}

}  // namespace

std::optional<Backend> backend_from_name(std::string_view name) {
  if (name == "fsdp") return Backend::fsdp;
  if (name == "megatron") return Backend::megatron;
  return std::nullopt;
}

Matching match_consistent(Side& target, Side& golden, Backend backend) {
  // With fsdp, the training has several parts where inference fuses them; with megatron it is the other way
  // round.
  struct KeyedSide {
    Side& side;
    SideKeys keys;
    std::uint32_t count;
  };
  const auto half = [&](bool training) {
    Side& side = training ? target : golden;
    return KeyedSide{side, SideKeys(side, training, backend), static_cast<std::uint32_t>(side.items.size())};
  };
  const bool fsdp = backend == Backend::fsdp;
  const KeyedSide whole = half(!fsdp);
  const KeyedSide part = half(fsdp);
  std::unordered_map<std::string, std::vector<std::uint32_t>> members;
  for (std::uint32_t i = 0; i < part.count; ++i) {
    const Item& item = part.side.items[i];
    if (part.keys.includes(item)) members[part.keys.of(item)].push_back(i);
  }

  std::vector<PlacedRow> rows;
  const auto add = [&](std::uint32_t one, const std::vector<std::uint32_t>& parts) {
    PlacedRow row;
    row.pair = {one, parts.empty() ? kUnmatched : merge(part.side, parts), Unmatched::no, kUnmatched};
    row.target_place = one;
    row.golden_place = parts.empty() ? kUnmatched : parts.front();
    if (fsdp) {
      std::swap(row.pair.target, row.pair.golden);
      std::swap(row.target_place, row.golden_place);
    }
    if (row.pair.golden == kUnmatched) row.pair.reason = Unmatched::entry_missing;
    rows.push_back(row);
  };
  // Repeated names multiply; a hostile file must not make that quadratic.
  const std::size_t limit = 16 * (target.items.size() + golden.items.size()) + 300'000;
  std::size_t joined_parts = 0;
  std::vector<bool> part_used(part.count, false);
  for (std::uint32_t i = 0; i < whole.count; ++i) {
    const Item& item = whole.side.items[i];
    if (!whole.keys.includes(item)) continue;
    const auto found = members.find(whole.keys.of(item));
    if (found == members.end()) {
      add(i, {});
      continue;
    }
    joined_parts += found->second.size();
    if (joined_parts > limit) {
      throw FormatError(
          display(part.side.json),
          "too many rows share one name: " + display(part.side.name(part.side.items[found->second.front()])));
    }
    for (const std::uint32_t one : found->second) part_used[one] = true;
    add(i, found->second);
  }
  for (std::uint32_t i = 0; i < part.count; ++i) {
    if (!part_used[i] && part.keys.includes(part.side.items[i])) add(kUnmatched, {i});
  }

  Matching matching;
  matching.conflict = !put_in_order(rows);
  matching.pairs.reserve(rows.size());
  for (const PlacedRow& row : rows) {
    matching.golden_only += row.pair.target == kUnmatched ? 1 : 0;
    matching.pairs.push_back(row.pair);
  }
  return matching;
}

}  // namespace msprobe::pairing

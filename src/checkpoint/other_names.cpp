// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/other_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::string_view kExchanged = "exchanged with ";

/// A name, split at its first component that is a number: "model.layers.", 3, ".self_attn.q_proj.weight".
struct LayerName {
  std::string head;
  std::optional<std::int64_t> layer;
  std::string leaf;
};

LayerName layer_name(std::string_view name) {
  std::size_t at = 0;
  for (const std::string_view part : split(name, ".")) {
    if (const auto number = whole_number<std::int64_t>(part);
        number && at > 0 && at + part.size() < name.size())
      return {std::string(name.substr(0, at)), number, std::string(name.substr(at + part.size() + 1))};
    at += part.size() + 1;
  }
  return {"", {}, std::string(name)};
}

// If more names than this have one relation, they share a line.
constexpr std::size_t kManyNames = 4;

using ByContent = std::unordered_map<std::uint64_t, std::vector<std::size_t>>;

class OtherNames {
 public:
  explicit OtherNames(std::vector<ParameterResult>& results) : results_(results) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Relation& relation = results[i].relation;
      // A few numbers are equal by chance.
      if (relation.first_content == 0 || !results[i].first_shape || numel_of(*results[i].first_shape) < 16)
        continue;
      firsts_[relation.first_content].push_back(i);
      seconds_[relation.second_content].push_back(i);
    }
  }

  void run() {
    std::vector<std::string> texts(results_.size());
    for (std::size_t i = 0; i < results_.size(); ++i) texts[i] = text_of(i);
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (!texts[i].empty()) results_[i].relation.text = std::move(texts[i]);
    }
  }

 private:
  /// The nearest parameter by name: the same leaf in another layer, else the first.
  std::optional<std::size_t> partner(const ByContent& index, std::uint64_t content, std::size_t self) const {
    const auto found = index.find(content);
    if (content == 0 || found == index.end()) return {};
    std::optional<std::size_t> best;
    for (const std::size_t i : found->second) {
      if (i == self) continue;
      const bool alike = layer_name(results_[i].name).leaf == layer_name(results_[self].name).leaf;
      if (!best || alike) best = i;
      if (alike) break;
    }
    return best;
  }

  std::string text_of(std::size_t i) const {
    const Relation& own = results_[i].relation;
    if (own.first_content == 0) return {};
    if (const auto other = partner(firsts_, own.second_content, i)) {
      const std::string& name = results_[*other].name;
      if (results_[*other].relation.second_content == own.first_content) return exchanged_text(name);
      return moved_text(name);
    }
    if (const auto other = partner(seconds_, own.second_content, i)) {
      if (results_[*other].relation.first_content != own.first_content)
        return same_text(results_[*other].name, true);
    }
    if (const auto other = partner(firsts_, own.first_content, i)) {
      if (results_[*other].relation.second_content != own.second_content)
        return same_text(results_[*other].name, false);
    }
    return {};
  }

  std::vector<ParameterResult>& results_;
  ByContent firsts_;
  ByContent seconds_;
};

/// Drops guesses that a parameter was never loaded. A few steps of training may also leave nothing of a
/// parameter, so a guess counts only if most others are equal, or if most of those that differ look so.
void drop_guesses(std::vector<ParameterResult>& results) {
  const auto is_guess = [](const ParameterResult& result) {
    return !result.relation.is_proved && !result.relation.text.empty();
  };
  const auto count = [&](const auto& wanted) { return std::ranges::count_if(results, wanted); };
  const auto pairs = count([](const ParameterResult& result) { return result.compared; });
  const auto different =
      count([](const ParameterResult& result) { return result.status == PairStatus::different; });
  const auto large = count([](const ParameterResult& result) {
    return result.status == PairStatus::different && result.first_shape && result.first_shape->size() > 1;
  });
  if (2 * different <= pairs || 10 * count(is_guess) >= 9 * large) return;
  for (ParameterResult& result : results) {
    if (is_guess(result)) result.relation.text.clear();
  }
}

/// Parameters of one relation, whose names differ by the layer alone.
struct LayerGroup {
  std::string what;  // before the colon, for one layer
  std::string leaf;
  std::string text;
  std::vector<std::int64_t> layers;
};

class RelationLines {
 public:
  explicit RelationLines(const std::vector<ParameterResult>& results) : results_(results) {}

  std::vector<std::string> run() {
    for (const ParameterResult& result : results_) {
      if (result.relation.text.empty()) continue;
      if (result.relation.text.starts_with(kExchanged)) {
        add_exchange(result);
      } else {
        add(result.name, result.relation.text);
      }
    }
    std::vector<std::string> lines;
    for (const auto& [layers, leaves] : exchanged_layers_) {
      lines.push_back(fmt::format("layers {} and {} are exchanged: {} parameter{}", layers.first,
                                  layers.second, leaves, leaves == 1 ? "" : "s"));
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      std::vector<const LayerGroup*> alike;
      for (const LayerGroup& group : groups_) {
        if (group.text == groups_[i].text) alike.push_back(&group);
      }
      if (alike.size() < kManyNames) {
        lines.push_back(line_of(groups_[i]));
      } else if (alike.front() == &groups_[i]) {
        lines.push_back(line_of(alike));
      }
    }
    return lines;
  }

 private:
  void add_exchange(const ParameterResult& result) {
    const std::string other = result.relation.text.substr(kExchanged.size());
    const LayerName a = layer_name(result.name);
    const LayerName b = layer_name(other);
    if (a.layer && b.layer && a.leaf == b.leaf && a.head == b.head) {
      if (*a.layer < *b.layer) ++exchanged_layers_[{*a.layer, *b.layer}];
    } else if (a.layer == b.layer && a.head == b.head) {
      if (a.leaf < b.leaf) add(result.name, fmt::format("exchanged with {}", display(b.leaf)));
    } else if (result.name < other) {
      add(result.name, result.relation.text);
    }
  }

  void add(const std::string& whole, const std::string& text) {
    LayerName name = layer_name(whole);
    const std::string every = name.layer ? for_every_layer(text, *name.layer) : text;
    const auto [at, is_new] = index_.try_emplace(name.head + "*" + name.leaf + ": " + every, groups_.size());
    if (is_new) groups_.push_back({whole, name.leaf, text, {}});
    LayerGroup& group = groups_[at->second];
    if (name.layer) group.layers.push_back(*name.layer);
    if (group.layers.size() == 2) group.text = every;
  }

  /// Puts a star for the number where the text names something of the same layer.
  static std::string for_every_layer(std::string text, std::int64_t layer) {
    const std::string number = fmt::format(".{}.", layer);
    const std::size_t at = text.find(number);
    return at == std::string::npos ? text : text.replace(at, number.size(), ".*.");
  }

  static std::string line_of(const LayerGroup& group) {
    if (group.layers.size() < 2) return fmt::format("{}: {}", display(group.what), group.text);
    return fmt::format("{} of {} layers: {}", display(group.leaf), group.layers.size(), group.text);
  }

  /// A line for many names shows only some of them.
  static std::string line_of(const std::vector<const LayerGroup*>& groups) {
    std::size_t count = 0;
    for (const LayerGroup* group : groups) count += std::max<std::size_t>(1, group->layers.size());
    return fmt::format("{} parameters ({}, {} and {} other names): {}", human_count(count),
                       display(groups[0]->leaf), display(groups[1]->leaf), groups.size() - 2,
                       groups[0]->text);
  }

  const std::vector<ParameterResult>& results_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> exchanged_layers_;
  std::vector<LayerGroup> groups_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace

std::string exchanged_text(const std::string& name) {
  return std::string(kExchanged) + display(name);
}

std::string moved_text(const std::string& name) {
  return fmt::format("the second has what is {} in the first", display(name));
}

std::string same_text(const std::string& name, bool in_second) {
  return fmt::format("the same as {} in the {}, not in the {}", display(name), in_second ? "second" : "first",
                     in_second ? "first" : "second");
}

void relate_to_others(std::vector<ParameterResult>& results) {
  drop_guesses(results);
  OtherNames(results).run();
}

std::vector<std::string> relation_lines(const std::vector<ParameterResult>& results) {
  return RelationLines(results).run();
}

}  // namespace msprobe::checkpoint

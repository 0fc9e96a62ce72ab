// SPDX-License-Identifier: Apache-2.0
#include "pairing/match.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "dump/names.hpp"
#include "dump/operation_names.hpp"
#include "pairing/alignment.hpp"
#include "pairing/join.hpp"
#include "pairing/layer_mapping.hpp"
#include "pairing/mapping_file.hpp"
#include "pairing/names.hpp"
#include "pairing/roles.hpp"
#include "pairing/updates.hpp"
#include "support/error.hpp"

namespace msprobe::pairing {

struct Mapping {
  NameMapping names;      // data, cell
  NameMapping api_table;  // built in
  std::vector<ApiRule> api_rules;
  LayerMapping layers;
};

namespace {

using Rename = EntryKeys::Rename;

std::unordered_set<std::string_view> operations(const Side& side) {
  std::unordered_set<std::string_view> names;
  for (const Api& api : side.apis) names.insert(operation_of(side.text(api.name)));
  return names;
}

/// The rule for the other direction, from golden to the target.
ApiRule reversed(const ApiRule& rule) {
  ApiRule other{rule.golden, rule.target, {}};
  for (std::size_t i = 0; i < kSections; ++i) {
    if (!rule.sections[i]) continue;
    other.sections[i].emplace();
    for (const auto& [from, to] : rule.sections[i]->entries()) other.sections[i]->add(to, from);
  }
  return other;
}

/// The section of a rule that speaks of a row, and what its name has between the entry and the number.
std::pair<const std::optional<NameMapping>&, std::string_view> section_of(const ApiRule& rule, State state) {
  constexpr std::array<std::string_view, kSections> kFronts = {".input.", ".output.", ".parameters.", "."};
  const auto which = std::min<std::size_t>(static_cast<std::size_t>(state), kParametersGrad);
  return {rule.sections[which], kFronts[which]};
}

bool is_gradients(std::string_view name) {
  const auto parsed = dump::parse_entry_name(name);
  return parsed && parsed->direction == dump::Direction::parameters_grad;
}

/// Whether entries with gradients of parameters have call numbers. The Python tool writes none before release
/// 26. Nothing if the side has no such entries.
std::optional<bool> numbers_gradients(const Side& side) {
  for (const Api& api : side.apis) {
    const dump::EntryName name = side.parsed_name(api);
    if (name.direction == dump::Direction::parameters_grad) return !name.call.empty();
  }
  return std::nullopt;
}

Rename with_gradient_number(const Rename& rename) {
  return [rename](std::string_view name) {
    std::string out = rename ? rename(name) : std::string(name);
    if (is_gradients(name)) out += ".0";
    return out;
  };
}

bool is_forward(std::string_view name) {
  const auto parsed = dump::parse_entry_name(name);
  return parsed && parsed->direction == dump::Direction::forward;
}

/// Finds the entries with gradients of a module's parameters. Their names may all differ, so that they pair
/// by the entry of the module.
class GradientEntries {
 public:
  GradientEntries(const Side& target, const Side& golden) : target_(target), golden_(golden) {}

  /// For each entry of the target, in their order: `known` if it has a partner that way.
  std::uint32_t partner(std::uint32_t api, std::uint32_t known) {
    const std::string_view name = target_.text(target_.apis[api].name);
    const dump::EntryName parsed = target_.parsed_name(api);
    if (!parsed.is_module) return known;
    if (parsed.direction == dump::Direction::forward && known != kUnmatched) {
      const dump::EntryName theirs = golden_.parsed_name(known);
      modules_.try_emplace(parsed.base, theirs.base);
    }
    if (parsed.direction != dump::Direction::parameters_grad || known != kUnmatched) return known;
    const auto module = modules_.find(parsed.base);
    if (module == modules_.end()) return kUnmatched;
    if (entries_.empty()) {
      for (std::uint32_t i = 0; i < golden_.apis.size(); ++i)
        entries_.try_emplace(std::string(golden_.text(golden_.apis[i].name)), i);
    }
    const auto found =
        entries_.find(std::string(module->second) + std::string(name.substr(parsed.base.size())));
    return found == entries_.end() ? kUnmatched : found->second;
  }

 private:
  const Side& target_;
  const Side& golden_;
  std::unordered_map<std::string_view, std::string_view> modules_;
  std::unordered_map<std::string, std::uint32_t> entries_;  // golden's, by name
};

/// Pairs both sides in one of the ways.
class Matcher {
 public:
  Matcher(const Side& target, const Side& golden, const MatchOptions& options, const Rules& rules,
          const Constructs& constructs)
      : target_(target), golden_(golden), options_(options), rules_(rules), constructs_(constructs) {}

  Matching run() {
    Matching matching = by_method();
    // Rows that the user names stay as they are.
    if (options_.method == Method::data || !pairing::pairs_by_role(target_, golden_)) return matching;
    pair_by_role(matching.pairs);
    Matching settled = finish_pairs(target_, golden_, std::move(matching.pairs), rules_,
                                    options_.method == Method::layer ? DtypeCheck::none : kCheck);
    if (pairing::gives_gradients_otherwise(target_, golden_)) settle_no_gradients(settled);
    settled.alignment = matching.alignment;
    settled.mapping_applies = matching.mapping_applies;
    return settled;
  }

 private:
  static constexpr DtypeCheck kCheck = DtypeCheck::canonical;

  Matching by_method() {
    switch (options_.method) {
      case Method::exact:
        if (!options_.fuzzy && !options_.by_name && (!same_calls(target_, golden_) || other_updates()))
          return aligned();
        return plain(keys(target_, {}), {});
      case Method::cell:
        return cell();
      case Method::api:
        return api();
      case Method::data:
        return data();
      case Method::layer:
        break;
    }
    return layer();
  }

  /// Whether the optimizers go through their parameters in different orders.
  bool other_updates() const {
    if (constructs_.target == nullptr || constructs_.golden == nullptr) return false;
    return pair_updates(target_, constructs_.target->table(), golden_, constructs_.golden->table())
        .has_value();
  }

  /// Settles null gradients: they miss no partner, since the other framework does not list them.
  void settle_no_gradients(Matching& matching) const {
    std::vector<bool> used(golden_.items.size());
    for (Pair& pair : matching.pairs) {
      if (pair.golden != kUnmatched) used[pair.golden] = true;
      if (pair.reason == Unmatched::item_missing &&
          pairing::is_no_gradient(target_, target_.items[pair.target]))
        pair.reason = Unmatched::nothing;
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i] && pairing::is_no_gradient(golden_, golden_.items[i])) --matching.golden_only;
    }
  }

  /// Pairs items of paired entries that frameworks list in another order or under other names.
  void pair_by_role(std::vector<Pair>& pairs) const {
    GradientEntries gradients(target_, golden_);
    for (std::size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
      const std::uint32_t api = target_.items[pairs[begin].target].api;
      std::uint32_t partner = kUnmatched;
      for (; end < pairs.size() && target_.items[pairs[end].target].api == api; ++end) {
        const Pair& pair = pairs[end];
        const std::uint32_t golden = pair.golden != kUnmatched ? pair.golden : pair.candidate;
        if (partner == kUnmatched && golden != kUnmatched) partner = golden_.items[golden].api;
      }
      partner = gradients.partner(api, partner);
      if (partner == kUnmatched) continue;
      const auto [state, roles] =
          pairing::by_role(target_, target_.apis[api], golden_, golden_.apis[partner]);
      std::vector<Pair*> of_state;
      for (std::size_t i = begin; i < end; ++i) {
        if (target_.items[pairs[i].target].state == state) of_state.push_back(&pairs[i]);
      }
      if (roles.size() != of_state.size()) continue;  // they pair as they stand, or names repeat
      for (std::size_t i = 0; i < roles.size(); ++i) {
        *of_state[i] = {.target = of_state[i]->target, .golden = roles[i]};
        if (roles[i] == kUnmatched) of_state[i]->reason = Unmatched::item_missing;
      }
    }
  }

  bool is_fuzzy() const { return options_.fuzzy && options_.method < Method::data; }

  EntryKeys keys(const Side& side, const Rename& rename) const {
    if (!options_.fuzzy) {
      const Side& other = &side == &target_ ? golden_ : target_;
      const bool lacks_numbers =
          !numbers_gradients(side).value_or(true) && numbers_gradients(other).value_or(false);
      return EntryKeys(side, lacks_numbers ? with_gradient_number(rename) : rename, true);
    }
    if (!is_fuzzy()) return EntryKeys(side, rename, false);
    return EntryKeys(
        side, [&](std::string_view name) { return without_call(rename ? rename(name) : std::string(name)); },
        false);
  }

  Matching finish(const TargetKeys& target_keys, const Rename& golden_rename, DtypeCheck check) const {
    const EntryKeys golden_keys = keys(golden_, golden_rename);
    return is_fuzzy() ? fuzzy(target_keys, golden_keys)
                      : join(target_, target_keys, golden_keys, rules_, check);
  }

  static auto entry_keys(const EntryKeys& keys) {
    return [&keys](std::uint32_t api) { return keys.of_entry(api); };
  }

  /// Pairs rows by the keys that follow from their entries' names.
  Matching plain(const EntryKeys& keys, const Rename& golden_rename) const {
    const auto key = [&](const Item& item, std::string& buffer) { return RowKey{keys.of(item, buffer)}; };
    return finish({key, entry_keys(keys)}, golden_rename, kCheck);
  }

  Matching fuzzy(const TargetKeys& target_keys, const EntryKeys& golden_keys) const {
    TextTable known;
    const auto number = [&](std::string_view key) { return known.intern(std::string(key)); };
    std::vector<std::uint32_t> target_numbers;
    std::vector<std::uint32_t> golden_numbers;
    target_numbers.reserve(target_.items.size());
    golden_numbers.reserve(golden_.items.size());
    std::string buffer;
    for (const Item& item : target_.items) {
      const RowKey key = target_keys.of(item, buffer);
      target_numbers.push_back(key.among == RowKey::Among::nothing ? kNoKey : number(key.text));
    }
    for (const Item& item : golden_.items) golden_numbers.push_back(number(golden_keys.of(item, buffer)));
    return finish_pairs(target_, golden_, pair_in_step(target_numbers, golden_numbers), rules_, kCheck);
  }

  Matching aligned() const {
    const auto table = [](const dump::ConstructBeside* construct) {
      return construct == nullptr ? nullptr : &construct->table();
    };
    const auto alignment = std::make_shared<const pairing::Alignment>(
        pairing::align(target_, golden_, table(constructs_.target), table(constructs_.golden)));
    const std::vector<std::uint32_t>& partners = alignment->golden_item_of;
    std::vector<Pair> pairs;
    pairs.reserve(partners.size());
    for (std::uint32_t t = 0; t < partners.size(); ++t) {
      Pair& pair = pairs.emplace_back(Pair{.target = t, .golden = partners[t]});
      if (pair.golden != kUnmatched) continue;
      pair.reason =
          alignment->has_golden(target_.items[t].api) ? Unmatched::item_missing : Unmatched::entry_missing;
    }
    Matching matching = finish_pairs(target_, golden_, std::move(pairs), rules_, kCheck);
    matching.alignment = alignment;
    return matching;
  }

  Matching cell() const {
    CellNames names(options_.mapping->names, options_.mapping_file);
    Matching matching = plain(keys(target_, std::ref(names)), cell_to_module);
    matching.mapping_applies = names.applied();
    return matching;
  }

  /// Pairs rows that the mapping names by the names it gives, and the others by their names.
  Matching data() const {
    const EntryKeys keys = this->keys(target_, {});
    const auto key = [&](const Item& item, std::string& buffer) -> RowKey {
      const std::string* mapped = options_.mapping->names.find(target_.name(item));
      if (mapped == nullptr) return {keys.of(item, buffer)};
      return {*mapped, RowKey::Among::names};
    };
    Matching matching = finish({key, entry_keys(keys)}, {}, DtypeCheck::none);
    matching.mapping_applies = std::ranges::any_of(target_.items, [&](const Item& item) {
      return options_.mapping->names.find(target_.name(item)) != nullptr;
    });
    return matching;
  }

  /// Pairs rows by PyTorch's names where one side is MindSpore's. The user's rules are written from MindSpore
  /// to PyTorch, and are reversed if golden is MindSpore's. Rows of operations that a rule names pair by
  /// their number in its lists.
  Matching api() const {
    const NameMapping& table = options_.mapping->api_table;
    const bool from_golden = golden_.header.is_mindspore() && !target_.header.is_mindspore();
    std::vector<ApiRule> rules = options_.mapping->api_rules;
    if (from_golden) std::transform(rules.begin(), rules.end(), rules.begin(), reversed);
    const auto target_operations = operations(target_);
    const auto golden_operations = operations(golden_);
    std::unordered_map<std::string_view, const ApiRule*> effective;
    std::unordered_set<std::string_view> named;  // golden operations that rules lead to
    for (const ApiRule& rule : rules) {
      if (!target_operations.contains(rule.target) || !golden_operations.contains(rule.golden)) continue;
      effective[rule.target] = &rule;
      named.insert(rule.golden);
    }
    // MSAdapter's names are those of PyTorch. A dump that does not name its framework is the one to rename.
    const bool rename_target =
        !golden_.header.is_mindspore() && (target_.header.is_mindspore() || target_.header.framework.empty());
    const Rename target_rename = [&](std::string_view name) {
      const std::string_view operation = operation_of(name);
      if (const auto rule = effective.find(operation); rule != effective.end())
        return rule->second->golden + std::string(name.substr(operation.size()));
      return rename_target ? to_pytorch(name, table) : std::string(name);
    };
    const Rename golden_rename = [&](std::string_view name) {
      return named.contains(operation_of(name)) ? std::string(name) : to_pytorch(name, table);
    };
    const EntryKeys keys = this->keys(target_, target_rename);
    std::vector<const ApiRule*> rule_of;  // by entry
    for (const Api& entry : target_.apis) {
      const auto rule = effective.find(operation_of(target_.text(entry.name)));
      rule_of.push_back(rule == effective.end() ? nullptr : rule->second);
    }
    const auto key = [&](const Item& item, std::string& buffer) -> RowKey {
      const ApiRule* rule = rule_of[item.api];
      const std::string_view entry = target_.text(target_.apis[item.api].name);
      const std::string_view name = target_.name(item);
      if (rule == nullptr || !name.starts_with(entry)) return {keys.of(item, buffer)};
      const auto [section, front] = section_of(*rule, item.state);
      if (!section) return {keys.of(item, buffer)};
      const std::string_view rest = name.substr(entry.size());
      const std::string* partner =
          rest.starts_with(front) ? section->find(rest.substr(front.size())) : nullptr;
      if (partner == nullptr) return {{}, RowKey::Among::nothing};
      buffer.assign(keys.of_entry(item.api));
      buffer += front;
      buffer += *partner;
      return {buffer};
    };
    Matching matching = finish({key, entry_keys(keys)}, from_golden ? golden_rename : Rename(), kCheck);
    matching.mapping_applies = !effective.empty();
    return matching;
  }

  Matching layer() const {
    const ModelPlaces target_places = read_model_places(target_, constructs_.target);
    const ModelPlaces golden_places = read_model_places(golden_, constructs_.golden);
    const LayerPartners mapped =
        map_layers(target_, target_places, golden_, golden_places, options_.mapping->layers);
    const std::vector<std::uint32_t>& partners = mapped.golden_of;
    const auto partner = [&](std::uint32_t api) {
      return partners[api] == kUnmatched ? "" : golden_.text(golden_.apis[partners[api]].name);
    };
    const auto key = [&](const Item& item, std::string& buffer) -> RowKey {
      const std::string_view entry = target_.text(target_.apis[item.api].name);
      const std::string_view name = target_.name(item);
      if (partners[item.api] == kUnmatched || !name.starts_with(entry)) return {{}, RowKey::Among::nothing};
      buffer.assign(partner(item.api));
      buffer += name.substr(entry.size());
      return {buffer, RowKey::Among::names};
    };
    Matching matching = finish({key, partner}, {}, DtypeCheck::none);
    matching.mapping_applies = mapped.mapping_applies;
    return matching;
  }

  const Side& target_;
  const Side& golden_;
  const MatchOptions& options_;
  const Rules& rules_;
  const Constructs& constructs_;
};

}  // namespace

namespace {

/// Whether both sides have as many backward entries of each operation and module. If one lacks a backward,
/// the later ones of its name do not pair by their position.
bool same_backward_counts(const Side& target, const Side& golden) {
  std::unordered_map<std::string_view, std::int64_t> more;
  const auto count = [&more](const Side& side, std::int64_t step) {
    for (std::size_t i = 0; i < side.apis.size(); ++i) {
      const dump::EntryName parsed = side.parsed_name(i);
      if (parsed.direction == dump::Direction::backward) more[parsed.base] += step;
    }
  };
  count(target, 1);
  count(golden, -1);
  return std::ranges::all_of(more, [](const auto& each) { return each.second == 0; });
}

}  // namespace

bool same_calls(const Side& target, const Side& golden) {
  const auto next_forward = [](const Side& side, std::size_t api) {
    while (api < side.apis.size() && !is_forward(side.text(side.apis[api].name))) ++api;
    return api;
  };
  for (std::size_t t = 0, g = 0;; ++t, ++g) {
    t = next_forward(target, t);
    g = next_forward(golden, g);
    if (t == target.apis.size() || g == golden.apis.size())
      return t == target.apis.size() && g == golden.apis.size() && same_backward_counts(target, golden);
    if (target.text(target.apis[t].name) != golden.text(golden.apis[g].name)) return false;
  }
}

NameMapping names_in_pytorch() {
  NameMapping mapping;
  for (const auto& [mindspore, pytorch] : dump::kMindSporeNames)
    mapping.add(std::string(mindspore), std::string(pytorch));
  return mapping;
}

void load_mapping(MatchOptions& options) {
  const auto mapping = std::make_shared<Mapping>();
  const bool file = !options.mapping_file.empty();
  switch (options.method) {
    case Method::exact:
      break;
    case Method::api:
      mapping->api_table = names_in_pytorch();
      if (file) mapping->api_rules = read_api_mapping(*open_file(options.mapping_file));
      break;
    case Method::cell:
    case Method::data:
      if (file) mapping->names = read_name_mapping(*open_file(options.mapping_file));
      break;
    case Method::layer:
      if (file) mapping->layers = read_layer_mapping(*open_file(options.mapping_file));
      break;
  }
  options.mapping = mapping;
}

Matching match(const Side& target, const Side& golden, const MatchOptions& options, const Rules& rules,
               const Constructs& constructs) {
  return Matcher(target, golden, options, rules, constructs).run();
}

}  // namespace msprobe::pairing

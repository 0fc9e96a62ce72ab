// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/equivalent_modules.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "diagnosis/argument_names.hpp"
#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/taken_gradients.hpp"
#include "dump/side.hpp"
#include "pairing/places.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Item;
using dump::State;
using measuring::content_key;
using measuring::number_of;
using measuring::unit_roundoff;
using pairing::kNone;
using pairing::module_path;

/// The module and the number of its call, which are the same forward and backward.
std::string call_of(std::string_view entry) {
  const auto parsed = dump::parse_entry_name(entry);
  return parsed && parsed->is_module ? diagnosis::call_of(*parsed) : std::string();
}

/// The error that the input errors and rounding explain.
double limit_of(const EquivalentModules::Ahead& ahead) {
  const double limit = kMargin * ahead.error + kRightKernel;
  return ahead.wrong ? limit : std::min(limit, kAlike);
}

bool is_within(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

}  // namespace

/// Whether an item is equal on both sides. If the sides run other operations, single elements show each
/// rounding to a half type, but norms do not; so the norm decides there.
bool EquivalentModules::is_equal(std::uint32_t item, const Ahead& ahead, double scale) const {
  const std::uint32_t partner = errors_.golden_item[item];
  if (partner == kNone || errors_.blind[item] != 0 || errors_.partial[item] != 0) return false;
  const double e = scale * errors_.e[item];
  const double u = std::max(unit_roundoff(rank_.target.text(rank_.target.items[item].dtype)),
                            unit_roundoff(rank_.golden.text(rank_.golden.items[partner].dtype)));
  if (u == 0) return e == 0;
  if (e <= limit_of(ahead)) return true;
  return ahead.other_calls && is_half(u) && e <= kMargin * u &&
         scale * errors_.b[item] <=
             limit_of({.error = std::max(ahead.error, u / kFew), .wrong = ahead.wrong});
}

EquivalentModules::EquivalentModules(const measuring::MeasuredRank& rank, ItemErrors& errors)
    : rank_(rank),
      errors_(errors),
      construct_(rank.target_construct ? &rank.target_construct->table() : nullptr) {}

/// Collects the entries with gradients of parameters: those that both sides have, and those that only one
/// side has.
void EquivalentModules::collect_gradients() {
  if (std::exchange(collected_, true)) return;
  const auto collect = [](const dump::Side& side, const std::vector<std::uint32_t>& partners,
                          const std::vector<bool>& earlier, const dump::Side& other,
                          std::vector<Gradients>& paired, std::vector<Gradients>& alone) {
    for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
      if (side.parsed_name(api).direction != Direction::parameters_grad) continue;
      if (!earlier.empty() && earlier[api]) continue;
      (partners[api] != kNone ? paired : alone).push_back({module_path(side.text(side.apis[api].name)), api});
    }
    if (!alone.empty()) drop_used_without_module(side, other, alone);
  };
  std::vector<Gradients> same;  // golden's partners
  const pairing::Alignment& alignment = *rank_.alignment;
  collect(rank_.target, alignment.golden_of, alignment.target_earlier_pass, rank_.golden, gradients_, alone_);
  collect(rank_.golden, alignment.target_of, alignment.golden_earlier_pass, rank_.target, same,
          golden_alone_);
}

/// Drops the gradients of modules whose parameters the other side uses without calling the module, as in
/// `linear(x, self.proj.weight)`: recorders write such gradients only for modules that are called.
void EquivalentModules::drop_used_without_module(const dump::Side& side, const dump::Side& other,
                                                 std::vector<Gradients>& alone) {
  std::unordered_set<std::string> trained;       // calls of the other side that have a backward
  std::unordered_set<std::string_view> called;   // its modules
  std::unordered_set<std::uint64_t> used;        // contents that the trained calls take
  std::unordered_set<std::string_view> without;  // modules all of whose parameters are among them
  for (std::uint32_t api = 0; api < other.apis.size(); ++api) {
    const dump::EntryName parsed = other.parsed_name(api);
    if (parsed.direction == Direction::backward) trained.insert(call_of(parsed));
    if (parsed.direction == Direction::forward && parsed.is_module) called.insert(parsed.base);
  }
  for (const Item& item : other.items) {
    const bool grad = item.state == State::input && item.requires_grad == dump::RequiresGrad::yes;
    if (grad && trained.contains(call_of(other.parsed_name(item.api)))) used.insert(content_key(other, item));
  }
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    const dump::EntryName parsed = side.parsed_name(api);
    if (!parsed.is_module || parsed.direction != Direction::forward || called.contains(parsed.base)) continue;
    bool any = false;
    bool all = true;
    for (const std::uint32_t i : side.apis[api].items()) {
      if (side.items[i].state != State::parameters) continue;
      any = true;
      all = all && used.contains(content_key(side, side.items[i]));
    }
    if (any && all) without.insert(parsed.base);
  }
  std::erase_if(alone,
                [&](const Gradients& each) { return without.contains(side.parsed_name(each.api).base); });
}

/// Whether the gradients of the parameters below a path are equal. A gradient that is small beside the
/// largest may cancel, so that its error counts less. `any` becomes true if such gradients exist.
bool EquivalentModules::gradients_are_equal(std::string_view path, const Ahead& ahead, bool& any) {
  collect_gradients();
  // Other operations for the same result round differently in the backward as well, once for each of them.
  Ahead behind = ahead;
  if (ahead.other_calls) behind.error = std::max(behind.error, kSameNorm / kMargin);
  const auto within = [&](const Gradients& each) { return path.empty() || is_within(each.path, path); };
  // Parameters that one side joins into one tensor have the same sum of squares together.
  const auto norm_of = [&](const dump::Side& side, const std::vector<Gradients>& gradients) {
    double norm = 0;
    for (const Gradients& each : gradients) {
      if (!within(each)) continue;
      for (const std::uint32_t i : side.apis[each.api].items()) {
        if (side.items[i].is_tensor) norm = std::hypot(norm, number_of(side, side.items[i], dump::kNorm));
      }
    }
    return norm;
  };
  const double alone = norm_of(rank_.target, alone_);
  const double golden_alone = norm_of(rank_.golden, golden_alone_);
  // A call that takes a parameter without its module gives no gradient there.
  if (!(std::abs(alone - golden_alone) <= limit_of(behind) * golden_alone) && !takes_same_gradients(behind))
    return false;
  if (path.empty() && difference_of_unnamed(rank_.target, rank_.golden) > limit_of(behind)) return false;
  std::vector<std::pair<std::uint32_t, double>> norms;  // of items
  double largest = 0;
  const auto tensors = [](const dump::Side& side, std::uint32_t api) {
    std::size_t count = 0;
    for (const std::uint32_t i : side.apis[api].items()) count += side.items[i].is_tensor ? 1 : 0;
    return count;
  };
  for (const Gradients& each : gradients_) {
    if (!within(each)) continue;
    errors_.measure(each.api);
    // A parameter that golden alone trains.
    const std::uint32_t golden_api = rank_.alignment->golden_of[each.api];
    if (golden_api != kNone && tensors(rank_.golden, golden_api) > tensors(rank_.target, each.api) &&
        !takes_same_gradients(behind))
      return false;
    for (const std::uint32_t i : rank_.target.apis[each.api].items()) {
      if (!rank_.target.items[i].is_tensor) continue;
      const std::uint32_t partner = errors_.golden_item[i];
      if (partner == kNone) return false;
      const double norm = std::abs(number_of(rank_.golden, rank_.golden.items[partner], dump::kNorm));
      if (!std::isfinite(norm)) return false;
      norms.emplace_back(i, norm);
      largest = std::max(largest, norm);
    }
  }
  any = any || !norms.empty() || alone > 0;
  return std::all_of(norms.begin(), norms.end(), [&](const auto& each) {
    return is_equal(each.first, behind,
                    largest > 0 ? std::min(each.second / (kTrainedRoundingHalf * largest), 1.0) : 1);
  });
}

/// Whether the outputs of a module are the same. `trained` becomes true if one of them takes part in the
/// backward.
bool EquivalentModules::puts_out_the_same(std::uint32_t module, const Ahead& ahead, bool& trained) {
  if (!rank_.alignment->has_golden(module)) return false;
  errors_.measure(module);
  bool any = false;
  std::uint32_t ours = 0;
  for (const std::uint32_t i : rank_.target.apis[module].items()) {
    const Item& item = rank_.target.items[i];
    if (item.state != State::output) continue;
    ++ours;
    if (!item.is_tensor) continue;
    if (!is_equal(i, ahead)) return false;
    any = true;
    const Item& partner = rank_.golden.items[errors_.golden_item[i]];
    const bool grad = item.requires_grad == dump::RequiresGrad::yes;
    const bool golden_grad = partner.requires_grad == dump::RequiresGrad::yes;
    // A gradient then flows back through one side's output alone: what arrives there excuses nothing.
    const bool known = item.requires_grad != dump::RequiresGrad::unknown &&
                       partner.requires_grad != dump::RequiresGrad::unknown;
    if (known && grad != golden_grad) return false;
    trained = trained || grad || golden_grad;
  }
  std::uint32_t theirs = 0;
  for (const std::uint32_t i : rank_.golden.apis[rank_.alignment->golden_of[module]].items())
    theirs += rank_.golden.items[i].state == State::output ? 1 : 0;
  return any && ours == theirs;
}

bool EquivalentModules::hands_on_the_same(std::uint32_t module, const Ahead& ahead) {
  bool trained = false;
  if (!puts_out_the_same(module, ahead, trained)) return false;
  if (!trained) return true;
  const std::string_view name = rank_.target.text(rank_.target.apis[module].name);
  const std::string behind = name_in(rank_.target.parsed_name(module), "backward");
  const std::uint32_t backward = errors_.entry_named(behind);
  if (backward == kNone && errors_.golden_named(behind) != kNone) return false;
  bool any = false;
  Ahead arrived = ahead;  // plus the errors of its outputs' gradients
  if (backward != kNone) {
    if (!rank_.alignment->has_golden(backward)) return false;
    errors_.measure(backward);
    const auto items = rank_.target.apis[backward].items();
    for (const std::uint32_t i : items) {
      if (rank_.target.items[i].state == State::input && !std::isnan(errors_.e[i]))
        arrived.error = std::max(arrived.error, std::min(static_cast<double>(errors_.e[i]), 1.0));
    }
    // A large error of an arriving gradient shows another fault, which hides the effect of this module.
    arrived.wrong = ahead.structure && arrived.error > kAlike;
    for (const std::uint32_t i : items) {
      if (rank_.target.items[i].state != State::output || !rank_.target.items[i].is_tensor) continue;
      if (!is_equal(i, arrived)) return false;
      any = true;
    }
  }
  return gradients_are_equal(module_path(name), arrived, any) && any;
}

bool EquivalentModules::is_same_module(std::uint32_t module, const Ahead& ahead) {
  const auto [known, added] =
      known_.try_emplace({module, ahead.error, ahead.other_calls, ahead.structure}, false);
  if (added) known->second = hands_on_the_same(module, ahead);
  return known->second;
}

std::string EquivalentModules::around(std::string_view entry, std::string_view golden_entry,
                                      const Ahead& ahead) {
  const bool ours = !entry.empty();
  const dump::ConstructTable* const construct = ours                     ? construct_
                                                : rank_.golden_construct ? &rank_.golden_construct->table()
                                                                         : nullptr;
  if (construct == nullptr || construct_ == nullptr) return {};
  for (const std::string_view parent : construct->around(ours ? entry : golden_entry)) {
    const auto parsed = dump::parse_entry_name(parent);
    if (!parsed || !parsed->is_module) continue;
    const std::string forward = name_in(*parsed, "forward");
    std::uint32_t module = kNone;
    if (ours) {
      module = errors_.entry_named(forward);
    } else if (const std::uint32_t api = errors_.golden_named(forward); api != kNone) {
      module = rank_.alignment->target_of[api];
    }
    if (module == kNone) continue;
    if (!is_same_module(module, ahead)) continue;
    const std::string_view name = rank_.target.text(rank_.target.apis[module].name);
    found_.insert(call_of(name));
    const std::string_view path = module_path(name);
    return std::string(path.empty() ? "the model" : path);
  }
  return {};
}

const EquivalentModules::Taken& EquivalentModules::taken_of(bool of_target) {
  std::optional<Taken>& known = takers_[of_target ? 0 : 1];
  if (known) return *known;
  known.emplace();
  const dump::Side& side = of_target ? rank_.target : rank_.golden;
  for (const Item& item : side.items) {
    if (item.state == State::input && item.is_tensor &&
        side.parsed_name(item.api).direction == Direction::forward)
      known->emplace_back(content_key(side, item), item.api);
  }
  std::ranges::sort(*known);
  return *known;
}

/// The path of a module at or around a call that hands on the same on both sides; empty if no module does.
std::string EquivalentModules::same_module_around(bool of_target, std::uint32_t api, const Ahead& ahead) {
  const dump::Side& side = of_target ? rank_.target : rank_.golden;
  const dump::ConstructTable& construct = of_target ? *construct_ : rank_.golden_construct->table();
  const std::string_view name = side.text(side.apis[api].name);
  std::vector<std::string_view> modules = construct.around(name);
  modules.insert(modules.begin(), name);
  for (const std::string_view each : modules) {
    const auto parsed = dump::parse_entry_name(each);
    if (!parsed || !parsed->is_module) continue;
    const std::string forward = name_in(*parsed, "forward");
    std::uint32_t module = of_target ? errors_.entry_named(forward) : errors_.golden_named(forward);
    if (!of_target && module != kNone) module = rank_.alignment->target_of[module];
    if (module != kNone && is_same_module(module, ahead))
      return std::string(module_path(rank_.target.text(rank_.target.apis[module].name)));
  }
  return {};
}

std::string EquivalentModules::takers(std::string_view entry, std::string_view golden_entry,
                                      const Ahead& ahead) {
  if (construct_ == nullptr || !rank_.golden_construct) return {};
  const bool ours = !entry.empty();
  const dump::ConstructTable& construct = ours ? *construct_ : rank_.golden_construct->table();
  std::string_view start = ours ? entry : golden_entry;
  for (const std::string_view parent : construct.around(start)) {
    const auto parsed = dump::parse_entry_name(parent);
    if (!parsed || !parsed->is_module) continue;
    start = parent;
    break;
  }
  const std::uint32_t found = ours ? errors_.entry_named(start) : errors_.golden_named(start);
  if (found == kNone) return {};
  const pairing::Alignment& alignment = *rank_.alignment;
  const std::uint32_t target = ours ? found : alignment.target_of[found];
  const std::uint32_t golden = ours ? alignment.golden_of[found] : found;
  if (target == kNone || golden == kNone) return {};
  std::string first;
  for (const bool of_target : {false, true}) {
    const dump::Side& side = of_target ? rank_.target : rank_.golden;
    const std::uint32_t api = of_target ? target : golden;
    if (side.parsed_name(api).direction != Direction::forward) return {};
    std::string path;
    for (const std::uint32_t i : side.apis[api].items()) {
      const Item& item = side.items[i];
      if (item.state != State::output || !item.is_tensor) continue;
      // A gradient may differ on its way back to it, which no module shows.
      if (item.requires_grad != dump::RequiresGrad::no) return {};
      const Taken& taken = taken_of(of_target);
      const std::uint64_t key = content_key(side, item);
      if (key == 0) return {};
      for (auto each = std::ranges::lower_bound(taken, std::pair{key, api + 1});
           each != taken.end() && each->first == key; ++each) {
        path = same_module_around(of_target, each->second, ahead);
        if (path.empty()) return {};
        if (first.empty()) first = path;
      }
    }
    if (path.empty()) return {};  // nothing is known to take it
  }
  return first;
}

/// Whether the outputs of all modules are equal, and so are the gradients of their inputs.
bool EquivalentModules::modules_are_equal(const Ahead& ahead) {
  for (std::uint32_t api = 0; api < rank_.target.apis.size(); ++api) {
    const dump::EntryName parsed = rank_.target.parsed_name(api);
    if (!parsed.is_module || !rank_.alignment->has_golden(api)) continue;
    if (parsed.direction != Direction::forward && parsed.direction != Direction::backward) continue;
    errors_.measure(api);
    for (const std::uint32_t i : rank_.target.apis[api].items()) {
      const Item& item = rank_.target.items[i];
      if (item.state == State::output && item.is_tensor && !is_equal(i, ahead)) return false;
    }
  }
  return true;
}

bool EquivalentModules::is_step_equal(const Ahead& ahead) {
  const auto [known, added] =
      known_.try_emplace({kNone, ahead.error, ahead.other_calls, ahead.structure}, false);
  bool any = false;
  if (added) known->second = modules_are_equal(ahead) && gradients_are_equal({}, ahead, any) && any;
  return known->second;
}

bool EquivalentModules::are_gradients_equal(const Ahead& ahead) {
  bool any = false;
  return gradients_are_equal({}, ahead, any) && any;
}

bool EquivalentModules::takes_same_gradients(const Ahead& ahead) {
  if (!taken_) taken_ = difference_of_taken(rank_.target, rank_.golden);
  return *taken_ <= limit_of(ahead);
}

bool EquivalentModules::is_on_way_of_same_gradients(std::string_view entry, std::string_view golden_entry,
                                                    std::uint64_t order, const Ahead& ahead) {
  if (construct_ == nullptr || !rank_.golden_construct) return false;
  if (!gradient_orders_) {
    const dump::Side& side = rank_.target;
    std::uint64_t first = side.apis.size();
    std::uint64_t optimizer = 0;
    for (std::uint32_t api = 0; api < side.apis.size() && optimizer == 0; ++api) {
      if (side.parsed_name(api).direction == Direction::backward)
        first = std::min<std::uint64_t>(first, api);
      else if (dump::is_of_optimizer(construct_->parent(side.text(side.apis[api].name))))
        optimizer = api;
    }
    gradient_orders_ = {2 * first + 1, 2 * optimizer};
  }
  if (order <= gradient_orders_->first || order > gradient_orders_->second) return false;
  const std::string_view name = entry.empty() ? golden_entry : entry;
  const auto parsed = dump::parse_entry_name(name);
  const auto is_module = [](std::string_view parent) {
    const auto around = dump::parse_entry_name(parent);
    return around && around->is_module;
  };
  const dump::ConstructTable& table = entry.empty() ? rank_.golden_construct->table() : *construct_;
  if (!parsed || parsed->is_module || parsed->direction != Direction::forward ||
      std::ranges::any_of(table.around(name), is_module))
    return false;
  return takes_same_gradients(ahead);
}

bool EquivalentModules::is_inside(std::string_view entry) const {
  if (found_.empty()) return false;
  return std::ranges::any_of(construct_->around(entry),
                             [this](std::string_view parent) { return found_.contains(call_of(parent)); });
}

}  // namespace msprobe::diagnosis

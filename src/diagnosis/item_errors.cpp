// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/item_errors.hpp"

#include <algorithm>

#include "diagnosis/argument_names.hpp"
#include "diagnosis/limits.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "support/parallel.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Item;
using dump::Side;
using dump::State;
using measuring::elements_of;
using measuring::kSingleRoundoff;
using measuring::Measure;
using measuring::number_of;
using measuring::sizes_of;
using measuring::Tolerance;
using measuring::unit_roundoff;
using pairing::kNone;

void raise_to(float& largest, float value) {
  if (value > largest) largest = value;
}

bool is_other_mask(const Side& target, const Item& item, const Side& golden, const Item& partner) {
  const auto is_mask = [](double value) { return value <= -kMask && std::isfinite(value); };
  const double ours = number_of(target, item, dump::kMin);
  if (!is_mask(ours) || unit_roundoff(target.text(item.dtype)) == 0) return false;
  const double theirs = number_of(golden, partner, dump::kMin);
  return is_mask(theirs) && ours != theirs;
}

/// Does one repeat the other's elements, as broadcasting does? Then extremes and mean are the same.
bool is_expanded(const Side& target, const Item& item, const Side& golden, const Item& partner) {
  std::vector<std::uint64_t> ours = sizes_of(target.text(item.shape));
  std::vector<std::uint64_t> theirs = sizes_of(golden.text(partner.shape));
  std::vector<std::uint64_t>& shorter = ours.size() < theirs.size() ? ours : theirs;
  shorter.insert(shorter.begin(), std::max(ours.size(), theirs.size()) - shorter.size(), 1);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] != theirs[i] && ours[i] != 1 && theirs[i] != 1) return false;
  }
  const auto same = [&](dump::Statistic which) {
    const double a = number_of(target, item, which);
    const double b = number_of(golden, partner, which);
    return a == b || std::abs(a - b) <= kFew * kSingleRoundoff * std::abs(b) ||
           (std::isnan(a) && std::isnan(b));
  };
  return same(dump::kMax) && same(dump::kMin) && same(dump::kMean);
}

/// The least error of two masks whose counts of true or -inf elements differ, as tensors of zeros and ones.
/// Nothing where the counts are equal or not known.
std::optional<double> error_of_counts(const Side& target, const Item& item, const Side& golden,
                                      const Item& partner) {
  const auto ours = target.counts.find(item.name);
  const auto theirs = golden.counts.find(partner.name);
  if (ours == target.counts.end() || theirs == golden.counts.end() || ours->second == theirs->second)
    return std::nullopt;
  if (target.text(item.dtype) != golden.text(partner.dtype) ||
      target.text(item.shape) != golden.text(partner.shape))
    return std::nullopt;
  return std::sqrt(std::abs(ours->second - theirs->second) / std::max(ours->second, theirs->second));
}

bool is_truth(const Side& side, const Item& item) {
  const std::string_view dtype = side.text(item.dtype);
  return dtype == "torch.bool" || dtype == "Bool" || dtype == "bool";
}

}  // namespace

ItemErrors::ItemErrors(const measuring::MeasuredRank& rank, const measuring::StatisticsPrecision& precision,
                       bool lazily, const MeasureEntry& measure_entry)
    : golden_item(rank.alignment->golden_item_of),
      loss_scale(diagnosis::loss_scale(rank.target, rank.golden, *rank.alignment, golden_item)),
      rank_(rank),
      precision_(precision),
      measure_entry_(measure_entry) {
  const Side& target = rank.target;
  if (rank.mode == measuring::Mode::tensor) {
    row_of_.assign(target.items.size(), kNone);
    for (std::size_t i = rank.rows.size(); i-- > 0;) {
      if (rank.rows[i].has_target()) row_of_[rank.rows[i].target] = static_cast<std::uint32_t>(i);
    }
  }
  e.assign(target.items.size(), NAN);
  b.assign(target.items.size(), 0);
  hidden.assign(target.items.size(), 0);
  by_statistics.assign(target.items.size(), 0);
  blind.assign(target.items.size(), 0);
  partial.assign(target.items.size(), 0);
  other_uses.assign(target.items.size(), 0);
  unmasked.assign(target.apis.size(), 0);
  output.assign(target.apis.size(), 0);
  anything.assign(target.apis.size(), 0);
  anything_b.assign(target.apis.size(), 0);
  anything_hidden.assign(target.apis.size(), 0);
  u.assign(target.apis.size(), 0);
  module_of_.assign(target.apis.size(), nullptr);
  measured_.assign(target.apis.size(), false);
  const auto name_of = [&](std::uint32_t api) { return target.text(target.apis[api].name); };
  for (std::uint32_t api = 0; api < target.apis.size(); ++api) {
    names_.add(api, name_of);
    const dump::EntryName parsed = target.parsed_name(api);
    if (!parsed.is_module || !rank_.alignment->has_golden(api)) continue;
    if (parsed.direction != Direction::forward && parsed.direction != Direction::backward) continue;
    module_of_[api] = &modules_[parsed.base];
    module_of_[api]->entries.push_back(api);
  }
  if (lazily) return;
  parallel_blocks(target.apis.size(),
                  [&](std::size_t api) { measure_items(static_cast<std::uint32_t>(api)); });
  measured_.assign(target.apis.size(), true);
  for (std::uint32_t api = 0; api < target.apis.size(); ++api) {
    if (module_of_[api] != nullptr) add_to_module(api, *module_of_[api]);
  }
}

void ItemErrors::measure(std::uint32_t api) {
  if (measured_[api]) return;
  measured_[api] = true;
  if (measure_entry_) measure_entry_(api);
  measure_items(api);
  if (module_of_[api] != nullptr) add_to_module(api, *module_of_[api]);
}

void ItemErrors::leave_out(std::uint32_t api) {
  for (const std::uint32_t i : rank_.target.apis[api].items()) e[i] = NAN;
  output[api] = anything[api] = anything_b[api] = 0;
}

bool ItemErrors::vanishes(std::uint32_t item) const {
  if (golden_item[item] == kNone) return false;
  const double ours = number_of(rank_.target, rank_.target.items[item], dump::kNorm);
  const double theirs = number_of(rank_.golden, rank_.golden.items[golden_item[item]], dump::kNorm);
  return std::isfinite(ours) && std::isfinite(theirs) && (ours == 0) != (theirs == 0);
}

const LossScale* ItemErrors::scale_at(std::uint32_t api) const {
  return loss_scale && loss_scale->reaches(rank_.target, api) ? &*loss_scale : nullptr;
}

std::optional<Measure> ItemErrors::without_scale(std::uint32_t index) const {
  std::optional<Measure> best;
  for (const double factor : {loss_scale->factor, 1 / loss_scale->factor}) {
    const Measure found = by_statistics_of(index, golden_item[index], factor);
    if (found.known && (!best || found.e < best->e)) best = found;
  }
  return best;
}

std::optional<Measure> ItemErrors::from_tensors(std::uint32_t item) const {
  if (row_of_.empty() || row_of_[item] == kNone) return std::nullopt;
  if (rank_.rows[row_of_[item]].golden != golden_item[item]) return std::nullopt;
  const Measure& measure = rank_.metrics[row_of_[item]].measure;
  return measure.known ? std::optional(measure) : std::nullopt;
}

void ItemErrors::measure_items(std::uint32_t api) {
  const Side& target = rank_.target;
  const Side& golden = rank_.golden;
  // Kernels may make other graphs of one call, and an output of a module may have no gradient on one side;
  // gradients are then recorded at other places.
  const dump::EntryName name = target.parsed_name(api);
  const bool of_call = !name.is_module;
  const bool gradients = name.direction == Direction::backward;
  const bool backward = of_call && gradients;
  const bool forward = of_call && name.direction == Direction::forward;
  const LossScale* const scale = scale_at(api);
  bool takes_scaled = false;
  if (forward && pairing::is_commutative(name.operation())) exchange_operands(api);
  for (const std::uint32_t i : target.apis[api].items()) {
    const Item& item = target.items[i];
    if (!item.is_tensor) continue;
    const double roundoff = unit_roundoff(target.text(item.dtype));
    raise_to(u[api], static_cast<float>(roundoff));
    if (golden_item[i] == kNone) continue;
    const Item& partner = golden.items[golden_item[i]];
    if (!partner.is_tensor) continue;
    if (target.gradient_of(item) != golden.gradient_of(partner)) {
      other_uses[i] = 1;
      continue;
    }
    raise_to(u[api], static_cast<float>(unit_roundoff(golden.text(partner.dtype))));
    std::optional<Measure> found = from_tensors(i);
    if (!found) {
      found = by_statistics_of(i, golden_item[i]);
      by_statistics[i] = row_of_.empty() ? 0 : 1;
    }
    // Outputs after the backward do not have the factor any more, except for those that compute gradients and
    // hand it on.
    const bool hands_on = takes_scaled && scale != nullptr && api < scale->behind_backward;
    const bool unscaled_output = scale != nullptr && forward && api >= scale->first_backward && !hands_on &&
                                 item.state == State::output && elements_of(target.text(item.shape)) > 1;
    if (scale != nullptr && !unscaled_output && found->known && found->e > 0) {
      const std::optional<Measure> unscaled = without_scale(i);
      if (unscaled && unscaled->e < found->e) {
        found = unscaled;
        takes_scaled = takes_scaled || item.state == State::input;
      }
    }
    if (const auto other = error_of_counts(target, item, golden, partner)) {
      found->known = true;
      found->blind = false;
      found->e = std::max(found->e, *other);
      found->b = std::max(found->b, *other);
    }
    const bool other_shape = target.text(item.shape) != golden.text(partner.shape);
    partial[i] = found->partial ? 1 : 0;
    hidden[i] = static_cast<float>(found->hidden);
    // The unit roundoff already covers what half types round.
    if (roundoff <= kSingleRoundoff) raise_to(anything_hidden[api], hidden[i]);
    if (found->blind && !other_shape) blind[i] = 1;
    // Masks that use different finite numbers are not an error, but hide other errors.
    if (!backward && scale == nullptr && found->known && found->e > 0 &&
        is_other_mask(target, item, golden, partner))
      blind[i] = 1;
    // Truth values cannot be compared with numbers that are added, or with indices.
    const bool other_type = target.text(item.dtype) != golden.text(partner.dtype);
    if (other_type && is_truth(target, item) != is_truth(golden, partner)) continue;
    if (!found->known || blind[i] != 0 || (other_shape && gradients)) continue;
    // Elements in another arrangement have the same statistics.
    const bool other_size =
        other_shape && elements_of(target.text(item.shape)) != elements_of(golden.text(partner.shape));
    if (other_size && is_expanded(target, item, golden, partner)) continue;
    e[i] = other_size ? std::numeric_limits<float>::infinity() : static_cast<float>(found->e);
    b[i] = other_size ? std::numeric_limits<float>::infinity() : static_cast<float>(found->b);
    if (item.state == State::output && roundoff > 0) raise_to(output[api], e[i]);
  }
  if (of_call && name.direction == Direction::forward) leave_out_overwritten(api, name.operation());
  if (backward && pairing::is_activation(name.operation())) leave_out_unmasked(api);
  for (const std::uint32_t i : target.apis[api].items()) {
    if (std::isnan(e[i])) continue;
    raise_to(anything[api], e[i]);
    raise_to(anything_b[api], b[i]);
  }
}

/// Exchanges operands, as in `y + x` for `x + y`: if their order does not matter, they pair by their contents
/// where these are clear.
void ItemErrors::exchange_operands(std::uint32_t api) {
  std::vector<std::uint32_t> operands;
  for (const std::uint32_t i : rank_.target.apis[api].items()) {
    const Item& item = rank_.target.items[i];
    if (item.state != State::input) continue;
    const bool paired =
        item.is_tensor && golden_item[i] != kNone && rank_.golden.items[golden_item[i]].is_tensor;
    if (!paired || operands.size() == 2) return;
    operands.push_back(i);
  }
  if (operands.size() != 2) return;
  const std::uint32_t left = golden_item[operands[0]];
  const std::uint32_t right = golden_item[operands[1]];
  const auto apart = [&](std::uint32_t first, std::uint32_t second) {
    const Measure one = by_statistics_of(operands[0], first);
    const Measure other = by_statistics_of(operands[1], second);
    return one.known && other.known ? std::max(one.e, other.e) : std::numeric_limits<double>::infinity();
  };
  const double straight = apart(left, right);
  if (straight < kFar * kSingleRoundoff || !(apart(right, left) * kFar < straight)) return;
  golden_item[operands[0]] = right;
  golden_item[operands[1]] = left;
}

std::vector<std::uint32_t> ItemErrors::ordered_operands(std::uint32_t api, std::string_view operation) const {
  if (!pairing::is_elementwise(operation) || pairing::is_commutative(operation)) return {};
  std::vector<std::uint32_t> operands;
  for (const std::uint32_t i : rank_.target.apis[api].items()) {
    const Item& item = rank_.target.items[i];
    if (item.state != State::input || !item.is_tensor) continue;
    if (golden_item[i] == kNone || operands.size() == 2) return {};
    operands.push_back(i);
  }
  return operands.size() == 2 ? operands : std::vector<std::uint32_t>();
}

bool ItemErrors::are_exchanged(std::uint32_t api, std::string_view operation) const {
  const std::vector<std::uint32_t> operands = ordered_operands(api, operation);
  if (operands.empty()) return false;
  const auto same = [&](std::uint32_t item, std::uint32_t golden) {
    const Measure apart = by_statistics_of(item, golden);
    return apart.known && !apart.blind && apart.e <= kFew * kSingleRoundoff;
  };
  return same(operands[0], golden_item[operands[1]]) && same(operands[1], golden_item[operands[0]]);
}

/// Leaves out inputs that a call writes to without reading them: they may hold anything, like memory before
/// its first use. Some recorders see an input that is changed in place only after the change; if the outputs
/// are equal, the input was equal.
void ItemErrors::leave_out_overwritten(std::uint32_t api, std::string_view operation) {
  const Side& target = rank_.target;
  const bool adds_product = pairing::is_product(operation);
  bool scaled_by_zero = false;  // `beta=0`
  bool same_left = false;
  for (const std::uint32_t i : target.apis[api].items()) {
    const Item& item = target.items[i];
    if (adds_product && !item.is_tensor && item.state == State::input &&
        target.name(item).ends_with(".input.beta"))
      scaled_by_zero = number_of(target, item, dump::kMax) == 0;
    if (item.state != State::output || !item.is_tensor) continue;
    same_left = e[i] == 0;
    if (!same_left) break;
  }
  const bool writes =
      pairing::only_writes(operation) || scaled_by_zero || (pairing::is_in_place(operation) && same_left);
  for (const std::uint32_t i : target.apis[api].items()) {
    const Item& item = target.items[i];
    if (!item.is_tensor || item.state != State::input || std::isnan(e[i]) || e[i] == 0) continue;
    const std::string_view name = target.name(item);
    // In dumps with tensors, keyword arguments are named like their files.
    const bool is_out = name.ends_with(".input.out") || name.ends_with(".kwargs.out");
    if ((writes && name.ends_with(".input.0")) || is_out) e[i] = NAN;
  }
}

/// Leaves out activations in place whose recorded gradient comes from before the activation: the output is
/// then the input. The Python tool records so, and msprobe's collector did before it signed its dumps.
void ItemErrors::leave_out_unmasked(std::uint32_t api) {
  std::uint32_t in = kNone;
  std::uint32_t out = kNone;
  for (const std::uint32_t i : rank_.target.apis[api].items()) {
    const State state = rank_.target.items[i].state;
    if (golden_item[i] == kNone || !rank_.target.items[i].is_tensor) continue;
    if (state == State::input && in == kNone) in = i;
    if (state == State::output && out == kNone) out = i;
  }
  if (in == kNone || out == kNone || !(e[out] > 0)) return;
  const auto hands_on = [](const Side& side, std::uint32_t from, std::uint32_t to) {
    for (const dump::Statistic which : {dump::kMax, dump::kMin, dump::kNorm}) {
      if (number_of(side, side.items[from], which) != number_of(side, side.items[to], which)) return false;
    }
    return side.header.recorder.empty();
  };
  if (hands_on(rank_.target, in, out) != hands_on(rank_.golden, golden_item[in], golden_item[out])) {
    e[out] = NAN;
    unmasked[api] = 1;
  }
}

Tolerance ItemErrors::tolerance_of(std::uint32_t index, std::uint32_t golden_index) const {
  return precision_.of(rank_.target, rank_.target.items[index], rank_.golden,
                       rank_.golden.items[golden_index]);
}

Measure ItemErrors::by_statistics_of(std::uint32_t index, std::uint32_t golden_index, double factor) const {
  const Tolerance tolerance = tolerance_of(index, golden_index);
  Measure found = measuring::measure(rank_.target, rank_.target.items[index], rank_.golden,
                                     rank_.golden.items[golden_index], tolerance, factor);
  found.hidden = tolerance.norm;
  return found;
}

void ItemErrors::add_to_module(std::uint32_t api, ModuleErrors& module) {
  const Side& target = rank_.target;
  const dump::EntryName parsed = target.parsed_name(api);
  const bool backward = parsed.direction == Direction::backward;
  module.u = std::max(module.u, static_cast<double>(u[api]));
  module.hidden = std::max(module.hidden, static_cast<double>(anything_hidden[api]));
  for (const std::uint32_t i : target.apis[api].items()) {
    const Item& item = target.items[i];
    if (std::isnan(e[i]) || (backward && item.state != State::input)) continue;
    module.e = std::max(module.e, static_cast<double>(e[i]));
    module.b = std::max(module.b, static_cast<double>(b[i]));
    if (item.state != State::input) continue;
    const Item& partner = rank_.golden.items[golden_item[i]];
    const double norm = number_of(rank_.golden, partner, dump::kNorm);
    if (!std::isfinite(norm)) continue;
    if (backward) {
      module.has_gradient = true;
      // Several calls of one module add up.
      module.gradient_norm = std::hypot(module.gradient_norm, norm);
      module.gradient_elements += elements_of(rank_.golden.text(partner.shape));
    } else if (unit_roundoff(rank_.golden.text(partner.dtype)) > 0) {
      module.input_norm = std::hypot(module.input_norm, norm);
    }
  }
}

std::uint32_t ItemErrors::entry_named(std::string_view name) const {
  const std::uint32_t found =
      names_.find(name, [this](std::uint32_t api) { return rank_.target.text(rank_.target.apis[api].name); });
  return found == TextIndex::kNone ? kNone : found;
}

std::uint32_t ItemErrors::forward_of(std::uint32_t backward_api) const {
  return entry_named(name_in(rank_.target.parsed_name(backward_api), "forward"));
}

std::uint32_t ItemErrors::golden_named(std::string_view name) {
  const auto text_of = [this](std::uint32_t api) { return rank_.golden.text(rank_.golden.apis[api].name); };
  for (; golden_indexed_ < rank_.golden.apis.size(); ++golden_indexed_)
    golden_names_.add(golden_indexed_, text_of);
  const std::uint32_t found = golden_names_.find(name, text_of);
  return found == TextIndex::kNone ? kNone : found;
}

const ModuleErrors* ItemErrors::module(std::string_view base) {
  const auto found = modules_.find(base);
  if (found == modules_.end()) return nullptr;
  for (const std::uint32_t api : found->second.entries) measure(api);
  return &found->second;
}

}  // namespace msprobe::diagnosis

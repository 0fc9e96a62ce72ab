// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/dtype_setting.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "dump/names.hpp"
#include "measuring/measures.hpp"
#include "pairing/alignment.hpp"
#include "pairing/operations.hpp"

namespace msprobe::diagnosis {

using measuring::same_dtype;
using measuring::unit_roundoff;

bool is_extreme(double value, std::string_view dtype) {
  const double u = unit_roundoff(dtype);
  const int exponent = same_dtype(dtype, "torch.float16")   ? 15
                       : same_dtype(dtype, "torch.float64") ? 1023
                                                            : 127;
  return u > 0 && std::abs(value) == std::ldexp(2 - 2 * u, exponent);  // IEEE 754: all bits of the fraction
}

namespace {

/// The most common pair of types among the items for which `counts` is true, and of which one side at least
/// has a unit roundoff above `finest`.
template <typename Counts>
std::optional<DtypeSetting> most_common(const dump::Side& target, const dump::Side& golden,
                                        const std::vector<std::uint32_t>& golden_item, Counts&& counts,
                                        double finest = 0) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> pairs;  // of texts
  for (std::uint32_t i = 0; i < target.items.size(); ++i) {
    if (golden_item[i] == pairing::kNone || !target.items[i].is_tensor) continue;
    const dump::Item& partner = golden.items[golden_item[i]];
    if (partner.is_tensor && counts(target.items[i])) ++pairs[{target.items[i].dtype, partner.dtype}];
  }
  std::erase_if(pairs, [&](const auto& pair) {
    const double ours = unit_roundoff(target.text(pair.first.first));
    const double theirs = unit_roundoff(golden.text(pair.first.second));
    return ours == 0 || theirs == 0 || std::max(ours, theirs) <= finest;
  });
  if (pairs.empty()) return std::nullopt;
  std::uint64_t floating = 0;
  for (const auto& [types, tensors] : pairs) floating += tensors;
  const auto most = std::max_element(pairs.begin(), pairs.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return DtypeSetting{target.text(most->first.first), golden.text(most->first.second), most->second,
                      floating};
}

}  // namespace

std::optional<DtypeSetting> dtype_setting(const dump::Side& target, const dump::Side& golden,
                                          const std::vector<std::uint32_t>& golden_item) {
  const auto holds = [](const std::optional<DtypeSetting>& found, double part) {
    return found && static_cast<double>(found->tensors) >= part * static_cast<double>(found->floating) &&
           !same_dtype(found->target, found->golden);
  };
  const auto everywhere =
      most_common(target, golden, golden_item, [](const dump::Item& /*item*/) { return true; });
  if (holds(everywhere, kHalf)) return everywhere;
  if (!everywhere || everywhere->tensors == everywhere->floating)
    return std::nullopt;  // one type is all there is
  auto parameters = most_common(target, golden, golden_item,
                                [](const dump::Item& item) { return item.state == dump::State::parameters; });
  if (holds(parameters, kNearlyAll) && parameters->floating >= kFewestCases) {
    parameters->by_parameters = true;
    return parameters;
  }
  // The training decides. After it a step may evaluate or sample, in another type.
  const std::uint32_t trained = behind_backward(target);
  const auto is_output_of_product = [&](const dump::Item& item) {
    if (item.state != dump::State::output || item.api >= trained) return false;
    const dump::EntryName name = target.parsed_name(item.api);
    return name.direction == dump::Direction::forward && pairing::is_product(name.operation());
  };
  const auto all_products = most_common(target, golden, golden_item, is_output_of_product);
  // Code outside of the automatic casting leaves some products in float32 on both sides, such as those of a
  // front end. They say nothing about the others.
  auto products = most_common(target, golden, golden_item, is_output_of_product, kFinestHalf);
  if (!holds(products, kNearlyAll) || products->floating < kFewestCases ||
      static_cast<double>(products->tensors) < kHalf * static_cast<double>(all_products->floating))
    return std::nullopt;
  products->by_products = true;
  return products;
}

}  // namespace msprobe::diagnosis

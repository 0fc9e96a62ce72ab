// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/run_outputs.hpp"

#include <algorithm>

#include "measuring/measures.hpp"

namespace msprobe::diagnosis {

using dump::Side;
using dump::State;

double coarsest_of(const Side& side, std::uint32_t api) {
  double u = 0;
  for (const std::uint32_t i : side.apis[api].items()) {
    if (side.items[i].state == State::output)
      u = std::max(u, measuring::unit_roundoff(side.text(side.items[i].dtype)));
  }
  return u;
}

bool may_give(const Side& side, const std::vector<std::uint32_t>& entries, const dump::Item& mask) {
  const auto count = side.counts.find(mask.name);
  const double elements = static_cast<double>(measuring::elements_of(side.text(mask.shape)));
  for (const std::uint32_t api : entries) {
    for (const std::uint32_t i : side.apis[api].items()) {
      const dump::Item& item = side.items[i];
      const auto given = side.counts.find(item.name);
      if (item.state != State::output || count == side.counts.end() || given == side.counts.end()) continue;
      if (side.text(item.dtype) == side.text(mask.dtype) &&
          static_cast<double>(measuring::elements_of(side.text(item.shape))) == elements &&
          (given->second == count->second || given->second + count->second == elements))
        return true;
    }
  }
  return false;
}

bool may_select(const Side& side, const std::vector<std::uint32_t>& entries, const dump::Item& part) {
  using measuring::elements_of;
  using measuring::number_of;
  if (entries.empty()) return true;
  for (const std::uint32_t i : side.apis[entries.back()].items()) {
    const dump::Item& whole = side.items[i];
    if (whole.state == State::output && side.text(whole.dtype) == side.text(part.dtype) &&
        elements_of(side.text(whole.shape)) >= elements_of(side.text(part.shape)) &&
        number_of(side, part, dump::kMax) <= number_of(side, whole, dump::kMax) &&
        number_of(side, part, dump::kMin) >= number_of(side, whole, dump::kMin))
      return true;
  }
  return false;
}

}  // namespace msprobe::diagnosis

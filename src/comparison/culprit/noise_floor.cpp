// SPDX-License-Identifier: Apache-2.0
#include "comparison/culprit/noise_floor.hpp"

#include "diagnosis/alignment.hpp"

namespace msprobe::compare {

NoiseFloor::NoiseFloor(const dump::RankDump& third, const Side& golden, const MeasureTraits& traits)
    : golden_(golden), traits_(traits), third_(load_side(third, {.stacks = false, .stack_json = {}})) {
  partners_ = diagnosis::pair_items(golden_, third_, diagnosis::align(golden_, third_));
}

double NoiseFloor::operator()(std::uint32_t golden_item) const {
  if (partners_[golden_item] == diagnosis::kNone) return 0;
  const Item& golden = golden_.items[golden_item];
  const Item& third = third_.items[partners_[golden_item]];
  diagnosis::Measure measure = diagnosis::measure(third_, third, golden_, golden);
  if (golden.data_name != 0 && third.data_name != 0) {
    measure = compare_tensors(open_data(third_, third), open_data(golden_, golden), traits_).measure;
  }
  return measure.known ? measure.e : 0;
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/noise_floor.hpp"

#include <vector>

#include "pairing/alignment.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::Side;
using measuring::open_data;
using measuring::PythonRules;

class ThirdDump final : public NoiseFloor {
 public:
  ThirdDump(const dump::RankDump& third, const Side& golden, const PythonRules& python)
      : golden_(golden),
        python_(python),
        third_(dump::load_side(third, {.stacks = false, .stack_json = {}})),
        partners_(pairing::align(golden_, third_).golden_item_of) {}

  diagnosis::Noise operator()(std::uint32_t golden_item) const override {
    if (partners_[golden_item] == pairing::kNone) return {};
    const Item& golden = golden_.items[golden_item];
    const Item& third = third_.items[partners_[golden_item]];
    measuring::Measure measure = measuring::measure(third_, third, golden_, golden);
    if (golden.data_name != 0 && third.data_name != 0) {
      measure =
          measuring::compare_tensors(open_data(third_, third), open_data(golden_, golden), python_).measure;
    }
    return {.error = measure.known ? measure.e : 0};
  }

 private:
  const Side& golden_;
  PythonRules python_;
  Side third_;
  std::vector<std::uint32_t> partners_;  // of golden items
};

}  // namespace

std::unique_ptr<NoiseFloor> noise_floor(const dump::RankDump& third, const Side& golden,
                                        const PythonRules& python) {
  if (third.json.ends_with(".csv")) return noise_of_unstable_calls(*open_file(third.json), golden);
  return std::make_unique<ThirdDump>(third, golden, python);
}

}  // namespace msprobe::diagnosis

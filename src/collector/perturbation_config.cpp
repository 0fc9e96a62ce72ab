// SPDX-License-Identifier: Apache-2.0
#include "collector/perturbation_config.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::collector {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000;

class PerturbationReader {
 public:
  PerturbationReader(const nlohmann::ordered_json& section, const std::string& where)
      : section_(section), where_(where) {}

  [[noreturn]] void fail(std::string_view key, const std::string& reason) const {
    throw FormatError(where_, std::string(key) + ": " + reason);
  }

  /// The first choice is the default.
  std::string choice(std::string_view key, std::initializer_list<std::string_view> choices) const {
    const auto found = section_.find(std::string(key));
    if (found == section_.end() || found->is_null()) return std::string(*choices.begin());
    if (!found->is_string()) fail(key, "must be a string");
    const std::string value = found->get<std::string>();
    if (std::ranges::find(choices, std::string_view(value)) != choices.end()) return value;
    std::string all;
    for (const std::string_view one : choices) all += (all.empty() ? "" : ", ") + std::string(one);
    fail(key, "\"" + display(value) + "\" is none of " + all);
  }

  bool boolean(std::string_view key) const {
    const auto found = section_.find(std::string(key));
    if (found == section_.end() || found->is_null()) return false;
    if (!found->is_boolean()) fail(key, "must be true or false");
    return found->get<bool>();
  }

  void check_count(std::string_view key) const {
    const auto found = section_.find(std::string(key));
    if (found == section_.end() || found->is_null()) return;
    const bool fits = found->is_number_integer() && *found > 0 && *found <= kMostSteps;
    if (!fits) fail(key, "must be a whole number from 1 to 1000000");
  }

 private:
  const nlohmann::ordered_json& section_;
  const std::string& where_;
};

}  // namespace

void check_perturbation(const nlohmann::ordered_json& section, const std::string& where) {
  const PerturbationReader reader(section, where);
  const std::string mode = reader.choice(
      "pert_mode", {"improve_precision", "add_noise", "bit_noise", "change_value", "no_change", "to_cpu"});
  const std::string device = reader.choice("fuzz_device", {"npu", "cuda", "cpu"});
  const std::string stage = reader.choice("fuzz_stage", {"forward", "backward"});
  const bool fixes = reader.choice("handler_type", {"check", "fix"}) == "fix";
  const bool preheat = reader.boolean("if_preheat");
  reader.choice("fuzz_level", {"L1"});
  reader.check_count("preheat_step");
  reader.check_count("max_sample");
  if (mode == "to_cpu" && device != "cpu")
    reader.fail("fuzz_device",
                "must be \"cpu\" for pert_mode \"to_cpu\": that is where the second call is made");
  if (device == "cpu" && mode != "to_cpu")
    reader.fail(
        "fuzz_device",
        "\"cpu\" is for pert_mode \"to_cpu\"; all others call again on the device of the training, \"npu\" "
        "or \"cuda\"");
  if (preheat && mode == "to_cpu")
    reader.fail("if_preheat", "adapts the limit of perturbed calls: \"to_cpu\" has none");
  if (!fixes) return;
  if (mode != "improve_precision" && mode != "to_cpu")
    reader.fail("handler_type", "\"fix\" is for pert_mode \"improve_precision\" or \"to_cpu\"");
  if (stage == "backward") reader.fail("handler_type", "\"fix\" is for fuzz_stage \"forward\"");
  if (preheat) reader.fail("handler_type", "\"fix\" cannot be had with if_preheat");
}

}  // namespace msprobe::collector

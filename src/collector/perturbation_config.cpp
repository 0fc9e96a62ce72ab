// SPDX-License-Identifier: Apache-2.0
#include "collector/perturbation_config.hpp"

namespace msprobe::collector {

void check_perturbation(const ConfigReader& reader) {
  const auto chosen = [&](std::string_view key) {
    reader.choice(key);
    return reader.word(key);
  };
  const std::string mode = chosen("pert_mode");
  const std::string device = chosen("fuzz_device");
  const std::string stage = chosen("fuzz_stage");
  const bool fixes = chosen("handler_type") == "fix";
  const bool preheat = reader.boolean("if_preheat");
  chosen("fuzz_level");
  reader.count("preheat_step");
  reader.count("max_sample");
  if (mode == "to_cpu" && device != "cpu")
    reader.fail("fuzz_device", "must be \"cpu\" for pert_mode \"to_cpu\", which makes the second call there");
  if (device == "cpu" && mode != "to_cpu")
    reader.fail(
        "fuzz_device",
        "\"cpu\" is for pert_mode \"to_cpu\"; all others call again on the device of the training, \"npu\" "
        "or \"cuda\"");
  if (preheat && mode == "to_cpu")
    reader.fail("if_preheat", "adapts the limit of perturbed calls, but \"to_cpu\" has no limit");
  if (!fixes) return;
  if (mode != "improve_precision" && mode != "to_cpu")
    reader.fail("handler_type", "\"fix\" is for pert_mode \"improve_precision\" or \"to_cpu\"");
  if (stage == "backward") reader.fail("handler_type", "\"fix\" is for fuzz_stage \"forward\"");
  if (preheat) reader.fail("handler_type", "\"fix\" cannot be combined with if_preheat");
}

}  // namespace msprobe::collector

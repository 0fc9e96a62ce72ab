// SPDX-License-Identifier: Apache-2.0
// The keys of config.json, and keys in a file that do nothing: unknown ones, and those of the Python tool
// that have no effect here. Without a warning, a misspelt name would go unnoticed until the run is over.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::collector {

inline constexpr std::array<std::string_view, 8> kTaskNames = {
    "statistics",     "tensor",     "structure", "overflow_check",
    "free_benchmark", "grad_probe", "acc_check", "exception_dump"};
inline constexpr std::array<std::string_view, 5> kLevelNames = {"L0", "L1", "mix", "debug", "L2"};

/// Where keys occur: outside the sections, in the section of a task that records calls, or in one of these.
/// `kernels` is the task's section at level L2 of MindSpore.
enum class KeyGroup : std::uint8_t { common, task, load, free_benchmark, grad_probe, acc_check, kernels };

struct ConfigKey {
  std::string_view name;
  std::string_view fallback;                       // the value if it is absent, as JSON
  std::span<const std::string_view> choices = {};  // of words
  std::int64_t least = 0;                          // of a number
  std::int64_t most = 0;
};

/// docs/settings.md explains them.
std::span<const ConfigKey> keys_of(KeyGroup place);

/// One line for each key of the file and of its sections that has no effect. Messages call the file `name`;
/// `place` is the kind of the task's section.
std::vector<std::string> keys_without_effect(const nlohmann::ordered_json& root, std::string_view task,
                                             KeyGroup place, const std::string& name);

}  // namespace msprobe::collector

// SPDX-License-Identifier: Apache-2.0
#include "collector/kernel_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "support/text.hpp"

namespace msprobe::collector {
namespace {

// summary_mode may list these.
constexpr std::string_view kStatistics[] = {"max",
                                            "min",
                                            "mean",
                                            "l2norm",
                                            "count",
                                            "zero count",
                                            "positive zero count",
                                            "negative zero count",
                                            "nan count",
                                            "positive inf count",
                                            "negative inf count",
                                            "hash",
                                            "md5"};

/// With PyTorch, a single call is dumped, forward or backward. The name of its forward finds it.
void read_call(const ConfigReader& common, const ConfigReader& section, Config& config) {
  if (config.task != Task::tensor) common.fail("task", "must be \"tensor\" at level L2");
  if (!section.texts("scope").empty()) section.fail("scope", "is not for level L2: list names the call");
  config.list = section.texts("list");
  if (config.list.size() != 1 || !is_api_name(config.list[0]))
    section.fail("list", "must hold one call at level L2, such as \"Functional.linear.0.forward\"");
  constexpr std::string_view kBackward = "backward";
  std::string& name = config.list[0];
  if (name.ends_with(kBackward)) name.replace(name.size() - kBackward.size(), kBackward.size(), "forward");
}

void read_statistics(const ConfigReader& section) {
  const ConfigReader::Json* mode = section.find("summary_mode");
  if (mode == nullptr || !mode->is_array()) {
    section.choice("summary_mode");
    return;
  }
  for (const std::string& name : section.texts("summary_mode")) {
    if (std::ranges::find(kStatistics, name) == std::end(kStatistics))
      section.fail("summary_mode",
                   fmt::format("\"{}\" is not one of {}", display(name), fmt::join(kStatistics, ", ")));
  }
}

}  // namespace

void read_kernels(const ConfigReader& common, const ConfigReader& section, Config& config) {
  if (!config.by_runtime) return read_call(common, section, config);
  if (config.task != Task::statistics && config.task != Task::tensor && config.task != Task::overflow_check &&
      config.task != Task::exception_dump)
    common.fail("task", "must be one of statistics, tensor, overflow_check, exception_dump at level L2");
  config.list = section.texts("list");
  const std::vector<std::string> modes = section.texts("data_mode");
  for (const std::string& mode : modes) section.choice("data_mode", mode);
  if (modes.size() > 1) section.fail("data_mode", "must hold one of all, input, output at level L2");
  read_statistics(section);
  for (const char* key : {"file_format", "device", "precision", "check_mode"}) section.choice(key);
}

}  // namespace msprobe::collector

// SPDX-License-Identifier: Apache-2.0
// The container types whose constructors only copy their arguments.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe::formats {

enum class PythonContainer : std::uint8_t { dict, set, list, tuple };

struct ContainerName {
  std::string_view name;
  PythonContainer container;
  bool takes_factory;  // the first argument is not content
};

/// The container type `module.name`; nullptr for any other name.
const ContainerName* container_of_name(std::string_view full_name);

}  // namespace msprobe::formats

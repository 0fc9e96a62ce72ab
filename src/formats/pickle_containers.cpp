// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_containers.hpp"

#include <algorithm>
#include <array>

namespace msprobe::formats {
namespace {

constexpr std::array kContainerNames = {
    ContainerName{"collections.OrderedDict", PythonContainer::dict, false},
    ContainerName{"collections.defaultdict", PythonContainer::dict, true},
    ContainerName{"builtins.dict", PythonContainer::dict, false},
    ContainerName{"__builtin__.dict", PythonContainer::dict, false},
    ContainerName{"builtins.set", PythonContainer::set, false},
    ContainerName{"__builtin__.set", PythonContainer::set, false},
    ContainerName{"builtins.frozenset", PythonContainer::set, false},
    ContainerName{"__builtin__.frozenset", PythonContainer::set, false},
    ContainerName{"builtins.list", PythonContainer::list, false},
    ContainerName{"__builtin__.list", PythonContainer::list, false},
    ContainerName{"builtins.tuple", PythonContainer::tuple, false},
    ContainerName{"__builtin__.tuple", PythonContainer::tuple, false},
    ContainerName{"torch.Size", PythonContainer::tuple, false},
};

}  // namespace

const ContainerName* container_of_name(std::string_view full_name) {
  const auto* found = std::ranges::find_if(
      kContainerNames, [&](const ContainerName& known) { return known.name == full_name; });
  return found == kContainerNames.end() ? nullptr : found;
}

}  // namespace msprobe::formats

// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/stack_frames.hpp"

#include <algorithm>
#include <array>

namespace msprobe::compare {

bool is_own_frame(std::string_view frame) {
  static constexpr std::array<std::string_view, 9> kLibraries = {
      "site-packages/", "dist-packages/", "/lib/python", "/torch/",     "/torch_npu/",
      "/mindspore/",    "/mindtorch/",    "/msprobe/",   "File <frozen"};
  const std::string_view path = frame.substr(0, frame.find(", line "));
  return std::none_of(kLibraries.begin(), kLibraries.end(),
                      [&](std::string_view part) { return path.find(part) != std::string_view::npos; });
}

}  // namespace msprobe::compare

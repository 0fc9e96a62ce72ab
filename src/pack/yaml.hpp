// SPDX-License-Identifier: Apache-2.0
// YAML 1.1 as PyYAML's safe loader understands it: `on` is true, `017` is 15, `1:30` is 90, `1e-5` is text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pack/value.hpp"

namespace msprobe::pack {

struct YamlLimits {
  int max_depth = 100;
  std::uint64_t max_nodes = 1'000'000;               // of the document as written
  std::uint64_t max_expanded = 2'000'000;            // after replacing aliases and merge keys
  std::uint64_t max_text = std::uint64_t{64} << 20;  // of all scalars, expanded
};

/// The single document in `text`; null if the text is empty. Dates, which JSON does not have, are null, too.
/// Keys that are not text become text as Python prints them. FormatError naming `file` and the line for text
/// that PyYAML refuses (broken text, several documents, unknown tags, an alias inside its own node) and for
/// text that exceeds the limits.
PackValue read_yaml(std::string_view text, const std::string& file, const YamlLimits& limits = {});

/// The value of a scalar without quotes and tag.
PackValue resolve_yaml_scalar(const std::string& text);

}  // namespace msprobe::pack

// SPDX-License-Identifier: Apache-2.0
// The YAML files behind -dm, -cm, -am and -lm (docs/pairing.md), read once and checked.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::pairing {

/// A flat mapping, in the order of the file.
class NameMapping {
 public:
  using Entry = std::pair<std::string, std::string>;

  const std::vector<Entry>& entries() const { return entries_; }
  /// The text to which `name` maps, or nullptr.
  const std::string* find(std::string_view name) const;
  /// False if the name is there already.
  bool add(std::string from, std::string to);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> index_;
};

/// The lists that a rule of an api mapping may have.
enum ArgumentList : std::size_t { kInputs, kOutputs, kParameters, kParametersGrad, kSections };

/// One entry of an api mapping: an operation of the target, its partner, and which arguments correspond.
struct ApiRule {
  std::string target;
  std::string golden;
  /// A section that is not set was not named: its numbers stay as they are.
  std::array<std::optional<NameMapping>, kSections> sections;
};

/// The golden names of the paths below layers of one class.
struct LayerRules {
  NameMapping paths;
  /// The lengths of the paths by their first element, the longest first.
  std::map<std::string, std::vector<std::size_t>, std::less<>> lengths;
};
/// The rules by the class of the layer; TopLayer is the outermost.
using LayerMapping = std::map<std::string, LayerRules, std::less<>>;

/// All readers: FormatError naming file, line and key for broken YAML, values that are not names, keys given
/// twice, and files beyond the limits.
NameMapping read_name_mapping(const ByteSource& file);
/// A list of rules, or one rule alone. `ms_output` and `ms_outputs` are one section; a section that is not
/// there maps nothing. A rule whose lists differ in length is left out with a warning, as in the Python tool.
std::vector<ApiRule> read_api_mapping(const ByteSource& file);
LayerMapping read_layer_mapping(const ByteSource& file);

/// Appends one line of a flat mapping that these readers, and those of Python, give back as it is.
void append_mapping_line(std::string& out, std::string_view from, std::string_view to);

}  // namespace msprobe::pairing

// SPDX-License-Identifier: Apache-2.0
// Rules that rename parameters, or make a parameter out of several.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe {
class RuleFile;
}

namespace msprobe::checkpoint {

/// A dotted name with {words} that stand for one component each.
class NamePattern {
 public:
  using Words = std::map<std::string, std::string, std::less<>>;

  explicit NamePattern(std::string_view text);
  /// The components that the words stand for, if the name fits.
  std::optional<Words> match(std::string_view name) const;
  std::string fill(const Words& words) const;

 private:
  struct NameComponent {
    bool is_word = false;
    std::string text;
  };
  std::vector<NameComponent> parts_;
};

enum class ParameterJoin : std::uint8_t {
  none,
  rows,
  query_groups,        // of queries, keys and values
  fused_query_groups,  // the same for one tensor that has them one below the other
};

struct NameRule {
  NamePattern to;
  std::vector<NamePattern> from;
  ParameterJoin join = ParameterJoin::none;
};

class NameMap {
 public:
  /// The map that the binary contains.
  static NameMap built_in();
  /// The map from names in GGUF files to those of Hugging Face; each rule takes one name.
  static NameMap of_gguf();
  /// Throws FormatError with the file, the line and the reason.
  static NameMap from_file(const std::string& path);

  /// A name after mapping, and the indices of the names that it is made of. Names that no rule takes stay.
  struct Made {
    std::string name;
    std::vector<std::size_t> from;
    ParameterJoin join = ParameterJoin::none;
  };
  std::vector<Made> apply(const std::vector<std::string>& names) const;

 private:
  static NameMap parse(const RuleFile& file);
  std::vector<NameRule> rules_;
};

/// Joins parameters as the rule says.
CheckpointEntry join_entries(const std::string& name, const std::vector<const CheckpointEntry*>& from,
                             ParameterJoin join, const Architecture& architecture);

}  // namespace msprobe::checkpoint

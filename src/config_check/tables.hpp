// SPDX-License-Identifier: Apache-2.0
// What config_check knows of variables, packages and names. It comes from data/config_tables.yaml, and users
// may add.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"

namespace msprobe::config_check {

/// A variable that is compared, by the name it has on each kind of machine.
struct EnvironmentEntry {
  struct Variable {
    std::string name;
    pack::Value default_value;
  };
  std::string name;
  std::optional<Variable> npu;
  std::optional<Variable> gpu;
};

/// A variable that changes what is computed and has one name everywhere; or, where the name ends in *, all
/// that begin so.
struct NumericVariable {
  std::string name;
  std::string reason;
};

struct AliasGroup {
  std::vector<std::string> names;  // the canonical one first
};

struct Tables {
  std::vector<std::string> npu_marks;
  std::vector<EnvironmentEntry> environment;
  std::vector<NumericVariable> numerics;
  std::vector<std::string> no_numerics;  // though a family takes them in

  /// The entry of a variable: that of its name before that of a family; null if it changes no numbers.
  const NumericVariable* numeric(std::string_view variable) const;
  std::vector<std::string> packages;
  std::vector<AliasGroup> aliases;
  std::vector<std::string> secrets;  // in upper case
  pack::FlatMap verl;
};

Tables default_tables();
/// The built-in ones with those of a file added. FormatError or IoError naming it.
Tables load_tables(const std::string& path);

}  // namespace msprobe::config_check

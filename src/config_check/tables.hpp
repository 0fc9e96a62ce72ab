// SPDX-License-Identifier: Apache-2.0
// The variables, packages and names that config_check knows. data/config_tables.yaml defines them, and users
// may add their own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"

namespace msprobe::config_check {

/// A variable that is compared, with its name on each kind of machine.
struct EnvironmentEntry {
  struct Variable {
    std::string name;
    pack::PackValue default_value;
  };
  std::string name;
  std::optional<Variable> npu;
  std::optional<Variable> gpu;
};

/// A variable that affects the numbers and has the same name on every machine. If the name ends in *, all
/// variables that begin with it.
struct NumericVariable {
  std::string name;
  std::string reason;
};

struct AliasGroup {
  std::vector<std::string> names;  // the canonical name is the first
};

struct Tables {
  std::vector<std::string> npu_marks;
  std::vector<EnvironmentEntry> environment;
  std::vector<NumericVariable> numerics;
  std::vector<std::string> no_numerics;  // exceptions from families of numeric variables

  /// The entry of a variable; an exact name precedes a family. Null if the variable does not affect numbers.
  const NumericVariable* numeric(std::string_view variable) const;
  std::vector<std::string> packages;
  std::vector<AliasGroup> aliases;
  std::vector<std::string> secrets;  // parts of names, in any case
  pack::FlatMap verl;
};

Tables default_tables();
/// The built-in tables with those of a file added. FormatError or IoError naming the file.
Tables load_tables(const std::string& path);

}  // namespace msprobe::config_check

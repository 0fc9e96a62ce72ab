// SPDX-License-Identifier: Apache-2.0
// YAML with rules: what is built in, and what users write to change it.
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <string>

namespace msprobe {

class RuleFile {
 public:
  /// `name` is what complaints begin with.
  RuleFile(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}
  /// IoError if it cannot be read, FormatError if it is larger than 1 MiB.
  static RuleFile open(const std::string& path);

  /// Gives the root to `visit`. FormatError naming file and line for broken YAML, and for anchors.
  void read(const std::function<void(const YAML::Node&)>& visit) const;

  /// Throws the FormatError for what stands at `mark`.
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& reason) const;

 private:
  std::string name_;
  std::string text_;
};

}  // namespace msprobe

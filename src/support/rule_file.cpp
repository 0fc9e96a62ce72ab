// SPDX-License-Identifier: Apache-2.0
#include "support/rule_file.hpp"

#include <cstdint>
#include <vector>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe {

constexpr std::uint64_t kMaxRuleFile = std::uint64_t{1} << 20;

RuleFile RuleFile::open(const std::string& path) {
  const std::vector<std::byte> bytes = read_all(*open_file(path), kMaxRuleFile);
  return {path, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
}

void RuleFile::read(const std::function<void(const YAML::Node&)>& visit) const {
  // Rules need no anchors, and whoever follows aliases can be led through a few lines without end.
  if (text_.find('&') != std::string::npos)
    throw FormatError(display(name_), "YAML anchors are not accepted here");
  try {
    visit(YAML::Load(text_));
  } catch (const YAML::Exception& error) {
    fail(error.mark, display(error.msg));
  }
}

void RuleFile::fail(const YAML::Mark& mark, const std::string& reason) const {
  const std::string line = mark.is_null() ? "" : "line " + std::to_string(mark.line + 1) + ": ";
  throw FormatError(display(name_), line + reason);
}

}  // namespace msprobe

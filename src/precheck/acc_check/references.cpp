// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/references.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "support/ascii.hpp"
#include "support/byte_source.hpp"
#include "support/json_writer.hpp"
#include "support/rule_file.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

namespace fs = std::filesystem;

bool is_identifier(const RuleFile::Node& node) {
  const std::string& text = node.text;
  const auto fits = [](char c) { return c == '_' || is_digit(c) || is_letter(c); };
  return node.is_text() && !text.empty() && !is_digit(text.front()) && std::ranges::all_of(text, fits);
}

/// The node with the function of one operator.
const RuleFile::Node& forward_of(const std::string& path, const RuleFile& file, const RuleFile::Node& name,
                                 const RuleFile::Node& told, OwnReferences& own) {
  const RuleFile::Node* forward = nullptr;
  for (const auto& [key, value] : file.members(told)) {
    if (key->text == "forward") {
      forward = value;
    } else if (key->text == "backward") {
      own.warnings.push_back(
          fmt::format("{}: the backward of {} is not called: its gradients come from forward", display(path),
                      display(name.text)));
    } else if (key->text != "description") {
      file.fail(*key, fmt::format("'{}' must be one of forward, backward, description", display(key->text)));
    }
  }
  if (forward == nullptr || !is_identifier(*forward))
    file.fail(name, display(name.text) + " needs a function: forward: NAME");
  return *forward;
}

}  // namespace

OwnReferences read_references(const std::string& path) {
  const RuleFile file = RuleFile::open(path);
  const fs::path python = fs::absolute(path).lexically_normal().replace_extension(".py");
  open_file(python.string());
  OwnReferences own;
  const RuleFile::Node* operators = nullptr;
  for (const auto& [key, value] : file.members(file.root())) {
    if (key->text != "operators") file.fail(*key, fmt::format("unknown key '{}'", display(key->text)));
    operators = value;
  }
  if (operators == nullptr || operators->kind != RuleFile::Kind::map)
    file.fail(file.root(), "operators must name operators and their functions");
  JsonWriter json;
  json.open_object();
  json.member("file", python.string());
  json.open_object("functions");
  for (const auto& [name, told] : file.members(*operators)) {
    if (!is_identifier(*name)) file.fail(*name, "an operator name is expected, without NPU.");
    json.member(name->text, forward_of(path, file, *name, *told, own).text);
  }
  json.close();
  json.close();
  own.told = json.take();
  return own;
}

}  // namespace msprobe::precheck

// SPDX-License-Identifier: Apache-2.0
#include "code_mapping/ir_graph.hpp"

#include <algorithm>
#include <functional>

#include "support/ascii.hpp"

namespace msprobe::code_mapping {
namespace {

constexpr std::size_t kLongestSearched = 4096;  // names of dumps are file names

std::string_view without(std::string_view text, std::string_view edge) {
  const std::size_t begin = text.find_first_not_of(edge);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(edge) - begin + 1);
}

/// "  %12(CNode_3) = PrimFunc_MatMul(...".
bool begins_node(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || line[begin] != '%') return false;
  std::size_t at = begin + 1;
  while (at < line.size() && is_digit(line[at])) ++at;
  return at > begin + 1 && at < line.size() && line[at] == '(' &&
         line.find(" = ", at) != std::string_view::npos;
}

/// The text of a line that is a comment, without its edges; else empty.
std::string_view comment(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || !line.substr(begin).starts_with("# ")) return {};
  return without(without(line.substr(begin), "# \r"), "/");
}

/// "Fullname with scope: (Default/Load-op6)".
std::string_view scope_in(std::string_view comment) {
  constexpr std::string_view kBegin = "Fullname with scope: (";
  const std::size_t begin = comment.find(kBegin);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = comment.substr(begin + kBegin.size());
  return rest.substr(0, std::min(rest.find(')'), rest.size()));
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

Nodes::Nodes(std::string_view text) {
  enum class GraphSection : unsigned char { outside, in_node, in_lines };
  GraphSection place = GraphSection::outside;
  IrNode node;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const std::string_view told = comment(line);
    if (place == GraphSection::in_lines && !told.empty()) {
      node.lines.push_back(told);
      continue;
    }
    if (place == GraphSection::in_lines) {
      add(node);
      place = GraphSection::outside;
    }
    if (begins_node(line)) {
      place = GraphSection::in_node;
    } else if (place == GraphSection::in_node && !scope_in(told).empty()) {
      node = {scope_in(told), {}};
      place = GraphSection::in_lines;
    }
  }
  if (place == GraphSection::in_lines) add(node);
  for (const auto& [name, known] : nodes_) lengths_.push_back(name.size());
  std::sort(lengths_.begin(), lengths_.end(), std::greater<>());
  lengths_.erase(std::unique(lengths_.begin(), lengths_.end()), lengths_.end());
}

void Nodes::add(const IrNode& node) {
  std::string name(node.scope);
  std::replace(name.begin(), name.end(), '/', '_');
  nodes_.insert_or_assign(std::move(name), node);
}

const IrNode* Nodes::longest_at(std::string_view rest) const {
  for (const std::size_t length : lengths_) {
    if (length > rest.size() || (length < rest.size() && is_digit(rest[length]))) continue;
    const auto found = nodes_.find(std::string(rest.substr(0, length)));
    if (found != nodes_.end()) return &found->second;
  }
  return nullptr;
}

std::vector<const IrNode*> Nodes::find(std::string_view name) const {
  const auto found = nodes_.find(std::string(name));
  if (found != nodes_.end()) return {&found->second};
  std::vector<const IrNode*> parts;
  if (name.size() > kLongestSearched) return parts;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const IrNode* const part = longest_at(name.substr(at));
    if (part == nullptr) continue;
    parts.push_back(part);
    at += part->scope.size() - 1;
  }
  return parts;
}

}  // namespace msprobe::code_mapping

// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/call_types.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "precheck/calls/operator_policy.hpp"

namespace msprobe::precheck {

namespace {

using dump::Entry;
using dump::NodeKind;
using tensor::DType;
using Node = Entry::Index;

}  // namespace

std::vector<std::pair<std::string, std::string>> raised_types(const std::set<DType>& floats) {
  std::vector<std::pair<std::string, std::string>> raised;
  const char* const higher = floats.contains(DType::float32) ? "float64" : "float32";
  for (const DType dtype : floats) raised.emplace_back(tensor::info(dtype).name, higher);
  return raised;
}

std::optional<DType> output_type(const Entry& forward) {
  const Node output = forward.find(0, "output");
  if (!forward.is(output, NodeKind::array)) return std::nullopt;
  Node found = Entry::kNone;
  forward.children(output, [&](Node child) {
    if (found == Entry::kNone) found = child;
  });
  const std::optional<DType> dtype = tensor::dtype_from_name(forward.string(found, "dtype"));
  if (!dtype || tensor::info(*dtype).kind != tensor::DTypeKind::floating) return std::nullopt;
  return *dtype;
}

std::optional<DType> autocast_type(const std::set<DType>& floats, const std::optional<DType>& output) {
  const auto narrow = [](DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; };
  const bool differs = output && floats.size() == 1 && *output != *floats.begin();
  if (floats.size() < 2 && !differs) return std::nullopt;
  if (output && narrow(*output)) return *output;
  for (const DType dtype : floats) {
    if (narrow(dtype)) return dtype;
  }
  return std::nullopt;
}

bool is_random(const PlannedCall& call, const Entry& forward, Node arguments, Node keywords) {
  const std::optional<std::size_t> position = probability_position(call.api);
  if (!position) return false;
  const auto plain = [&](Node node) {
    return forward.is(node, NodeKind::object) ? forward.find(node, "value") : node;
  };
  bool given = false;
  bool certain = false;
  const auto look = [&](Node node) {
    given = true;
    const Node number = plain(node);
    if (forward.is_number(number)) certain = certain || forward.number(number) == 0;
  };
  std::size_t index = 0;
  forward.children(arguments, [&](Node child) {
    if (index == *position) look(child);
    const Node content = plain(child);
    // dropout(input, p, training)
    if (*position == 1 && index == 2 && forward.is(content, NodeKind::boolean))
      certain = certain || !forward.boolean(content);
    ++index;
  });
  if (forward.is(keywords, NodeKind::object)) {
    forward.children(keywords, [&](Node child) {
      const std::string_view key = forward.key(child);
      if (operator_policy().probability_names.contains(key)) look(child);
      const Node content = plain(child);
      if (key == "training" && forward.is(content, NodeKind::boolean))
        certain = certain || !forward.boolean(content);
    });
  }
  // Attention without a probability has none; dropout has.
  return !certain && (given || *position == 1);
}

}  // namespace msprobe::precheck

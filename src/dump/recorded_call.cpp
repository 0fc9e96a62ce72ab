// SPDX-License-Identifier: Apache-2.0
#include "dump/recorded_call.hpp"

namespace msprobe::dump {
namespace {

constexpr int kMaxNesting = 16;

void collect_tensors(const Entry& entry, Entry::Index node, int depth, std::vector<Entry::Index>& tensors) {
  if (!entry.is_container(node) || depth > kMaxNesting) return;
  if (entry.find(node, "dtype") != Entry::kNone) {
    tensors.push_back(node);
  } else {
    entry.children(node, [&](Entry::Index child) { collect_tensors(entry, child, depth + 1, tensors); });
  }
}

}  // namespace

Argument read_argument(const Entry& entry, Entry::Index node) {
  switch (entry.kind(node)) {
    case NodeKind::null:
      return {ArgumentKind::none, {}, node};
    case NodeKind::array:
      return {ArgumentKind::list, {}, node};
    case NodeKind::object:
      break;
    default:
      return {ArgumentKind::plain, {}, node};
  }
  const std::string_view type = entry.string(node, "type");
  if (type.empty()) return {ArgumentKind::mapping, {}, node};
  if (entry.find(node, "shape") != Entry::kNone) return {ArgumentKind::tensor, type, node};
  return {ArgumentKind::typed, type, entry.find(node, "value")};
}

TensorRecord read_tensor(const Entry& entry, Entry::Index node) {
  TensorRecord record;
  record.type = entry.string(node, "type");
  record.dtype = entry.string(node, "dtype");
  record.requires_grad = entry.flag(node, "requires_grad");
  record.file = entry.string(node, "data_name");
  if (record.file.empty()) record.file = entry.string(node, "datapath");
  const Entry::Index shape = entry.find(node, "shape");
  if (!entry.is(shape, NodeKind::array)) return record;
  record.shape.emplace();
  bool known = true;
  entry.children(shape, [&](Entry::Index child) {
    const auto length = entry.integer(child);
    known = known && length && *length >= 0;
    if (known) record.shape->push_back(*length);
  });
  if (!known) record.shape.reset();
  return record;
}

std::vector<Entry::Index> tensors_in(const Entry& entry, Entry::Index node) {
  std::vector<Entry::Index> tensors;
  collect_tensors(entry, node, 0, tensors);
  return tensors;
}

}  // namespace msprobe::dump

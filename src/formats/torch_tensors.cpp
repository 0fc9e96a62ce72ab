// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

/// Returns a key as a part of a tensor's name.
std::string part_of(const Pickle& pickle, PickleRef key) {
  switch (pickle.kind(key)) {
    case PickleKind::text:
      return std::string(pickle.text(key));
    case PickleKind::integer:
      return std::to_string(pickle.integer(key));
    case PickleKind::boolean:
      return pickle.boolean(key) ? "True" : "False";
    case PickleKind::none:
      return "None";
    default:
      return fmt::format("({})", kind_name(pickle.kind(key)));
  }
}

bool is_container(PickleKind kind) {
  return kind == PickleKind::tuple || kind == PickleKind::list || kind == PickleKind::set ||
         kind == PickleKind::dict || kind == PickleKind::object;
}

/// A container on the current path, and the index of its next child.
struct PathStep {
  PickleRef ref = kNoPickleRef;
  std::string name;
  std::size_t next = 0;
};

struct Child {
  PickleRef ref = kNoPickleRef;
  PickleRef key = kNoPickleRef;         // of a dict
  std::optional<std::size_t> position;  // in a list or tuple
};

/// The child of a container at `index`; nothing beyond the last one.
std::optional<Child> child_of(const Pickle& pickle, PickleRef ref, std::size_t index) {
  if (pickle.kind(ref) == PickleKind::dict) {
    const auto pairs = pickle.pairs(ref);
    if (index >= pairs.size() / 2) return {};
    return Child{.ref = pairs[2 * index + 1], .key = pairs[2 * index], .position = {}};
  }
  if (pickle.kind(ref) == PickleKind::object) {
    const PickleObject& object = pickle.object(ref);
    const std::array parts = {object.args, object.kwargs, object.state, object.items, object.pairs};
    if (index >= parts.size()) return {};
    return Child{.ref = parts[index], .key = kNoPickleRef, .position = {}};
  }
  const auto items = pickle.items(ref);
  if (index >= items.size()) return {};
  return Child{.ref = items[index], .key = kNoPickleRef, .position = index};
}

std::string name_of(const Pickle& pickle, const std::string& before, const Child& child) {
  std::string part;
  if (child.key != kNoPickleRef) part = part_of(pickle, child.key);
  if (child.position) part = std::to_string(*child.position);
  if (before.empty() || part.empty()) return before + part;
  return before + '.' + part;
}

}  // namespace

StoredTensor TorchTensors::tensor(std::size_t index) const {
  const TorchShard* part = shard(index);
  if (part != nullptr && !part->problem.empty()) throw FormatError(display(file_name_), part->problem);
  return file_.tensor(tensors_.at(index).second);
}

TorchTensors::TorchTensors(const std::shared_ptr<const ByteSource>& file)
    : file_name_(file->name()), file_(file) {
  walk(file->size());
}

void TorchTensors::walk(std::uint64_t file_size) {
  const Pickle& pickle = file_.pickle();
  const auto fail = [&](const char* reason) { throw FormatError(display(file_name_), reason); };
  // The search enters each container once, so that shared and cyclic values cost no more than they take in
  // the file.
  std::vector<bool> entered(pickle.size());
  MemoryAllowance allowance(file_size);
  allowance.take(pickle.memory());
  std::vector<PathStep> way;
  std::size_t bytes = 0;  // of all names, since those that lead to no tensor take time, too
  const auto visit = [&](PickleRef ref, std::string name) {
    bytes += name.size();
    if (bytes > kMaxNames) fail("refused: its tensor names need too much memory");
    // A few bytes can name a tensor again that occurs elsewhere.
    const auto add = [&](const std::string& tensor_name, PickleRef tensor, std::size_t numbers) {
      if (!allowance.take_tensor(tensor_name.size(), numbers)) fail(kTooManyTensors);
      tensors_.emplace_back(tensor_name, tensor);
    };
    if (is_sharded(file_, ref)) {
      for (TorchShard& shard : read_shards(file_, ref)) {
        add(name, shard.local, 4 * shard.whole.size());
        shards_.emplace(tensors_.size() - 1, std::move(shard));
      }
      return;
    }
    if (const auto kept = kept_tensors(file_, ref); !kept.empty()) {
      // torchao names these attributes so in safetensors: "layer._weight_qdata".
      const std::size_t last = name.rfind('.') + 1;
      for (const auto& [attribute, tensor] : kept)
        add(fmt::format("{}_{}_{}", name.substr(0, last), name.substr(last), attribute), tensor,
            std::min(file_.rank(tensor), kMaxRank));
      return;
    }
    if (file_.is_tensor(ref)) return add(name, ref, std::min(file_.rank(ref), kMaxRank));
    if (way.size() >= static_cast<std::size_t>(kMaxDepth)) fail("refused: its values are nested too deeply");
    entered[static_cast<std::size_t>(ref)] = true;
    way.push_back({.ref = ref, .name = std::move(name)});
  };
  const auto matters = [&](PickleRef ref) {
    if (ref == kNoPickleRef || !is_container(pickle.kind(ref))) return false;
    return file_.is_tensor(ref) || is_sharded(file_, ref) || !entered[static_cast<std::size_t>(ref)];
  };
  if (matters(pickle.root())) visit(pickle.root(), "");
  while (!way.empty()) {
    const auto child = child_of(pickle, way.back().ref, way.back().next++);
    if (!child) {
      way.pop_back();
    } else if (matters(child->ref)) {
      visit(child->ref, name_of(pickle, way.back().name, *child));
    }
  }
}

}  // namespace msprobe::formats

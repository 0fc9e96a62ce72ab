// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

/// A key as a part of a name.
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

struct Step {
  PickleRef ref = kNoPickleRef;
  std::string name;
  int depth = 0;
};

}  // namespace

TorchTensors::TorchTensors(std::shared_ptr<const ByteSource> file) : file_name_(file->name()), file_(file) {
  walk(file->size());
}

void TorchTensors::walk(std::uint64_t file_size) {
  const Pickle& pickle = file_.pickle();
  const auto fail = [&](const char* reason) { throw FormatError(display(file_name_), reason); };
  // Each container is entered once, so that shared and cyclic values cost no more than they take in the file.
  std::vector<bool> entered(pickle.size());
  Allowance allowance(file_size);
  allowance.take(pickle.memory());
  std::vector<Step> open = {{pickle.root(), "", 0}};
  std::vector<Step> inside;
  std::size_t bytes = 0;  // of the names kept and to come
  while (!open.empty()) {
    const Step step = std::move(open.back());
    open.pop_back();
    if (file_.is_tensor(step.ref)) {
      // A few bytes name a tensor again that stands elsewhere.
      const std::size_t rank = std::min(file_.rank(step.ref), kMaxRank);
      if (!allowance.take_tensor(step.name.size(), rank)) fail(kTooManyTensors);
      tensors_.emplace_back(step.name, step.ref);
      continue;
    }
    bytes -= step.name.size();
    const PickleKind kind = pickle.kind(step.ref);
    const bool holds = kind == PickleKind::tuple || kind == PickleKind::list || kind == PickleKind::set ||
                       kind == PickleKind::dict || kind == PickleKind::object;
    if (!holds || entered[static_cast<std::size_t>(step.ref)]) continue;
    entered[static_cast<std::size_t>(step.ref)] = true;
    if (step.depth == kMaxDepth) fail("refused: its values nest too deep");
    inside.clear();
    const auto add = [&](PickleRef ref, const std::string& part) {
      if (ref == kNoPickleRef) return;
      const PickleKind child = pickle.kind(ref);
      const bool matters = child == PickleKind::tuple || child == PickleKind::list ||
                           child == PickleKind::set || child == PickleKind::dict ||
                           child == PickleKind::object;
      if (!matters) return;
      std::string name = step.name;
      if (!name.empty() && !part.empty()) name += '.';
      name += part;
      bytes += name.size();
      if (bytes > kMaxNames) fail("refused: the names of its tensors take too much memory");
      inside.push_back({ref, std::move(name), step.depth + 1});
    };
    if (kind == PickleKind::dict) {
      const auto pairs = pickle.pairs(step.ref);
      for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) add(pairs[i + 1], part_of(pickle, pairs[i]));
    } else if (kind == PickleKind::object) {
      const PickleObject& object = pickle.object(step.ref);
      for (const PickleRef part : {object.args, object.kwargs, object.state, object.items, object.pairs}) {
        add(part, "");
      }
    } else {
      const auto items = pickle.items(step.ref);
      for (std::size_t i = 0; i < items.size(); ++i) add(items[i], std::to_string(i));
    }
    for (std::size_t i = inside.size(); i-- > 0;) open.push_back(std::move(inside[i]));
  }
}

}  // namespace msprobe::formats

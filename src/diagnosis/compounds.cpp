// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/compounds.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/side.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "support/parallel.hpp"
#include "support/text_pool.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Side;
using pairing::module_path;

/// Marks the modules that contain anything recorded. Without construct.json these are the modules that
/// contain other modules, and all modules where operations are recorded too.
void mark(const Side& side, const dump::ConstructTable* construct, const OneRecorder& alone,
          std::vector<bool>& compound) {
  compound.assign(side.apis.size(), false);
  TextIndex modules;
  const auto text_of = [&](std::uint32_t api) { return side.text(side.apis[api].name); };
  std::unordered_map<std::string_view, std::uint32_t> first_at_path;
  bool operations = false;
  for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
    const dump::EntryName parsed = side.parsed_name(i);
    if (parsed.direction == Direction::parameters_grad) continue;
    if (parsed.is_module) {
      modules.add(i, text_of);
    } else if (parsed.direction == Direction::forward && !alone.has(i)) {
      operations = true;
    }
  }
  const bool by_table = construct != nullptr && construct->size() > 0;
  std::unordered_map<std::string, bool> holds;  // paths of modules that contain something
  for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
    const std::string_view name = text_of(i);
    if (alone.has(i)) continue;
    if (by_table) {
      const std::uint32_t parent = modules.find(construct->parent(name), text_of);
      if (parent != TextIndex::kNone) compound[parent] = true;
      continue;
    }
    // Only the paths around this one: a hostile path of many parts costs its own length squared at most
    // once.
    std::string path(module_path(name));
    for (int levels = 0; levels < 64; ++levels) {
      const std::size_t dot = path.rfind('.');
      if (dot == std::string::npos) break;
      path.resize(dot);
      if (!holds.try_emplace(path, true).second) break;
    }
  }
  if (by_table) return;
  for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
    const std::string path(module_path(text_of(i)));
    if (!path.empty()) compound[i] = operations || holds.contains(path);
  }
}

/// Leaves only those modules marked that contain an entry with a partner. A module in which nothing has a
/// partner must answer for all of its contents.
void keep_open_modules(Walk& walk) {
  if (walk.construct == nullptr) return;
  TextIndex modules;
  const auto text_of = [&walk](std::uint32_t api) { return walk.target_name(api); };
  for (std::uint32_t i = 0; i < walk.target.apis.size(); ++i) {
    if (walk.compound[i]) modules.add(i, text_of);
  }
  std::vector<bool> open(walk.compound.size());
  for (std::uint32_t i = 0; i < walk.target.apis.size(); ++i) {
    if (!walk.alignment.has_golden(i)) continue;
    std::uint32_t around = modules.find(walk.construct->parent(walk.target_name(i)), text_of);
    while (around != TextIndex::kNone && !open[around]) {
      open[around] = true;
      around = modules.find(walk.construct->parent(walk.target_name(around)), text_of);
    }
  }
  walk.compound = std::move(open);
}

}  // namespace

void mark_compounds(Walk& walk) {
  parallel_for(2, [&](std::size_t side) {
    if (side == 0) mark(walk.target, walk.construct, walk.target_only, walk.compound);
    if (side == 1) mark(walk.golden, walk.golden_construct, walk.golden_only, walk.compound_golden);
  });
  if (walk.construct != nullptr && walk.construct->size() > 0) {
    for (std::uint32_t i = 0; i < walk.golden.apis.size(); ++i) {
      if (walk.alignment.target_of[i] != pairing::kNone)
        walk.compound_golden[i] = walk.compound[walk.alignment.target_of[i]];
    }
  }
  if (walk.other_operations) keep_open_modules(walk);
}

}  // namespace msprobe::diagnosis

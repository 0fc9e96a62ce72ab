// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/split_batch.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/names.hpp"
#include "measuring/measures.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Side;

/// The calls of one name on both sides, by the elements and the last dimension of their outputs.
using CallSizes = std::map<std::pair<std::uint64_t, std::uint64_t>, std::array<std::uint64_t, 2>>;
struct BatchParts {
  std::uint64_t target = 0;
  std::uint64_t golden = 0;
  double share = 1;
  auto operator<=>(const BatchParts&) const = default;  // NOLINT: clang-tidy takes its 0 for a null pointer
};

std::pair<std::uint64_t, std::uint64_t> size_of_outputs(const Side& side, const dump::Api& api) {
  std::uint64_t elements = 0;
  std::uint64_t width = 0;  // 0: a tensor of one dimension may be cut along it
  for (const std::uint32_t i : api.items()) {
    const dump::Item& item = side.items[i];
    if (item.state != dump::State::output || !item.is_tensor) continue;
    elements += measuring::elements_of(side.text(item.shape));
    const std::vector<std::uint64_t> sizes = measuring::sizes_of(side.text(item.shape));
    if (width == 0 && sizes.size() > 1) width = sizes.back();
  }
  return {elements, width};
}

/// How many calls of each side compute the same elements in other parts; nothing if they do not. Calls of one
/// size, as those on the whole batch before, are no parts. If all parts of a side have one size, some of them
/// may be missing. Columns, as of the layers of a fused one, are no parts of a batch.
std::optional<BatchParts> parts_of(const CallSizes& sizes) {
  std::array<std::uint64_t, 2> calls{};
  std::array<std::uint64_t, 2> size_of{};
  std::array<unsigned, 2> different{};
  std::map<std::uint64_t, std::array<std::uint64_t, 2>> elements;  // by width
  for (const auto& [shape, times] : sizes) {
    const auto& [size, width] = shape;
    for (std::size_t k = 0; k < 2; ++k) {
      const std::uint64_t alone = times[k] - std::min(times[0], times[1]);
      if (alone == 0) continue;
      calls[k] += alone;
      elements[width][k] += alone * size;
      size_of[k] = size;
      ++different[k];
    }
  }
  if (calls[0] == calls[1] || elements.empty()) return std::nullopt;
  const auto& [ours, theirs] = elements.begin()->second;
  const bool fit = elements.size() == 1 && different[0] == 1 && different[1] == 1 && size_of[0] > 0 &&
                   size_of[1] > 0 && std::max(size_of[0], size_of[1]) % std::min(size_of[0], size_of[1]) == 0;
  const auto is_same = [](const auto& each) {
    return each.second[0] == each.second[1] && each.second[0] > 0;
  };
  if (!fit && !std::all_of(elements.begin(), elements.end(), is_same)) return std::nullopt;
  const std::uint64_t common = std::gcd(calls[0], calls[1]);
  return BatchParts{calls[0] / common, calls[1] / common,
                    static_cast<double>(ours) / static_cast<double>(theirs)};
}

}  // namespace

std::optional<SplitBatch> split_batch(const Side& target, const Side& golden,
                                      const pairing::Alignment& alignment,
                                      const dump::ConstructTable* construct,
                                      const dump::ConstructTable* golden_construct) {
  const std::array<const Side*, 2> sides{&target, &golden};
  std::unordered_map<std::string_view, std::array<std::uint64_t, 2>> times;
  for (std::size_t k = 0; k < 2; ++k) {
    for (const dump::Api& api : sides[k]->apis) {
      const dump::EntryName name = sides[k]->parsed_name(api);
      if (name.direction == Direction::forward) ++times[name.base][k];
    }
  }
  const auto is_repeated = [](const auto& call) { return call.second[0] != call.second[1]; };
  if (std::none_of(times.begin(), times.end(), is_repeated)) return std::nullopt;
  const std::array<const dump::ConstructTable*, 2> tables{construct, golden_construct};
  const auto is_module = [](std::string_view name) {
    return name.starts_with("Module.") || name.starts_with("Cell.");
  };
  std::unordered_map<std::string_view, CallSizes> calls;  // without operations inside modules
  for (std::size_t k = 0; k < 2; ++k) {
    for (const dump::Api& api : sides[k]->apis) {
      const dump::EntryName name = sides[k]->parsed_name(api);
      const bool within = tables[k] != nullptr && is_module(tables[k]->parent(sides[k]->text(api.name)));
      if (name.direction != Direction::forward || (within && !is_module(name.base))) continue;
      ++calls[name.base][size_of_outputs(*sides[k], api)][k];
    }
  }
  std::array<std::uint64_t, 2> others{};  // operations of other sizes, and modules
  bool modules_differ = false;
  std::array<std::map<BatchParts, std::uint64_t>, 2> splits;
  for (const auto& [base, sizes] : calls) {
    const auto& [ours, theirs] = times.at(base);
    const std::size_t kind = is_module(base) ? 1 : 0;
    const bool other = std::any_of(sizes.begin(), sizes.end(), is_repeated);
    if (ours == 0 || theirs == 0 || (kind == 0 && !other)) continue;
    ++others[kind];
    modules_differ = modules_differ || (kind == 1 && other);
    if (const auto parts = parts_of(sizes)) ++splits[kind][*parts];
  }
  // Where all modules run as often, calls outside of modules may differ, as those of a copy of the model.
  const bool known = construct != nullptr && golden_construct != nullptr;
  const std::size_t by = others[1] > 0 && (modules_differ || !known) ? 1 : 0;
  const auto most = std::max_element(splits[by].begin(), splits[by].end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == splits[by].end() || 2 * most->second <= others[by]) return std::nullopt;
  SplitBatch split;
  split.target = most->first.target;
  split.golden = most->first.golden;
  split.share = most->first.share;
  for (const auto& [base, both] : times) {
    if (both[0] != both[1]) split.repeated.insert(base);
  }
  for (std::uint32_t api = 0; api < target.apis.size(); ++api) {
    const dump::EntryName name = target.parsed_name(api);
    if (!alignment.has_golden(api) || name.direction != Direction::forward) continue;
    const std::uint32_t partner = alignment.golden_of[api];
    if (size_of_outputs(target, target.apis[api]) == size_of_outputs(golden, golden.apis[partner])) continue;
    if (!split.repeated.contains(name.base)) continue;
    split.first = api;
    split.golden_first = partner;
    break;
  }
  return split;
}

}  // namespace msprobe::diagnosis

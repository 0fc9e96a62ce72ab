// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/split_batch.hpp"

#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dump/names.hpp"
#include "measuring/measures.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::Side;
using measuring::elements_of;

using Calls = std::unordered_map<std::string_view, std::uint64_t>;

/// Forward calls by their names without numbers.
Calls calls_of(const Side& side) {
  Calls calls;
  for (const dump::Api& api : side.apis) {
    const dump::EntryName name = side.parsed_name(api);
    if (name.direction == dump::Direction::forward) ++calls[name.base];
  }
  return calls;
}

/// Whether most modules are called more often by the factor of `parts`. A step that runs in parts does so
/// from start to end; a module that alone has parts (heads, moments) is not a split batch.
bool has_parts_of_batch(const Calls& target, const Calls& golden,
                        const std::pair<std::uint64_t, std::uint64_t>& parts) {
  std::uint64_t common = 0;
  std::uint64_t split = 0;
  for (const auto& [call, times] : target) {
    const auto other = golden.find(call);
    if (other == golden.end() || !(call.starts_with("Module.") || call.starts_with("Cell."))) continue;
    ++common;
    split += times * parts.second == other->second * parts.first ? 1 : 0;
  }
  return common == 0 || 2 * split > common;  // without modules nothing contradicts it
}

}  // namespace

std::optional<SplitBatch> split_batch(const Side& target, const Side& golden,
                                      const pairing::Alignment& alignment,
                                      const std::vector<std::uint32_t>& golden_item) {
  std::uint64_t others = 0;  // outputs of another size
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> splits;
  Calls target_calls;
  Calls golden_calls;
  for (std::uint32_t api = 0; api < target.apis.size(); ++api) {
    if (!alignment.has_golden(api)) continue;
    const dump::EntryName name = target.parsed_name(api);
    const dump::EntryName other = golden.parsed_name(alignment.golden_of[api]);
    if (name.direction != dump::Direction::forward) continue;
    for (const std::uint32_t i : target.apis[api].items()) {
      const Item& item = target.items[i];
      if (item.state != dump::State::output || !item.is_tensor || golden_item[i] == pairing::kNone) continue;
      const std::uint64_t ours = elements_of(target.text(item.shape));
      const std::uint64_t theirs = elements_of(golden.text(golden.items[golden_item[i]].shape));
      if (ours == theirs) continue;
      ++others;
      if (target_calls.empty()) {
        target_calls = calls_of(target);
        golden_calls = calls_of(golden);
      }
      const std::uint64_t more = target_calls[name.base];
      const std::uint64_t fewer = golden_calls[other.base];
      if (more == fewer || ours * more != theirs * fewer) continue;
      const std::uint64_t common = std::gcd(more, fewer);
      ++splits[{more / common, fewer / common}];
    }
  }
  for (const auto& [parts, times] : splits) {
    if (2 * times > others && has_parts_of_batch(target_calls, golden_calls, parts))
      return SplitBatch{parts.first, parts.second};
  }
  return std::nullopt;
}

}  // namespace msprobe::diagnosis

// SPDX-License-Identifier: Apache-2.0
#include "anomaly/bad_flow.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

namespace msprobe::anomaly {
namespace {

using dump::Entry;

constexpr std::size_t kNoChain = SIZE_MAX;
/// The limit for remembered contents. After so many bad values, the origin of the others counts as unknown.
constexpr std::size_t kMostContents = 1 << 16;
/// The limit for entries whose bad values are followed.
constexpr std::size_t kMostChains = 1024;

/// A hash of Max, Min, Mean and Norm as written in the dump.
std::uint64_t content_of(const Entry& entry, Entry::Index item) {
  std::uint64_t content = 0;
  for (const Entry::Index value : entry.find_all<4>(item, {"Max", "Min", "Mean", "Norm"})) {
    const std::string_view text = value == Entry::kNone ? std::string_view() : entry.text(value);
    content = content * 0x100000001b3ULL ^ std::hash<std::string_view>{}(text);
  }
  return content;
}

}  // namespace

std::size_t BadFlow::find(std::size_t chain) const {
  while (chains_[chain].joined != chain) chain = chains_[chain].joined;
  return chain;
}

std::size_t BadFlow::join(std::size_t a, std::size_t b) {
  if (a == kNoChain || b == kNoChain) return std::min(a, b);
  a = find(a);
  b = find(b);
  if (a == b) return a;
  BadChain& into = chains_[std::min(a, b)];
  const BadChain& from = chains_[std::max(a, b)];
  into.last = std::max(into.last, from.last);
  into.bad |= from.bad;
  chains_[std::max(a, b)].joined = std::min(a, b);
  return std::min(a, b);
}

void BadFlow::add_unknown(std::uint32_t position, Bad bad) {
  for (BadChain& chain : chains_) {
    chain.last = position;
    chain.bad |= bad;
  }
}

void BadFlow::add(const Entry& entry, const EntryBadness& bad, bool is_suspect, std::uint32_t position) {
  if (chains_.size() >= kMostChains || makers_.size() >= kMostContents) {
    add_unknown(position, bad.inputs | bad.outputs);
    return;
  }
  std::size_t chain = kNoChain;
  if (bad.inputs == 0) {
    chain = chains_.size();
    chains_.push_back({chain, position, bad.outputs});
    if (is_suspect) suspects_.push_back(chain);
  }
  bool unknown = false;
  const auto section = [&](const char* name, auto&& visit) {
    const Entry::Index node = entry.find(0, name);
    if (node == Entry::kNone) return;
    each_bad(entry, node, [&](Entry::Index item) { visit(content_of(entry, item)); });
  };
  for (const char* const name : {"input_args", "input_kwargs", "input"}) {
    section(name, [&](std::uint64_t content) {
      const auto maker = makers_.find(content);
      unknown = unknown || maker == makers_.end();
      if (maker != makers_.end()) chain = join(chain, maker->second);
    });
  }
  if (bad.outputs == 0) return;
  if (unknown || chain == kNoChain) add_unknown(position, bad.outputs);
  if (chain == kNoChain) return;
  chain = find(chain);
  section("output", [&](std::uint64_t content) {
    chain = join(chain, makers_.try_emplace(content, chain).first->second);
  });
  chains_[chain].last = std::max(chains_[chain].last, position);
  chains_[chain].bad |= bad.outputs;
}

bool BadFlow::follows() const {
  return std::ranges::any_of(chains_, [](const BadChain& chain) { return chain.bad == kInf; });
}

bool BadFlow::is_contained(std::size_t suspect) const {
  if (suspect >= suspects_.size()) return false;
  const BadChain& chain = chains_[find(suspects_[suspect])];
  return chain.bad == kInf && chain.last < last_clean_;
}

}  // namespace msprobe::anomaly

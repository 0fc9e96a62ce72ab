// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks.hpp"

#include <utility>

#include "support/json_writer.hpp"

namespace msprobe::collector {
namespace {

// A program calls from fewer places than this; more keys mean that they are made of something that never
// recurs.
constexpr std::size_t kMaxStacks = 100'000;

}  // namespace

void Stacks::define(std::uint64_t key, std::vector<std::string> frames) {
  if (frames_.size() >= kMaxStacks) frames_.clear();
  frames_.insert_or_assign(key, std::move(frames));
}

void Stacks::use(std::uint64_t key, const CollectedCall& call) {
  const auto [place, fresh] = places_.try_emplace(key, groups_.size());
  if (fresh) groups_.push_back({frames_.at(key), {}});
  groups_[place->second].calls.push_back(call);
  changed_ = true;
}

void Stacks::next_step() {
  places_.clear();
  groups_.clear();
  changed_ = false;
}

std::string Stacks::text() const {
  JsonWriter out({.indent = 1});
  std::string name;
  out.open_object();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    out.open_list(std::to_string(i));
    out.open_list();
    for (const CollectedCall& call : groups_[i].calls) {
      name.clear();
      append_entry_name(name, call);
      out.value(name);
    }
    out.close();
    out.value(groups_[i].frames);
    out.close();
  }
  out.close();
  return out.take();
}

}  // namespace msprobe::collector

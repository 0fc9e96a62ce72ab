// SPDX-License-Identifier: Apache-2.0
// The contents of stack.json: groups of entries that share a call stack.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/call.hpp"

namespace msprobe::collector {

class Stacks {
 public:
  bool knows(std::uint64_t key) const { return frames_.contains(key); }
  void define(std::uint64_t key, std::vector<std::string> frames);
  /// `key` must be defined.
  void use(std::uint64_t key, const CollectedCall& call);
  /// Forgets uses but keeps definitions.
  void next_step();

  bool changed() const { return changed_; }
  void set_written() { changed_ = false; }
  std::string text() const;

 private:
  struct StackGroup {
    std::vector<std::string> frames;
    std::vector<CollectedCall> calls;
  };
  std::unordered_map<std::uint64_t, std::vector<std::string>> frames_;
  std::unordered_map<std::uint64_t, std::size_t> places_;
  std::vector<StackGroup> groups_;  // in the order of their first use
  bool changed_ = false;
};

}  // namespace msprobe::collector

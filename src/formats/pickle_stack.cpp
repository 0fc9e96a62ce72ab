// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_stack.hpp"

#include <fmt/format.h>

namespace msprobe::formats {

void PickleStack::push(PickleRef ref) {
  if (values_.size() >= max_size_) stream_.fail(fmt::format("refused: a stack of more than {}", max_size_));
  values_.push_back(ref);
  most_values_ = std::max<std::uint64_t>(most_values_, values_.size());
}

PickleRef PickleStack::top() const {
  if (values_.size() <= floor()) stream_.fail("stack underflow");
  return values_.back();
}

PickleRef PickleStack::pop() {
  const PickleRef ref = top();
  values_.pop_back();
  return ref;
}

std::span<const PickleRef> PickleStack::last(std::size_t count) const {
  if (values_.size() - floor() < count) stream_.fail("stack underflow");
  return std::span(values_).last(count);
}

void PickleStack::pop_value_or_mark() {
  if (!marks_.empty() && marks_.back() == values_.size()) {
    marks_.pop_back();
  } else {
    pop();
  }
}

std::span<const PickleRef> PickleStack::since_mark() const {
  if (marks_.empty()) stream_.fail("a mark is missing");
  return std::span(values_).subspan(marks_.back());
}

PickleRef PickleStack::below_mark() const {
  since_mark();
  const std::size_t reachable = marks_.size() > 1 ? marks_[marks_.size() - 2] : 0;
  if (marks_.back() <= reachable) stream_.fail("stack underflow");
  return values_[marks_.back() - 1];
}

void PickleStack::drop_to_mark() {
  values_.resize(values_.size() - since_mark().size());
  marks_.pop_back();
}

PickleRef PickleStack::result() const {
  if (!marks_.empty() || values_.size() != 1) stream_.fail("values are left on its stack at the end");
  return values_.back();
}

void PickleMemo::put(std::uint64_t key, PickleRef ref) {
  if (key < dense_.size()) {
    dense_[static_cast<std::size_t>(key)] = ref;
  } else if (key == dense_.size()) {
    dense_.push_back(ref);
    // A key counts once, wherever it is kept.
    sparse_.erase(key);
    for (auto next = sparse_.begin(); next != sparse_.end() && next->first == dense_.size();) {
      dense_.push_back(next->second);
      next = sparse_.erase(next);
    }
  } else {
    sparse_[key] = ref;
  }
}

PickleRef PickleMemo::get(std::uint64_t key) const {
  if (key < dense_.size()) return dense_[static_cast<std::size_t>(key)];
  const auto found = sparse_.find(key);
  if (found == sparse_.end()) stream_.fail(fmt::format("memo entry {} was never set", key));
  return found->second;
}

}  // namespace msprobe::formats

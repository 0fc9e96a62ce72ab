// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_search.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "formats/pickle_rating.hpp"
#include "formats/pickle_text.hpp"
#include "support/interrupt.hpp"

namespace msprobe::formats {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr std::size_t kLongestSearched = 100;
// The length of two names with their opcodes, so that no name is lost between two blocks.
constexpr std::size_t kOverlap = 2 * kLongestSearched + 8;
// Comparing a name with the tables takes as long as searching some hundred bytes.
constexpr std::uint64_t kMostComparisons = 200'000;

constexpr char kShortText = '\x8c';
constexpr char kMemoize = '\x94';
constexpr char kStackGlobal = '\x93';

std::size_t name_length(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_of_python_name);
  return static_cast<std::size_t>(end - text.begin());
}

class NameSearch {
 public:
  // Looks at every name that begins in the first `length` bytes of `block`.
  void look_at(std::string_view block, std::size_t length, std::uint64_t offset) {
    for (std::size_t i = 0; i < length; ++i) {
      const std::string_view rest = block.substr(i);
      if (rest.front() == 'c' || rest.front() == 'i') {
        lines(rest.substr(1), offset + i);
      } else if (rest.front() == kShortText) {
        texts(rest, offset + i);
      }
    }
  }

  std::vector<PickleGlobal> found() { return std::move(found_); }

 private:
  void lines(std::string_view text, std::uint64_t offset) {
    const std::size_t module = name_length(text.substr(0, kLongestSearched));
    if (module == 0 || module >= text.size() || text[module] != '\n') return;
    const std::string_view rest = text.substr(module + 1);
    const std::size_t name = name_length(rest.substr(0, kLongestSearched));
    if (name == 0 || name >= rest.size() || rest[name] != '\n') return;
    consider(text.substr(0, module), rest.substr(0, name), offset);
  }

  // Removes one text and its MEMOIZE from the front of `rest`; returns an empty view if `rest` begins
  // otherwise.
  static std::string_view take_text(std::string_view& rest) {
    if (rest.size() < 2 || rest[0] != kShortText) return {};
    const std::size_t length = static_cast<unsigned char>(rest[1]);
    const std::string_view text = rest.substr(2, length);
    if (text.size() != length || name_length(text) != length) return {};
    rest.remove_prefix(2 + length);
    if (rest.starts_with(kMemoize)) rest.remove_prefix(1);
    return text;
  }

  void texts(std::string_view rest, std::uint64_t offset) {
    const std::string_view module = take_text(rest);
    const std::string_view name = module.empty() ? module : take_text(rest);
    if (!name.empty() && rest.starts_with(kStackGlobal)) consider(module, name, offset);
  }

  void consider(std::string_view module, std::string_view name, std::uint64_t offset) {
    if (comparisons_ == kMostComparisons) return;
    ++comparisons_;
    if (!acts_by_its_module(module, name) || rate_global(module, name) != Rating::dangerous) return;
    if (!known_.emplace(module, name).second) return;
    found_.push_back({.module = std::string(module), .name = std::string(name), .offset = offset});
  }

  std::set<std::pair<std::string, std::string>> known_;
  std::vector<PickleGlobal> found_;
  std::uint64_t comparisons_ = 0;
};

}  // namespace

std::vector<PickleGlobal> search_dangerous_names(const ByteSource& source, std::uint64_t offset) {
  NameSearch search;
  std::string block;
  const std::uint64_t end = std::min(source.size(), offset + std::min(kMostBytes, source.size()));
  for (std::uint64_t at = offset; at < end; at += kBlock) {
    check_interrupt();
    block.resize(static_cast<std::size_t>(std::min<std::uint64_t>(source.size() - at, kBlock + kOverlap)));
    source.read_at(at, std::as_writable_bytes(std::span(block)));
    search.look_at(block, static_cast<std::size_t>(std::min<std::uint64_t>(end - at, kBlock)), at);
  }
  return search.found();
}

}  // namespace msprobe::formats

// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/content_flow.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "measuring/measures.hpp"
#include "pairing/operations.hpp"
#include "pairing/roles.hpp"
#include "support/interrupt.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::Side;
using dump::State;

/// Recorders add up the norm of a transposed tensor in another order. Derived: 16 roundoffs of float32.
constexpr double kSameNorm = 0x1p-20;

Content content_of(const Side& side, std::uint32_t i) {
  const Item& item = side.items[i];
  const std::string_view dtype = side.text(item.dtype);
  return {.item = i,
          .elements = elements_of(side.text(item.shape)),
          .max = number_of(side, item, dump::kMax),
          .min = number_of(side, item, dump::kMin),
          .norm = std::abs(number_of(side, item, dump::kNorm)),  // of a single number some keep the sign
          .u = unit_roundoff(dtype)};
}

bool is_known(const Content& content) {
  if (content.elements == 0 || std::isnan(content.max) || std::isnan(content.min)) return false;
  if (std::isnan(content.norm) && std::isfinite(content.max) && std::isfinite(content.min)) return false;
  return content.max != content.min || content.elements == 1;
}

bool is_same(const Content& a, const Content& b) {
  if (a.elements != b.elements || a.max != b.max || a.min != b.min) return false;
  return a.norm == b.norm || !(std::abs(a.norm - b.norm) > kSameNorm * b.norm);
}

}  // namespace

/// Contents by their elements and extremes, and those of one key by their norms.
class ContentFlow::Index {
 public:
  std::uint32_t find(const std::vector<Content>& known, const Content& content) const {
    const auto [first, last] = by_key_.equal_range(key(content));
    for (auto each = first; each != last; ++each) {
      if (is_same(known[each->second], content)) return each->second;
    }
    return kNone;
  }
  void add(const Content& content, std::uint32_t number) { by_key_.emplace(key(content), number); }

 private:
  static std::uint64_t key(const Content& content) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
    std::uint64_t mixed = content.elements;
    for (const double value : {content.max, content.min})
      mixed = (std::rotl(mixed, 23) ^ std::bit_cast<std::uint64_t>(value)) * kOdd;
    return mixed ^ (mixed >> 29);
  }
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_key_;
};

ContentFlow::ContentFlow(const Side& side, dump::Direction direction,
                         const std::function<bool(std::uint32_t api)>& counts)
    : side_(&side) {
  Index index;
  bool operations = false;
  std::vector<Content> parameters;  // of modules
  Index parameter_index;
  for (const dump::Api& api : side.apis) {
    const auto name = dump::parse_entry_name(side.text(api.name));
    operations = operations || (name && !name->is_module && name->direction == direction);
    for (const std::uint32_t i : api.items()) {
      if (side.items[i].state != State::parameters) continue;
      const Content content = content_of(side, i);
      if (!is_known(content) || parameter_index.find(parameters, content) != kNone) continue;
      parameters.push_back(content);
      parameter_index.add(content, static_cast<std::uint32_t>(parameters.size() - 1));
    }
  }
  const auto number_of_content = [&](const Content& content) {
    const std::uint32_t known = index.find(contents_, content);
    if (known != kNone) return known;
    contents_.push_back(content);
    is_taken_.push_back(false);
    is_parameter_.push_back(parameter_index.find(parameters, content) != kNone);
    index.add(content, static_cast<std::uint32_t>(contents_.size() - 1));
    return static_cast<std::uint32_t>(contents_.size() - 1);
  };
  std::vector<Content> outputs;
  std::vector<std::uint32_t> taken;
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    check_interrupt();
    const auto name = dump::parse_entry_name(side.text(side.apis[api].name));
    if (!name || name->direction != direction || !counts(api)) continue;
    outputs.clear();
    for (const std::uint32_t i : side.apis[api].items()) {
      if (side.items[i].state != State::output || !side.items[i].is_tensor) continue;
      const Content content = content_of(side, i);
      if (!is_known(content)) continue;
      const std::uint32_t known = index.find(contents_, content);
      // What a module hands on was put out by an operation within it, or came in.
      if (name->is_module && operations && known != kNone) continue;
      outputs.push_back(content);
    }
    if (outputs.empty()) continue;
    taken.clear();
    for (const std::uint32_t i : side.apis[api].items()) {
      const Item& item = side.items[i];
      if ((item.state != State::input && item.state != State::parameters) || !item.is_tensor) continue;
      const Content content = content_of(side, i);
      if (!is_known(content)) continue;
      const std::uint32_t number = number_of_content(content);
      if (std::find(taken.begin(), taken.end(), number) == taken.end()) taken.push_back(number);
      const bool by_place =
          position_of(side, item) && is_parameter_position(name->operation(), *position_of(side, item));
      if (by_place) is_parameter_[number] = true;
    }
    add_unrecorded(taken);
    const auto call = static_cast<std::uint32_t>(calls_.size());
    calls_.push_back(api);
    for (const std::uint32_t content : taken) is_taken_[content] = true;
    taken_.values.insert(taken_.values.end(), taken.begin(), taken.end());
    taken_.close();
    for (const Content& content : outputs) {
      const std::size_t before = contents_.size();
      const std::uint32_t number = number_of_content(content);
      if (number == before) contents_[number].maker = call;
      given_.values.push_back(number);
    }
    given_.close();
  }
  find_takers();
}

/// Before a call that takes these.
void ContentFlow::add_unrecorded(const std::vector<std::uint32_t>& taken) {
  for (const std::uint32_t content : taken) {
    if (contents_[content].maker != kNone || is_taken_[content] || is_parameter_[content]) continue;
    const std::vector<std::uint32_t> sources = likely_sources(content);
    if (sources.empty()) continue;
    contents_[content].maker = static_cast<std::uint32_t>(calls_.size());
    calls_.push_back(kNone);
    for (const std::uint32_t source : sources) is_taken_[source] = true;
    taken_.values.insert(taken_.values.end(), sources.begin(), sources.end());
    taken_.close();
    given_.values.push_back(content);
    given_.close();
  }
}

/// What was put out shortly before and that it may be a part of, or put together from: their extremes tell.
/// Else what nobody has taken yet and has as many elements, as what is written in place.
std::vector<std::uint32_t> ContentFlow::likely_sources(std::uint32_t number) const {
  constexpr std::size_t kMostLooks = 64;  // contents
  const Content& content = contents_[number];
  if (content.elements < 2 || content.u == 0) return {};
  std::uint32_t whole = kNone;
  std::uint32_t free_whole = kNone;
  std::uint32_t free_same = kNone;
  std::uint32_t top = kNone;
  std::uint32_t bottom = kNone;
  const std::size_t first = contents_.size() - std::min(contents_.size(), kMostLooks);
  for (std::size_t i = contents_.size(); i-- > first;) {
    const Content& other = contents_[i];
    if (other.maker == kNone || other.u == 0 || i == number) continue;
    const auto source = static_cast<std::uint32_t>(i);
    const auto keep = [&](std::uint32_t& best, bool fits) {
      if (fits && best == kNone) best = source;
    };
    const bool holds =
        other.elements > content.elements && other.max >= content.max && other.min <= content.min;
    keep(whole, holds);
    keep(free_whole, holds && !is_taken_[i]);
    keep(free_same, other.elements == content.elements && !is_taken_[i]);
    keep(top, other.elements < content.elements && other.max == content.max);
    keep(bottom, other.elements < content.elements && other.min == content.min);
  }
  std::vector<std::uint32_t> parts;
  for (const std::uint32_t part : {top, bottom}) {
    if (part != kNone && (parts.empty() || parts.front() != part)) parts.push_back(part);
  }
  if (!parts.empty()) return parts;
  for (const std::uint32_t source : {free_whole, free_same, whole}) {
    if (source != kNone) return {source};
  }
  return {};
}

void ContentFlow::find_takers() {
  std::vector<std::uint32_t> count(contents_.size() + 1);
  for (const std::uint32_t content : taken_.values) ++count[content + 1];
  for (std::size_t i = 1; i < count.size(); ++i) count[i] += count[i - 1];
  takers_.begin = count;
  takers_.values.resize(taken_.values.size());
  for (std::uint32_t call = 0; call < calls_.size(); ++call) {
    for (const std::uint32_t content : taken(call)) takers_.values[count[content]++] = call;
  }
}

std::string ContentFlow::operation(std::uint32_t call) const {
  if (!is_recorded(call)) return {};
  const auto parsed = dump::parse_entry_name(side_->text(side_->apis[calls_[call]].name));
  return std::string(parsed->operation());
}

}  // namespace msprobe::diagnosis

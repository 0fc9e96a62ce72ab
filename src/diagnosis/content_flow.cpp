// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/content_flow.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "measuring/measures.hpp"
#include "pairing/operations.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "support/interrupt.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::Side;
using dump::State;
using measuring::elements_of;
using pairing::Joins;
using pairing::kNone;
using pairing::module_path;
using pairing::RankPart;

Content described(std::uint32_t item, const dump::StatisticValues& statistics, const dump::TextPool& pool,
                  std::string_view dtype, std::string_view shape) {
  const auto number = [&](dump::Statistic which) { return measuring::number_of(statistics[which], pool); };
  return {.item = item,
          .elements = elements_of(shape),
          .max = number(dump::kMax),
          .min = number(dump::kMin),
          .mean = number(dump::kMean),
          .norm = std::abs(number(dump::kNorm)),  // some recorders keep the sign of a single number
          .u = measuring::unit_roundoff(dtype)};
}

bool is_known(const Content& content) {
  if (content.elements == 0 || std::isnan(content.max) || std::isnan(content.min)) return false;
  if (std::isnan(content.norm) && std::isfinite(content.max) && std::isfinite(content.min)) return false;
  return content.max != content.min || content.elements == 1;
}

/// Whether two numbers are equal, or one is the other rounded to its type.
bool is_cast(double a, double b, double u, double other_u) {
  return a == b || (u != other_u && std::abs(a - b) <= std::max(u, other_u) * std::abs(b));
}

}  // namespace

bool is_same(const Content& a, const Content& b) {
  if (a.elements != b.elements || a.max != b.max || a.min != b.min) return false;
  // Some recorders round both sums to half types: norms of what is normalised are then the same.
  const double rms = b.norm / std::sqrt(static_cast<double>(b.elements));
  return (a.norm == b.norm || !(std::abs(a.norm - b.norm) > kRightKernel * b.norm)) &&
         !(std::abs(a.mean - b.mean) > kRightKernel * rms);
}

Content content_of(const Side& side, std::uint32_t i) {
  const Item& item = side.items[i];
  return described(i, item.statistics, side.pool, side.text(item.dtype), side.text(item.shape));
}

Content joined(const Content& one, const Content& other) {
  const auto all = static_cast<double>(one.elements + other.elements);
  Content whole = one;
  whole.mean = one.mean * (static_cast<double>(one.elements) / all) +
               other.mean * (static_cast<double>(other.elements) / all);
  whole.elements += other.elements;
  whole.max = std::max(one.max, other.max);
  whole.min = std::min(one.min, other.min);
  whole.norm = std::hypot(one.norm, other.norm);
  whole.u = std::max(one.u, other.u);
  return whole;
}

double error_between(const Content& content, const Content& golden) {
  if (content.elements != golden.elements) return NAN;
  const auto apart = [](double a, double b, double scale) {
    if (a == b || std::isnan(a) || std::isnan(b)) return 0.0;
    return scale > 0 ? std::abs(a - b) / scale : measuring::kInfinite;
  };
  // A loss may be the mean of logarithms on one side and of their negatives on the other.
  if (golden.elements == 1) return apart(content.norm, golden.norm, golden.norm);
  const double rms = golden.norm / std::sqrt(static_cast<double>(golden.elements));
  return std::max({apart(content.norm, golden.norm, golden.norm), apart(content.mean, golden.mean, rms),
                   apart(content.max, golden.max, std::max(std::abs(golden.max), rms)),
                   apart(content.min, golden.min, std::max(std::abs(golden.min), rms))});
}

/// Contents by their number of elements and extremes, and those of one key by their norms.
class ContentFlow::Index {
 public:
  std::uint32_t find(const std::vector<Content>& known, const Content& content) const {
    // Looks at no more contents than this with the same extremes, since a file may hold nothing else.
    constexpr std::size_t kMostLooks = 256;
    const auto found = by_key_.find(key(content));
    if (found == by_key_.end()) return kNone;
    const std::vector<std::uint32_t>& numbers = found->second;
    for (std::size_t i = 0; i < std::min(numbers.size(), kMostLooks); ++i) {
      const std::uint32_t number = numbers[numbers.size() - 1 - i];
      if (is_same(known[number], content)) return number;
    }
    return kNone;
  }
  void add(const Content& content, std::uint32_t number) { by_key_[key(content)].push_back(number); }

 private:
  static std::uint64_t key(const Content& content) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
    std::uint64_t mixed = content.elements;
    for (const double value : {content.max, content.min})
      mixed = (std::rotl(mixed, 23) ^ std::bit_cast<std::uint64_t>(value)) * kOdd;
    return mixed ^ (mixed >> 29);
  }
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_key_;
};

class ContentFlow::Builder {
 public:
  Builder(ContentFlow& flow, const Joins* joins, dump::Direction direction,
          const std::function<bool(std::uint32_t api)>& counts)
      : flow_(flow), side_(*flow.side_), joins_(joins), direction_(direction) {
    for (std::uint32_t api = 0; api < side_.apis.size(); ++api) {
      const dump::EntryName name = side_.parsed_name(api);
      if (name.direction != direction_) continue;
      any_operation_ = any_operation_ || !name.is_module;
      if (counts(api)) entries_.push_back({api, name});
    }
  }

  void build() {
    const auto ranks = joins_ == nullptr ? 1U : static_cast<std::uint32_t>(joins_->ranks.size());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) add_parameters(rank);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      for (const NamedCall& entry : entries_) add_call(entry, rank);
    }
    if (joins_ != nullptr) {
      for (const NamedCall& entry : entries_) {
        for (const std::uint32_t i : side_.apis[entry.api].items()) add_joints(i);
      }
    }
    join_micro_batches();
    end_joints();
    flow_.find_takers();
    flow_.content_of_.assign(ranks, std::vector<std::uint32_t>(side_.items.size(), kNone));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      for (std::uint32_t i = 0; i < side_.items.size(); ++i) {
        if (const auto found = content(i, rank))
          flow_.content_of_[rank][i] = index_.find(flow_.contents_, *found);
      }
    }
  }

 private:
  struct NamedCall {
    std::uint32_t api = 0;
    dump::EntryName name;
  };

  std::optional<Content> content(std::uint32_t i, std::uint32_t rank) const {
    return flow_.described(i, rank);
  }

  bool is_nan(std::uint32_t i, std::uint32_t rank) const {
    const auto parts = joins_ == nullptr ? std::span<const RankPart>() : joins_->parts(i);
    const auto part =
        std::find_if(parts.begin(), parts.end(), [&](const RankPart& each) { return each.rank == rank; });
    const dump::RecordedValue max =
        part == parts.end() ? side_.items[i].statistics[dump::kMax] : part->statistics[dump::kMax];
    const dump::TextPool& pool = part == parts.end() ? side_.pool : joins_->pool;
    return side_.items[i].is_tensor && dump::classify(max, pool).type == dump::ValueClass::nan;
  }

  std::uint32_t number_of_content(const Content& content) {
    const std::uint32_t known = index_.find(flow_.contents_, content);
    if (known != kNone) return known;
    flow_.contents_.push_back(content);
    is_taken_.push_back(false);
    const std::uint32_t parameter = parameter_index_.find(parameters_, content);
    flow_.is_parameter_.push_back(parameter != kNone);
    flow_.parameter_item_.push_back(parameter == kNone ? kNone : parameters_[parameter].item);
    index_.add(content, static_cast<std::uint32_t>(flow_.contents_.size() - 1));
    return static_cast<std::uint32_t>(flow_.contents_.size() - 1);
  }

  void add_parameters(std::uint32_t rank) {
    for (const dump::Api& api : side_.apis) {
      for (const std::uint32_t i : api.items()) {
        if (side_.items[i].state != State::parameters) continue;
        const auto found = content(i, rank);
        if (!found || parameter_index_.find(parameters_, *found) != kNone) continue;
        parameters_.push_back(*found);
        parameter_index_.add(*found, static_cast<std::uint32_t>(parameters_.size() - 1));
      }
    }
  }

  void add_call(const NamedCall& entry, std::uint32_t rank) {
    check_interrupt();
    outputs_.clear();
    for (const std::uint32_t i : side_.apis[entry.api].items()) {
      if (side_.items[i].state != State::output) continue;
      const auto found = content(i, rank);
      // A view computes nothing: its memory may not be written yet.
      if (!found && is_nan(i, rank) && !pairing::is_view(entry.name.operation()))
        flow_.first_nan_ = std::min(flow_.first_nan_, entry.api);
      // An operation in the module, or an input, has already given the tensor that the module hands on.
      const bool handed_on =
          found && entry.name.is_module && any_operation_ && index_.find(flow_.contents_, *found) != kNone;
      if (found && !handed_on) outputs_.push_back(*found);
    }
    const std::vector<std::uint32_t> hidden =
        outputs_.empty() ? complex_outputs(entry.api) : std::vector<std::uint32_t>();
    if (outputs_.empty() && hidden.empty()) return;
    taken_.clear();
    for (const std::uint32_t i : side_.apis[entry.api].items()) {
      const Item& item = side_.items[i];
      if (item.state != State::input && item.state != State::parameters) continue;
      const auto found = content(i, rank);
      if (!found) continue;
      const std::uint32_t number = number_of_content(*found);
      if (std::find(taken_.begin(), taken_.end(), number) == taken_.end()) taken_.push_back(number);
      const auto position = pairing::position_of(side_, item);
      if (position && pairing::is_parameter_position(entry.name.operation(), *position))
        flow_.is_parameter_[number] = true;
    }
    for (const std::uint32_t each : taken_) {
      if (flow_.contents_[each].maker != kNone || is_taken_[each] || flow_.is_parameter_[each]) continue;
      std::vector<std::uint32_t> sources = likely_sources(each);
      sources.insert(sources.end(), hidden_.begin(), hidden_.end());
      hidden_.clear();
      if (!sources.empty()) add(kNone, sources, {each});
    }
    if (!hidden.empty()) {
      add(entry.api, taken_, hidden);
      hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
      return;
    }
    given_.clear();
    for (const Content& output : outputs_) given_.push_back(number_of_content(output));
    add(entry.api, taken_, given_);
  }

  /// The recent contents that a content may be a part of, or may be joined from, judging by their extremes.
  /// Otherwise a content with the same number of elements that no call has taken yet, as for an in-place
  /// write.
  std::vector<std::uint32_t> likely_sources(std::uint32_t number) const {
    constexpr std::size_t kMostLooks = 64;  // contents
    const std::vector<Content>& contents = flow_.contents_;
    const Content& content = contents[number];
    if (content.elements < 2 || content.u == 0) return {};
    std::uint32_t whole = kNone;
    std::uint32_t free_whole = kNone;
    std::uint32_t free_same = kNone;
    const auto smaller = [&](const std::unordered_map<double, std::uint32_t>& made, double extreme) {
      const auto found = made.find(extreme);
      return found == made.end() || contents[found->second].elements >= content.elements ? kNone
                                                                                         : found->second;
    };
    std::uint32_t top = smaller(by_max_, content.max);
    std::uint32_t bottom = smaller(by_min_, content.min);
    const std::size_t first = contents.size() - std::min(contents.size(), kMostLooks);
    for (std::size_t i = contents.size(); i-- > first;) {
      const Content& other = contents[i];
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
      keep(top, other.elements < content.elements && is_cast(other.max, content.max, other.u, content.u));
      keep(bottom, other.elements < content.elements && is_cast(other.min, content.min, other.u, content.u));
    }
    std::vector<std::uint32_t> parts;
    for (const std::uint32_t part : {top, bottom}) {
      if (part != kNone && (parts.empty() || parts.front() != part)) parts.push_back(part);
    }
    if (parts.size() == 1) {
      const std::uint64_t rest = content.elements - contents[parts.front()].elements;
      for (std::size_t i = contents.size(); i-- > first;) {
        const bool fits = contents[i].elements == rest && contents[i].maker != kNone && contents[i].u > 0 &&
                          !is_taken_[i] && contents[i].max <= content.max && contents[i].min >= content.min;
        if (!fits) continue;
        parts.push_back(static_cast<std::uint32_t>(i));
        break;
      }
    }
    // Numbers of half types may be equal by chance.
    if (parts.size() == 2 || (top != kNone && top == bottom) || (!parts.empty() && !is_half(content.u)))
      return parts;
    for (const std::uint32_t source : {free_whole, free_same, whole}) {
      if (source != kNone) return {source};
    }
    return {};
  }

  /// Contents that equal no other content, because recorders write no statistics of complex numbers. The next
  /// content that comes from unrecorded code may follow from them.
  std::vector<std::uint32_t> complex_outputs(std::uint32_t api) {
    std::vector<std::uint32_t> found;
    for (const std::uint32_t i : side_.apis[api].items()) {
      const Item& item = side_.items[i];
      const bool is_complex = side_.text(item.dtype).find("complex") != std::string_view::npos;
      if (item.state != State::output || !item.is_tensor || !is_complex) continue;
      found.push_back(static_cast<std::uint32_t>(flow_.contents_.size()));
      flow_.contents_.push_back(
          {.item = i, .elements = elements_of(side_.text(item.shape)), .max = NAN, .min = NAN, .norm = NAN});
      is_taken_.push_back(false);
      flow_.is_parameter_.push_back(false);
      flow_.parameter_item_.push_back(kNone);
    }
    return found;
  }

  /// Adds a call. `api`: kNone for unrecorded code.
  void add(std::uint32_t api, const std::vector<std::uint32_t>& taken,
           const std::vector<std::uint32_t>& given) {
    const auto call = static_cast<std::uint32_t>(flow_.calls_.size());
    flow_.calls_.push_back(api);
    for (const std::uint32_t content : taken) is_taken_[content] = true;
    flow_.taken_.values.insert(flow_.taken_.values.end(), taken.begin(), taken.end());
    flow_.taken_.close();
    for (const std::uint32_t content : given) {
      const bool is_new = flow_.contents_[content].maker == kNone && !is_taken_[content];
      if (!is_new && api != kNone) continue;
      flow_.contents_[content].maker = call;
      if (std::isnan(flow_.contents_[content].max)) continue;
      by_max_[flow_.contents_[content].max] = content;
      by_min_[flow_.contents_[content].min] = content;
    }
    flow_.given_.values.insert(flow_.given_.values.end(), given.begin(), given.end());
    flow_.given_.close();
  }

  /// Joins the parts of all ranks, and those of neighbouring ranks: groups of two, four and so on.
  void add_joints(std::uint32_t i) {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t rank = 0; rank < joins_->ranks.size(); ++rank) {
      const auto found = content(i, rank);
      const std::uint32_t number = found ? index_.find(flow_.contents_, *found) : kNone;
      if (number != kNone && flow_.contents_[number].is_finite()) numbers.push_back(number);
    }
    if (numbers.size() != joins_->parts(i).size()) return;
    for (std::size_t size = 2; size < numbers.size(); size *= 2) {
      for (std::size_t first = 0; first + size <= numbers.size(); first += size)
        add_joint({numbers.begin() + static_cast<std::ptrdiff_t>(first),
                   numbers.begin() + static_cast<std::ptrdiff_t>(first + size)});
    }
    add_joint(numbers);
  }

  /// Joins the calls of micro-batches. Where all modules run equally often, each call has a part of the
  /// batch: the same calls of a rank, and of all ranks, belong together.
  void join_micro_batches() {
    std::map<std::string_view, std::vector<std::uint32_t>> by_base;
    std::size_t batches = 0;
    for (const NamedCall& entry : entries_) by_base[entry.name.base].push_back(entry.api);
    for (const NamedCall& entry : entries_) {
      if (entry.name.is_module) batches = std::gcd(batches, by_base[entry.name.base].size());
    }
    flow_.micro_batches_ = std::max<std::size_t>(batches, 1);
    if (batches < 2) return;
    for (const auto& [base, apis] : by_base) {
      if (apis.size() % batches != 0) continue;
      const std::size_t calls = apis.size() / batches;
      for (std::size_t call = 0; call < calls; ++call) {
        std::vector<std::uint32_t> same;
        for (std::size_t batch = 0; batch < batches; ++batch) same.push_back(apis[batch * calls + call]);
        join_calls(same);
      }
    }
  }

  void join_calls(const std::vector<std::uint32_t>& apis) {
    const auto ranks = joins_ == nullptr ? 1U : static_cast<std::uint32_t>(joins_->ranks.size());
    for (std::uint32_t place = 0; place < side_.apis[apis.front()].count; ++place) {
      std::vector<std::uint32_t> all;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        std::vector<std::uint32_t> numbers;
        for (const std::uint32_t api : apis) {
          if (place >= side_.apis[api].count) continue;
          const auto found = content(side_.apis[api].first + place, rank);
          const std::uint32_t number = found ? index_.find(flow_.contents_, *found) : kNone;
          if (number != kNone && flow_.contents_[number].is_finite()) numbers.push_back(number);
        }
        if (numbers.size() != apis.size()) continue;
        add_joint(numbers);
        all.insert(all.end(), numbers.begin(), numbers.end());
      }
      if (ranks > 1) add_joint(all);
    }
  }

  void add_joint(const std::vector<std::uint32_t>& numbers) {
    std::vector<std::uint32_t> parts;
    for (const std::uint32_t number : numbers) {
      if (std::find(parts.begin(), parts.end(), number) == parts.end()) parts.push_back(number);
    }
    if (parts.size() < 2 || !known_joints_.insert(parts).second) return;
    Content all = flow_.contents_[parts.front()];
    for (std::size_t i = 1; i < parts.size(); ++i) all = joined(all, flow_.contents_[parts[i]]);
    all.maker = kNone;
    const std::uint32_t whole = number_of_content(all);
    if (flow_.parameter_item_[whole] == kNone)
      flow_.parameter_item_[whole] = flow_.parameter_item_[parts.front()];
    for (const std::uint32_t part : parts) flow_.joints_.push_back({whole, part});
  }

  /// Adds a call without an entry for each whole that no rank holds: it follows from the parts.
  void end_joints() {
    for (std::size_t i = 0; i < flow_.joints_.size();) {
      const std::uint32_t whole = flow_.joints_[i].whole;
      taken_.clear();
      for (; i < flow_.joints_.size() && flow_.joints_[i].whole == whole; ++i)
        taken_.push_back(flow_.joints_[i].part);
      if (flow_.contents_[whole].maker == kNone && !is_taken_[whole]) add(kNone, taken_, {whole});
    }
  }

  ContentFlow& flow_;
  const Side& side_;
  const Joins* joins_;
  dump::Direction direction_;
  bool any_operation_ = false;
  std::vector<NamedCall> entries_;
  Index index_;
  std::vector<Content> parameters_;  // of modules
  Index parameter_index_;
  std::vector<std::uint32_t> hidden_;  // complex contents from which no other content follows yet
  std::vector<bool> is_taken_;         // by content
  std::unordered_map<double, std::uint32_t>
      by_max_;  // by largest element: the last content that a call made with it
  std::unordered_map<double, std::uint32_t> by_min_;
  std::vector<Content> outputs_;
  std::vector<std::uint32_t> taken_;
  std::vector<std::uint32_t> given_;
  std::set<std::vector<std::uint32_t>> known_joints_;
};

std::optional<Content> ContentFlow::described(std::uint32_t i, std::uint32_t rank) const {
  const Item& item = side_->items[i];
  if (!item.is_tensor) return std::nullopt;
  const auto parts = joins_ == nullptr ? std::span<const RankPart>() : joins_->parts(i);
  if (parts.empty() && rank > 0) return std::nullopt;
  std::optional<Content> found;
  if (parts.empty()) {
    found = diagnosis::content_of(*side_, i);
  } else {
    const auto part =
        std::find_if(parts.begin(), parts.end(), [&](const RankPart& each) { return each.rank == rank; });
    if (part == parts.end()) return std::nullopt;
    found = diagnosis::described(i, part->statistics, joins_->pool, joins_->pool.at(part->dtype),
                                 joins_->pool.at(part->shape));
  }
  return is_known(*found) ? found : std::nullopt;
}

ContentFlow::ContentFlow(const Side& side, const Joins* joins, dump::Direction direction,
                         const std::function<bool(std::uint32_t api)>& counts)
    : side_(&side), joins_(joins) {
  Builder(*this, joins, direction, counts).build();
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

double ContentFlow::coarsest() const {
  double u = 0;
  for (const Content& content : contents_) u = std::max(u, content.u);
  return u;
}

std::string ContentFlow::operation(std::uint32_t call) const {
  if (!is_recorded(call)) return {};
  const dump::EntryName parsed = side_->parsed_name(calls_[call]);
  return std::string(parsed.operation());
}

ContentFlow forward_flow(const Side& side, const Joins* joins, const dump::ConstructTable* construct) {
  const std::uint32_t backward = first_backward(side);
  return {side, joins, dump::Direction::forward, [&](std::uint32_t api) {
            if (api < backward) return true;
            const std::string_view entry = side.text(side.apis[api].name);
            const std::string_view parent =
                construct == nullptr ? std::string_view() : construct->parent(entry);
            return !module_path(entry).empty() || !module_path(parent).empty();
          }};
}

}  // namespace msprobe::diagnosis

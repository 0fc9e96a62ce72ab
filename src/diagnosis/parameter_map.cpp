// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/parameter_map.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "diagnosis/limits.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "measuring/measures.hpp"
#include "pairing/places.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using measuring::kInfinite;
using pairing::kNone;

/// A parameter with padding has no more elements than this many times those of its parts. Chosen, not
/// measured.
constexpr std::uint64_t kMostPadding = 2;

/// The parameters of a side. If ranks hold a parameter in parts, the whole is listed.
std::vector<std::uint32_t> parameters_of(const ContentFlow& flow) {
  std::vector<bool> is_part(flow.contents().size());
  std::vector<std::uint32_t> found;
  for (const Joint& joint : flow.joints()) {
    if (!flow.is_parameter(joint.part)) continue;
    is_part[joint.part] = true;
    found.push_back(joint.whole);
  }
  for (std::uint32_t i = 0; i < flow.contents().size(); ++i) {
    const Content& content = flow.contents()[i];
    if (flow.is_parameter(i) && content.maker == kNone && !is_part[i] && content.is_finite() &&
        content.elements > 1)
      found.push_back(i);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// A name without the numbers between its dots: it is the same for a parameter in all layers and experts.
std::string without_numbers(const std::string& name) {
  std::string text;
  for (const std::string_view part : split(name, ".")) {
    text += text.empty() ? "" : ".";
    text += dump::is_digits(part) ? "#" : part;
  }
  return text;
}

/// A parameter has no more parts than this. Chosen: twice the experts of the largest models.
constexpr std::size_t kMostParts = 512;
/// With more kinds of names than this, which no model has, each kind is looked at alone.
constexpr std::size_t kMostKindsOfNames = 512;

/// Parameters in order. A run of them may be joined into one parameter of the other side.
struct Sequence {
  std::vector<std::uint32_t> contents;
  std::vector<double> squares{0};                               // of norms, added up
  std::unordered_map<double, std::vector<std::size_t>> by_max;  // places

  void add(std::uint32_t number, const Content& content) {
    by_max[content.max].push_back(contents.size());
    contents.push_back(number);
    squares.push_back(squares.back() + content.norm * content.norm);
  }
};

/// The sequences of one kind of name, and of two and three kinds whose first names follow each other.
std::vector<Sequence> sequences_of(const ContentFlow& flow, const std::vector<std::uint32_t>& parameters) {
  std::map<std::size_t, std::vector<std::uint32_t>> by_axes;
  for (const std::uint32_t each : parameters) {
    const dump::Side& side = flow.side();
    by_axes[measuring::sizes_of(side.text(side.items[flow.contents()[each].item].shape)).size()].push_back(
        each);
  }
  std::vector<Sequence> found;
  for (const auto& [axes, contents] : by_axes) {
    std::map<std::string, std::size_t> kinds;
    std::vector<std::size_t> kind_of;
    for (const std::uint32_t each : contents)
      kind_of.push_back(
          kinds.emplace(without_numbers(parameter_name(flow, each)), kinds.size()).first->second);
    constexpr std::size_t kMostKinds = 3;
    const std::size_t most = kinds.size() > kMostKindsOfNames ? 0 : kMostKinds;
    for (std::size_t first = 0; first < kinds.size(); ++first) {
      for (std::size_t count = 1; count <= std::min(most, kinds.size() - first); ++count) {
        Sequence& sequence = found.emplace_back();
        for (std::size_t i = 0; i < contents.size(); ++i) {
          if (kind_of[i] >= first && kind_of[i] < first + count)
            sequence.add(contents[i], flow.contents()[contents[i]]);
        }
      }
    }
  }
  return found;
}

/// Whether the parts hold the elements of the whole, and no others except zeros.
bool make_up(const std::vector<Content>& contents, const std::uint32_t* first, const std::uint32_t* last,
             const Content& whole) {
  std::uint64_t elements = 0;
  double max = -kInfinite;
  double min = kInfinite;
  double sum = 0;
  for (const std::uint32_t* each = first; each != last; ++each) {
    const Content& part = contents[*each];
    elements += part.elements;
    max = std::max(max, part.max);
    min = std::min(min, part.min);
    sum += part.mean * static_cast<double>(part.elements);
  }
  if (whole.elements < elements || whole.elements > kMostPadding * elements) return false;
  const auto same = [](double a, double b, double scale) { return std::abs(a - b) <= kSameNorm * scale; };
  const double scale = whole.norm * std::sqrt(static_cast<double>(whole.elements));
  return same(max, whole.max, std::abs(whole.max)) && same(min, whole.min, std::abs(whole.min)) &&
         (std::isnan(sum) || same(sum, whole.mean * static_cast<double>(whole.elements), scale));
}

/// Consecutive parameters of one side that make up a parameter of the other side; empty if no such parameters
/// exist. One of them has its largest element.
std::vector<std::uint32_t> parts_of(const std::vector<Sequence>& sequences,
                                    const std::vector<Content>& contents, const Content& whole) {
  constexpr std::size_t kMostLooks = 16;  // places with that element
  const double square = whole.norm * whole.norm;
  for (const Sequence& sequence : sequences) {
    const auto& squares = sequence.squares;
    const auto places = sequence.by_max.find(whole.max);
    if (places == sequence.by_max.end()) continue;
    for (std::size_t look = 0; look < std::min(places->second.size(), kMostLooks); ++look) {
      const std::size_t place = places->second[look];
      for (std::size_t first = place - std::min(place, kMostParts - 1); first <= place; ++first) {
        const double least = squares[first] + square * (1 - kSameNorm);
        const auto found =
            std::lower_bound(squares.begin() + static_cast<std::ptrdiff_t>(first), squares.end(), least);
        const auto last = static_cast<std::size_t>(found - squares.begin());
        if (found == squares.end() || last <= place || *found > squares[first] + square * (1 + kSameNorm))
          continue;
        const std::uint32_t* const all = sequence.contents.data();
        if (make_up(contents, all + first, all + last, whole)) return {all + first, all + last};
      }
    }
  }
  return {};
}

class Mapper {
 public:
  Mapper(const ContentFlow& target, const ContentFlow& golden, double allowance)
      : target_(target), golden_(golden), allowance_(allowance), golden_used_(golden.contents().size()) {
    map_.ours_alone = parameters_of(target);
    map_.theirs_alone = parameters_of(golden);
  }

  ParameterMap run() {
    pair_equal();
    join(target_, map_.ours_alone, golden_, map_.theirs_alone, false);
    join(golden_, map_.theirs_alone, target_, map_.ours_alone, true);
    map_.group_of.assign(target_.contents().size(), kNone);
    map_.golden_group_of.assign(golden_.contents().size(), kNone);
    for (std::uint32_t group = 0; group < map_.groups.size(); ++group) {
      for (const std::uint32_t each : map_.groups[group].ours) map_.group_of[each] = group;
      for (const std::uint32_t each : map_.groups[group].theirs) map_.golden_group_of[each] = group;
    }
    for (const Joint& joint : target_.joints()) map_.group_of[joint.part] = map_.group_of[joint.whole];
    for (const Joint& joint : golden_.joints())
      map_.golden_group_of[joint.part] = map_.golden_group_of[joint.whole];
    return std::move(map_);
  }

 private:
  /// Pairs the parameters that are nearest in size and norm. Where one side alone knows a parameter as such,
  /// since functions take it without modules, the content is a parameter on the other side too.
  void pair_equal() {
    const std::vector<std::uint32_t> theirs = map_.theirs_alone;
    pair_equal(target_, map_.ours_alone, golden_, theirs, false);
    std::erase_if(map_.theirs_alone, [&](std::uint32_t each) { return golden_used_[each]; });
    pair_equal(target_, map_.ours_alone, golden_, unknown_of(golden_), false);
    pair_equal(golden_, map_.theirs_alone, target_, unknown_of(target_), true);
  }

  /// Contents that no recorded call makes and that are not known as parameters.
  static std::vector<std::uint32_t> unknown_of(const ContentFlow& flow) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < flow.contents().size(); ++i) {
      const Content& content = flow.contents()[i];
      if (!flow.is_made(i) && !flow.is_parameter(i) && content.is_finite() && content.elements > 1 &&
          content.u > 0)
        found.push_back(i);
    }
    return found;
  }

  void pair_equal(const ContentFlow& side, std::vector<std::uint32_t>& parameters, const ContentFlow& other,
                  const std::vector<std::uint32_t>& others, bool exchanged) {
    std::multimap<std::pair<std::uint64_t, double>, std::uint32_t> by_norm;
    for (const std::uint32_t each : others) {
      const Content& content = other.contents()[each];
      by_norm.emplace(std::make_pair(content.elements, content.norm), each);
    }
    constexpr int kMostLooks = 1024;  // of those with that norm
    std::erase_if(parameters, [&](std::uint32_t one) {
      check_interrupt();
      const Content& content = side.contents()[one];
      const double most = content.norm * (1 + allowance_);
      auto best = by_norm.end();
      double least = allowance_;
      int looks = 0;
      for (auto each = by_norm.lower_bound({content.elements, content.norm * (1 - allowance_)});
           each != by_norm.end() && each->first <= std::make_pair(content.elements, most) &&
           looks < kMostLooks;
           ++each, ++looks) {
        const double error = error_between(content, other.contents()[each->second]);
        if (error <= least && (best == by_norm.end() || error < least)) {
          least = error;
          best = each;
        }
      }
      if (best == by_norm.end()) return false;
      const std::uint32_t ours = exchanged ? best->second : one;
      const std::uint32_t theirs = exchanged ? one : best->second;
      map_.groups.push_back({{ours}, {theirs}});
      golden_used_[theirs] = true;
      by_norm.erase(best);
      return true;
    });
  }

  /// Groups each of `wholes` with the `parts` that make it up.
  void join(const ContentFlow& side, std::vector<std::uint32_t>& wholes, const ContentFlow& other,
            std::vector<std::uint32_t>& parts, bool exchanged) {
    const std::vector<Sequence> sequences = sequences_of(other, parts);
    std::erase_if(wholes, [&](std::uint32_t whole) {
      check_interrupt();
      const std::vector<std::uint32_t> found = parts_of(sequences, other.contents(), side.contents()[whole]);
      if (found.empty()) return false;
      std::erase_if(parts, [&](std::uint32_t part) {
        return std::find(found.begin(), found.end(), part) != found.end();
      });
      if (exchanged) {
        map_.groups.push_back({found, {whole}});
      } else {
        map_.groups.push_back({{whole}, found});
      }
      return true;
    });
  }

  const ContentFlow& target_;
  const ContentFlow& golden_;
  double allowance_;
  ParameterMap map_;
  std::vector<bool> golden_used_;  // by content
};

}  // namespace

ParameterMap map_parameters(const ContentFlow& target, const ContentFlow& golden, double allowance) {
  return Mapper(target, golden, allowance).run();
}

std::uint32_t parameter_place(const ContentFlow& flow, std::uint32_t content) {
  const std::uint32_t item = flow.parameter_item(content);
  return item != kNone ? item : flow.contents()[content].item;
}

std::string parameter_name(const ContentFlow& flow, std::uint32_t content) {
  const dump::Side& side = flow.side();
  const dump::Item& item = side.items[parameter_place(flow, content)];
  return item.state == dump::State::parameters ? pairing::name_in_model(side, item)
                                               : std::string(side.name(item));
}

}  // namespace msprobe::diagnosis

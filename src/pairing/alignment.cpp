// SPDX-License-Identifier: Apache-2.0
#include "pairing/alignment.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "dump/names.hpp"
#include "pairing/gradient_passes.hpp"
#include "pairing/item_partners.hpp"
#include "pairing/moved_terms.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "pairing/sequence.hpp"
#include "pairing/updates.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "support/text_pool.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::pairing {
namespace {

using dump::Api;
using dump::ConstructTable;
using dump::Direction;
using dump::EntryName;
using dump::Item;
using dump::Side;

std::string_view api_name(const Side& side, std::uint32_t api) {
  return side.text(side.apis[api].name);
}

/// The kind of a dtype: floating, integer and so on. A name that is not a tensor type has a kind that no
/// tensor type has.
std::uint64_t kind_of(std::string_view dtype) {
  const auto known = tensor::dtype_from_name(dtype);
  return known ? static_cast<std::uint64_t>(tensor::info(*known).kind) + 1 : 0;
}

/// Checks whether both sides hold the same entries in the same order, with tensors of the same shapes and
/// kinds of types. Both sides share a small number of texts, so that each pair of texts is looked at once.
class SameSequence {
 public:
  SameSequence(const Side& target, const Side& golden) : target_(target), golden_(golden) {}

  bool holds() {
    if (target_.apis.size() != golden_.apis.size()) return false;
    for (std::uint32_t i = 0; i < target_.apis.size(); ++i) {
      if (api_name(target_, i) != api_name(golden_, i)) return false;
    }
    for (std::uint32_t i = 0; i < target_.apis.size(); ++i) {
      if (!same_shapes(target_.apis[i], golden_.apis[i])) return false;
    }
    return true;
  }

 private:
  bool same_shapes(const Api& target, const Api& golden) {
    std::uint32_t t = 0;
    std::uint32_t g = 0;
    for (;; ++t, ++g) {
      while (t < target.count && !target_.items[target.first + t].is_tensor) ++t;
      while (g < golden.count && !golden_.items[golden.first + g].is_tensor) ++g;
      if (t == target.count || g == golden.count) return t == target.count && g == golden.count;
      const Item& ours = target_.items[target.first + t];
      const Item& theirs = golden_.items[golden.first + g];
      if (!same_shape(ours.shape, theirs.shape) || !same_kind(ours.dtype, theirs.dtype)) return false;
    }
  }

  bool same_shape(std::uint32_t target, std::uint32_t golden) {
    const auto [known, added] = equal_.try_emplace(target, golden);
    if (!added && known->second == golden) return true;
    if (target_.text(target) != golden_.text(golden)) return false;
    known->second = golden;
    return true;
  }

  bool same_kind(std::uint32_t target, std::uint32_t golden) {
    const auto [known, added] = equal_kinds_.try_emplace(target, golden);
    if (!added && known->second == golden) return true;
    if (kind_of(target_.text(target)) != kind_of(golden_.text(golden))) return false;
    known->second = golden;
    return true;
  }

  const Side& target_;
  const Side& golden_;
  std::unordered_map<std::uint32_t, std::uint32_t> equal_;
  std::unordered_map<std::uint32_t, std::uint32_t> equal_kinds_;
};

std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
  seed *= 0xff51afd7ed558ccdULL;
  return seed ^ (seed >> 32);
}

/// The operation of an entry, its module and its tensors, as numbers that both sides share. Each grade pairs
/// the entries that the grade before left.
enum SignatureGrade : std::size_t { kWithShapes, kWithoutShapes, kWithoutPath, kOutside, kByName, kGrades };

struct AlignedEntries {
  std::vector<std::uint32_t> apis;  // of one direction, in order
  std::array<std::vector<std::uint32_t>, kGrades> symbols;
  std::vector<std::uint64_t> paths;  // their hashes; 0 for entries without a path
};

class Signatures {
 public:
  /// `other_classes`: the class of a module has two names, one in the target and one in golden.
  explicit Signatures(bool other_classes) : other_classes_(other_classes) {}

  AlignedEntries of(const Side& side, const ConstructTable* construct,
                    const std::vector<std::uint32_t>& apis) {
    AlignedEntries out;
    out.apis = apis;
    ++sides_;
    shapes_.clear();
    kinds_.clear();
    paths_.clear();
    for (std::vector<std::uint32_t>& symbols : out.symbols) symbols.reserve(apis.size());
    out.paths.reserve(apis.size());
    for (const std::uint32_t api : apis) {
      const std::string_view name = api_name(side, api);
      const dump::EntryName parsed = side.parsed_name(api);
      const std::uint64_t place = path_hash(name, parsed, construct);
      std::uint64_t work = parsed.is_module ? 1 : 2;
      // The prefix of an operation counts too: Tensor.add is not Functional.add. A module's base ends with
      // its class.
      work = mixed(work, std::hash<std::string_view>{}(parsed.is_module ? parsed.operation() : parsed.base));
      // The update of a parameter is not an average of weights, which makes the same calls.
      if (construct != nullptr && construct->parent(name) == kOptimizer) work = mixed(work, 1);
      std::uint64_t shapes = 0;
      const Api& entry = side.apis[api];
      for (const std::uint32_t i : entry.items()) {
        const Item& item = side.items[i];
        if (item.is_tensor)
          shapes = mixed(mixed(shapes, static_cast<std::uint64_t>(item.state) + (kind_hash(side, item) << 8)),
                         shape_hash(side, item));
      }
      out.paths.push_back(place);
      const std::uint64_t at_place = mixed(parsed.is_module && other_classes_ ? 1 : work, place);
      out.symbols[kWithShapes].push_back(number(mixed(at_place, shapes), 0));
      // Without a path, only the name would remain to pair by.
      out.symbols[kWithoutShapes].push_back(place != 0 ? number(at_place, 1) : number(sides_, 4));
      out.symbols[kWithoutPath].push_back(number(mixed(work, shapes), 2));
      // A copy of a model that no recorder hooked makes its calls outside of all modules.
      const bool outside = (sides_ == 1) == (place == 0);
      out.symbols[kOutside].push_back(number(mixed(mixed(work, shapes), outside ? 1 : 2), 5));
      out.symbols[kByName].push_back(number(at_place, 3));
    }
    return out;
  }

  std::uint32_t alphabet() const { return static_cast<std::uint32_t>(numbers_.size()); }

 private:
  std::uint32_t number(std::uint64_t hash, std::uint64_t grade) {
    return numbers_.try_emplace(mixed(hash, grade), static_cast<std::uint32_t>(numbers_.size()))
        .first->second;
  }

  std::uint64_t kind_hash(const Side& side, const Item& item) {
    const auto [known, added] = kinds_.try_emplace(item.dtype, 0);
    if (added) known->second = kind_of(side.text(item.dtype));
    return known->second;
  }

  std::uint64_t shape_hash(const Side& side, const Item& item) {
    const auto [known, added] = shapes_.try_emplace(item.shape, 0);
    if (added) known->second = std::hash<std::string_view>{}(side.text(item.shape));
    return known->second;
  }

  /// The hash of the path of the module around an entry; 0 if it has no such path.
  std::uint64_t path_hash(std::string_view name, const EntryName& parsed, const ConstructTable* construct) {
    std::string_view around = name;
    if (!parsed.is_module) {
      if (construct == nullptr) return 0;
      around = construct->parent(name);
      if (around.empty()) return 0;
    }
    const auto [known, added] = paths_.try_emplace(around, 0);
    if (added) {
      const std::string_view path = module_path(around);
      // The name around an operation may not be a module, for example "optimizer".
      known->second = std::hash<std::string>{}(without_wrappers(path.empty() ? around : path)) | 1;
    }
    return known->second;
  }

  bool other_classes_;
  std::uint64_t sides_ = 0;  // how many sides have been numbered
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::unordered_map<std::uint32_t, std::uint64_t> shapes_;    // of the side at hand
  std::unordered_map<std::uint32_t, std::uint64_t> kinds_;     // likewise
  std::unordered_map<std::string_view, std::uint64_t> paths_;  // likewise
};

class EntryAligner {
  static constexpr double kAlike = 0.01;  // largest and smallest elements that agree to this part

 public:
  EntryAligner(const Side& target, const Side& golden, const ConstructTable* target_construct,
               const ConstructTable* golden_construct)
      : target_(target), golden_(golden) {
    if (target_construct == nullptr || golden_construct == nullptr) return;
    if (target_construct->size() == 0 || golden_construct->size() == 0) return;
    target_construct_ = target_construct;
    golden_construct_ = golden_construct;
  }

  Alignment run() {
    out_.golden_of.assign(target_.apis.size(), kNone);
    out_.target_of.assign(golden_.apis.size(), kNone);
    std::optional<UpdatePairs> updates;
    if (target_construct_ != nullptr)
      updates = pair_updates(target_, *target_construct_, golden_, *golden_construct_);
    if (!updates && SameSequence(target_, golden_).holds()) {
      for (std::uint32_t i = 0; i < target_.apis.size(); ++i) out_.golden_of[i] = out_.target_of[i] = i;
      if (!move_terms()) return std::move(out_);
      leave_backward();
    } else {
      if (updates) {
        for (const auto& [target, golden] : updates->pairs) pair(target, golden);
        out_.target_update_alone = std::move(updates->target_alone);
        out_.golden_update_alone = std::move(updates->golden_alone);
      }
      align_direction(Direction::forward);
      move_terms();
    }
    index_names();
    GradientPasses passes = pair_gradient_passes(target_, target_construct_, golden_, golden_construct_);
    for (const auto& [target, golden] : passes.pairs) pair(target, golden);
    out_.target_earlier_pass = std::move(passes.target_earlier);
    out_.golden_earlier_pass = std::move(passes.golden_earlier);
    of_passes_ = std::move(passes.modules);
    follow_forward();
    align_direction(Direction::backward);
    by_name();
    finish();
    return std::move(out_);
  }

 private:
  /// Entries of a direction that have no partner yet.
  static std::vector<std::uint32_t> entries(const Side& side, Direction direction,
                                            const std::vector<std::uint32_t>& partners,
                                            const std::vector<bool>& alone) {
    std::vector<std::uint32_t> apis;
    for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
      const dump::EntryName parsed = side.parsed_name(i);
      const bool without = i < alone.size() && alone[i];
      if (parsed.direction == direction && partners[i] == kNone && !without) apis.push_back(i);
    }
    return apis;
  }

  void align_direction(Direction direction) {
    Signatures signatures(of_other_operations(target_, golden_));
    AlignedEntries t = signatures.of(target_, target_construct_,
                                     entries(target_, direction, out_.golden_of, out_.target_update_alone));
    AlignedEntries g = signatures.of(golden_, golden_construct_,
                                     entries(golden_, direction, out_.target_of, out_.golden_update_alone));
    if (direction == Direction::forward) keep_recomputed_apart(t, g);
    std::vector<SequenceRange> gaps = {
        {0, static_cast<std::uint32_t>(t.apis.size()), 0, static_cast<std::uint32_t>(g.apis.size())}};
    for (std::size_t grade = 0; grade < kGrades; ++grade) {
      SequenceAligner aligner(t.symbols[grade], g.symbols[grade], signatures.alphabet());
      std::vector<SequenceRange> left;
      for (const SequenceRange& gap : gaps) {
        SequenceRange rest = gap;
        const auto close = [&](std::uint32_t a, std::uint32_t b) {
          rest.a_last = a;
          rest.b_last = b;
          if (rest.a_first < a && rest.b_first < b) left.push_back(rest);
        };
        const std::vector<SequenceMatch> found = aligner.align(gap);
        for (std::size_t i = 0; i < found.size(); ++i) {
          rest.a_last = i + 1 < found.size() ? found[i + 1].a : gap.a_last;
          rest.b_last = i + 1 < found.size() ? found[i + 1].b : gap.b_last;
          const SequenceMatch match = of_one_name(found[i], rest, t, g, grade);
          pair(t.apis[match.a], g.apis[match.b]);
          close(match.a, match.b);
          rest.a_first = match.a + 1;
          rest.b_first = match.b + 1;
        }
        close(gap.a_last, gap.b_last);
      }
      gaps = std::move(left);
    }
    pair_moved(t, g, signatures.alphabet());
    if (direction == Direction::forward) pair_alike(t, g);
  }

  /// A call that is recomputed in the backward is not a call of another module which both sides have.
  void keep_recomputed_apart(AlignedEntries& t, AlignedEntries& g) const {
    const std::unordered_set<std::uint64_t> ours(t.paths.begin(), t.paths.end());
    const std::unordered_set<std::uint64_t> theirs(g.paths.begin(), g.paths.end());
    const auto keep = [&](const Side& side, AlignedEntries& entries) {
      std::uint32_t backward = 0;
      while (backward < side.apis.size() && side.parsed_name(backward).direction != Direction::backward)
        ++backward;
      for (std::size_t i = 0; i < entries.apis.size(); ++i) {
        const std::uint64_t path = entries.paths[i];
        if (entries.apis[i] > backward && path != 0 && ours.contains(path) && theirs.contains(path))
          entries.symbols[kWithoutPath][i] = entries.symbols[kWithShapes][i];
      }
    };
    keep(target_, t);
    keep(golden_, g);
  }

  /// Replaces one call of a match by an equal free call that has the other side's name. Calls that are made
  /// again, as in recomputation, are then those without a partner.
  SequenceMatch of_one_name(SequenceMatch match, const SequenceRange& free, const AlignedEntries& t,
                            const AlignedEntries& g, std::size_t grade) const {
    const std::uint32_t symbol = t.symbols[grade][match.a];
    const auto named = [&](const Side& side, const AlignedEntries& entries, std::uint32_t first,
                           std::uint32_t last, std::string_view name, std::uint32_t otherwise) {
      for (std::uint32_t i = first; i < last; ++i) {
        if (entries.symbols[grade][i] == symbol && api_name(side, entries.apis[i]) == name) return i;
      }
      return otherwise;
    };
    const std::string_view ours = api_name(target_, t.apis[match.a]);
    const std::string_view theirs = api_name(golden_, g.apis[match.b]);
    if (ours == theirs) return match;
    const std::uint32_t b = named(golden_, g, free.b_first, free.b_last, ours, match.b);
    if (b != match.b) return {match.a, b};
    return {named(target_, t, free.a_first, free.a_last, theirs, match.a), match.b};
  }

  /// Pairs entries that differ only in their place in the order: the signature occurs once among the free
  /// entries of each side, and the entries have a module path, the same name, or nearly the same contents.
  void pair_moved(const AlignedEntries& t, const AlignedEntries& g, std::uint32_t alphabet) {
    constexpr std::uint32_t kSeveral = kNone - 1;
    std::vector<std::uint32_t> alone_in_golden(alphabet, kNone);
    std::vector<std::uint32_t> alone_in_target(alphabet, kNone);
    const auto collect = [](const AlignedEntries& side, const std::vector<std::uint32_t>& partners,
                            std::vector<std::uint32_t>& alone) {
      for (std::size_t i = 0; i < side.apis.size(); ++i) {
        if (partners[side.apis[i]] != kNone) continue;
        std::uint32_t& slot = alone[side.symbols[kWithShapes][i]];
        slot = slot == kNone ? static_cast<std::uint32_t>(i) : kSeveral;
      }
    };
    collect(t, out_.golden_of, alone_in_target);
    collect(g, out_.target_of, alone_in_golden);
    for (std::uint32_t symbol = 0; symbol < alphabet; ++symbol) {
      if (alone_in_target[symbol] >= kSeveral || alone_in_golden[symbol] >= kSeveral) continue;
      const std::uint32_t target = t.apis[alone_in_target[symbol]];
      const std::uint32_t golden = g.apis[alone_in_golden[symbol]];
      if (t.paths[alone_in_target[symbol]] != 0 || api_name(target_, target) == api_name(golden_, golden) ||
          alike(target, golden))
        pair(target, golden);
    }
  }

  /// Pairs calls of one signature by their contents where the order misleads, as where one run evaluates the
  /// model before it trains it, or calls two heads in another order: a call gets the free or wrongly paired
  /// call that is clearly nearer than the partners of both. Those that lose their partners pair in order.
  void pair_alike(const AlignedEntries& t, const AlignedEntries& g) {
    struct CallBySize {
      double largest;
      std::uint32_t golden;
      bool operator<(const CallBySize& other) const { return largest < other.largest; }
    };
    constexpr double kFree = std::numeric_limits<double>::infinity();
    std::unordered_map<std::uint32_t, std::vector<CallBySize>> of_signature;
    for (std::size_t i = 0; i < g.apis.size(); ++i) {
      if (const auto largest = last_largest(golden_, g.apis[i]))
        of_signature[g.symbols[kWithShapes][i]].push_back({*largest, g.apis[i]});
    }
    for (auto& [signature, candidates] : of_signature) std::stable_sort(candidates.begin(), candidates.end());
    std::map<std::uint32_t, std::array<std::set<std::uint32_t>, 2>> without;  // by signature
    for (std::size_t i = 0; i < t.apis.size(); ++i) {
      const std::uint32_t target = t.apis[i];
      const std::uint32_t before = out_.golden_of[target];
      const std::uint32_t signature = t.symbols[kWithShapes][i];
      const auto largest = last_largest(target_, target);
      const auto found = of_signature.find(signature);
      if (!largest || found == of_signature.end()) continue;
      const double own = before == kNone ? kFree : distance(target, before);
      if (own <= kClearly * kLeast) continue;
      const double margin = kAlike * std::abs(*largest);
      auto each =
          std::lower_bound(found->second.begin(), found->second.end(), CallBySize{*largest - margin, 0});
      // Many calls with one largest element, as of masks, do not show which is which.
      constexpr int kMostLookedAt = 16;
      for (int looked = 0;
           looked < kMostLookedAt && each != found->second.end() && each->largest <= *largest + margin;
           ++looked, ++each) {
        const std::uint32_t other = out_.target_of[each->golden];
        if (each->golden == before) continue;
        const double near = distance(target, each->golden);
        const double clearly = kClearly * std::max(near, kLeast);
        if (near > kAlike || own <= clearly || (other != kNone && distance(other, each->golden) <= clearly))
          continue;
        auto& [targets, goldens] = without[signature];
        if (other != kNone) {
          out_.golden_of[other] = kNone;
          targets.insert(other);
        }
        if (before != kNone) {
          out_.target_of[before] = kNone;
          goldens.insert(before);
        }
        pair(target, each->golden);
        targets.erase(target);
        goldens.erase(each->golden);
        break;
      }
    }
    for (auto& [signature, left] : without) {
      auto golden = left[1].begin();
      for (const std::uint32_t target : left[0]) {
        if (golden == left[1].end()) break;
        pair(target, *golden++);
      }
    }
  }

  /// The largest element of the last tensor of a call, which is an output if it has one; nothing where it is
  /// not recorded as a number.
  static std::optional<double> last_largest(const Side& side, std::uint32_t api) {
    std::optional<double> largest;
    for (const std::uint32_t i : side.apis[api].items()) {
      const Item& item = side.items[i];
      if (!item.is_tensor) continue;
      const dump::Classified value = dump::classify(item.statistics[dump::kMax], side.pool);
      const bool is_number = value.type == dump::ValueClass::number && std::isfinite(value.number);
      largest = is_number ? std::optional(value.number) : std::nullopt;
    }
    return largest;
  }

  /// The largest relative difference of the largest and smallest elements of all tensors; infinite where
  /// their numbers or kinds differ, or where no tensor has numbers.
  double distance(std::uint32_t target, std::uint32_t golden) const {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    const Api& ours = target_.apis[target];
    const Api& theirs = golden_.apis[golden];
    if (ours.count != theirs.count) return kInfinite;
    double largest = kInfinite;
    for (std::uint32_t i = 0; i < ours.count; ++i) {
      const Item& a = target_.items[ours.first + i];
      const Item& b = golden_.items[theirs.first + i];
      if (!a.is_tensor || !b.is_tensor) continue;
      for (const dump::Statistic which : {dump::kMax, dump::kMin, dump::kNorm}) {
        const dump::Classified x = dump::classify(a.statistics[which], target_.pool);
        const dump::Classified y = dump::classify(b.statistics[which], golden_.pool);
        if (x.type != y.type) return kInfinite;
        if (x.type == dump::ValueClass::number) {
          const double larger = std::max(std::abs(x.number), std::abs(y.number));
          const double apart = larger > 0 ? std::abs(x.number - y.number) / larger : 0;
          largest = std::isinf(largest) ? apart : std::max(largest, apart);
        } else if (dump::to_text(a.statistics[which], target_.pool) !=
                   dump::to_text(b.statistics[which], golden_.pool)) {
          return kInfinite;
        }
      }
    }
    return largest;
  }
  bool alike(std::uint32_t target, std::uint32_t golden) const { return distance(target, golden) <= kAlike; }

  bool move_terms() {
    return pair_moved_terms(
        target_, golden_,
        [this](std::uint32_t api) {
          return target_construct_ == nullptr ||
                 target_construct_->parent(api_name(target_, api)) != kOptimizer;
        },
        out_);
  }

  /// Backward entries of operations follow forward entries that have moved.
  void leave_backward() {
    for (std::uint32_t i = 0; i < target_.apis.size(); ++i) {
      const dump::EntryName parsed = target_.parsed_name(i);
      if (parsed.is_module || parsed.direction != Direction::backward) continue;
      out_.golden_of[i] = out_.target_of[i] = kNone;
    }
  }

  void pair(std::uint32_t target, std::uint32_t golden) {
    out_.golden_of[target] = golden;
    out_.target_of[golden] = target;
  }

  void index_names() {
    const auto text_of = [this](std::uint32_t api) { return api_name(golden_, api); };
    for (std::uint32_t i = 0; i < golden_.apis.size(); ++i) golden_names_.add(i, text_of);
  }
  std::uint32_t golden_named(std::string_view name) const {
    const std::uint32_t found =
        golden_names_.find(name, [this](std::uint32_t api) { return api_name(golden_, api); });
    return found == TextIndex::kNone ? kNone : found;
  }

  bool is_of_passes(const EntryName& parsed) const {
    return parsed.direction == Direction::parameters_grad && of_passes_.contains(parsed.base);
  }

  /// Pairs backward entries, which have the base and call number of their forward entry, and gradients of
  /// parameters, which have the base of their module.
  void follow_forward() {
    std::unordered_map<std::string_view, std::uint32_t> forward_of_base;  // the first
    const auto text_of = [this](std::uint32_t api) { return api_name(target_, api); };
    TextIndex target_names;
    for (std::uint32_t i = 0; i < target_.apis.size(); ++i) {
      target_names.add(i, text_of);
      const dump::EntryName parsed = target_.parsed_name(i);
      if (parsed.direction == Direction::forward && out_.golden_of[i] != kNone)
        forward_of_base.try_emplace(parsed.base, i);
    }
    std::string name;
    for (std::uint32_t i = 0; i < target_.apis.size(); ++i) {
      const std::string_view own = text_of(i);
      const dump::EntryName parsed = target_.parsed_name(i);
      if (out_.golden_of[i] != kNone || is_of_passes(parsed)) continue;
      std::uint32_t forward = kNone;
      if (parsed.direction == Direction::backward) {
        name.assign(parsed.base);
        name.append(parsed.call_first ? "." : ".forward.").append(parsed.call);
        if (parsed.call_first) name += ".forward";
        forward = target_names.find(name, text_of);
      } else if (parsed.direction == Direction::parameters_grad) {
        if (const auto found = forward_of_base.find(parsed.base); found != forward_of_base.end())
          forward = found->second;
      }
      if (forward >= target_.apis.size() || out_.golden_of[forward] == kNone) continue;
      const dump::EntryName partner = golden_.parsed_name(out_.golden_of[forward]);
      name.assign(partner.base);
      if (parsed.direction == Direction::backward) {
        name.append(partner.call_first ? "." : ".backward.").append(partner.call);
        if (partner.call_first) name += ".backward";
      } else {
        name.append(own.substr(parsed.base.size()));
      }
      std::uint32_t golden = golden_named(name);
      if (golden == kNone && parsed.direction == Direction::parameters_grad) {
        // The Python tool before release 26 has one such entry for a module, without a number.
        constexpr std::string_view kFirst = ".0";
        if (parsed.call.empty()) {
          name += kFirst;
        } else if (name.ends_with(kFirst)) {
          name.resize(name.size() - kFirst.size());
        }
        golden = golden_named(name);
      }
      if (golden != kNone && out_.target_of[golden] == kNone) pair(i, golden);
    }
  }

  /// Pairs gradients of modules without a forward entry, and values saved by name.
  void by_name() {
    for (std::uint32_t i = 0; i < target_.apis.size(); ++i) {
      const dump::EntryName parsed = target_.parsed_name(i);
      if (out_.golden_of[i] != kNone || is_of_passes(parsed)) continue;
      if (parsed.direction != Direction::parameters_grad && parsed.direction != Direction::debug) continue;
      const std::uint32_t golden = golden_named(api_name(target_, i));
      if (golden != kNone && out_.target_of[golden] == kNone) pair(i, golden);
    }
  }

  void finish() {
    out_.same_order = target_.apis.size() == golden_.apis.size();
    for (std::uint32_t i = 0; i < target_.apis.size(); ++i) {
      const std::uint32_t golden = out_.golden_of[i];
      out_.same_order = out_.same_order && golden == i;
      if (golden != kNone && api_name(target_, i) != api_name(golden_, golden)) out_.renamed = true;
    }
    out_.golden_only = golden_only_of(out_.target_of);
  }

  const Side& target_;
  const Side& golden_;
  const ConstructTable* target_construct_ = nullptr;
  const ConstructTable* golden_construct_ = nullptr;
  Alignment out_;
  TextIndex golden_names_;
  std::unordered_set<std::string_view> of_passes_;  // modules with other numbers of passes
};

}  // namespace

void check_inverse(const Alignment& alignment) {
  const auto points_back = [](const std::vector<std::uint32_t>& there,
                              const std::vector<std::uint32_t>& back) {
    for (std::uint32_t i = 0; i < there.size(); ++i) {
      if (there[i] == kNone) continue;
      check(there[i] < back.size() && back[there[i]] == i, "an entry is the partner of its partner");
    }
  };
  points_back(alignment.golden_of, alignment.target_of);
  points_back(alignment.target_of, alignment.golden_of);
}

std::vector<GoldenOnly> golden_only_of(const std::vector<std::uint32_t>& target_of) {
  std::vector<GoldenOnly> alone;
  std::uint32_t last = kNone;
  for (std::uint32_t i = 0; i < target_of.size(); ++i) {
    if (target_of[i] == kNone) {
      alone.push_back({i, last});
    } else {
      last = target_of[i];
    }
  }
  return alone;
}

Alignment align(const Side& target, const Side& golden, const ConstructTable* target_construct,
                const ConstructTable* golden_construct) {
  Alignment alignment = EntryAligner(target, golden, target_construct, golden_construct).run();
  check_inverse(alignment);
  alignment.golden_item_of = pair_items(target, golden, alignment);
  return alignment;
}

}  // namespace msprobe::pairing

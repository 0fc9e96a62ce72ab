// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/output_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "diagnosis/amplification.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::Nature;
using dump::State;
using measuring::elements_of;
using measuring::kSingleRoundoff;
using measuring::number_of;
using measuring::unit_roundoff;
using pairing::kNone;
using pairing::place_text;

/// Products whose inputs were rounded to the 11 bits of TF32.
bool like_tf32(std::string_view operation, double error, double u) {
  return u == kSingleRoundoff && error > kTf32 / kFew && error < kTf32 * kFew &&
         pairing::is_product(operation);
}

/// Whether a side may have a GPU or an NPU.
bool may_have_tf32(const dump::Side& side) {
  return !side.header.training.on_cpu;
}

}  // namespace

/// Whether the entry multiplies a tensor by itself, as the second moment of Adam does.
bool OutputRule::is_square(const EntryPair& entry) const {
  if (!pairing::is_elementwise(entry.name.operation()) || entry.nature != Nature::ordinary) return false;
  std::uint64_t before = 0;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::input || !walk_.item_of(i).is_tensor) continue;
    const std::uint64_t key = walk_.target_keys.of(i);
    if (key != 0 && key == before) return true;
    before = key;
  }
  return false;
}

/// The factor by which the operation may enlarge an error of its inputs.
double OutputRule::amplification(const EntryPair& entry) const {
  // The square of 1 + e is off by 2 e + e^2, which is more where a gradient is nothing but noise.
  if (is_square(entry)) return std::min(2 + entry.e_in, kFar);
  return diagnosis::amplification(golden_, entry.golden, entry.nature);
}

/// The error of an output. A sum that is exactly zero on one side has cancelled: what is left on the other is
/// as large as the errors of what it adds.
double OutputRule::error_of(const EntryPair& entry, std::uint32_t index) const {
  const double e = walk_.e_of(index);
  if (entry.nature != Nature::sum || !errors_.vanishes(index)) return e;
  const auto norm_in = [](const dump::Side& side, const Item& item) {
    return std::abs(number_of(side, item, dump::kNorm));
  };
  const auto elements_in = [](const dump::Side& side, const Item& item) {
    return static_cast<double>(std::max<std::uint64_t>(elements_of(side.text(item.shape)), 1));
  };
  const double n = elements_in(target_, walk_.item_of(index));
  double added = 0;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != State::input || !item.is_tensor || unit_roundoff(target_.text(item.dtype)) == 0)
      continue;
    added =
        std::max(added, norm_in(target_, item) * std::sqrt(std::max(1.0, n / elements_in(target_, item))));
  }
  const double left = std::max(norm_in(target_, walk_.item_of(index)),
                               norm_in(golden_, golden_.items[errors_.golden_item[index]]));
  return left > 0 && left < added ? std::min(e, left / added) : e;
}

/// Whether the entry divides by numbers that may be near zero, so that single elements grow unseen by
/// statistics.
bool OutputRule::divides_unseen(const EntryPair& entry) const {
  return !walk_.tensors && (entry.nature == Nature::division || entry.optimizer);
}

/// The error of the output that is explained. Its excess is its error divided by this.
double OutputRule::received(const EntryPair& entry, std::uint32_t index, double sums) const {
  const Noise noise = noise_of(index);
  double in = entry.grown * (std::max(entry.e_in, entry.hidden) + (entry.grown > 1 ? kSingleRoundoff : 0));
  if (divides_unseen(entry)) in = std::max(in, std::sqrt(std::min(in, 1.0)));
  if (entry.e_in > 0) in = std::max(in, noise.growth * entry.e_in);
  return in + entry.u + sums + noise.error;
}

Noise OutputRule::noise_of(std::uint32_t index) const {
  Noise noise = walk_.reading.noise(errors_.golden_item[index]);
  if (!std::isfinite(noise.error)) noise.error = 0;
  if (!std::isfinite(noise.growth)) noise.growth = 0;
  return noise;
}

std::vector<Replayed> OutputRule::replayed(const EntryPair& entry, double excess) const {
  if (!walk_.tensors || walk_.options.replay == ReplayMode::never ||
      walk_.options.without.contains(Rule::replay))
    return {};
  if (walk_.options.replay == ReplayMode::suspects &&
      excess <= (walk_.any_certain ? walk_.threshold : kMargin))
    return {};
  return walk_.reading.replay(entry.target, entry.golden);
}

/// Applies the rules replay, introduced and gain to the outputs of the entry.
void OutputRule::examine(EntryPair& entry) {
  entry.e_in = walk_.floor_of(entry);
  // Where the extremes are a mask's, norms are blind.
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::input || !walk_.item_of(i).is_tensor) continue;
    const double least = number_of(target_, walk_.item_of(i), dump::kMin);
    const bool masked = unit_roundoff(target_.text(walk_.item_of(i).dtype)) > 0 && std::abs(least) >= kMask;
    // Tensors that should have been read and were not may have larger errors than their statistics say.
    if (masked || errors_.by_statistics[i] != 0) entry.e_in = std::max(entry.e_in, walk_.forward_error());
  }
  entry.grown = amplification(entry);
  double largest_excess = 0;
  double explained = 0;
  std::vector<std::uint32_t> judged;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != State::output || !item.is_tensor || errors_.golden_item[i] == kNone) continue;
    if (std::isnan(errors_.e[i])) {
      if (walk_.checksums_differ(i)) checksum(entry);
      continue;
    }
    judged.push_back(i);
    const double error = received(entry, i);
    explained = std::max(explained, error);
    largest_excess = std::max(largest_excess, error_of(entry, i) / error);
  }
  if (judged.empty()) return;
  const auto vanishes = [&](std::uint32_t i) { return errors_.vanishes(i); };
  if (entry.nature == Nature::sum && std::any_of(judged.begin(), judged.end(), vanishes)) {
    entry.e_out = 0;
    for (const std::uint32_t i : judged) entry.e_out = std::max(entry.e_out, error_of(entry, i));
  }
  const double sees = walk_.threshold * explained;
  if (sees > walk_.out.visible && !walk_.any_evidence && std::isfinite(sees)) {
    walk_.out.visible = sees;
    walk_.out.visible_module = walk_.module_around(entry.target, entry.golden);
  }
  // In another type, rounding may have changed a decision without a visible error.
  decided_ = decided_ || (entry.nature == Nature::discrete && walk_.dtype_setting && !walk_.tensors &&
                          entry.worst_in > 0);
  if (entry.nature == Nature::discrete && (entry.e_in > 0 || (!walk_.tensors && largest_.forward > 0))) {
    double e = 0;
    for (const std::uint32_t i : judged) e = std::max(e, walk_.e_of(i));
    if (e <= walk_.threshold * (entry.e_in + entry.u) ||
        entry.worst_in > kMargin * (walk_.forward_error() + entry.u))
      return;
    Finding found = walk_.finding(entry, Kind::decision, Rule::introduced, e / (entry.e_in + entry.u));
    found.confidence = Confidence::hint;
    walk_.flip(entry, e);
    found.text = fmt::format("a decision flipped: output error {}, inputs within rounding ({})",
                             error_text(e), error_text(entry.worst_in));
    walk_.offer(entry, std::move(found));
    return;
  }
  // Statistics of whole numbers do not show which element a decision chose.
  const bool whole = std::all_of(judged.begin(), judged.end(), [&](std::uint32_t i) {
    return unit_roundoff(target_.text(walk_.item_of(i).dtype)) == 0;
  });
  if (decided_ && whole && entry.worst_in == 0 && largest_excess >= walk_.threshold) {
    walk_.flip(entry, walk_.e_of(judged.front()));
    return;
  }
  const std::vector<Replayed> replays = replayed(entry, largest_excess);
  for (const std::uint32_t i : judged) judge(entry, i, error_of(entry, i), errors_.b[i], replays);
}

void OutputRule::judge(EntryPair& entry, std::uint32_t index, double e, double b,
                       const std::vector<Replayed>& replays, double sums) {
  const auto offered = [&](Kind kind, Rule rule, double excess, std::string text, std::string side,
                           std::string next = {}, Confidence most = Confidence::certain) {
    if (walk_.is_too_small(entry, rule, excess)) return;
    Finding found = walk_.finding(entry, kind, rule, excess);
    found.item = index;
    found.place = place_text(target_, walk_.item_of(index));
    found.text = std::move(text);
    found.side = std::move(side);
    found.next = std::move(next);
    found.confidence = std::min(found.confidence, most);
    walk_.offer(entry, std::move(found));
  };
  const double explains = received(entry, index, sums);
  // `e` may be a part of the measured error, where a sum cancels.
  const double scale = e > 0 && std::isfinite(e) ? walk_.e_of(index) / e : 1;
  walk_.out.explained[index] = static_cast<float>(walk_.threshold * explains * scale);
  std::string side;
  bool ruled_out = false;  // whatever its error: but a common factor below the rounding of one element shows
  for (const Replayed& replay : replays) {
    if (replay.item != index || !(replay.tolerance > 0)) continue;
    const double more = std::max(replay.target, replay.golden);
    const double less = std::min(replay.target, replay.golden);
    if (more > replay.tolerance && more > kFew * less) {
      const bool ours = replay.target > replay.golden;
      offered(Kind::replay, Rule::replay, walk_.threshold * more / replay.tolerance,
              fmt::format("its output does not follow from its inputs: recomputed in float64 from its own "
                          "inputs, {} is off "
                          "by {}, {} by {}",
                          ours ? "this run" : "golden", error_text(more), ours ? "golden" : "this run",
                          error_text(less)),
              like_tf32(entry.name.operation(), more, errors_.u[entry.target]) &&
                      may_have_tf32(ours ? target_ : golden_)
                  ? fmt::format("{} computes with fewer bits, as TF32 does", ours ? "this run" : "golden")
                  : std::string(ours ? "this run's kernel is wrong" : "golden's kernel is wrong"));
      return;
    }
    if (more <= replay.tolerance) {
      ruled_out = true;
      continue;
    }
    side = "on neither side does the output follow from the inputs";
  }
  if (e == 0) return;
  const double excess = e / explains;
  if (const std::string overflow = std::isinf(e) ? overflow_of(index) : std::string(); !overflow.empty()) {
    offered(Kind::introduced, Rule::introduced, excess, place_text(target_, walk_.item_of(index)) + overflow,
            "the range of the type, not a kernel",
            "compute it in float32 or bfloat16, or scale what goes in");
    return;
  }
  if (const std::string lost = underflow_of(entry, index); !lost.empty()) {
    offered(Kind::introduced, Rule::introduced, excess, lost, "the range of the type, not a kernel",
            "scale the loss, or compute it in float32 or bfloat16", Confidence::hint);
    return;
  }
  if (!ruled_out) {
    const bool random = entry.nature == Nature::random;
    std::string words;
    if (walk_.is_shown(excess)) {
      const bool by_statistics = !walk_.tensors && !random && std::isfinite(e);
      words = fmt::format(
          "{}output error {} from inputs {}{}{}", random ? "draws different random numbers: " : "",
          error_text(e), error_text(entry.worst_in), by_statistics ? " by their statistics" : "",
          like_tf32(entry.name.operation(), e, errors_.u[entry.target]) && e > kMany * entry.worst_in &&
                  (may_have_tf32(target_) || may_have_tf32(golden_))
              ? "; products in TF32 have errors of this size"
              : "");
      if (by_statistics) {
        const std::string inputs = unordered_inputs(entry);
        words += inputs.empty() ? ", which do not show the order of elements"
                                : fmt::format("; or the elements of {} are in another order", inputs);
      }
      if (const std::string integers = integers_without_sums(entry); !integers.empty())
        words += fmt::format("; only the largest and smallest integers of {} are recorded: others may differ",
                             integers);
      if (entry.worst_in > 0 && !entry.name.is_module && !pairing::is_known_operation(entry.name.operation()))
        words += fmt::format("; {} is an operation that msprobe does not know: it may amplify errors",
                             entry.name.operation());
      const double most = noise_of(index).element;
      if (most >= e) {
        words += std::isinf(most)
                     ? "; rounding flips signs there, or produces NaN"
                     : "; rounding changes single elements by up to " + error_text(most) + " there";
      }
    }
    const std::string born = std::isinf(e) ? non_finite_text(target_, walk_.item_of(index), golden_,
                                                             golden_.items[errors_.golden_item[index]])
                                           : std::string();
    const Item& partner = golden_.items[errors_.golden_item[index]];
    if (!born.empty())
      words = fmt::format("its output has {}; its inputs differ by {}", born, error_text(entry.worst_in));
    if (const std::string zero = zero_text(target_, walk_.item_of(index), golden_, partner); !zero.empty())
      words = fmt::format("{} {}; its inputs differ by {}", place_text(target_, walk_.item_of(index)), zero,
                          error_text(entry.worst_in));
    if (std::isinf(e) && born.empty())
      words = fmt::format("{} {}; its inputs differ by {}", place_text(target_, walk_.item_of(index)),
                          difference_text(target_, walk_.item_of(index), golden_, partner, e),
                          error_text(entry.worst_in));
    const Unseen unseen = walk_.is_shown(excess) && !random && born.empty() ? unseen_input(entry) : Unseen();
    std::string next;
    if (!unseen.text.empty()) {
      words = fmt::format("output error {}; {}", error_text(e), unseen.text);
      if (!unseen.maker.empty()) words += fmt::format(": {} may have computed it differently", unseen.maker);
      next = fmt::format("dump again with task tensor{}{}", unseen.maker.empty() ? "" : ", from before ",
                         unseen.maker);
    }
    offered(random ? Kind::random : Kind::introduced, Rule::introduced, excess, std::move(words), side,
            std::move(next));
  }
  const double n = static_cast<double>(elements_of(target_.text(walk_.item_of(index).shape)));
  if (n < kFar || !std::isfinite(e) || !std::isfinite(b)) return;
  // The errors of repeated elements do not cancel each other.
  const double share = share_of_few(index, n);
  const double scattered = std::max(entry.e_in * share, entry.spread);
  // Where statistics may hide the error, the largest possible error decides how much the norm scatters.
  const double error = divides_unseen(entry) ? std::max(e, std::min(explains, 1.0)) : e;
  const double expected = entry.grown * (entry.b_in + kChance * scattered) +
                          kChance * (error + entry.u + sums) * share + kCommonRounding * entry.u +
                          (walk_.drift ? walk_.drift->quarter : 0) + kFew * kSingleRoundoff;
  const double gain = walk_.threshold * b / (kMany / kChance * expected);
  std::string words;
  if (walk_.is_shown(gain)) {
    words = fmt::format("its norm differs by {}, more than the {} that errors of {} cause by chance",
                        error_text(b), error_text(expected / kChance), error_text(e));
  }
  offered(Kind::gain, Rule::gain, gain, std::move(words), side);
}

/// ` overflows torch.float16 in this run: ...` if the other side's elements are too large for the type; else
/// empty.
std::string OutputRule::overflow_of(std::uint32_t index) const {
  const Item& ours = walk_.item_of(index);
  const Item& theirs = golden_.items[errors_.golden_item[index]];
  const auto largest = [](const dump::Side& side, const Item& item) {
    return std::max(std::abs(number_of(side, item, dump::kMax)), std::abs(number_of(side, item, dump::kMin)));
  };
  const double our_largest = largest(target_, ours);
  const double their_largest = largest(golden_, theirs);
  const auto is_half = [](std::string_view dtype) { return measuring::same_dtype(dtype, "torch.float16"); };
  const bool here =
      !std::isfinite(our_largest) && is_half(target_.text(ours.dtype)) && their_largest > kLargestHalf;
  const bool there =
      !std::isfinite(their_largest) && is_half(golden_.text(theirs.dtype)) && our_largest > kLargestHalf;
  if (!here && !there) return {};
  return fmt::format(
      " overflows torch.float16 in {}: in {} its largest element is {:.3g}, and float16 ends at {:g}",
      here ? "this run" : "golden", here ? "golden" : "this run", here ? their_largest : our_largest,
      kLargestHalf);
}

/// Why float16 may have made zeros of one side's elements; empty if it may not. The other side shows how
/// small they are.
std::string OutputRule::underflow_of(const EntryPair& entry, std::uint32_t index) const {
  if (!errors_.vanishes(index) || entry.u != kHalfRoundoff) return {};
  const bool here = number_of(target_, walk_.item_of(index), dump::kNorm) == 0;
  const dump::Side& side = here ? golden_ : target_;
  const Item& item = here ? golden_.items[errors_.golden_item[index]] : walk_.item_of(index);
  const double largest =
      std::max(std::abs(number_of(side, item, dump::kMax)), std::abs(number_of(side, item, dump::kMin)));
  if (!(largest < kLeastHalf)) return {};
  return fmt::format(
      "{} underflows torch.float16 in {}: in {} its largest element is {:.3g}, and float16 "
      "rounds what is below {:.3g} to 0",
      place_text(target_, walk_.item_of(index)), here ? "this run" : "golden", here ? "golden" : "this run",
      largest, kLeastHalf);
}

/// Names the inputs whose elements may be in another order, if all inputs have golden's statistics, and the
/// entries that made them; empty if no input may be.
std::string OutputRule::unordered_inputs(const EntryPair& entry) const {
  constexpr unsigned kNamed = 3;
  if (entry.worst_in > 0 || entry.optimizer || entry.name.direction != dump::Direction::forward) return {};
  std::string text;
  unsigned named = 0;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != State::input || errors_.golden_item[i] == kNone || !item.is_tensor) continue;
    const std::uint64_t key = walk_.target_keys.of(i);
    const auto position = pairing::position_of(target_, item);
    const bool parameter = walk_.parameter_items.find(key) != ContentMap::kUnknown ||
                           (position && pairing::is_parameter_position(entry.name.operation(), *position));
    if (parameter || unit_roundoff(target_.text(item.dtype)) == 0 || ++named > kNamed) continue;
    const std::uint32_t from = walk_.target_flow.find(key);
    text += fmt::format(
        "{}{} (from {})", text.empty() ? "" : " or ", place_text(target_, item),
        from == ContentMap::kUnknown ? "unrecorded code" : walk_.target_name(target_.items[from].api));
  }
  return text;
}

/// An input that may differ although its extremes do not; empty if no such input exists.
std::string OutputRule::integers_without_sums(const EntryPair& entry) const {
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != State::input || !item.is_tensor || errors_.golden_item[i] == kNone || item.has_checksum)
      continue;
    if (!measuring::is_integer(target_.text(item.dtype))) continue;
    const Item& partner = golden_.items[errors_.golden_item[i]];
    const bool summed =
        dump::is_recorded(item.statistics[dump::kNorm]) && dump::is_recorded(partner.statistics[dump::kNorm]);
    if (!summed && !walk_.tensors) return place_text(target_, item);
  }
  return {};
}

/// The share of the errors of single elements that remains in the norm. They are independent: it is the root
/// of one over their number, and more where few elements make up the norm, as in squares of gradients.
double OutputRule::share_of_few(std::uint32_t index, double n) const {
  const Item& golden = golden_.items[errors_.golden_item[index]];
  const double largest = std::max(std::abs(number_of(golden_, golden, dump::kMax)),
                                  std::abs(number_of(golden_, golden, dump::kMin)));
  const double share = largest / number_of(golden_, golden, dump::kNorm) / kLargestOfNormal;
  return std::max(1 / std::sqrt(n), std::isfinite(share) ? std::min(share, 1.0) : 0);
}

/// The input whose differences statistics hide, and the entry that made it; empty if no input is like that.
OutputRule::Unseen OutputRule::unseen_input(const EntryPair& entry) const {
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != State::input || !item.is_tensor || errors_.golden_item[i] == kNone) continue;
    const double least = number_of(target_, item, dump::kMin);
    const double largest = number_of(target_, item, dump::kMax);
    const bool masked = !walk_.tensors && unit_roundoff(target_.text(item.dtype)) > 0 &&
                        std::isfinite(least) && least <= -kMask && std::abs(largest) * kMask <= -least * kFew;
    if (errors_.blind[i] == 0 && !masked) continue;
    Unseen unseen;
    unseen.text = fmt::format("{} contains {}, which hides other differences from statistics",
                              place_text(target_, item),
                              masked                ? fmt::format("{:g}", least)
                              : std::isinf(least)   ? "-inf"
                              : std::isinf(largest) ? "inf"
                                                    : "NaN or numbers too large for a norm");
    const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
    if (from != ContentMap::kUnknown) unseen.maker = walk_.target_name(target_.items[from].api);
    return unseen;
  }
  return {};
}

/// Judges the outputs of a module. It hands on tensors from inside; the changes that unrecorded code adds
/// count as the module's.
void OutputRule::examine_module(EntryPair& entry) {
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != State::output || errors_.golden_item[i] == kNone || std::isnan(errors_.e[i])) continue;
    const std::uint64_t key = walk_.target_keys.of(i);
    if (key == 0 || walk_.target_flow.find(key) != kNone ||
        walk_.golden_flow.find(walk_.golden_keys.of(errors_.golden_item[i])) != kNone)
      continue;
    const double ahead = std::max(entry.e_in, walk_.forward_error());
    walk_.out.explained[i] = static_cast<float>(walk_.threshold * (ahead + kFew * entry.u));
    const double excess = walk_.e_of(i) / (ahead + kFew * entry.u);
    if (walk_.is_too_small(entry, Rule::introduced, excess)) continue;
    Finding found = walk_.finding(entry, Kind::introduced, Rule::introduced, excess);
    found.item = i;
    found.place = place_text(target_, item);
    found.text = fmt::format(
        "what it computes outside its recorded operations has error {}, everything recorded in it at most {}",
        error_text(walk_.e_of(i)), error_text(ahead));
    walk_.offer(entry, std::move(found));
  }
}

/// Checksums show only where the first difference is.
void OutputRule::checksum(EntryPair& entry) {
  if (any_checksum_) return;
  any_checksum_ = true;
  Finding found = walk_.finding(entry, Kind::checksum, Rule::introduced, 0);
  found.confidence = Confidence::hint;
  found.text =
      !walk_.input_checksums_differ(entry)
          ? "the first entry whose checksums differ, with equal inputs; checksums do not show whether "
            "by rounding or by a fault"
          : "the first entry whose checksums differ; its inputs already differ";
  walk_.offer(entry, std::move(found));
}

}  // namespace msprobe::diagnosis

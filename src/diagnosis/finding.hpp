// SPDX-License-Identifier: Apache-2.0
// The statements of the diagnosis about an entry and about a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::diagnosis {

/// In the order in which evidence of one entry counts (docs/how-it-decides.md, "Evidence").
enum class Rule : std::uint8_t { structure, source, replay, introduced, gain };
inline constexpr std::string_view kRuleLetters = "abcde";

enum class Kind : std::uint8_t {
  added,      // structure: an entry that golden lacks
  removed,    // an entry that only golden has
  exchanged,  // another operation in its place
  argument,
  dtype,
  shape,
  requires_grad,
  parameter,      // source: differs before it is used
  optimizer,      // all parameters were updated differently
  data,           // comes from outside
  unrecorded,     // changed between two entries
  feed,           // comes from another entry
  gradient,       // of an output, as it arrives
  replay,         // recomputed, its output does not follow from its inputs
  introduced,     // its error does not follow from its inputs
  gain,           // nor does its size
  random,         // the same operation with other random numbers
  decision,       // a discrete choice flipped by noise
  communication,  // the same operation, with other values from other ranks or by the exchange itself
  checksum,       // the first checksum that differs; by how much is unknown
  unexplained,    // the first tensor that differs by more than rounding and that no rule judged
  stretch,        // of two code bases: after the last place where both agree
};
std::string_view name_of(Kind kind);

enum class Confidence : std::uint8_t { hint, likely, certain };
std::string_view name_of(Confidence confidence);

/// The origin of a tensor's error. If several apply, the last one says most.
enum class Origin : std::uint8_t {
  equal,
  rounding,
  not_compared,
  unexplained,  // rounding does not explain it, and no rule judged it
  propagated,
  introduced
};
inline constexpr std::size_t kOrigins = 6;
std::string_view name_of(Origin origin);

/// The words before a line of golden's code.
inline constexpr std::string_view kInGolden = "in golden: ";

/// The place of a finding about gradients between backward and optimizer.
inline constexpr std::string_view kGradients = "gradients";
/// The place of a finding about gradients that one side's optimizer does not get.
inline constexpr std::string_view kLostGradients = "lost gradients";

struct Finding {
  Kind kind = Kind::introduced;
  Rule rule = Rule::introduced;
  Confidence confidence = Confidence::hint;
  double excess = 0;  // times the error is larger than what explains it
  double u = 0;       // unit roundoff of the entry
  /// The place in the order of both sides' entries: 2 i + 1 for entry i of the target, even numbers for
  /// entries that only golden has.
  std::uint64_t order = 0;
  std::uint32_t target_api = UINT32_MAX;
  std::uint32_t item = UINT32_MAX;  // of the side under test, if one is concerned
  bool downstream = false;          // what it received was touched by earlier evidence
  bool apart = false;               // no earlier evidence of its rank and step can reach it
  bool joined = false;       // it may be that evidence's fault in another place: no second one is claimed
  std::string entry;         // golden's name where the target has no such entry
  std::string golden_entry;  // empty without a golden entry
  std::string place;         // `input.1`
  std::string step;
  std::string rank;
  std::string module;
  std::string side;  // what is known about which side is wrong; may be empty
  std::string text;
  std::string where;  // line of the call, as dump::user_frame() gives it; behind kInGolden; may be empty
  std::string next;
  std::uint64_t concerned = 1;           // parameters or entries that this finding stands for
  std::uint64_t repeated = 0;            // more calls that show the same, as those given the same argument
  std::vector<std::string> other_ranks;  // that show the same
  std::uint64_t propagated = 0;          // later tensors that differ by it
  double propagated_largest = 0;
  std::string propagated_entry;
  std::string golden_where;             // of a stretch: the line of golden's call; may be empty
  std::vector<std::string> operations;  // of a stretch: calls of both sides, in order
  std::vector<std::string> golden_operations;

  bool is_evidence() const { return confidence != Confidence::hint; }
  bool is_unexplained() const { return kind == Kind::unexplained; }
};

}  // namespace msprobe::diagnosis

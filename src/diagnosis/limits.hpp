// SPDX-License-Identifier: Apache-2.0
// The numbers by which the diagnosis tells a fault from rounding, noise and drift (docs/how-it-decides.md).
// Each says what it bounds, and whether it follows from error analysis (`Derived`), from runs (`Measured`),
// or was chosen without a measurement on record (`Chosen`).
//
// All of them together: none of the 199 benign pairs of benchmarks/diagnosis has evidence on a CPU, two of
// 20 have between a CPU and a GPU (benchmarks/README.md). That supports no single one of them. Five factors
// (2, 4, 10, 100 and a half) serve wherever a rule needs a margin. They took the place of 38 numbers of
// single rules, from 1.5 to 1000, and named as many faults of 1977 pairs, with as many alarms.
//
// u is a unit roundoff: k operations are off by k u at most, and by the root of k times u where their errors
// are independent, which makes them a random walk (N. J. Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd edition, lemma 3.1 and section 2.8).
#pragma once

#include <cstddef>

#include "measuring/measures.hpp"

namespace msprobe::diagnosis {

// Factors

/// The margin between an estimate of what rounding explains and an error that counts. A call has an effect if
/// the error after it exceeds the error before it this many times; a tensor that is handed on may have this
/// many times the error that its producer gave it, because the consumer may measure it in another type; a
/// norm or a setting is another one, and a decision was not flipped by rounding, from this factor on. A step
/// in the wrong direction is off by twice the step. Statistics that do not show an error may hide this part
/// of the largest one upstream. After an optimizer step, and where parameters have drifted, evidence must
/// reach the threshold this many times: errors of parameters are not independent, so that an operation may
/// add them up. Chosen, not measured.
inline constexpr double kMargin = 2;
/// A few: how many roundings explain the error of a value that unrecorded operations made (data, a parameter
/// before the first step, a number among the arguments, the operations inside a module) or that a kernel
/// made, how many times larger an error must be to belong to another parameter or gradient, or to be the
/// worse one of two replays, and the divisor of a rounding that a norm may hide. Four roundings are two units
/// in the last place. Chosen, not measured.
inline constexpr double kFew = 4;
/// Many: an error that is this many times what explains it, or what would be enough, leaves no doubt; fewer
/// cases than this do not show what is usual. Chosen, not measured.
inline constexpr double kMany = 10;
/// Nothing right explains an error that is this many times larger: an operation multiplies the errors of its
/// inputs by this at most, whatever the magnitudes, fused recurrent kernels and ports to other operations are
/// off by this many roundoffs (measured: 122 and 34 of float32, where evidence takes ten times as much), and
/// a tensor with fewer elements is not judged by its norm. Chosen, not measured, but for these two.
inline constexpr double kFar = 100;
/// Half of something: of the tensors (another type is a setting of the run), of the modules or calls (two
/// code bases), of a tensor or a step (the rest is noise). Chosen, not measured. In automatic casting about
/// half of the tensors have another type. In 900 pairs of one program and its changes all modules and at
/// least 0.63 of the calls are common; in a port, none of the modules and a fifth of the calls.
inline constexpr double kHalf = 0.5;
/// All but a few of something: of the products (automatic casting), of the calls (one code base), of the
/// gradients that were not zeroed. Chosen, not measured.
inline constexpr double kNearlyAll = 0.9;
/// Fewer cases than this prove nothing.
/// Derived for gradients that were not zeroed: one mean agrees by chance with a probability of at most 0.1.
inline constexpr std::size_t kFewestCases = 3;

// Excess: an error over what explains it

/// An error with at least this excess is evidence; half of it makes a hint. From statistics the limit is
/// higher, since they show single tensors less exactly.
/// Measured: with these two no benign pair has evidence (benchmarks/README.md).
inline constexpr double kThresholdTensors = kFew;
inline constexpr double kThresholdStatistics = kMany;

// Relative differences

/// A gradient with a larger error is noise, and so is the update that it made, for example that of the bias
/// of attention's keys, which cancels. Rounding does not explain two numbers among the arguments that differ
/// by more than this part of the larger. Chosen, not measured.
inline constexpr double kNoisy = 0.1;
/// The difference that rounding grows to in a step of training: in parts of a parameter, of its step and of
/// the gradients of a right port. A gradient whose root mean square is a smaller part of the largest than
/// that of half types is zero except for rounding.
/// Measured: up to 2e-3 in the norm of a port's gradients; half types leave 1e-2 in a gradient that is zero.
inline constexpr double kTrainedRounding = 2e-3;
inline constexpr double kTrainedRoundingHalf = 2e-2;
/// Two sizes that nothing changed agree to this part: outputs that modules hand on, the means and norms of
/// gradients, the steps of an optimizer, whatever kernel computed them. Chosen, not measured.
inline constexpr double kAlike = 1e-3;
/// Two norms of one tensor agree to this part, taken by two kernels or joined from parts. Chosen, not
/// measured: 160 roundoffs of float32.
inline constexpr double kSameNorm = 1e-5;

// Rounding

/// Types with a larger unit roundoff count as half types.
/// Derived: it is between the roundoff of float32 (6e-8) and that of float16 (5e-4).
inline constexpr double kFinestHalf = 1e-6;
/// The largest float16. Derived: (2 - 2^-10) 2^15, as IEEE 754 has it.
inline constexpr double kLargestHalf = 65504;
/// Smaller numbers are 0 in float16. Derived: half of its smallest number, 2^-24.
inline constexpr double kLeastHalf = 0x1p-25;
/// The unit roundoff of float16. Derived: it has 11 bits.
inline constexpr double kHalfRoundoff = 0x1p-11;
/// The error of products in TF32, from a few times less to a few times more: GPUs and NPUs round inputs to it
/// where they are allowed to.
/// Derived: TF32 has 11 bits. Two factors that are rounded to them, by up to 2^-11 each, change a sum of
/// products by about 2^-12, as errors and products both add up as random walks.
inline constexpr double kTf32 = 0x1p-12;
/// The error that a right kernel collects in float32. It applies to a kernel that replay computes again and
/// to one that no recorder wrote, for example a loss. It bounds a pairwise sum of 2^16 numbers (Higham,
/// section 4.2). Chosen, not measured.
inline constexpr double kRightKernel = 16 * measuring::kSingleRoundoff;
/// How many standard deviations chance explains.
/// Derived: independent errors of n elements change a norm by e / sqrt(n), as a random walk; four standard
/// deviations of a normal distribution are exceeded once in 16,000.
inline constexpr double kChance = 4;
/// The common part of the elements' errors, in units of u, does not become less with their number: sums are
/// rounded with a bias by their order.
/// Measured: kernels of right runs differ by up to 3.4e-3 in the norm of bfloat16 tensors.
inline constexpr double kCommonRounding = 0.2;
/// Where elements are larger than this many times their root mean square, few of them make up the norm.
/// Derived: the largest of a million normal numbers.
inline constexpr double kLargestOfNormal = 5;
/// Numbers that are within this part of the end of a type's range may be on either side of it.
/// Derived: a few roundoffs of bfloat16, which has 8 bits.
inline constexpr double kNearTheEnd = kFew * 0x1p-8;
/// The relative size of a last bit that is flipped, as a root mean square, in units of u.
/// Derived: it is 2 u / m for a number with the significand m from 1 to 2, which makes 1.41 where m is spread
/// evenly and 1.47 where its logarithm is; this value is between the two.
inline constexpr double kFlippedBit = 1.44;

// Arguments and masks

/// A number that takes no more digits than this to write was written by a person, and not computed.
/// Derived: there are 1.5 x 10^16 doubles from 1 to 10, and 9 x 10^5 decimals of six digits: a computed
/// number is one of these once in 10^10.
inline constexpr int kWrittenDigits = 6;
/// Negative numbers of this size or larger are a mask, beside which a norm shows nothing else.
/// Derived: where float16, which ends at 65504, must hold masks, they are -1e4; elsewhere -1e9 or the lowest
/// number.
inline constexpr double kMask = 1e4;

// Gradients that were not zeroed

/// The finding is certain if the probability that all of them agree by chance is no larger than this. Chosen,
/// not measured.
inline constexpr double kChanceOfCertain = 1e-6;

/// Whether u is the roundoff of a half type.
constexpr bool is_half(double u) {
  return u > kFinestHalf;
}

/// The difference that rounding grows to in a few steps of training, in parts of a parameter with the
/// roundoff u.
constexpr double trained_rounding(double u) {
  return is_half(u) ? kTrainedRoundingHalf : kTrainedRounding;
}

}  // namespace msprobe::diagnosis

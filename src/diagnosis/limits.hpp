// SPDX-License-Identifier: Apache-2.0
// The numbers by which the diagnosis tells a fault from rounding, noise and drift (docs/how-it-decides.md),
// grouped by the evidence that they belong to. Each says what it bounds, and whether it follows from error
// analysis (`Derived`), from runs (`Measured`), or was chosen without a measurement on record (`Chosen`).
//
// All of them together: none of the 199 benign pairs of benchmarks/diagnosis has evidence on a CPU, two of
// 20 have between a CPU and a GPU (benchmarks/README.md). That supports no single one of them.
//
// u is a unit roundoff: k operations are off by k u at most, and by the root of k times u where their errors
// are independent, which makes them a random walk (N. J. Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd edition, lemma 3.1 and section 2.8).
#pragma once

#include <cstddef>
#include <cstdint>

#include "measuring/measures.hpp"

namespace msprobe::diagnosis {

// Excess: an error over what explains it

/// An error with at least this excess is evidence. From statistics the limit is higher, since they show
/// single tensors less exactly.
/// Measured: with these two no benign pair has evidence (benchmarks/README.md).
inline constexpr double kThresholdTensors = 4;
inline constexpr double kThresholdStatistics = 10;
/// An error with at least this excess is reported as a hint. Chosen, not measured.
inline constexpr double kHint = 3;
/// A source is certain if its excess reaches this many thresholds. Chosen, not measured.
inline constexpr double kCertain = 10;
/// Replay computes a call again if its excess is larger than this, well below both thresholds. Chosen, not
/// measured.
inline constexpr double kSuspect = 1.5;

// Shared by several rules

/// The margin between an estimate of what rounding explains and an error that counts. A call has an effect if
/// the error after it exceeds the error before it this many times; a tensor that is handed on may have this
/// many times the error that its producer gave it, because the consumer may measure it in another type; a
/// norm or a setting is another one, and a decision was not flipped by rounding, from this factor on.
/// Statistics that do not show an error may hide this part of the largest one upstream. After an optimizer
/// step, and where parameters have drifted, evidence must reach the threshold this many times: errors of
/// parameters are not independent, so that an operation may add them up. Chosen, not measured.
inline constexpr double kMargin = 2;
/// A few: how many roundings explain the error of a value that unrecorded operations made (data, a parameter
/// before the first step, a number among the arguments, the operations inside a module), how many times
/// larger an error must be to belong to another parameter, or to be the worse one of two replays, and the
/// divisor of the coarsest rounding and of updates by signs that statistics may hide. Four roundings are two
/// units in the last place. Chosen, not measured.
inline constexpr double kFew = 4;
/// Half of something: of the tensors (another type is a setting of the run), of the modules or calls (two
/// code bases), of a tensor or a step (the rest is noise). Chosen, not measured. In automatic casting about
/// half of the tensors have another type. In 900 pairs of one program and its changes all modules and at
/// least 0.63 of the calls are common; in a port, none of the modules and a fifth of the calls.
inline constexpr double kHalf = 0.5;
/// All but a few of something: of the products (automatic casting), of the calls (one code base). Chosen, not
/// measured.
inline constexpr double kNearlyAll = 0.9;
/// Two sizes that nothing changed agree to this part: outputs that modules hand on, the means and norms of
/// gradients, the steps of an optimizer, whatever kernel computed them. Chosen, not measured.
inline constexpr double kAlike = 1e-3;
/// Fewer cases than this prove nothing.
/// Derived for gradients that were not zeroed: one mean agrees by chance with a probability of at most 0.1.
inline constexpr std::size_t kFewestCases = 3;

// Rounding of any operation

/// Types with a larger unit roundoff count as half types.
/// Derived: it is between the roundoff of float32 (6e-8) and that of float16 (5e-4).
inline constexpr double kFinestHalf = 1e-6;
/// The largest float16. Derived: (2 - 2^-10) 2^15, as IEEE 754 has it.
inline constexpr double kLargestHalf = 65504;
/// Smaller numbers are 0 in float16. Derived: half of its smallest number, 2^-24.
inline constexpr double kLeastHalf = 0x1p-25;
/// The unit roundoff of float16. Derived: it has 11 bits.
inline constexpr double kHalfRoundoff = 0x1p-11;
/// The error that a right kernel collects in float32. It applies to a kernel that replay computes again and
/// to one that no recorder wrote, for example a loss. It bounds a pairwise sum of 2^16 numbers (Higham,
/// section 4.2). Chosen, not measured.
inline constexpr double kRightKernel = 16 * measuring::kSingleRoundoff;
/// The roundoff of fused recurrent kernels of GPUs is this many times larger, because they approximate the
/// functions within.
/// Measured: errors up to 7.3e-6 in float32, which is 122 u.
inline constexpr double kRecurrentRoundings = 128;
/// How many standard deviations chance explains.
/// Derived: independent errors of n elements change a norm by e / sqrt(n), as a random walk; four standard
/// deviations of a normal distribution are exceeded once in 16,000.
inline constexpr double kChance = 4;

// Structure: calls with other arguments

/// A shape that differs may explain an error up to this many calls later. Chosen, not measured: views and
/// elementwise calls come before the call that combines it with another tensor.
inline constexpr unsigned kMostBehindRearranged = 4;
/// A pair of types is also a setting of the run, automatic casting, if nearly all outputs of matrix products
/// and convolutions have it of which one side at least is a half type, if these are half of all such outputs,
/// and if there are at least this many outputs. Chosen, not measured: automatic casting casts all of them,
/// except where the code turns it off.
inline constexpr std::uint64_t kFewestProducts = 4;
/// Rounding does not explain two numbers among the arguments that differ by more than this part of the
/// larger, however large errors are. Chosen, not measured.
inline constexpr double kMostScalarRounding = 0.1;
/// A number that takes no more digits than this to write was written by a person, and not computed.
/// Derived: there are 1.5 x 10^16 doubles from 1 to 10, and 9 x 10^5 decimals of six digits: a computed
/// number is one of these once in 10^10.
inline constexpr int kWrittenDigits = 6;

// Source: what is wrong before an entry computes

/// In half types, the norm of an output that a module hands on may differ by u, the rounding of one element,
/// divided by this. Chosen, not measured.
inline constexpr double kRoundedOfHandedOn = 8;
/// A gradient that arrives may already have been rounded to a half type once. That explains an error of its
/// u, divided by this. Chosen, not measured.
inline constexpr double kOnset = 2;
/// A gradient's error counts up to this limit for the output of an optimizer. A gradient that cancels may be
/// noise alone, many times larger than golden's. Chosen, not measured.
inline constexpr double kMostGradientError = 100;

/// A limit for the root mean square of a gradient, divided by the largest one that the optimizer takes there.
/// A gradient that differs and is below it is one that is zero except for rounding. Chosen, not measured:
/// half types leave 1e-2.
inline constexpr double kNoiseShare = 2e-2;

// Source: parameters after an update

/// The difference that rounding grows to in a step of training, in parts of a parameter. Runs whose
/// parameters have a larger median difference have drifted apart. Chosen, not measured.
inline constexpr double kTrainedRounding = 2e-3;
inline constexpr double kTrainedRoundingHalf = 2e-2;
/// The part of a step that noise explains in the difference of a parameter, where the step is most of the
/// parameter's value, for example after zeros. An element whose step has the other sign is off by twice the
/// step. The limits allow that for all elements of a vector, and for one in 64 of a matrix. Chosen, not
/// measured.
inline constexpr double kFlippedStepsOfVector = 2.5;
inline constexpr double kFlippedStepsOfMatrix = 0.25;
/// A gradient with a larger error than this is noise, and so is the update that it made. Chosen, not
/// measured.
inline constexpr double kNoisyGradient = 0.05;
/// From statistics, a parameter that moved on one side only was not updated on the other. It moved if it
/// changed by more than the rounding of this many of its elements. Chosen, not measured.
inline constexpr double kRoundedElements = 32;
/// Its change must also be larger than this part of it: 17 roundoffs of float32. Chosen, not measured.
inline constexpr double kLeastStep = 1e-6;

// Source: the optimizer, by the steps of all parameters

/// From statistics, noise explains this part of a step. Chosen, not measured.
inline constexpr double kSettingByStatistics = 0.01;
/// Noise also explains this many times the median absolute deviation, divided by the root of the number of
/// factors.
/// Derived: a standard error of the median of normal numbers is 1.4826 x 1.2533 = 1.86 of these: six are 3.2.
inline constexpr double kScattersByStatistics = 6;
/// With fewer factors than this, the optimizer is not judged from statistics. Chosen, not measured.
inline constexpr std::size_t kFewestRatios = 8;
/// A statistic that moved by no more roundoffs than this gives no factor. Chosen, not measured.
inline constexpr double kMovedRoundings = 8;

// Source: gradients that were not zeroed

/// A mean counts only if what is left over exceeds the error of the recorded means this many times. Chosen,
/// not measured.
inline constexpr double kClearMean = 10;
/// At least this part of the gradients whose means differ clearly agrees; the rest may be too small to show
/// it. Chosen, not measured.
inline constexpr double kAgreeingPart = 0.8;
/// The finding is certain if the probability that all of them agree by chance is no larger than this. Chosen,
/// not measured.
inline constexpr double kChanceOfCertain = 1e-6;

// Introduced: the error of an output against those of the inputs

/// An operation may multiply the errors of its inputs by at most this factor, whatever the magnitudes.
/// Chosen, not measured.
inline constexpr double kMostAmplification = 1000;
/// A square doubles the relative error.
/// Derived: (x + dx)^2 = x^2 (1 + 2 dx / x + ...).
inline constexpr double kSquareAmplification = 2;
/// An exponential multiplies the relative error by the size of its argument, as d exp(x) / exp(x) = x (dx /
/// x), and by this at most. Chosen, not measured.
inline constexpr double kMostExponent = 64;
/// Negative numbers of this size or larger are a mask, beside which a norm shows nothing else.
/// Derived: where float16, which ends at 65504, must hold masks, they are -1e4; elsewhere -1e9 or the lowest
/// number.
inline constexpr double kMask = 1e4;
/// The range of the errors of products in TF32: GPUs and NPUs round inputs to it where they are allowed to.
/// Derived: TF32 has 11 bits. Two factors that are rounded to them, by up to 2^-11 each, change a sum of
/// products by about 2^-12, as errors and products both add up as random walks. Errors from 8 times less to 4
/// times more count.
inline constexpr double kLeastTf32 = 0x1p-15;
inline constexpr double kMostTf32 = 0x1p-10;
/// An output may be named as TF32's if its error is at least this many times that of its inputs. Chosen, not
/// measured.
inline constexpr double kGrownByTf32 = 16;

// Gain: a common factor, which norms show

/// A norm reaches the threshold if it differs by this many times what chance and rounding explain, which is
/// ten standard deviations. Chosen, not measured.
inline constexpr double kGain = 2.5;
/// A tensor with fewer elements is not judged by its norm.
/// Derived: a norm differs by e at most, and kGain x kChance / sqrt(n) of e are needed for evidence, which
/// takes 100 elements; fewer make no more than hints.
inline constexpr double kFewestForGain = 64;
/// Rounding to float32 changes a norm by up to four roundoffs. Chosen, not measured.
inline constexpr double kNormRounding = 2.4e-7;
/// The common part of the elements' errors, in units of u, does not become less with their number: sums are
/// rounded with a bias by their order.
/// Measured: kernels of right runs differ by up to 3.4e-3 in the norm of bfloat16 tensors.
inline constexpr double kCommonRounding = 0.2;
/// Where elements are larger than this many times their root mean square, few of them make up the norm.
/// Derived: the largest of a million normal numbers.
inline constexpr double kLargestOfNormal = 5;

// Replay: an operation computed again in float64

/// How many roundings of the output's type, the last one included, a right kernel may make. Chosen, not
/// measured.
inline constexpr double kReplayRoundings = 3;
/// Numbers that are within this part of the end of a type's range may be on either side of it: four roundoffs
/// of bfloat16. Chosen, not measured.
inline constexpr double kNearTheEnd = 0x1p-6;

// Two code bases

/// The outputs of a right port may be off by this many roundoffs of float32, because all of its operations
/// are others. Measured: up to 2e-6 in three layers.
inline constexpr double kRoundingsOfPort = 64;
/// If a side has too few modules, the calls alone decide, provided that there are at least this many calls.
/// Chosen, not measured.
inline constexpr std::size_t kFewestCalls = 16;
/// Two runs are also two code bases if this part of the paired calls takes parameters of other sizes where
/// some are joined. Chosen, not measured.
inline constexpr double kOtherParameters = 0.25;
/// A side with this many times the calls of the other is another code base. Chosen, not measured.
inline constexpr std::size_t kCallsForOne = 10;
/// The norm of the gradients of all parameters together may differ by this in a right port. Measured: up to
/// 2e-3 in bfloat16.
inline constexpr double kMostOfGradients = 5e-3;
/// The gradient of a tensor inside the model is equal in a right port up to this error. It is another
/// gradient if its error is kOtherGradient times larger. Chosen, not measured.
inline constexpr double kGradientOfPort = 2e-4;
inline constexpr double kGradientOfPortHalf = 0.03;
inline constexpr double kOtherGradient = 5;

// Drift: parameters that differ before the first recorded step

/// A gradient with a larger error is noise, for example that of the bias of attention's keys, which cancels.
/// That holds for any vector, and for a matrix if its error is also kAboveOtherGradients times the median
/// error of all gradients. Both chosen, not measured.
inline constexpr double kNoisyGradientBefore = 0.1;
inline constexpr double kAboveOtherGradients = 20;
/// A parameter stands out if its error is more than this many times the median of all that differ. Chosen,
/// not measured.
inline constexpr double kAboveMedian = 50;
/// The limit like kAboveMedian for a parameter that noise moved, or for a vector that began as zeros or ones.
/// Chosen, not measured.
inline constexpr double kAboveMedianOfNoise = 1000;

// Noise: results of free_benchmark

/// The relative size of a last bit that is flipped, as a root mean square, in units of u.
/// Derived: it is 2 u / m for a number with the significand m from 1 to 2, which makes 1.41 where m is spread
/// evenly and 1.47 where its logarithm is; this value is between the two.
inline constexpr double kFlippedBit = 1.44;

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

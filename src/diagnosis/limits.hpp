// SPDX-License-Identifier: Apache-2.0
// The numbers by which the diagnosis tells a fault from rounding, noise and drift (docs/how-it-decides.md),
// grouped by the evidence that they belong to. Each says what it bounds, and whether it follows from error
// analysis (`Derived`), from runs (`Measured`), or was chosen without a measurement on record (`Chosen`).
//
// All of them together: none of the 199 benign pairs of benchmarks/diagnosis has evidence on a CPU, two of
// 20 have between a CPU and a GPU (docs/how-it-decides.md, "How it was tested"). That supports no single one
// of them.
//
// u is a unit roundoff: k operations are off by k u at most, and by the root of k times u where their errors
// are independent, which makes them a random walk (N. J. Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd edition, lemma 3.1 and section 2.8).
#pragma once

#include <cstddef>
#include <cstdint>

#include "diagnosis/imports.hpp"
#include "measuring/measures.hpp"

namespace msprobe::diagnosis {

// Excess: an error over what explains it

/// From here on it is evidence. Statistics show single tensors worse.
/// Measured: with these two no benign pair has evidence (docs/how-it-decides.md, "How it was tested").
inline constexpr double kThresholdTensors = 4;
inline constexpr double kThresholdStatistics = 10;
/// From here on it is shown, as a hint. Chosen, not measured.
inline constexpr double kHint = 3;
/// A source is certain from so many thresholds on. Chosen, not measured.
inline constexpr double kCertain = 10;
/// A suspect is computed again from here on, well below both thresholds. Chosen, not measured.
inline constexpr double kSuspect = 1.5;
/// Evidence by the values of a tensor needs so many thresholds behind an update, or where parameters have
/// drifted: their errors are not independent of each other, so that an operation may add them up. Chosen,
/// not measured.
inline constexpr double kTogether = 2;
/// Where runs have drifted, an error ahead as large as this leaves nothing to judge by size: half of the
/// tensor is noise. Chosen, not measured.
inline constexpr double kLost = 0.5;

// Rounding of any operation

/// Types with a larger unit roundoff count as half types.
/// Derived: it lies between that of float32 (6e-8) and that of float16 (5e-4).
inline constexpr double kFinestHalf = 1e-6;
/// Roundings of a value that a few unrecorded operations made: data in float32, a parameter before the first
/// step, a number among the arguments, what a module adds to its recorded operations. Four of them are two
/// units in the last place. Chosen, not measured.
inline constexpr double kUnrecordedRoundings = 4;
/// The largest float16. Derived: (2 - 2^-10) 2^15, as IEEE 754 has it.
inline constexpr double kLargestHalf = 65504;
/// What a right kernel collects in float32: one that is computed again, or that nobody recorded, as of a
/// loss. A pairwise sum of 2^16 numbers is bounded by it (Higham, section 4.2). Chosen, not measured.
inline constexpr double kRightKernel = 16 * kSingleRoundoff;
/// Fused recurrent kernels of GPUs approximate the functions within: their roundoff is so many times larger.
/// Measured: errors up to 7.3e-6 in float32, which is 122 u.
inline constexpr double kRecurrentRoundings = 128;
/// Standard deviations that chance explains.
/// Derived: independent errors of n elements change a norm by e / sqrt(n), as a random walk; four standard
/// deviations of a normal distribution are exceeded once in 16,000.
inline constexpr double kChance = 4;

// Structure: calls with other arguments

/// An argument has an effect where the error that comes out, or that of a gradient, is larger than that
/// ahead by this factor. Chosen, not measured.
inline constexpr double kEffect = 2;
/// A shape that differs may be why an error arises so many calls behind. Chosen, not measured: views and
/// elementwise calls come before what combines it with another tensor.
inline constexpr unsigned kMostBehindRearranged = 4;
/// From this part of the pairs of floating tensors on, a pair of types that differ is a setting of the run.
/// Chosen, not measured: the casts of one module are far fewer, and automatic casting leaves about half.
inline constexpr double kMostInOtherDtype = 0.5;
/// And this part of what products of matrices put out, of at least so many of them, is automatic casting.
/// Chosen, not measured: it casts all of them, but where the code turns it off.
inline constexpr double kMostProductsInOtherDtype = 0.9;
inline constexpr std::uint64_t kFewestProducts = 4;
/// Two numbers among the arguments that differ by more, in parts of the larger, differ by no rounding,
/// however large errors are. Chosen, not measured.
inline constexpr double kMostScalarRounding = 0.1;
/// A number that so many digits are enough to write was written by a person, and not computed.
/// Derived: there are 1.5 x 10^16 doubles from 1 to 10, and 9 x 10^5 decimals of six digits: a computed
/// number is one of these once in 10^10.
inline constexpr int kWrittenDigits = 6;

// Source: what is wrong before an entry computes

/// What is handed on has the error that it had where it was made, and no more. So many times that error and
/// u are explained: the consumer's may be measured in another type. Chosen, not measured.
inline constexpr double kHandedOn = 2;
/// What modules hand on is equal up to this error at most, however large those ahead of it are. Chosen, not
/// measured.
inline constexpr double kMostOfEqual = 1e-3;
/// Of half types, statistics of what a module hands on show this part of the rounding of one element. Chosen,
/// not measured.
inline constexpr double kRoundedOfHandedOn = 8;
/// Two parameters of equal content are one, unless the error is so many times larger at the second. Chosen,
/// not measured.
inline constexpr double kSameParameter = 4;
/// A gradient may arrive with the first rounding to a half type behind it: its u, divided by this. Chosen,
/// not measured.
inline constexpr double kOnset = 2;
/// The largest error of a gradient that counts for what an optimizer makes of it. A gradient that cancels may
/// be noise alone, many times larger than golden's. Chosen, not measured.
inline constexpr double kMostGradientError = 100;

/// The root mean square of what an optimizer takes, over the largest that it takes there: below it, a
/// gradient that differs is one that is zero but for rounding. Chosen, not measured: half types leave 1e-2.
inline constexpr double kNoiseShare = 2e-2;

// Source: parameters after an update

/// What a step makes of rounding, in parts of a parameter; runs whose parameters differ by more at the
/// median have drifted apart. Chosen, not measured.
inline constexpr double kTrainedRounding = 2e-3;
inline constexpr double kTrainedRoundingHalf = 2e-2;
/// Of a step: what noise explains of the difference of a parameter where the step is most of its value, as
/// after zeros. An element whose step has the other sign is off by twice the step: that of all elements of a
/// vector, and of one in 64 of a matrix. Chosen, not measured.
inline constexpr double kFlippedStepsOfVector = 2.5;
inline constexpr double kFlippedStepsOfMatrix = 0.25;
/// Where gradients are of half types. Measured: eager against fused attention of two transformers, hidden
/// 256, four layers, Adam: the second step of single matrices differed by half of it.
inline constexpr double kFlippedStepsOfMatrixHalf = 0.5;
/// Where an update goes by signs, as Adam's first ones, elements whose gradient is noise are off by twice
/// the step, which statistics do not show: the whole by twice the step times the root of the gradient's
/// error, if gradients spread evenly around zero. The factor stands for these two.
/// Measured: in right pairs of hidden size 64 to 512 a hundredth of that was seen.
inline constexpr double kFlippedSigns = 0.5;
/// A gradient with a larger error is noise, and so is the update that it made. Chosen, not measured.
inline constexpr double kNoisyGradient = 0.05;
/// From tensors: the step of one parameter that is longer or shorter than golden's by such a part is another
/// step, which reaches the threshold there. Chosen, not measured.
inline constexpr double kOtherStep = 0.5;
/// Parameters whose error is smaller had no step to be judged, but rounding: 17 roundoffs of float32.
/// Chosen, not measured.
inline constexpr double kLeastErrorOfStep = 1e-6;
/// The norm of a parameter has shifted from so many times on what chance and rounding explain. Chosen, not
/// measured.
inline constexpr double kShifted = 2;
/// What rounding a parameter to a half type adds to its norm, in parts of u. Chosen, not measured.
inline constexpr double kShiftOfHalf = 0.5;
/// From statistics, a parameter that moved on one side only was not updated on the other. It moved if by more
/// than the rounding of so many of its elements. Chosen, not measured.
inline constexpr double kRoundedElements = 32;
/// And by more than this part of it: 17 roundoffs of float32. Chosen, not measured.
inline constexpr double kLeastStep = 1e-6;
/// And by more than so many times what its norm does not show. Chosen, not measured.
inline constexpr double kHiddenSteps = 4;

// Source: the optimizer, by the steps of all parameters

/// The median of all factors deviates from 1 by so many times what noise explains: a wrong setting. Chosen,
/// not measured.
inline constexpr double kWrongSetting = 2;
/// Two steps are one step and noise where the cosine between them is larger. Chosen, not measured.
inline constexpr double kAlikeSteps = 0.5;
/// From tensors, noise explains this part of a step. Chosen, not measured.
inline constexpr double kSettingByTensors = 1e-3;
/// And so many standard deviations of the factor. Derived: as kChance.
inline constexpr double kScattersByTensors = 4;
/// From statistics, it explains this part. Chosen, not measured.
inline constexpr double kSettingByStatistics = 0.01;
/// And so many times the median absolute deviation over the root of the number of factors.
/// Derived: a standard error of the median of normal numbers is 1.4826 x 1.2533 = 1.86 of these: six are
/// 3.2.
inline constexpr double kScattersByStatistics = 6;
/// With fewer factors, nothing is said. Chosen, not measured.
inline constexpr std::size_t kFewestRatios = 8;
/// A statistic that moved by no more roundoffs gives no factor. Chosen, not measured.
inline constexpr double kMovedRoundings = 8;

// Source: gradients that were not zeroed

/// The means agree to this part of what is left over, and to what the recorded means are off by. Chosen, not
/// measured.
inline constexpr double kAgreementOfMeans = 1e-3;
/// What is left over exceeds what the recorded means are off by so many times. Chosen, not measured.
inline constexpr double kClearMean = 10;
/// So many parameters agree at least.
/// Derived: each does by chance with the probability of that allowance over what is left over, at most 0.1.
inline constexpr std::size_t kFewestAgreeing = 3;
/// And this part of the gradients whose means differ clearly; the rest may be too small to show it. Chosen,
/// not measured.
inline constexpr double kAgreeingPart = 0.8;
/// Certain, if all that agree do so by chance no more often than this. Chosen, not measured.
inline constexpr double kChanceOfCertain = 1e-6;

// Introduced: the error of an output against those of the inputs

/// An error of the input that statistics do not show is at least the largest seen so far, divided by this.
/// Chosen, not measured.
inline constexpr double kSeenElsewhere = 2;
/// That of updates by signs, divided by this. Chosen, not measured.
inline constexpr double kUpdatedElsewhere = 4;
/// And the roundoff of the coarsest type so far, divided by this. Chosen, not measured.
inline constexpr double kRoundedElsewhere = 4;
/// By so much an operation may multiply the errors that it gets, whatever the magnitudes. Chosen, not
/// measured.
inline constexpr double kMostAmplification = 1000;
/// A square doubles the relative error.
/// Derived: (x + dx)^2 = x^2 (1 + 2 dx / x + ...).
inline constexpr double kSquareAmplification = 2;
/// An exponential multiplies it by the size of its argument, as d exp(x) / exp(x) = x (dx / x), and by this
/// at most. Chosen, not measured.
inline constexpr double kMostExponent = 64;
/// So large negative numbers are a mask, beside which a norm shows nothing else.
/// Derived: where float16, which ends at 65504, must hold masks, they are -1e4; elsewhere -1e9 or the lowest
/// number.
inline constexpr double kMask = 1e4;
/// A decision may have flipped by rounding where the error of its inputs is no more than so many times the
/// largest so far. Chosen, not measured.
inline constexpr double kInputsOfDecision = 2;
/// The errors of products in TF32, which GPUs and NPUs round inputs to where they are allowed to.
/// Derived: it has 11 bits. Two factors that are rounded to them, by up to 2^-11 each, make about 2^-12 of a
/// sum of products, as errors and products both add up as random walks; 8 times less and 4 times more count.
inline constexpr double kLeastTf32 = 0x1p-15;
inline constexpr double kMostTf32 = 0x1p-10;
/// An output whose error is so many times that of its inputs may be named as TF32's. Chosen, not measured.
inline constexpr double kGrownByTf32 = 16;

// Gain: a common factor, which norms show

/// The norm differs by so many times what chance and rounding explain: that is the threshold, and ten
/// standard deviations. Chosen, not measured.
inline constexpr double kGain = 2.5;
/// With fewer elements nothing is said.
/// Derived: a norm differs by e at most, and kGain x kChance / sqrt(n) of e are needed for evidence, which
/// takes 100 elements; fewer make no more than hints.
inline constexpr double kFewestForGain = 64;
/// What rounding to float32 makes of a norm: four roundoffs. Chosen, not measured.
inline constexpr double kNormRounding = 2.4e-7;
/// What the elements' errors have in common, in parts of u, does not become less with their number: sums are
/// rounded with a bias by their order.
/// Measured: kernels of right runs differ by up to 3.4e-3 in the norm of bfloat16 tensors.
inline constexpr double kCommonRounding = 0.2;
/// Where elements are larger than this, in parts of their root mean square, few of them make up the norm.
/// Derived: the largest of a million normal numbers.
inline constexpr double kLargestOfNormal = 5;

// Replay: an operation computed again in float64

/// Roundings of the output's type, one of which is the last, that a right kernel may make. Chosen, not
/// measured.
inline constexpr double kReplayRoundings = 3;
/// One side's output is wrong where it is off by so many times more than the other's. Chosen, not measured.
inline constexpr double kClearlyWorse = 4;
/// Numbers that differ by no more from the end of a type's range may be on either side of it: four roundoffs
/// of bfloat16. Chosen, not measured.
inline constexpr double kNearTheEnd = 0x1p-6;
/// A quotient so near to a whole number may be rounded to either side: 16 roundoffs of float32, or so many
/// of the output's type. Chosen, not measured.
inline constexpr double kNearWhole = 0x1p-20;
inline constexpr double kNearWholeRoundings = 2;

// Two code bases

/// Roundoffs of float32 that the outputs of a right port may be off by: its operations are others all the
/// way. Measured: up to 2e-6 in three layers.
inline constexpr double kRoundingsOfPort = 64;
/// Fewer of the modules with parameters have a common path, and fewer of the calls the same operation, where
/// two code bases are compared. Measured: in 900 pairs of one program and its changes all modules have, and
/// at least 0.63 of the calls; of a port none of the modules and a fifth of the calls.
inline constexpr double kMostCommonModules = 0.5;
inline constexpr double kMostCommonCalls = 0.9;
/// With fewer modules on a side the calls alone tell, if there are enough. Both chosen, not measured.
inline constexpr std::size_t kFewestModules = 3;
inline constexpr double kMostCommonCallsAlone = 0.5;
inline constexpr std::size_t kFewestCalls = 16;
/// So many of the calls that pair, and this part of them, take parameters of other sizes where some are
/// joined. Chosen, not measured.
inline constexpr std::size_t kFewestOtherParameters = 3;
inline constexpr double kOtherParameters = 0.25;
/// A side that has so many times the calls of the other is another code base. Chosen, not measured.
inline constexpr std::size_t kCallsForOne = 10;
/// The gradients of all parameters together, of a right port. Measured: up to 2e-3 in bfloat16.
inline constexpr double kMostOfGradients = 5e-3;
/// That of a tensor on its way, and so many times more where it is another one. Chosen, not measured.
inline constexpr double kGradientOfPort = 2e-4;
inline constexpr double kGradientOfPortHalf = 0.03;
inline constexpr double kOtherGradient = 5;
/// Gradients of parameters whose elements are smaller, in parts of the median of all, are rounding. Chosen,
/// not measured.
inline constexpr double kLeastGradient = 1e-3;
/// Of a step behind an update, by which rounding grows. Chosen, not measured.
inline constexpr double kDriftOfStep = 2e-3;

// Drift: parameters that differ before the first recorded step

/// A gradient with a larger error is noise, as that of the bias of attention's keys, which cancels: any of a
/// vector, of a matrix if it is also so many times the median of the errors of all. Both chosen, not
/// measured.
inline constexpr double kNoisyGradientBefore = 0.1;
inline constexpr double kAboveOtherGradients = 20;
/// A parameter stands out if its error is so many times the median of all that differ. Chosen, not measured.
inline constexpr double kAboveMedian = 50;
/// And larger than what a step makes of rounding, divided by this. Chosen, not measured.
inline constexpr double kPartOfTrainedRounding = 2;
/// The same of one that noise moved, or a vector that began as zeros or ones. Chosen, not measured.
inline constexpr double kAboveMedianOfNoise = 1000;
/// And larger than this: it is off by half of itself. Chosen, not measured.
inline constexpr double kMostByNoise = 0.5;

// Noise: results of free_benchmark

/// The relative size of a last bit that is flipped, as a root mean square, in units of u.
/// Derived: it is 2 u / m of a number with the significand m from 1 to 2, which makes 1.41 where m is spread
/// evenly and 1.47 where its logarithm is; this lies between.
inline constexpr double kFlippedBit = 1.44;

/// Is it the roundoff of a half type?
constexpr bool is_half(double u) {
  return u > kFinestHalf;
}

/// What a few steps of training make of rounding, in parts of a parameter with that roundoff.
constexpr double trained_rounding(double u) {
  return is_half(u) ? kTrainedRoundingHalf : kTrainedRounding;
}

}  // namespace msprobe::diagnosis

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

/// An error with at least this excess is evidence. From statistics the limit is higher, since they show
/// single tensors less exactly.
/// Measured: with these two no benign pair has evidence (docs/how-it-decides.md, "How it was tested").
inline constexpr double kThresholdTensors = 4;
inline constexpr double kThresholdStatistics = 10;
/// An error with at least this excess is reported as a hint. Chosen, not measured.
inline constexpr double kHint = 3;
/// A source is certain if its excess reaches this many thresholds. Chosen, not measured.
inline constexpr double kCertain = 10;
/// Replay computes a call again if its excess is larger than this, well below both thresholds. Chosen, not
/// measured.
inline constexpr double kSuspect = 1.5;
/// After an optimizer step, and where parameters have drifted, value-based evidence must reach the threshold
/// this many times: the errors of parameters are not independent of each other, so that an operation may add
/// them up. Chosen, not measured.
inline constexpr double kTogether = 2;
/// Where runs have drifted apart, an earlier error in the step that is as large as this leaves nothing to
/// judge by size: half of the tensor is noise. Chosen, not measured.
inline constexpr double kLost = 0.5;

// Rounding of any operation

/// Types with a larger unit roundoff count as half types.
/// Derived: it is between the roundoff of float32 (6e-8) and that of float16 (5e-4).
inline constexpr double kFinestHalf = 1e-6;
/// How many roundings explain the error of a value that a few unrecorded operations made: data in float32, a
/// parameter before the first step, a number among the arguments, the operations of a module that are not
/// recorded. Four of them are two units in the last place. Chosen, not measured.
inline constexpr double kUnrecordedRoundings = 4;
/// The largest float16. Derived: (2 - 2^-10) 2^15, as IEEE 754 has it.
inline constexpr double kLargestHalf = 65504;
/// Smaller numbers are 0 in float16. Derived: half of its smallest number, 2^-24.
inline constexpr double kLeastHalf = 0x1p-25;
/// The unit roundoff of float16. Derived: it has 11 bits.
inline constexpr double kHalfRoundoff = 0x1p-11;
/// The error that a right kernel collects in float32. It applies to a kernel that replay computes again and
/// to one that no recorder wrote, for example a loss. It bounds a pairwise sum of 2^16 numbers (Higham,
/// section 4.2). Chosen, not measured.
inline constexpr double kRightKernel = 16 * kSingleRoundoff;
/// The roundoff of fused recurrent kernels of GPUs is this many times larger, because they approximate the
/// functions within.
/// Measured: errors up to 7.3e-6 in float32, which is 122 u.
inline constexpr double kRecurrentRoundings = 128;
/// How many standard deviations chance explains.
/// Derived: independent errors of n elements change a norm by e / sqrt(n), as a random walk; four standard
/// deviations of a normal distribution are exceeded once in 16,000.
inline constexpr double kChance = 4;

// Structure: calls with other arguments

/// An argument has an effect where the output error, or the error of a gradient, is larger than the error
/// before it by this factor. Chosen, not measured.
inline constexpr double kEffect = 2;
/// A shape that differs may explain an error up to this many calls later. Chosen, not measured: views and
/// elementwise calls come before the call that combines it with another tensor.
inline constexpr unsigned kMostBehindRearranged = 4;
/// If at least this part of the pairs of floating tensors has the same pair of different types, that is a
/// setting of the run. Chosen, not measured: the casts of one module are far fewer, and automatic casting
/// leaves about half.
inline constexpr double kMostInOtherDtype = 0.5;
/// A pair of types is also a setting of the run, automatic casting, if at least this part of those outputs of
/// matrix products and convolutions has it of which one side at least is a half type, if these are
/// kMostInOtherDtype of all such outputs, and if there are at least kFewestProducts of them. Chosen, not
/// measured: automatic casting casts all of them, except where the code turns it off.
inline constexpr double kMostProductsInOtherDtype = 0.9;
inline constexpr std::uint64_t kFewestProducts = 4;
/// Rounding does not explain two numbers among the arguments that differ by more than this part of the
/// larger, however large errors are. Chosen, not measured.
inline constexpr double kMostScalarRounding = 0.1;
/// A number that takes no more digits than this to write was written by a person, and not computed.
/// Derived: there are 1.5 x 10^16 doubles from 1 to 10, and 9 x 10^5 decimals of six digits: a computed
/// number is one of these once in 10^10.
inline constexpr int kWrittenDigits = 6;

// Source: what is wrong before an entry computes

/// A tensor that is handed on has the error that its producer gave it, and no more. This many times that
/// error and u are explained, because the consumer's error may be measured in another type. Chosen, not
/// measured.
inline constexpr double kHandedOn = 2;
/// Outputs that modules hand on count as equal up to this error at most, however large the errors before them
/// are. Chosen, not measured.
inline constexpr double kMostOfEqual = 1e-3;
/// In half types, the norm of an output that a module hands on may differ by u, the rounding of one element,
/// divided by this. Chosen, not measured.
inline constexpr double kRoundedOfHandedOn = 8;
/// Two parameters of equal content are one parameter, unless the second has an error this many times larger.
/// Chosen, not measured.
inline constexpr double kSameParameter = 4;
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
/// The same limit where gradients are of half types. Measured: with eager and with fused attention of two
/// transformers (hidden 256, four layers, Adam), the second step of single matrices differed by half of the
/// step.
inline constexpr double kFlippedStepsOfMatrixHalf = 0.5;
/// Where an update follows the signs of gradients, as Adam's first updates do, elements whose gradient is
/// noise are off by twice the step, which statistics do not show. The whole parameter is then off by twice
/// the step times the root of the gradient's error, if gradients spread evenly around zero. The factor stands
/// for these two.
/// Measured: right pairs of hidden size 64 to 512 had a hundredth of that.
inline constexpr double kFlippedSigns = 0.5;
/// A gradient with a larger error than this is noise, and so is the update that it made. Chosen, not
/// measured.
inline constexpr double kNoisyGradient = 0.05;
/// From tensors: a step of one parameter that is longer or shorter than golden's by this part is another
/// step; its excess reaches the threshold. Chosen, not measured.
inline constexpr double kOtherStep = 0.5;
/// A parameter with a smaller error shows nothing but rounding, so that its step is not judged: 17 roundoffs
/// of float32. Chosen, not measured.
inline constexpr double kLeastErrorOfStep = 1e-6;
/// The norm of a parameter has shifted if it differs by at least this many times what chance and rounding
/// explain. Chosen, not measured.
inline constexpr double kShifted = 2;
/// Rounding a parameter to a half type changes its norm by this many u. Chosen, not measured.
inline constexpr double kShiftOfHalf = 0.5;
/// From statistics, a parameter that moved on one side only was not updated on the other. It moved if it
/// changed by more than the rounding of this many of its elements. Chosen, not measured.
inline constexpr double kRoundedElements = 32;
/// Its change must also be larger than this part of it: 17 roundoffs of float32. Chosen, not measured.
inline constexpr double kLeastStep = 1e-6;
/// Its change must also be larger than this many times what its norm does not show. Chosen, not measured.
inline constexpr double kHiddenSteps = 4;

// Source: the optimizer, by the steps of all parameters

/// A setting is wrong if the median of all factors deviates from 1 by at least this many times what noise
/// explains. Chosen, not measured.
inline constexpr double kWrongSetting = 2;
/// Two steps count as the same step plus noise where the cosine between them is larger than this. Chosen, not
/// measured.
inline constexpr double kAlikeSteps = 0.5;
/// From tensors, noise explains this part of a step. Chosen, not measured.
inline constexpr double kSettingByTensors = 1e-3;
/// Noise also explains this many standard deviations of the factor. Derived: as kChance.
inline constexpr double kScattersByTensors = 4;
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

/// The means agree if they differ by no more than this part of what is left over, plus the error of the
/// recorded means. Chosen, not measured.
inline constexpr double kAgreementOfMeans = 1e-3;
/// A mean counts only if what is left over exceeds the error of the recorded means this many times. Chosen,
/// not measured.
inline constexpr double kClearMean = 10;
/// At least this many parameters agree.
/// Derived: one parameter agrees by chance with the probability of that allowance divided by what is left
/// over, which is at most 0.1.
inline constexpr std::size_t kFewestAgreeing = 3;
/// At least this part of the gradients whose means differ clearly agrees; the rest may be too small to show
/// it. Chosen, not measured.
inline constexpr double kAgreeingPart = 0.8;
/// The finding is certain if the probability that all of them agree by chance is no larger than this. Chosen,
/// not measured.
inline constexpr double kChanceOfCertain = 1e-6;

// Introduced: the error of an output against those of the inputs

/// Statistics may not show an error of the input. It is taken to be at least the largest error upstream of
/// it, divided by this. Chosen, not measured.
inline constexpr double kSeenElsewhere = 2;
/// It is also at least the largest error of updates that follow signs, divided by this. Chosen, not measured.
inline constexpr double kUpdatedElsewhere = 4;
/// It is also at least the roundoff of the coarsest type so far, divided by this. Chosen, not measured.
inline constexpr double kRoundedElsewhere = 4;
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
/// Rounding may have flipped a decision if the error of its inputs is at most this many times the largest
/// error so far. Chosen, not measured.
inline constexpr double kInputsOfDecision = 2;
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
/// One side's output is wrong if its error is at least this many times that of the other side. Chosen, not
/// measured.
inline constexpr double kClearlyWorse = 4;
/// Numbers that are within this part of the end of a type's range may be on either side of it: four roundoffs
/// of bfloat16. Chosen, not measured.
inline constexpr double kNearTheEnd = 0x1p-6;
/// A quotient that is at most this far from a whole number may be rounded to either side: 16 roundoffs of
/// float32, or kNearWholeRoundings roundoffs of the output's type. Chosen, not measured.
inline constexpr double kNearWhole = 0x1p-20;
inline constexpr double kNearWholeRoundings = 2;

// Two code bases

/// The outputs of a right port may be off by this many roundoffs of float32, because all of its operations
/// are others. Measured: up to 2e-6 in three layers.
inline constexpr double kRoundingsOfPort = 64;
/// Two runs may be two code bases if a smaller part of the modules with parameters has a common path and a
/// smaller part of the calls has the same operation. Measured: in 900 pairs of one program and its changes,
/// all modules have a common path and at least 0.63 of the calls the same operation; in a port, none of the
/// modules and a fifth of the calls.
inline constexpr double kMostCommonModules = 0.5;
inline constexpr double kMostCommonCalls = 0.9;
/// If a side has fewer modules than this, the calls alone decide, provided that there are enough of them.
/// Both chosen, not measured.
inline constexpr std::size_t kFewestModules = 3;
inline constexpr double kMostCommonCallsAlone = 0.5;
inline constexpr std::size_t kFewestCalls = 16;
/// Two runs are also two code bases if at least this many of the paired calls, and this part of them, take
/// parameters of other sizes where some are joined. Chosen, not measured.
inline constexpr std::size_t kFewestOtherParameters = 3;
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
/// Gradients of parameters are rounding if their elements are smaller than this part of the median of all.
/// Chosen, not measured.
inline constexpr double kLeastGradient = 1e-3;
/// After an update, rounding may grow by this in a step. Chosen, not measured.
inline constexpr double kDriftOfStep = 2e-3;

// Drift: parameters that differ before the first recorded step

/// A gradient with a larger error is noise, for example that of the bias of attention's keys, which cancels.
/// That holds for any vector, and for a matrix if its error is also kAboveOtherGradients times the median
/// error of all gradients. Both chosen, not measured.
inline constexpr double kNoisyGradientBefore = 0.1;
inline constexpr double kAboveOtherGradients = 20;
/// A parameter stands out if its error is more than this many times the median of all that differ. Chosen,
/// not measured.
inline constexpr double kAboveMedian = 50;
/// Its error must also be larger than what rounding grows to in a step, divided by this. Chosen, not
/// measured.
inline constexpr double kPartOfTrainedRounding = 2;
/// The limit like kAboveMedian for a parameter that noise moved, or for a vector that began as zeros or ones.
/// Chosen, not measured.
inline constexpr double kAboveMedianOfNoise = 1000;
/// Its error must also be larger than this, which is half of its size. Chosen, not measured.
inline constexpr double kMostByNoise = 0.5;

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

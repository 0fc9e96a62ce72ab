// SPDX-License-Identifier: Apache-2.0
// Judges whether an answer of a language model is abnormal, by the model's certainty at each token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace msprobe::python {

/// The settings of ILLDetector.
struct ResponseSettings {
  std::ptrdiff_t window_size;
  std::ptrdiff_t stride;
  double rare_top;
  double garbled_top;
  double garbled_ratio;
  std::ptrdiff_t garbled_windows;
  std::ptrdiff_t gram;
  double distinct;
  double repeated_top;
  double deviation;
  double correlation;
  double harmonic;
  double correlated_top;
  std::ptrdiff_t min_period;
  std::ptrdiff_t max_period;
  double roughness;
  std::ptrdiff_t one_sign;
  std::ptrdiff_t both_signs;
};

/// The facts about one token.
struct ResponsePosition {
  double top;   // the largest logarithm of a probability
  bool unsure;  // the probabilities that are known have a small sum
  bool mixed;   // and they belong to several scripts
};

enum class Ill : int { none, rare, garbled, repeated, not_finite };

/// The numbers of positions and tokens may differ. `scripts`: the member `mixed` is known.
Ill judge_windows(const std::vector<ResponsePosition>& positions, const std::vector<std::int64_t>& tokens,
                  bool scripts, const ResponseSettings& settings);

}  // namespace msprobe::python

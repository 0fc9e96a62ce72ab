// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/step_check.hpp"

#include <span>
#include <vector>

#include "checkpoint/pieces.hpp"
#include "checkpoint/step_judge.hpp"

namespace msprobe::checkpoint {

StepCheck check_steps(const Parameter& first, const Parameter& second, const MeasureOptions& options) {
  const bool has_steps = first.half_step != nullptr || second.half_step != nullptr;
  if (!has_steps || is_complex(first.dtype) || is_complex(second.dtype)) return {};
  const auto check = [&]<typename T>(T) {
    StepFeed<T> ours(first);
    StepFeed<T> theirs(second);
    StepJudge<T> judge(first.has_searched_scales || second.has_searched_scales);
    std::vector<T> sums;
    each_piece<T>(first, second, options, [&](std::span<const T> x, std::span<const T> y, auto, auto) {
      const std::span<const T> step = ours.next(x.size());
      judge.add(x, y, summed_steps(step, theirs.next(x.size()), x.size(), sums));
    });
    return judge.result();
  };
  return tensor::work_of(first.dtype, second.dtype) == tensor::Work::single ? check(float{})
                                                                            : check(double{});
}

}  // namespace msprobe::checkpoint

// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/updates.hpp"

#include <limits>
#include <span>

#include "support/interrupt.hpp"
#include "tensor/element_feed.hpp"

namespace msprobe::diagnosis {

std::optional<Update> update_between(const StepTensors& target, const StepTensors& golden) {
  const formats::StoredTensor* const all[] = {&target.before, &target.after, &golden.before, &golden.after};
  for (const formats::StoredTensor* tensor : all) {
    if (tensor->numel() == 0 || tensor->shape != golden.after.shape ||
        tensor::info(tensor->dtype).kind != tensor::Kind::floating)
      return std::nullopt;
  }
  using Feed = tensor::ElementFeed<double, formats::ElementReader>;
  Feed target_before(target.before);
  Feed target_after(target.after);
  Feed golden_before(golden.before);
  Feed golden_after(golden.after);
  double between = 0;
  double dot = 0;
  double squares_target = 0;
  double squares_golden = 0;
  constexpr std::int64_t kPiece = 16 * 1024;
  while (golden_after.remaining() > 0) {
    check_interrupt();
    const auto count = static_cast<std::size_t>(std::min(golden_after.remaining(), kPiece));
    const std::span<const double> t0 = target_before.next(count);
    const std::span<const double> t1 = target_after.next(count);
    const std::span<const double> g0 = golden_before.next(count);
    const std::span<const double> g1 = golden_after.next(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double ours = t1[i] - t0[i];
      const double theirs = g1[i] - g0[i];
      between += (ours - theirs) * (ours - theirs);
      dot += ours * theirs;
      squares_target += ours * ours;
      squares_golden += theirs * theirs;
    }
  }
  Update update;
  update.n = static_cast<std::uint64_t>(golden.after.numel());
  if (squares_golden > 0) {
    update.e = std::sqrt(between / squares_golden);
    update.gain = dot / squares_golden;
  } else if (squares_target > 0) {
    update.e = update.gain = std::numeric_limits<double>::infinity();
  }
  return update;
}

}  // namespace msprobe::diagnosis

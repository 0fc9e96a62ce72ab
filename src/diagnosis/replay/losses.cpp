// SPDX-License-Identifier: Apache-2.0
// Losses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnosis/replay/operation.hpp"

namespace msprobe::diagnosis::replay {
namespace {

enum class Reduction : std::uint8_t { none, mean, sum };

Reduction reduction_of(Arguments& arguments) {
  // The old pair of flags, which one text has taken the place of.
  if (arguments.given("size_average") || arguments.given("reduce")) {
    if (!arguments.flag("reduce", true)) return Reduction::none;
    return arguments.flag("size_average", true) ? Reduction::mean : Reduction::sum;
  }
  const std::string_view text = arguments.text("reduction", "mean");
  if (text == "none") return Reduction::none;
  if (text == "sum") return Reduction::sum;
  if (text != "mean") refuse_argument();
  return Reduction::mean;
}

/// Losses of single elements, the sizes that they came from, and the weight that a mean divides by.
struct Losses {
  Array each;
  Array sizes;
  double weight = 0;
};

/// One loss for each element, all of one weight.
Losses each_loss(Arguments& arguments, const Shape& shape) {
  Losses losses;
  losses.each = arguments.workspace().make(shape);
  losses.sizes = arguments.workspace().make(shape);
  losses.weight = static_cast<double>(losses.each.size());
  return losses;
}

Results finish_losses(Arguments& arguments, Losses losses, Reduction reduction) {
  if (reduction == Reduction::none) {
    const double sizes = norm_of(losses.sizes.values);
    return only(std::move(losses.each), sizes);
  }
  const double divisor = reduction == Reduction::mean ? losses.weight : 1;
  Array result = arguments.workspace().make({});
  double sizes = 0;
  for (std::size_t i = 0; i < losses.each.size(); ++i) {
    result.values[0] += losses.each.values[i];
    sizes += std::isfinite(losses.sizes.values[i]) ? losses.sizes.values[i] : 0;
  }
  result.values[0] /= divisor;
  // Errors of single losses have the size of the losses; the errors of their sum have either sign.
  const double total =
      sizes + 0.5 * std::sqrt(static_cast<double>(losses.each.size())) * norm_of(losses.each.values);
  return only(std::move(result), std::isfinite(total / divisor) ? total / std::fabs(divisor) : 0);
}

// ---------------------------------------------------------------------- classes

/// Scores (N, C, d1, …) or (C), and what stands for each place.
struct Classes {
  std::size_t batch = 1;
  std::size_t count = 1;  // of classes
  std::size_t inner = 1;  // places in one item of the batch
  Shape places;           // shape of the targets

  explicit Classes(const Shape& shape) {
    if (shape.empty()) refuse_argument();
    const std::size_t axis = shape.size() == 1 ? 0 : 1;
    count = static_cast<std::size_t>(shape[axis]);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (i == axis) continue;
      (i < axis ? batch : inner) *= static_cast<std::size_t>(shape[i]);
      places.push_back(shape[i]);
    }
    if (count == 0) refuse_argument();
  }
  std::size_t at(std::size_t place, std::size_t label) const {
    return (place / inner * count + label) * inner + place % inner;
  }
};

class ClassLosses {
 public:
  /// `logs`: of probabilities. `sizes`: of what each was made of, or empty.
  ClassLosses(Arguments& arguments, const Array& logs, const std::vector<double>& sizes)
      : arguments_(arguments),
        classes_(logs.shape),
        logs_(logs),
        sizes_(sizes),
        weight_(arguments.tensor_if_given("weight")) {
    if (weight_ && weight_->shape != Shape{static_cast<std::int64_t>(classes_.count)}) refuse_argument();
    losses_.each = arguments.workspace().make(classes_.places);
    losses_.sizes = arguments.workspace().make(classes_.places);
  }

  Losses with_labels(const Array& target, double smoothing) {
    if (target.shape != classes_.places || is_floating(target.dtype)) refuse_argument();
    const auto ignored = static_cast<double>(arguments_.integer("ignore_index", -100));
    const double even = smoothing / static_cast<double>(classes_.count);
    for (std::size_t place = 0; place < target.size(); ++place) {
      const double label = target.values[place];
      if (label == ignored) continue;
      if (!(label >= 0) || label >= static_cast<double>(classes_.count)) refuse_argument();
      const auto chosen = static_cast<std::size_t>(label);
      add(place, chosen, (1 - smoothing) * weight_of(chosen));
      for (std::size_t other = 0; smoothing != 0 && other < classes_.count; ++other) {
        add(place, other, even * weight_of(other));
      }
      losses_.weight += weight_of(chosen);
    }
    return std::move(losses_);
  }

  Losses with_probabilities(const Array& target, double smoothing) {
    const double even = smoothing / static_cast<double>(classes_.count);
    for (std::size_t place = 0; place < losses_.each.size(); ++place) {
      for (std::size_t label = 0; label < classes_.count; ++label) {
        const double part = target.values[classes_.at(place, label)] * (1 - smoothing) + even;
        add(place, label, part * weight_of(label));
      }
    }
    losses_.weight = static_cast<double>(losses_.each.size());
    return std::move(losses_);
  }

 private:
  double weight_of(std::size_t label) const { return weight_ ? weight_->values[label] : 1; }

  void add(std::size_t place, std::size_t label, double factor) {
    const std::size_t at = classes_.at(place, label);
    losses_.each.values[place] -= factor * logs_.values[at];
    if (!sizes_.empty()) losses_.sizes.values[place] += std::fabs(factor) * sizes_[at];
  }

  Arguments& arguments_;
  Classes classes_;
  const Array& logs_;
  const std::vector<double>& sizes_;
  std::optional<Array> weight_;
  Losses losses_;
};

/// Scores to logarithms of probabilities; `sizes` are of the numbers that are subtracted for it.
void to_logs(const Classes& classes, Array& scores, std::vector<double>& sizes) {
  sizes.assign(scores.size(), 0);
  for (std::size_t place = 0; place < classes.batch * classes.inner; ++place) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t label = 0; label < classes.count; ++label) {
      largest = std::max(largest, scores.values[classes.at(place, label)]);
    }
    double sum = 0;
    for (std::size_t label = 0; label < classes.count; ++label) {
      sum += std::exp(scores.values[classes.at(place, label)] - largest);
    }
    const double log_sum = std::log(sum);
    for (std::size_t label = 0; label < classes.count; ++label) {
      const std::size_t at = classes.at(place, label);
      const double shifted = scores.values[at] - largest;
      scores.values[at] = shifted - log_sum;
      sizes[at] = std::fabs(shifted) + std::fabs(log_sum) + 1;
    }
  }
}

Results run_cross_entropy(Arguments& arguments) {
  Array scores = arguments.tensor("input");
  const Array target = arguments.tensor("target");
  const double smoothing = arguments.number("label_smoothing", 0);
  const Reduction reduction = reduction_of(arguments);
  const Classes classes(scores.shape);
  arguments.workspace().take(scores.size());
  std::vector<double> sizes;
  to_logs(classes, scores, sizes);
  // Half types may keep the logarithms in the type between the two steps.
  const double coarse = unit_roundoff(arguments.output(0).dtype) / 0x1p-24;
  for (double& size : sizes) size *= std::max(4.0, coarse);
  ClassLosses losses(arguments, scores, sizes);
  // Probabilities have the shape of the scores, labels lack the axis of the classes.
  const bool has_probabilities = target.shape == scores.shape && is_floating(target.dtype);
  if (has_probabilities) arguments.find("ignore_index");
  Results results = finish_losses(arguments,
                                  has_probabilities ? losses.with_probabilities(target, smoothing)
                                                    : losses.with_labels(target, smoothing),
                                  reduction);
  // Two losses, each rounded to the type, and then their sum.
  if (smoothing != 0) results[0].sizes += 2 * coarse * norm_of(results[0].value.values);
  return results;
}

Results run_nll_loss(Arguments& arguments) {
  const Array logs = arguments.tensor("input");
  const Array target = arguments.tensor("target");
  const Reduction reduction = reduction_of(arguments);
  const std::vector<double> sizes;
  ClassLosses losses(arguments, logs, sizes);
  return finish_losses(arguments, losses.with_labels(target, 0), reduction);
}

// ---------------------------------------------------------------------- differences

/// Losses of single differences of input and target, which are broadcast.
template <typename Loss>
Results difference_loss(Arguments& arguments, const Loss& loss) {
  const Array input = arguments.tensor("input");
  const Array target = arguments.tensor("target");
  Losses losses = each_loss(arguments, broadcast(input.shape, target.shape));
  walk<2>(losses.each.shape, {&input, &target},
          [&](std::size_t i, const std::array<double, 2>& x) { losses.each.values[i] = loss(x[0], x[1]); });
  return finish_losses(arguments, std::move(losses), reduction_of(arguments));
}

Results run_mse_loss(Arguments& arguments) {
  return difference_loss(arguments, [](double x, double y) { return (x - y) * (x - y); });
}

Results run_l1_loss(Arguments& arguments) {
  return difference_loss(arguments, [](double x, double y) { return std::fabs(x - y); });
}

Results run_smooth_l1_loss(Arguments& arguments) {
  const double beta = arguments.number("beta", 1);
  return difference_loss(arguments, [=](double x, double y) {
    const double distance = std::fabs(x - y);
    return distance < beta ? 0.5 * distance * distance / beta : distance - 0.5 * beta;
  });
}

Results run_huber_loss(Arguments& arguments) {
  const double delta = arguments.number("delta", 1);
  return difference_loss(arguments, [=](double x, double y) {
    const double distance = std::fabs(x - y);
    return distance <= delta ? 0.5 * distance * distance : delta * (distance - 0.5 * delta);
  });
}

/// With a weight for each element, and one for the positive ones of each class.
Results run_binary_cross_entropy_with_logits(Arguments& arguments) {
  const Array input = arguments.tensor("input");
  const Array target = arguments.tensor("target");
  const std::optional<Array> weight = arguments.tensor_if_given("weight");
  const std::optional<Array> positive = arguments.tensor_if_given("pos_weight");
  if (input.shape != target.shape) refuse_argument();
  const Array one = arguments.workspace().make({}, 1);
  Losses losses = each_loss(arguments, input.shape);
  walk<4>(input.shape, {&input, &target, weight ? &*weight : &one, positive ? &*positive : &one},
          [&](std::size_t i, const std::array<double, 4>& x) {
            const double tail = std::log1p(std::exp(-std::fabs(x[0])));
            const double of_no = std::max(x[0], 0.0) + tail;    // -log(1 - sigmoid(x))
            const double of_yes = std::max(-x[0], 0.0) + tail;  // -log(sigmoid(x))
            losses.each.values[i] = x[2] * (x[3] * x[1] * of_yes + (1 - x[1]) * of_no);
            losses.sizes.values[i] = 2 * std::fabs(x[2]) * (std::fabs(x[0]) + 1) * (1 + std::fabs(x[3]));
          });
  return finish_losses(arguments, std::move(losses), reduction_of(arguments));
}

/// The Kullback-Leibler divergence: `input` has logarithms of probabilities, `target` has probabilities or,
/// with `log_target`, their logarithms.
Results run_kl_div(Arguments& arguments) {
  const Array input = arguments.tensor("input");
  const Array target = arguments.tensor("target");
  const bool is_log = arguments.flag("log_target", false);
  Losses losses = each_loss(arguments, broadcast(input.shape, target.shape));
  walk<2>(losses.each.shape, {&input, &target}, [&](std::size_t i, const std::array<double, 2>& x) {
    const double p = is_log ? std::exp(x[1]) : x[1];
    const double log_p = is_log ? x[1] : std::log(x[1]);
    losses.each.values[i] = p == 0 ? 0 : p * (log_p - x[0]);
    losses.sizes.values[i] = p == 0 ? 0 : 4 * p * (std::fabs(log_p) + std::fabs(x[0]));
  });
  if (arguments.text("reduction", "mean") == "batchmean") {
    if (input.shape.empty()) refuse_argument();
    losses.weight = static_cast<double>(input.shape[0]);
    return finish_losses(arguments, std::move(losses), Reduction::mean);
  }
  return finish_losses(arguments, std::move(losses), reduction_of(arguments));
}

}  // namespace

std::span<const Operation> loss_operations() {
  static const std::vector<Operation> kOperations = {
      {"cross_entropy", &run_cross_entropy},
      {"nll_loss", &run_nll_loss},
      {"binary_cross_entropy_with_logits", &run_binary_cross_entropy_with_logits},
      {"kl_div", &run_kl_div},
      {"mse_loss", &run_mse_loss},
      {"l1_loss", &run_l1_loss},
      {"smooth_l1_loss", &run_smooth_l1_loss},
      {"huber_loss", &run_huber_loss},
  };
  return kOperations;
}

}  // namespace msprobe::diagnosis::replay

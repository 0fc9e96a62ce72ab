// SPDX-License-Identifier: Apache-2.0
// softmax, the normalizations and attention.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "diagnosis/replay/operation.hpp"
#include "support/parallel.hpp"

namespace msprobe::diagnosis::replay {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Elements along an axis lie `inner` apart.
struct Lines {
  std::size_t count = 0;
  std::size_t length = 0;
  std::size_t inner = 1;

  Lines(const Shape& shape, std::size_t axis) {
    length = shape.empty() ? 1 : static_cast<std::size_t>(shape[axis]);
    for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<std::size_t>(shape[i]);
    count = length == 0 ? 0 : static_cast<std::size_t>(count_of(shape)) / length;
  }
  std::size_t start(std::size_t line) const { return line / inner * inner * length + line % inner; }
};

// ---------------------------------------------------------------------- softmax

Results softmax_of(Arguments& arguments, bool is_log) {
  arguments.ignore({"_stacklevel"});
  Array array = arguments.tensor("input");
  const Value* const dim = arguments.find("dim");
  // Without an axis functional softmax chooses one, with a warning.
  const std::int64_t chosen = array.rank() == 0 || array.rank() == 1 || array.rank() == 3 ? 0 : 1;
  const std::size_t axis = axis_of(dim == nullptr ? chosen : arguments.integer("dim", 0), array.rank());
  cast_to(array, arguments.dtype("dtype"));
  const Lines lines(array.shape, axis);
  double sizes = 0;
  for (std::size_t line = 0; line < lines.count; ++line) {
    double* const x = array.values.data() + lines.start(line);
    double largest = kMinusInfinity;
    for (std::size_t i = 0; i < lines.length; ++i) largest = std::max(largest, x[i * lines.inner]);
    double sum = 0;
    for (std::size_t i = 0; i < lines.length; ++i) sum += std::exp(x[i * lines.inner] - largest);
    const double log_sum = std::log(sum);
    for (std::size_t i = 0; i < lines.length; ++i) {
      double& value = x[i * lines.inner];
      const double shifted = value - largest;
      value = is_log ? shifted - log_sum : std::exp(shifted) / sum;
      const double size = is_log ? std::fabs(shifted) + std::fabs(log_sum) + 1 : value * std::fabs(shifted);
      if (std::isfinite(size)) sizes += size * size;
    }
  }
  return only(std::move(array), std::sqrt(sizes));
}

// ---------------------------------------------------------------------- normalizations

struct Moments {
  double mean = 0;
  double variance = 0;
};

template <typename Element>
Moments moments_of(std::size_t count, const Element& element) {
  Moments result;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += element(i);
  result.mean = sum / static_cast<double>(count);
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += (element(i) - result.mean) * (element(i) - result.mean);
  result.variance = squares / static_cast<double>(count);
  return result;
}

/// The number of elements in the last axes, which have to be `normalized`.
std::size_t normalized_size(const Array& input, const Shape& normalized) {
  if (normalized.empty() || normalized.size() > input.shape.size() ||
      !std::equal(normalized.rbegin(), normalized.rend(), input.shape.rbegin())) {
    refuse_argument();
  }
  return static_cast<std::size_t>(count_of(normalized));
}

/// The size of the numbers that (x - mean) * factor + bias subtracts in effect. Some kernels round the mean
/// to the type of the output.
double shift_sizes(Arguments& arguments, double squares) {
  const double coarse = unit_roundoff(arguments.output(0).dtype) / 0x1p-24;
  return std::max(4.0, coarse) * std::sqrt(squares);
}

void need_shape(const std::optional<Array>& array, const Shape& shape) {
  if (array && array->shape != shape) refuse_argument();
}

Results run_layer_norm(Arguments& arguments) {
  arguments.ignore({"cudnn_enable"});
  Array array = arguments.tensor("input");
  const Shape normalized = arguments.integers("normalized_shape", {});
  const std::optional<Array> weight = arguments.tensor_if_given("weight");
  const std::optional<Array> bias = arguments.tensor_if_given("bias");
  const double eps = arguments.number("eps", 1e-5);
  const std::size_t length = normalized_size(array, normalized);
  need_shape(weight, normalized);
  need_shape(bias, normalized);
  double sizes = 0;
  for (std::size_t start = 0; length > 0 && start < array.size(); start += length) {
    double* const x = array.values.data() + start;
    const Moments moments = moments_of(length, [&](std::size_t i) { return x[i]; });
    const double scale = 1 / std::sqrt(moments.variance + eps);
    for (std::size_t i = 0; i < length; ++i) {
      const double factor = scale * (weight ? weight->values[i] : 1);
      const double size = std::fabs(moments.mean * factor) + (bias ? std::fabs(bias->values[i]) : 0);
      if (std::isfinite(size)) sizes += size * size;
      x[i] = (x[i] - moments.mean) * factor + (bias ? bias->values[i] : 0);
    }
  }
  return only(std::move(array), shift_sizes(arguments, sizes));
}

Results rms_norm_of(Arguments& arguments, Array array, std::size_t length, const std::optional<Array>& weight,
                    double eps, bool has_scales) {
  Array scales =
      arguments.workspace().make({static_cast<std::int64_t>(length == 0 ? 0 : array.size() / length)});
  for (std::size_t row = 0; row < scales.size(); ++row) {
    double* const x = array.values.data() + row * length;
    double squares = 0;
    for (std::size_t i = 0; i < length; ++i) squares += x[i] * x[i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(length) + eps);
    for (std::size_t i = 0; i < length; ++i) x[i] *= scale * (weight ? weight->values[i] : 1);
    scales.values[row] = scale;
  }
  Results results = only(std::move(array));
  if (has_scales) {
    results.emplace_back();
    results.back().value = std::move(scales);
    if (arguments.outputs() > 1) results.back().value.shape = arguments.output(1).shape;
    if (count_of(results.back().value.shape) != static_cast<std::int64_t>(results.back().value.size())) {
      refuse_argument();
    }
  }
  return results;
}

Results run_rms_norm(Arguments& arguments) {
  Array array = arguments.tensor("input");
  const Shape normalized = arguments.integers("normalized_shape", {});
  const std::optional<Array> weight = arguments.tensor_if_given("weight");
  const std::size_t length = normalized_size(array, normalized);
  need_shape(weight, normalized);
  double eps = arguments.number("eps", -1);
  if (!arguments.given("eps")) {
    // The epsilon of the type; of which one, versions do not agree for half types.
    if (unit_roundoff(array.dtype) > 0x1p-24) refuse_argument();
    eps = 2 * unit_roundoff(array.dtype);
  }
  return rms_norm_of(arguments, std::move(array), length, weight, eps, false);
}

/// (x, gamma, epsilon) to (y, 1 / rms)
Results run_npu_rms_norm(Arguments& arguments) {
  Array array = arguments.tensor("self");
  const std::optional<Array> weight = arguments.tensor("gamma");
  const std::size_t length = normalized_size(array, weight->shape);
  return rms_norm_of(arguments, std::move(array), length, weight, arguments.number("epsilon", 1e-6), true);
}

/// (x - mean) / sqrt(variance + eps) * weight + bias for the channels of the second axis, each with its
/// moments.
class Channels {
 public:
  Channels(Arguments& arguments, const Array& input)
      : weight_(arguments.tensor_if_given("weight")), bias_(arguments.tensor_if_given("bias")) {
    if (input.rank() < 2) refuse_argument();
    need_shape(weight_, {input.shape[1]});
    need_shape(bias_, {input.shape[1]});
  }

  double apply(double x, const Moments& moments, double eps, std::size_t channel) {
    const double factor = (weight_ ? weight_->values[channel] : 1) / std::sqrt(moments.variance + eps);
    const double bias = bias_ ? bias_->values[channel] : 0;
    const double size = std::fabs(moments.mean * factor) + std::fabs(bias);
    if (std::isfinite(size)) sizes_ += size * size;
    return (x - moments.mean) * factor + bias;
  }
  double squares() const { return sizes_; }

 private:
  std::optional<Array> weight_;
  std::optional<Array> bias_;
  double sizes_ = 0;
};

Results run_batch_norm(Arguments& arguments) {
  arguments.ignore({"running_mean", "running_var", "momentum"});
  Array array = arguments.tensor("input");
  Channels channels(arguments, array);
  const bool is_training = arguments.flag("training", false);
  const double eps = arguments.number("eps", 1e-5);
  const auto count = static_cast<std::size_t>(array.shape[1]);
  const auto batch = static_cast<std::size_t>(array.shape[0]);
  const std::size_t inner = array.size() == 0 ? 0 : array.size() / batch / count;
  std::vector<Moments> moments(count);
  if (is_training) {
    for (std::size_t channel = 0; channel < count && inner > 0; ++channel) {
      moments[channel] = moments_of(batch * inner, [&](std::size_t i) {
        return array.values[(i / inner * count + channel) * inner + i % inner];
      });
    }
  } else {
    const Array mean = arguments.tensor("running_mean");
    const Array variance = arguments.tensor("running_var");
    if (mean.size() != count || variance.size() != count) refuse_argument();
    for (std::size_t channel = 0; channel < count; ++channel) {
      moments[channel] = {mean.values[channel], variance.values[channel]};
    }
  }
  for (std::size_t i = 0; i < array.size(); ++i) {
    const std::size_t channel = i / inner % count;
    array.values[i] = channels.apply(array.values[i], moments[channel], eps, channel);
  }
  const double sizes = shift_sizes(arguments, channels.squares());
  return only(std::move(array), sizes);
}

/// group_norm and, with a group for each channel, instance_norm.
Results grouped(Arguments& arguments, Array array, std::int64_t groups) {
  Channels channels(arguments, array);
  const double eps = arguments.number("eps", 1e-5);
  if (groups < 1 || array.shape[1] % groups != 0) refuse_argument();
  const auto count = static_cast<std::size_t>(array.shape[1]);
  const auto batch = static_cast<std::size_t>(array.shape[0]);
  const std::size_t inner = array.size() == 0 ? 0 : array.size() / batch / count;
  const std::size_t length = inner * (count / static_cast<std::size_t>(groups));
  for (std::size_t start = 0; length > 0 && start < array.size(); start += length) {
    double* const x = array.values.data() + start;
    const Moments moments = moments_of(length, [&](std::size_t i) { return x[i]; });
    for (std::size_t i = 0; i < length; ++i) {
      x[i] = channels.apply(x[i], moments, eps, (start + i) / inner % count);
    }
  }
  const double sizes = shift_sizes(arguments, channels.squares());
  return only(std::move(array), sizes);
}

Results run_group_norm(Arguments& arguments) {
  arguments.ignore({"cudnn_enabled"});
  const std::int64_t groups = arguments.integer("num_groups", 0);
  return grouped(arguments, arguments.tensor("input"), groups);
}

Results run_instance_norm(Arguments& arguments) {
  arguments.ignore({"running_mean", "running_var", "momentum", "cudnn_enabled"});
  if (!arguments.flag("use_input_stats", true)) refuse_argument();
  Array array = arguments.tensor("input");
  if (array.rank() < 3) refuse_argument();
  const std::int64_t groups = array.shape[1];
  return grouped(arguments, std::move(array), groups);
}

// ---------------------------------------------------------------------- attention

struct Attention {
  Array query;
  Array key;
  Array value;
  std::optional<Array> mask;
  bool is_causal = false;
  double scale = 1;
  std::size_t repeats = 1;  // heads of the query for one of the key
};

class AttentionReplay {
 public:
  AttentionReplay(Arguments& arguments, const Attention& attention) : arguments_(arguments), a_(attention) {
    const auto length = [](const Array& array, std::size_t from_behind) {
      return static_cast<std::size_t>(array.shape[array.shape.size() - from_behind]);
    };
    rows_ = length(a_.query, 2);
    keys_ = length(a_.key, 2);
    width_ = length(a_.query, 1);
    out_width_ = length(a_.value, 1);
    if (length(a_.key, 1) != width_ || length(a_.value, 2) != keys_) refuse_argument();
    shape_.assign(a_.query.shape.begin(), a_.query.shape.end() - 2);
    heads_ = static_cast<std::size_t>(count_of(shape_));
    Shape matrix = shape_;
    matrix.push_back(static_cast<std::int64_t>(rows_));
    matrix.push_back(static_cast<std::int64_t>(keys_));
    if (a_.mask) mask_strides_ = broadcast_strides(a_.mask->shape, matrix);
    shape_.push_back(static_cast<std::int64_t>(rows_));
    shape_.push_back(static_cast<std::int64_t>(out_width_));
  }

  Results run() {
    std::uint64_t row_steps = 0;
    if (__builtin_mul_overflow(keys_, width_ + out_width_ + 16, &row_steps))
      throw NoStatement(Status::too_large);
    Results results(1);
    Expected& expected = results[0];
    expected.value = arguments_.workspace().make(shape_);
    expected.open.assign(expected.value.size(), 0);
    // In long sequences, only every n-th row is computed, with other rows in each head.
    const std::size_t rows = heads_ * rows_;
    const std::uint64_t steps = std::min(kMostSteps, arguments_.workspace().work_left());
    const std::uint64_t affordable =
        std::max<std::uint64_t>(steps / std::max<std::uint64_t>(row_steps, 1), 1);
    const std::size_t every = std::max<std::size_t>((rows + affordable - 1) / affordable, 1);
    arguments_.workspace().work(row_steps * (rows / every));
    expected.covered = 1 / static_cast<double>(every);
    std::vector<double> sizes(rows, 0.0);
    parallel_for(heads_, [&](std::size_t head) {
      std::vector<double> scores(keys_);
      for (std::size_t row = 0; row < rows_; ++row) {
        const std::size_t number = head * rows_ + row;
        if ((row + head) % every == 0) {
          sizes[number] = one_row(head, row, scores, expected);
        } else {
          leave_open(expected, number);
        }
      }
    });
    // Scores may have been rounded to the type of the output before they went into the exponential.
    expected.sizes = norm_of(sizes) * unit_roundoff(arguments_.output(0).dtype) / 0x1p-24;
    return results;
  }

 private:
  static constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 31;

  void leave_open(Expected& expected, std::size_t row) const {
    std::fill_n(expected.open.begin() + static_cast<std::ptrdiff_t>(row * out_width_), out_width_, 1);
  }

  /// Four sums, so that no addition waits for the one before.
  static double dot(const double* a, const double* b, std::size_t count) {
    std::array<double, 4> sums{};
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) {
      for (std::size_t k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
    }
    for (; i < count; ++i) sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  double one_row(std::size_t head, std::size_t row, std::vector<double>& scores, Expected& into) const {
    const double* const query = a_.query.values.data() + (head * rows_ + row) * width_;
    const double* const keys = a_.key.values.data() + head / a_.repeats * keys_ * width_;
    const double* const values = a_.value.values.data() + head / a_.repeats * keys_ * out_width_;
    double largest = kMinusInfinity;
    for (std::size_t k = 0; k < keys_; ++k) {
      const double shift = added(head, row, k);
      scores[k] = shift == kMinusInfinity ? shift : dot(query, keys + k * width_, width_) * a_.scale + shift;
      largest = std::max(largest, scores[k]);
    }
    double* const out = into.value.values.data() + (head * rows_ + row) * out_width_;
    // Versions do not agree about a row without keys: 0, or no number.
    if (largest == kMinusInfinity) {
      leave_open(into, head * rows_ + row);
      return 0;
    }
    double sum = 0;
    double spread = 0;
    for (std::size_t k = 0; k < keys_; ++k) {
      const double weight = std::exp(scores[k] - largest);
      // Shifting all scores changes nothing; rounding them does.
      spread += weight > 0 && std::isfinite(scores[k]) ? weight * std::fabs(scores[k]) : 0;
      sum += weight;
      scores[k] = weight;
    }
    double squares = 0;
    for (std::size_t k = 0; k < keys_; ++k) {
      const double weight = scores[k] / sum;
      if (weight == 0) continue;
      for (std::size_t i = 0; i < out_width_; ++i) {
        out[i] += weight * values[k * out_width_ + i];
        squares += weight * values[k * out_width_ + i] * values[k * out_width_ + i];
      }
    }
    const double size = std::sqrt(squares) * (1 + spread / sum);
    return std::isfinite(size) ? size : 0;
  }

  double added(std::size_t head, std::size_t row, std::size_t key) const {
    if (a_.is_causal && key > row) return kMinusInfinity;
    if (!a_.mask) return 0;
    std::size_t at = 0;
    std::size_t left = head;
    const std::size_t axes = mask_strides_.size() - 2;
    for (std::size_t axis = axes; axis-- > 0;) {
      const auto length = static_cast<std::size_t>(shape_[axis]);
      at += left % length * static_cast<std::size_t>(mask_strides_[axis]);
      left /= length;
    }
    at += row * static_cast<std::size_t>(mask_strides_[axes]) +
          key * static_cast<std::size_t>(mask_strides_[axes + 1]);
    const double value = a_.mask->values[at];
    if (tensor::info(a_.mask->dtype).kind != tensor::DTypeKind::boolean) return value;
    return value != 0 ? 0 : kMinusInfinity;
  }

  Arguments& arguments_;
  const Attention& a_;
  Shape shape_;
  Shape mask_strides_;
  std::size_t heads_ = 0;
  std::size_t rows_ = 0;
  std::size_t keys_ = 0;
  std::size_t width_ = 0;
  std::size_t out_width_ = 0;
};

Results run_attention(Arguments& arguments) {
  if (arguments.number("dropout_p", 0) != 0) throw NoStatement(Status::random);
  Attention attention;
  attention.query = arguments.tensor("query");
  attention.key = arguments.tensor("key");
  attention.value = arguments.tensor("value");
  attention.mask = arguments.tensor_if_given("attn_mask");
  attention.is_causal = arguments.flag("is_causal", false);
  const std::int64_t rank = attention.query.rank();
  if (rank < 2 || attention.key.rank() != rank || attention.value.rank() != rank) refuse_argument();
  const double width = static_cast<double>(attention.query.shape.back());
  attention.scale = arguments.number("scale", 1 / std::sqrt(width));
  const Shape& query = attention.query.shape;
  const Shape& key = attention.key.shape;
  const Shape& value = attention.value.shape;
  if (!std::equal(key.begin(), key.end() - 2, value.begin())) refuse_argument();
  if (arguments.flag("enable_gqa", false)) {
    if (rank < 3 || key[key.size() - 3] < 1 || query[query.size() - 3] % key[key.size() - 3] != 0 ||
        !std::equal(query.begin(), query.end() - 3, key.begin())) {
      refuse_argument();
    }
    attention.repeats = static_cast<std::size_t>(query[query.size() - 3] / key[key.size() - 3]);
  } else if (!std::equal(query.begin(), query.end() - 2, key.begin())) {
    refuse_argument();
  }
  return AttentionReplay(arguments, attention).run();
}

}  // namespace

std::span<const Operation> normalization_operations() {
  static const std::vector<Operation> kOperations = {
      {"softmax", [](Arguments& arguments) { return softmax_of(arguments, false); }},
      {"log_softmax", [](Arguments& arguments) { return softmax_of(arguments, true); }},
      {"layer_norm", &run_layer_norm},
      {"rms_norm", &run_rms_norm},
      {"npu_rms_norm", &run_npu_rms_norm},
      {"batch_norm", &run_batch_norm},
      {"group_norm", &run_group_norm},
      {"instance_norm", &run_instance_norm},
      {"scaled_dot_product_attention", &run_attention},
  };
  return kOperations;
}

}  // namespace msprobe::diagnosis::replay

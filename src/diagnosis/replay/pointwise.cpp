// SPDX-License-Identifier: Apache-2.0
// Operations whose every element follows from the elements in the same place.
#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnosis/limits.hpp"
#include "diagnosis/replay/operation.hpp"

namespace msprobe::diagnosis::replay {
namespace {

using Two = std::array<double, 2>;
using Three = std::array<double, 3>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename Function>
Array map(Arguments& arguments, const Array& input, Function&& function) {
  Array result = arguments.workspace().make(input.shape);
  std::transform(input.values.begin(), input.values.end(), result.values.begin(), function);
  return result;
}

template <typename Function>
Array map2(Arguments& arguments, const Array& a, const Array& b, Function&& function) {
  Array result = arguments.workspace().make(broadcast(a.shape, b.shape));
  walk<2>(result.shape, {&a, &b},
          [&](std::size_t i, const Two& x) { result.values[i] = function(x[0], x[1]); });
  return result;
}

// ---------------------------------------------------------------------- functions of one number

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double softplus1(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
double normal_distribution(double x) {
  return 0.5 * std::erfc(-x * std::sqrt(0.5));
}
double relu(double x) {
  return x > 0 || std::isnan(x) ? x : 0;
}
double clamp(double x, double low, double high) {
  return std::isnan(x) ? x : std::min(std::max(x, low), high);
}
double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, b);
}
double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNaN : std::min(a, b);
}

double sign(double x) {
  return x > 0 ? 1 : (x < 0 ? -1 : x);
}

Results run_unary(Arguments& arguments) {
  arguments.ignore({"inplace"});
  return only(map(arguments, arguments.tensor("input"), arguments.operation().unary));
}

/// A type, a device or the order in memory change no element but by rounding.
Results run_cast(Arguments& arguments) {
  arguments.ignore_all();
  return only(arguments.tensor("input"));
}

/// tril and triu: the lower or the upper triangle of matrices, up to a diagonal.
Results triangle(Arguments& arguments, bool is_lower) {
  Array array = arguments.tensor("input");
  const std::int64_t diagonal = arguments.integer("diagonal", 0);
  if (array.rank() < 2) refuse_argument();
  const std::int64_t columns = array.shape.back();
  const std::int64_t rows = array.shape[array.shape.size() - 2];
  for (std::size_t i = 0; i < array.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t above = at % columns - at / columns % rows;
    if (is_lower ? above > diagonal : above < diagonal) array.values[i] = 0;
  }
  return only(std::move(array));
}

Results run_gelu(Arguments& arguments) {
  const std::string_view approximate = arguments.text("approximate", "none");
  const Array input = arguments.tensor("input");
  if (approximate == "none") {
    return only(map(arguments, input, [](double x) { return x == 0 ? x : x * normal_distribution(x); }));
  }
  if (approximate != "tanh") refuse_argument();
  return only(map(arguments, input, [](double x) {
    constexpr double kRootOfTwoOverPi = 0.79788456080286535588;
    return 0.5 * x * (1 + std::tanh(kRootOfTwoOverPi * (x + 0.044715 * x * x * x)));
  }));
}

Results run_leaky_relu(Arguments& arguments) {
  arguments.ignore({"inplace"});
  const double slope = arguments.number("negative_slope", 0.01);
  return only(map(arguments, arguments.tensor("input"), [=](double x) { return x > 0 ? x : x * slope; }));
}

Results run_elu(Arguments& arguments) {
  arguments.ignore({"inplace"});
  const double alpha = arguments.number("alpha", 1);
  return only(
      map(arguments, arguments.tensor("input"), [=](double x) { return x > 0 ? x : alpha * std::expm1(x); }));
}

Results run_celu(Arguments& arguments) {
  arguments.ignore({"inplace"});
  const double alpha = arguments.number("alpha", 1);
  return only(map(arguments, arguments.tensor("input"),
                  [=](double x) { return x > 0 ? x : alpha * std::expm1(x / alpha); }));
}

Results run_softplus(Arguments& arguments) {
  const double beta = arguments.number("beta", 1);
  const double threshold = arguments.number("threshold", 20);
  return only(map(arguments, arguments.tensor("input"),
                  [=](double x) { return x * beta > threshold ? x : softplus1(x * beta) / beta; }));
}

Results run_hardtanh(Arguments& arguments) {
  arguments.ignore({"inplace"});
  const double low = arguments.number("min_val", -1);
  const double high = arguments.number("max_val", 1);
  return only(map(arguments, arguments.tensor("input"), [=](double x) { return clamp(x, low, high); }));
}

Results run_threshold(Arguments& arguments) {
  arguments.ignore({"inplace"});
  const double threshold = arguments.number("threshold", 0);
  const double value = arguments.number("value", 0);
  return only(
      map(arguments, arguments.tensor("input"), [=](double x) { return x <= threshold ? value : x; }));
}

/// Two halves along an axis: one of them goes through the gate.
Results gated(Arguments& arguments, double (*function)(double, double)) {
  const Array input = arguments.tensor(arguments.name(0));
  const std::size_t axis = axis_of(arguments.integer("dim", -1), input.rank());
  if (input.shape.empty() || input.shape[axis] % 2 != 0) refuse_argument();
  Shape shape = input.shape;
  shape[axis] /= 2;
  Array result = arguments.workspace().make(shape);
  const Shape strides = row_major(input.shape);
  const auto block = static_cast<std::size_t>(strides[axis] * shape[axis]);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t at = i / block * (2 * block) + i % block;
    result.values[i] = function(input.values[at], input.values[at + block]);
  }
  return only(std::move(result));
}

Results run_glu(Arguments& arguments) {
  return gated(arguments, [](double x, double gate) { return x * sigmoid(gate); });
}
Results run_npu_swiglu(Arguments& arguments) {
  return gated(arguments, [](double gate, double x) { return x * gate * sigmoid(gate); });
}

/// Bounds are numbers or tensors.
Results run_clamp(Arguments& arguments) {
  Array result = arguments.tensor("input");
  if (!arguments.given("min") && !arguments.given("max")) refuse_argument();
  // The upper bound wins where the bounds are the wrong way round.
  if (arguments.given("min")) {
    const Array low = arguments.operand("min");
    result = map2(arguments, result, low, &maximum);
  }
  if (arguments.given("max")) {
    const Array high = arguments.operand("max");
    result = map2(arguments, result, high, &minimum);
  }
  return only(std::move(result));
}

// ---------------------------------------------------------------------- functions of two numbers

/// `input + sign * alpha * other`; `rsub` is `other - alpha * input`.
Results run_sum(Arguments& arguments, double sign, bool is_swapped) {
  const double alpha = arguments.number("alpha", 1);
  const double left = is_swapped ? sign * alpha : 1;
  const double right = is_swapped ? 1 : sign * alpha;
  const Array a = arguments.operand("input");
  const Array b = arguments.operand("other");
  double sizes = 0;
  Array result = arguments.workspace().make(broadcast(a.shape, b.shape));
  walk<2>(result.shape, {&a, &b}, [&](std::size_t i, const Two& x) {
    result.values[i] = left * x[0] + right * x[1];
    const double scaled = is_swapped ? left * x[0] : right * x[1];
    sizes += scaled * scaled;
  });
  // A sum of two numbers is rounded once; only the product is rounded before. A number that is no tensor is
  // rounded to the type as well.
  const bool is_exact = std::fabs(alpha) == 1 && arguments.is_tensor("input") && arguments.is_tensor("other");
  return only(std::move(result), is_exact || !std::isfinite(sizes) ? 0 : std::sqrt(sizes));
}

Results run_binary(Arguments& arguments) {
  const Array a = arguments.operand("input");
  const Array b = arguments.operand(arguments.name(1));
  return only(map2(arguments, a, b, arguments.operation().binary));
}

/// Quotients that are rounded down or towards 0 may come out on either side of a whole number.
Results rounded_quotient(Arguments& arguments, double (*rounding)(double)) {
  const Array a = arguments.operand("input");
  const Array b = arguments.operand("other");
  Results results = only(map2(arguments, a, b, [](double x, double y) { return x / y; }));
  std::vector<double>& values = results[0].value.values;
  results[0].open.assign(values.size(), 0);
  const bool is_floating_type = is_floating(arguments.output(0).dtype);
  const double near = std::max(kRightKernel, kMargin * unit_roundoff(arguments.output(0).dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double whole = std::round(values[i]);
    const bool is_near = values[i] != whole && std::fabs(values[i] - whole) <= near * std::fabs(whole);
    results[0].open[i] = is_floating_type && (is_near || !std::isfinite(values[i])) ? 1 : 0;
    values[i] = rounding(values[i]);
  }
  return results;
}

Results run_div(Arguments& arguments) {
  const std::string_view mode = arguments.text("rounding_mode", "");
  if (mode == "floor") return rounded_quotient(arguments, &std::floor);
  if (mode == "trunc") return rounded_quotient(arguments, &std::trunc);
  if (!mode.empty()) refuse_argument();
  return run_binary(arguments);
}

/// Comparisons. A kernel may first round a number to the type of the tensor or not, so that results for
/// elements between the exact and the rounded number are left open.
Results run_comparison(Arguments& arguments) {
  const Array a = arguments.operand("input");
  const Array b = arguments.operand("other");
  Results results = only(map2(arguments, a, b, arguments.operation().binary));
  const bool is_number = !arguments.is_tensor("other") || !arguments.is_tensor("input");
  const Array& number = arguments.is_tensor("other") ? a : b;
  const Array& other = arguments.is_tensor("other") ? b : a;
  if (is_number && is_floating(other.dtype)) {
    const double exact = number.values[0];
    const double rounded = round_to(other.dtype, exact);
    if (exact == rounded || other.shape != results[0].value.shape) return results;
    results[0].open.assign(other.size(), 0);
    for (std::size_t i = 0; i < other.size(); ++i) {
      const double x = other.values[i];
      results[0].open[i] = x >= std::min(exact, rounded) && x <= std::max(exact, rounded) ? 1 : 0;
    }
  } else if (a.dtype != b.dtype && !is_number) {
    refuse_argument();
  }
  return results;
}

// ---------------------------------------------------------------------- functions of three

Results run_where(Arguments& arguments) {
  const Array condition = arguments.tensor("condition");
  const Array yes = arguments.operand("input");
  const Array no = arguments.operand("other");
  Array result = arguments.workspace().make(broadcast(condition.shape, broadcast(yes.shape, no.shape)));
  walk<3>(result.shape, {&condition, &yes, &no},
          [&](std::size_t i, const Three& x) { result.values[i] = x[0] != 0 ? x[1] : x[2]; });
  return only(std::move(result));
}

Results run_masked_fill(Arguments& arguments) {
  const Array input = arguments.tensor("input");
  const Array mask = arguments.tensor("mask");
  const Array value = arguments.operand("value");
  if (value.size() != 1) refuse_argument();
  const double filling = round_to(arguments.output(0).dtype, value.values[0]);
  return only(
      map2(arguments, input, mask, [=](double x, double masked) { return masked != 0 ? filling : x; }));
}

/// `input + added(input, a, b)`, where what is added is rounded as often as `roundings` says.
template <typename Function>
Results sum_of_three(Arguments& arguments, const Array& a, const Array& b, double roundings,
                     Function&& added) {
  const Array input = arguments.tensor("input");
  Array result = arguments.workspace().make(broadcast(input.shape, broadcast(a.shape, b.shape)));
  double sizes = 0;
  walk<3>(result.shape, {&input, &a, &b}, [&](std::size_t i, const Three& x) {
    const double more = added(x);
    result.values[i] = x[0] + more;
    sizes += more * more;
  });
  return only(std::move(result), std::isfinite(sizes) ? roundings * std::sqrt(sizes) : 0);
}

template <typename Function>
Results add_scaled(Arguments& arguments, Function&& function) {
  const double value = arguments.number("value", 1);
  return sum_of_three(arguments, arguments.tensor("tensor1"), arguments.tensor("tensor2"), 2,
                      [&](const Three& x) { return value * function(x[1], x[2]); });
}

Results run_addcmul(Arguments& arguments) {
  return add_scaled(arguments, [](double a, double b) { return a * b; });
}
Results run_addcdiv(Arguments& arguments) {
  return add_scaled(arguments, [](double a, double b) { return a / b; });
}

Results run_lerp(Arguments& arguments) {
  return sum_of_three(arguments, arguments.tensor("end"), arguments.operand("weight"), 3,
                      [](const Three& x) { return x[2] * (x[1] - x[0]); });
}

Operation unary(std::string_view name, double (*function)(double)) {
  return {name, &run_unary, function};
}
Operation binary(std::string_view name, double (*function)(double, double)) {
  return {name, &run_binary, nullptr, function};
}
Operation comparison(std::string_view name, double (*function)(double, double)) {
  return {name, &run_comparison, nullptr, function};
}

using Real = double;

}  // namespace

std::span<const Operation> pointwise_operations() {
  static const std::vector<Operation> kOperations = {
      unary("neg", [](Real x) { return -x; }),
      unary("abs", [](Real x) { return std::fabs(x); }),
      unary("sqrt", [](Real x) { return std::sqrt(x); }),
      unary("rsqrt", [](Real x) { return 1 / std::sqrt(x); }),
      unary("reciprocal", [](Real x) { return 1 / x; }),
      unary("square", [](Real x) { return x * x; }),
      unary("exp", [](Real x) { return std::exp(x); }),
      unary("exp2", [](Real x) { return std::exp2(x); }),
      unary("expm1", [](Real x) { return std::expm1(x); }),
      unary("log", [](Real x) { return std::log(x); }),
      unary("log2", [](Real x) { return std::log2(x); }),
      unary("log10", [](Real x) { return std::log10(x); }),
      unary("log1p", [](Real x) { return std::log1p(x); }),
      unary("sin", [](Real x) { return std::sin(x); }),
      unary("cos", [](Real x) { return std::cos(x); }),
      unary("erf", [](Real x) { return std::erf(x); }),
      unary("floor", [](Real x) { return std::floor(x); }),
      unary("ceil", [](Real x) { return std::ceil(x); }),
      unary("sign", &sign),
      unary("tanh", [](Real x) { return std::tanh(x); }),
      unary("sigmoid", &sigmoid),
      unary("logical_not", [](Real x) { return x == 0 ? 1.0 : 0.0; }),
      unary("isnan", [](Real x) { return std::isnan(x) ? 1.0 : 0.0; }),
      unary("logsigmoid", [](Real x) { return -softplus1(-x); }),
      unary("softsign", [](Real x) { return x / (1 + std::fabs(x)); }),
      unary("relu", &relu),
      unary("relu6", [](Real x) { return clamp(x, 0, 6); }),
      unary("silu", [](Real x) { return x * sigmoid(x); }),
      unary("mish", [](Real x) { return x * std::tanh(softplus1(x)); }),
      unary("hardsigmoid", [](Real x) { return clamp(x / 6 + 0.5, 0, 1); }),
      unary("hardswish", [](Real x) { return x * clamp(x + 3, 0, 6) / 6; }),
      unary("selu",
            [](Real x) {
              constexpr double kScale = 1.0507009873554804934193349852946;
              constexpr double kAlpha = 1.6732632423543772848170429916717;
              return kScale * (x > 0 ? x : kAlpha * std::expm1(x));
            }),
      {"gelu", &run_gelu},
      {"leaky_relu", &run_leaky_relu},
      {"elu", &run_elu},
      {"celu", &run_celu},
      {"softplus", &run_softplus},
      {"hardtanh", &run_hardtanh},
      {"threshold", &run_threshold},
      {"glu", &run_glu},
      {"npu_swiglu", &run_npu_swiglu},
      {"tril", [](Arguments& arguments) { return triangle(arguments, true); }},
      {"triu", [](Arguments& arguments) { return triangle(arguments, false); }},
      {"clamp", &run_clamp},

      {"add", [](Arguments& arguments) { return run_sum(arguments, 1, false); }},
      {"sub", [](Arguments& arguments) { return run_sum(arguments, -1, false); }},
      {"rsub", [](Arguments& arguments) { return run_sum(arguments, -1, true); }},
      {"mul", &run_binary, nullptr, [](Real x, Real y) { return x * y; }},
      {"div", &run_div, nullptr, [](Real x, Real y) { return x / y; }},
      {"truediv", &run_binary, nullptr, [](Real x, Real y) { return x / y; }},
      {"floor_divide", [](Arguments& arguments) { return rounded_quotient(arguments, &std::floor); }},
      {"pow", &run_binary, nullptr, [](Real x, Real y) { return std::pow(x, y); }},
      binary("maximum", &maximum),
      binary("minimum", &minimum),
      binary("logical_and", [](Real x, Real y) { return x != 0 && y != 0 ? 1.0 : 0.0; }),
      binary("logical_or", [](Real x, Real y) { return x != 0 || y != 0 ? 1.0 : 0.0; }),
      comparison("eq", [](Real x, Real y) { return x == y ? 1.0 : 0.0; }),
      comparison("ne", [](Real x, Real y) { return x != y ? 1.0 : 0.0; }),
      comparison("lt", [](Real x, Real y) { return x < y ? 1.0 : 0.0; }),
      comparison("le", [](Real x, Real y) { return x <= y ? 1.0 : 0.0; }),
      comparison("gt", [](Real x, Real y) { return x > y ? 1.0 : 0.0; }),
      comparison("ge", [](Real x, Real y) { return x >= y ? 1.0 : 0.0; }),

      {"where", &run_where},
      {"masked_fill", &run_masked_fill},
      {"addcmul", &run_addcmul},
      {"addcdiv", &run_addcdiv},
      {"lerp", &run_lerp},
      {"identity", &run_cast, nullptr, nullptr, &run_cast},
  };
  return kOperations;
}

}  // namespace msprobe::diagnosis::replay

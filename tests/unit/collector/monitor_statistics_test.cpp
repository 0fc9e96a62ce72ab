// SPDX-License-Identifier: Apache-2.0
// The statistics of the training monitor, beside those of the Python tool.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "collector/monitor/observation.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"
#include "unit/collector/golden_file.hpp"

namespace msprobe::monitor_statistics_test {

using namespace msprobe;
using collector::TensorView;
using collector::monitor::Observation;
using collector::monitor::observe_view;
using collector::monitor::ObservedCell;
using series::MonitorStatistic;
using Json = nlohmann::ordered_json;

namespace {

constexpr double kEps = 1e-8;

TensorView view_of_bytes(const std::vector<std::byte>& bytes, tensor::DType dtype,
                         const std::vector<std::int64_t>& shape) {
  TensorView view;
  view.data = bytes.data();
  view.dtype = dtype;
  view.rank = static_cast<std::uint32_t>(shape.size());
  view.count = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    view.shape[axis] = shape[axis];
    view.strides[axis] = static_cast<std::int64_t>(view.count);
    view.count *= static_cast<std::uint64_t>(shape[axis]);
  }
  return view;
}

std::vector<std::byte> bytes_of(const Json& bits) {
  std::vector<std::byte> bytes;
  if (bits.is_array()) {
    for (const Json& bit : bits) bytes.push_back(static_cast<std::byte>(bit.get<int>()));
    return bytes;
  }
  const std::string hex = bits;
  for (std::size_t at = 0; at < hex.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(at, 2), nullptr, 16)));
  return bytes;
}

std::string text_of(const ObservedCell& cell) {
  switch (cell.kind) {
    case ObservedCell::ObservedType::absent:
      return "nan";
    case ObservedCell::ObservedType::text:
      return cell.text;
    case ObservedCell::ObservedType::boolean:
      return cell.integer != 0 ? "True" : "False";
    case ObservedCell::ObservedType::integer:
      return std::to_string(cell.integer);
    case ObservedCell::ObservedType::natural:
      return std::to_string(static_cast<std::uint64_t>(cell.integer));
    case ObservedCell::ObservedType::real:
      break;
  }
  return python_repr(cell.real);
}

bool same(const std::string& ours, const std::string& theirs) {
  if (ours == theirs || (ours == "nan" && theirs == "None")) return true;
  const auto a = parse_number(ours);
  const auto b = parse_number(theirs);
  return a && b && ours.find('.') != std::string::npos && std::abs(*a - *b) <= 1e-12 * std::abs(*b);
}

/// Where the Python tool is mistaken, and what is right.
std::optional<double> mended(const std::string& name, const std::string& op) {
  if (name == "f16_zeros" && op == "zeros") return 0.5;  // eps is not rounded to a float16, which would be 0
  if (name == "i8" && op == "zeros") return 0;           // -128 is not a zero
  if (name == "f64" && op == "norm") return 3.615795484189586e200;
  return std::nullopt;
}

}  // namespace

TEST_CASE("Every statistic of every kind of tensor is that of the Python tool, or mended") {
  const Json golden = test::monitor_golden("stats.json");
  for (const auto& [name, one] : golden.items()) {
    if (!one.contains("dtype")) continue;
    CAPTURE(name);
    const auto dtype = tensor::dtype_from_torch(one["dtype"].get<std::string>());
    REQUIRE(dtype);
    const std::vector<std::byte> bytes = bytes_of(one["bits_hex"]);
    const TensorView view = view_of_bytes(bytes, *dtype, one["shape"].get<std::vector<std::int64_t>>());
    REQUIRE(bytes.size() == view.bytes());
    const Observation observation = observe_view(view, kEps, one["dtype"].get<std::string>());
    for (std::size_t op = 0; op < series::kStatisticNames.size(); ++op) {
      const std::string statistic(series::kStatisticNames[op]);
      CAPTURE(statistic);
      const ObservedCell cell = observation.cell(static_cast<MonitorStatistic>(op));
      if (const std::optional<double> right = mended(name, statistic)) {
        CHECK(cell.real == doctest::Approx(*right).epsilon(1e-12));
        continue;
      }
      std::string theirs = one["ops"][statistic]["value"];
      if (statistic == "shape") theirs = theirs.substr(11, theirs.size() - 12);
      CHECK_MESSAGE(same(text_of(cell), theirs), text_of(cell), " instead of ", theirs);
    }
  }
}

TEST_CASE("An observation without a tensor has no value in any column") {
  const Observation observation;
  for (std::size_t op = 0; op < series::kStatisticNames.size(); ++op)
    CHECK(observation.cell(static_cast<MonitorStatistic>(op)).kind == ObservedCell::ObservedType::absent);
}

TEST_CASE("Elements below eps are counted in any number and layout") {
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> exponent(-4, 0);
  for (const std::size_t count : {1U, 15U, 16U, 17U, 1000U, 70'001U}) {
    std::vector<float> values(count);
    for (float& value : values)
      value = std::pow(10.0F, exponent(generator)) * (generator() % 2 == 0 ? 1.0F : -1.0F);
    values.front() = 0;
    for (const double eps : {1e-2, 0.0, -1.0, 2.0}) {
      std::size_t below = 0;
      for (const float value : values) below += std::abs(value) < static_cast<float>(eps) ? 1 : 0;
      std::vector<std::byte> bytes(count * sizeof(float));
      std::memcpy(bytes.data(), values.data(), bytes.size());
      const Observation observation = observe_view(
          view_of_bytes(bytes, tensor::DType::float32, {static_cast<std::int64_t>(count)}), eps, "");
      CHECK(observation.cell(MonitorStatistic::zeros).real ==
            static_cast<float>(below) / static_cast<float>(count));
    }
  }
}

TEST_CASE("Without zeros all other figures have the same bits") {
  const auto same = [](const ObservedCell& a, const ObservedCell& b) {
    return a.kind == b.kind && a.integer == b.integer && a.text == b.text &&
           std::bit_cast<std::uint64_t>(a.real) == std::bit_cast<std::uint64_t>(b.real);
  };
  const auto check = [&](const auto& values, tensor::DType dtype) {
    std::vector<std::byte> bytes(values.size() * sizeof values[0]);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    const TensorView view = view_of_bytes(bytes, dtype, {static_cast<std::int64_t>(values.size())});
    const Observation whole = observe_view(view, kEps, "");
    const Observation less = observe_view(view, std::nullopt, "");
    CHECK(less.cell(MonitorStatistic::zeros).kind == ObservedCell::ObservedType::absent);
    for (const MonitorStatistic statistic :
         {MonitorStatistic::norm, MonitorStatistic::min, MonitorStatistic::max, MonitorStatistic::mean,
          MonitorStatistic::nans})
      CHECK(same(less.cell(statistic), whole.cell(statistic)));
  };
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  for (const std::size_t count : {std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{10'007}}) {
    // Place and value of one element, which may be not finite, in any block.
    for (const auto& [place, value] : {std::pair{0.0, 1.0F},
                                       {0.0, nan},
                                       {0.1, nan},
                                       {0.5, kInfinity},
                                       {0.5, -kInfinity},
                                       {0.999, nan},
                                       {0.3, 0.0F}}) {
      CAPTURE(count);
      CAPTURE(place);
      CAPTURE(value);
      std::vector<float> values(count);
      std::generate(values.begin(), values.end(), [&] { return normal(random); });
      values[static_cast<std::size_t>(place * static_cast<double>(count))] = value;
      check(values, tensor::DType::float32);
      std::vector<double> wide(values.begin(), values.end());
      check(wide, tensor::DType::float64);
      for (double& one : wide) one *= 1e200;
      check(wide, tensor::DType::float64);
    }
  }
  check(std::vector<std::int64_t>{0, -3, 5}, tensor::DType::int64);
}

TEST_CASE("Norm and mean of doubles hold over their whole range") {
  for (const double scale : {1e-320, 1e-200, 1.0, 1e200, 1e307}) {
    const std::vector<double> values = {3 * scale, -4 * scale, 12 * scale};
    std::vector<std::byte> bytes(values.size() * sizeof(double));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    const Observation observation = observe_view(view_of_bytes(bytes, tensor::DType::float64, {3}), kEps, "");
    CHECK(observation.cell(MonitorStatistic::norm).real == doctest::Approx(13 * scale).epsilon(1e-3));
    CHECK(observation.cell(MonitorStatistic::mean).real == doctest::Approx(11 * scale / 3).epsilon(1e-3));
  }
  const std::vector<double> values = {std::numeric_limits<double>::infinity(), 1};
  std::vector<std::byte> bytes(values.size() * sizeof(double));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const Observation observation = observe_view(view_of_bytes(bytes, tensor::DType::float64, {2}), kEps, "");
  CHECK(std::isinf(observation.cell(MonitorStatistic::norm).real));
}

TEST_CASE("Calls of one operation are folded") {
  Observation all = collector::monitor::observe_number(3, kEps, "torch.float32");
  all.fold(collector::monitor::observe_number(-5, kEps, "torch.float32"));
  all.fold(Observation());
  CHECK(all.cell(MonitorStatistic::norm).real == 8);
  CHECK(all.cell(MonitorStatistic::min).real == -5);
  CHECK(all.cell(MonitorStatistic::max).real == 3);
  CHECK(all.cell(MonitorStatistic::mean).real == -1);
  CHECK(all.cell(MonitorStatistic::nans).integer == 0);
  CHECK(all.cell(MonitorStatistic::shape).kind == ObservedCell::ObservedType::absent);
  all.fold(collector::monitor::observe_number(std::nan(""), kEps, "torch.float32"));
  all.fold(collector::monitor::observe_number(9, kEps, "torch.float32"));
  CHECK(std::isnan(all.cell(MonitorStatistic::max).real));
  CHECK(all.cell(MonitorStatistic::nans).integer == 1);
}

}  // namespace msprobe::monitor_statistics_test

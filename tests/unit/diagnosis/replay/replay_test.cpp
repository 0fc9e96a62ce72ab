// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay/replay.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../../dump/entry_text.hpp"
#include "../../support/scratch_directory.hpp"
#include "calls.hpp"
#include "support/parallel.hpp"

namespace msprobe::diagnosis::replay::replay_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kBase = 16 * 0x1p-24;

/// x W^T + b in long double.
std::vector<long double> linear_reference(const std::vector<double>& x, const std::vector<double>& w,
                                          const std::vector<double>& b, std::size_t depth) {
  std::vector<long double> result;
  const std::size_t columns = w.size() / depth;
  for (std::size_t m = 0; m < x.size() / depth; ++m) {
    for (std::size_t n = 0; n < columns; ++n) {
      long double sum = b.empty() ? 0.0L : static_cast<long double>(b[n]);
      for (std::size_t k = 0; k < depth; ++k) {
        sum += static_cast<long double>(x[m * depth + k]) * static_cast<long double>(w[n * depth + k]);
      }
      result.push_back(sum);
    }
  }
  return result;
}

std::vector<double> as_float(const std::vector<long double>& values) {
  std::vector<double> result;
  for (const long double value : values) result.push_back(static_cast<double>(static_cast<float>(value)));
  return result;
}

/// norm(y - f) / norm(f)
double distance(const std::vector<double>& y, const std::vector<long double>& f) {
  long double difference = 0;
  long double norm = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const long double d = static_cast<long double>(y[i]) - f[i];
    difference += d * d;
    norm += f[i] * f[i];
  }
  return static_cast<double>(std::sqrt(difference / norm));
}

// ---------------------------------------------------------------------- results

TEST_CASE("replay: r is the distance from the reference, rounded or corrupted") {
  const auto x = numbers(6 * 11, 1);
  const auto w = numbers(5 * 11, 2);
  const auto b = numbers(5, 3);
  const auto reference = linear_reference(x, w, b, 11);
  auto y = as_float(reference);
  const auto replay_y = [&] {
    return one(
        call_of("Functional.linear", {f32({2, 3, 11}, x), f32({5, 11}, w), f32({5}, b)}, f32({2, 3, 5}, y)));
  };
  ReplayedOutput told = replay_y();
  CHECK(told.place == "output.0");
  CHECK(told.status == Status::computed);
  CHECK(told.r == doctest::Approx(distance(y, reference)).epsilon(1e-6));
  CHECK(told.r <= told.tolerance);
  for (std::size_t i = 10; i < 13; ++i) y[i] += 0.25;
  told = replay_y();
  CHECK(told.r == doctest::Approx(distance(y, reference)).epsilon(1e-6));
  CHECK(told.r > 1e3 * told.tolerance);
}

TEST_CASE("replay: the tolerance is 4 u of the output's type and 16 * 2^-24") {
  const auto tolerance = [](DType dtype) {
    const Tensor tensor = tensor_of(dtype, {2}, {1, 0});
    return one(call_of("Torch.abs", {value_of(tensor)}, value_of(tensor))).tolerance;
  };
  CHECK(tolerance(DType::float64) == doctest::Approx(4 * 0x1p-53 + kBase).epsilon(1e-12));
  CHECK(tolerance(DType::float32) == doctest::Approx(4 * 0x1p-24 + kBase).epsilon(1e-12));
  CHECK(tolerance(DType::float16) == doctest::Approx(4 * 0x1p-11 + kBase).epsilon(1e-4));
  CHECK(tolerance(DType::bfloat16) == doctest::Approx(4 * 0x1p-8 + kBase).epsilon(1e-12));
  CHECK(tolerance(DType::int64) == kBase);
}

TEST_CASE("replay: sums that cancel may be further away, as rounding makes them") {
  const auto x = numbers(2000, 7);
  const double sum = std::accumulate(x.begin(), x.end(), 0.0);
  std::vector<double> balanced = x;
  balanced[0] -= sum - 0x1p-20;  // the sum is as good as nothing
  const ReplayedOutput told = one(call_of("Torch.sum", {f64({2000}, balanced)}, f64({}, {0x1p-20})));
  CHECK(told.status == Status::computed);
  CHECK(told.r < told.tolerance);
  CHECK(told.tolerance > 1);
}

TEST_CASE("replay: gelu, softmax and layer_norm by the textbook") {
  const auto x = numbers(24, 5);
  std::vector<long double> gelu;
  std::vector<long double> softmax(24);
  std::vector<long double> normalized(24);
  for (const double value : x) {
    const auto v = static_cast<long double>(value);
    gelu.push_back(v * 0.5L * (1 + std::erf(v / std::sqrt(2.0L))));
  }
  for (std::size_t row = 0; row < 24; row += 6) {
    long double sum = 0;
    long double mean = 0;
    long double variance = 0;
    for (std::size_t i = row; i < row + 6; ++i) {
      sum += std::exp(static_cast<long double>(x[i]));
      mean += static_cast<long double>(x[i]) / 6;
    }
    for (std::size_t i = row; i < row + 6; ++i) {
      variance += (static_cast<long double>(x[i]) - mean) * (static_cast<long double>(x[i]) - mean) / 6;
    }
    for (std::size_t i = row; i < row + 6; ++i) {
      softmax[i] = std::exp(static_cast<long double>(x[i])) / sum;
      normalized[i] = (static_cast<long double>(x[i]) - mean) / std::sqrt(variance + 1e-3L);
    }
  }
  const auto r_of = [&](const std::string& name, std::vector<Value> more,
                        const std::vector<long double>& reference, std::vector<NamedValue> keywords) {
    std::vector<double> y;
    for (const long double value : reference) y.push_back(static_cast<double>(value));
    more.insert(more.begin(), f64({4, 6}, x));
    const ReplayedOutput told = one(call_of(name, more, f64({4, 6}, y), std::move(keywords)));
    CHECK(told.status == Status::computed);
    return told.r;
  };
  CHECK(r_of("Functional.gelu", {}, gelu, {}) < 1e-15);
  CHECK(r_of("Functional.gelu", {}, gelu, {{"approximate", text("tanh")}}) > 1e-5);
  CHECK(r_of("Functional.softmax", {integer(-1)}, softmax, {}) < 1e-15);
  CHECK(r_of("Functional.softmax", {integer(0)}, softmax, {}) > 1e-2);
  CHECK(r_of("Functional.layer_norm", {list({integer(6)})}, normalized, {{"eps", number(1e-3)}}) < 1e-15);
  CHECK(r_of("Functional.layer_norm", {list({integer(6)})}, normalized, {{"eps", number(1e-5)}}) > 1e-4);
}

// ---------------------------------------------------------------------- large products

TEST_CASE("replay: a large product is judged without being computed, and the same on any number of threads") {
  constexpr std::size_t kSize = 300;
  const auto x = numbers(kSize * kSize, 11);
  const auto w = numbers(kSize * kSize, 12);
  const auto reference = linear_reference(x, w, {}, kSize);
  auto y = as_float(reference);
  const auto told_of = [&] {
    const std::int64_t n = kSize;
    return one(call_of("Functional.linear", {f32({n, n}, x), f32({n, n}, w)}, f32({n, n}, y)));
  };
  ReplayedOutput told = told_of();
  CHECK(told.status == Status::computed);
  CHECK(told.r == doctest::Approx(distance(y, reference)).epsilon(0.2));
  CHECK(told.r < told.tolerance);
  for (std::size_t row = 32; row < 40; ++row) {
    for (std::size_t column = 64; column < 72; ++column) y[row * kSize + column] *= 1.01;
  }
  told = told_of();
  CHECK(told.r == doctest::Approx(distance(y, reference)).epsilon(0.4));
  CHECK(told.r > 10 * told.tolerance);
  const ThreadLimit limit(1);
  CHECK(told_of().r == told.r);
  y[5] = std::numeric_limits<double>::quiet_NaN();
  CHECK(told_of().r == kInf);
}

TEST_CASE("replay: a large product gets the same result while it is read and from memory") {
  constexpr std::int64_t kRows = 300, kDepth = 310, kColumns = 320;
  const auto x = numbers(kRows * kDepth, 41);
  const auto w = numbers(kColumns * kDepth, 42);
  const auto bias = numbers(kColumns, 43);
  std::vector<double> transposed(w.size());
  for (std::size_t n = 0; n < kColumns; ++n) {
    for (std::size_t k = 0; k < kDepth; ++k) transposed[k * kColumns + n] = w[n * kDepth + k];
  }
  const auto reference = linear_reference(x, w, {}, kDepth);
  auto y = as_float(reference);
  for (std::size_t i = 1000; i < 3000; ++i) y[i] *= 1.01;
  const Value left = f32({kRows, kDepth}, x);
  const Value rows = f32({kColumns, kDepth}, w);
  const Value columns = f32({kDepth, kColumns}, transposed);
  const Value out = f32({kRows, kColumns}, y);
  // Only what an equation multiplies is held in memory.
  const ReplayedOutput held = one(call_of("Torch.einsum", {text("mk,nk->mn"), left, rows}, out));
  const double truth = distance(y, reference);
  CHECK(held.r == doctest::Approx(truth).epsilon(0.4));
  for (const auto& call :
       {call_of("Functional.linear", {left, rows}, out), call_of("Torch.matmul", {left, columns}, out)}) {
    const ReplayedOutput told = one(call);
    CHECK(told.r == doctest::Approx(held.r).epsilon(1e-9));
    CHECK(told.tolerance == doctest::Approx(held.tolerance).epsilon(1e-9));
  }

  // The addend: one row for all rows, or a matrix.
  const auto with_bias = linear_reference(x, w, bias, kDepth);
  const Value sum = f32({kRows, kColumns}, as_float(with_bias));
  std::vector<double> matrix;
  for (std::int64_t m = 0; m < kRows; ++m) matrix.insert(matrix.end(), bias.begin(), bias.end());
  const ReplayedOutput once = one(call_of("Functional.linear", {left, rows, f32({kColumns}, bias)}, sum));
  CHECK(once.r < once.tolerance);
  CHECK(once.r == doctest::Approx(distance(as_float(with_bias), with_bias)).epsilon(0.2));
  const ReplayedOutput whole =
      one(call_of("Torch.addmm", {f32({kRows, kColumns}, matrix), left, columns}, sum));
  CHECK(whole.r == doctest::Approx(once.r).epsilon(1e-6));
  CHECK(whole.tolerance == doctest::Approx(once.tolerance).epsilon(1e-9));

  // Batches one after the other.
  std::vector<double> two_left = x, two_right = transposed, two_out = y;
  two_left.insert(two_left.end(), x.begin(), x.end());
  two_right.insert(two_right.end(), transposed.begin(), transposed.end());
  two_out.insert(two_out.end(), y.begin(), y.end());
  const ReplayedOutput batched =
      one(call_of("Torch.bmm", {f32({2, kRows, kDepth}, two_left), f32({2, kDepth, kColumns}, two_right)},
                  f32({2, kRows, kColumns}, two_out)));
  CHECK(batched.r == doctest::Approx(held.r).epsilon(1e-9));

  // Values that cannot be read or multiplied give no result.
  Value missing = left;
  missing.tensor.open = nullptr;
  CHECK(one(call_of("Functional.linear", {missing, rows}, out)).status == Status::argument_not_recorded);
  auto infinite = x;
  infinite[77] = kInf;
  CHECK(one(call_of("Functional.linear", {f32({kRows, kDepth}, infinite), rows}, out)).status ==
        Status::too_large);
}

TEST_CASE("replay: of long attention some rows are looked at, and a block of wrong ones is seen") {
  // All keys are equal: the result is the mean of the values.
  constexpr std::int64_t kLength = 512;
  const auto values = numbers(kLength, 31);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / kLength;
  std::vector<double> y(kLength, mean);
  const auto told_of = [&](std::uint64_t work) {
    const Value same = f64({1, kLength, 1}, std::vector<double>(kLength, 1.0));
    return one(call_of("Functional.scaled_dot_product_attention", {same, same, f64({1, kLength, 1}, values)},
                       f64({1, kLength, 1}, y)),
               {1 << 28, work});
  };
  for (const std::uint64_t work : {std::uint64_t{1} << 30, std::uint64_t{1} << 20}) {
    std::fill(y.begin(), y.end(), mean);
    ReplayedOutput told = told_of(work);
    CHECK(told.status == Status::computed);
    CHECK(told.covered == (work == std::uint64_t{1} << 30 ? 1 : 0.2));
    CHECK(told.r < told.tolerance);
    std::fill(y.begin() + 100, y.begin() + 110, 1.5 * mean);
    told = told_of(work);
    // 10 rows of 512, of which 2 are among the 103 that are looked at.
    CHECK(told.r == doctest::Approx(0.5 * std::sqrt(10.0 / 512)).epsilon(0.02));
    CHECK(told.r > told.tolerance);
  }
  CHECK(told_of(1 << 10).status == Status::too_large);
}

// ---------------------------------------------------------------------- numbers that are not finite

TEST_CASE("replay: infinities and NaN agree in their places, and what overflows the type is infinite") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto r_of_log = [&](const std::vector<double>& y) {
    return one(call_of("Torch.log", {f64({4}, {1, 0, -1, 1})}, f64({4}, y))).r;
  };
  CHECK(r_of_log({0, -kInf, nan, 0}) == 0);
  CHECK(r_of_log({0, kInf, nan, 0}) == kInf);
  CHECK(r_of_log({0, -1e30, nan, 0}) == kInf);
  CHECK(r_of_log({0, -kInf, 0, 0}) == kInf);
  CHECK(r_of_log({nan, -kInf, nan, 0}) == kInf);

  const auto r_of_square = [](double y) {
    return one(call_of("Torch.mul", {f32({2}, {1, 300}), number(300)},
                       value_of(tensor_of(DType::float16, {2}, {kInf, y}))))
        .r;
  };
  CHECK(r_of_square(kInf) == kInf);  // 300 is no infinity
  const ReplayedOutput told = one(call_of("Torch.mul", {f32({2}, {1, 300}), number(65504)},
                                          value_of(tensor_of(DType::float16, {2}, {65504, kInf}))));
  CHECK(told.r == 0);
}

TEST_CASE("replay: integers are exact, and no statement is made where they leave their type") {
  const auto told = [](double y, double factor) {
    return one(call_of("Torch.mul", {value_of(tensor_of(DType::int8, {2}, {100, 3})), number(factor)},
                       value_of(tensor_of(DType::int8, {2}, {y, 3 * factor}))));
  };
  CHECK(told(100, 1).r == 0);
  CHECK(told(99, 1).r > 0);
  CHECK(told(-56, 2).status == Status::unknown_argument);
  const ReplayedOutput added =
      one(call_of("Torch.add", {value_of(tensor_of(DType::int64, {1}, {0x1p60})), integer(1)},
                  value_of(tensor_of(DType::int64, {1}, {0x1p60}))));
  CHECK(added.status == Status::unknown_argument);
}

TEST_CASE("replay: any place of the maximum is its place") {
  const auto told = [](double place) {
    Call call = call_of("Torch.max", {f32({2, 3}, {1, 5, 5, 2, 0, 1}), integer(1)}, f32({2}, {5, 2}));
    call.outputs.push_back({"output.1", tensor_of(DType::int64, {2}, {place, 0})});
    return replay(call);
  };
  CHECK(told(1)[1].r == 0);
  CHECK(told(2)[1].r == 0);
  CHECK(told(0)[1].r > 0);
  CHECK(told(7)[1].r > 0);
  CHECK(told(0)[0].r == 0);
}

// ---------------------------------------------------------------------- no statement

TEST_CASE("replay: what is not known is not judged") {
  const Value x = f32({2, 2}, {1, 2, 3, 4});
  const auto status = [&](const std::string& name, std::vector<Value> positional,
                          std::vector<NamedValue> keywords = {}) {
    return one(call_of(name, std::move(positional), x, std::move(keywords))).status;
  };
  CHECK(status("Functional.frobnicate", {x}) == Status::unknown_operation);
  CHECK(status("mylib.linear", {x, x}) == Status::unknown_operation);
  CHECK(status("Module.LayerNorm", {x}) == Status::unknown_operation);
  CHECK(status("Torch.relu", {x}, {{"slope", number(1)}}) == Status::unknown_argument);
  CHECK(status("Torch.relu", {x, x, x}) == Status::unknown_argument);
  CHECK(status("Torch.relu", {x}, {{"input", x}}) == Status::unknown_argument);
  CHECK(status("Torch.relu", {}) == Status::argument_not_recorded);
  CHECK(status("Functional.gelu", {x}, {{"approximate", text("sometimes")}}) == Status::unknown_argument);
  CHECK(status("Functional.softmax", {x, integer(2)}) == Status::unknown_argument);
  CHECK(status("Torch.add", {x, f32({3}, {1, 2, 3})}) == Status::unknown_argument);
  CHECK(status("Torch.matmul", {x, f32({3, 2}, {1, 2, 3, 4, 5, 6})}) == Status::unknown_argument);
  CHECK(status("Torch.cumsum", {x}) == Status::unknown_argument);
  for (const std::string equation :
       {"", "ij", "ij,jk,kl", "i.j,jk", "ij,jk->iq", "ii,ij", "->,", "ij->,jk", "..,jk", "i,jk"}) {
    CAPTURE(equation);
    CHECK(status("Torch.einsum", {text(equation), x, x}) == Status::unknown_argument);
  }
  const Value index = value_of(tensor_of(DType::int64, {2}, {0, 2}));
  CHECK(status("Functional.embedding", {index, x}) == Status::unknown_argument);
  CHECK(status("Torch.index_select", {x, integer(0), index}) == Status::unknown_argument);
  // The shape of the output is not the one that the operation has.
  CHECK(status("Torch.relu", {f32({4}, {1, 2, 3, 4})}) == Status::unknown_argument);
  Value unread = x;
  unread.tensor.open = nullptr;
  CHECK(status("Torch.relu", {unread}) == Status::argument_not_recorded);
  Value shard = x;
  shard.tensor.plain = false;
  CHECK(status("Torch.relu", {shard}) == Status::unknown_argument);
  Value other_shape = x;
  other_shape.tensor.shape = {4};
  CHECK(status("Torch.relu", {other_shape}) == Status::argument_not_recorded);
  CHECK(status("Functional.scaled_dot_product_attention", {x, x, x, {}, number(0.1)}) == Status::random);
}

TEST_CASE("replay: arguments are those of the function that was called") {
  const Value x = f32({2, 2}, {1, 2, 3, 5});
  const Value rows = value_of(tensor_of(DType::int64, {1}, {1}));
  const Value yes = value_of(tensor_of(DType::boolean, {2, 2}, {1, 1, 0, 0}));
  const Value ones = f32({2, 2}, {1, 1, 1, 1});
  Value truth = integer(0);
  truth.kind = Value::ValueForm::boolean;
  const auto r = [](const std::string& name, std::vector<Value> positional, Value output,
                    std::vector<NamedValue> keywords = {}) {
    const ReplayedOutput told =
        one(call_of(name, std::move(positional), std::move(output), std::move(keywords)));
    CAPTURE(name);
    CHECK(told.status == Status::computed);
    return told.r;
  };
  CHECK(r("Functional.embedding", {rows, x}, f32({1, 2}, {3, 5})) == 0);
  CHECK(r("Torch.embedding", {x, rows}, f32({1, 2}, {3, 5})) == 0);
  CHECK(r("Torch.where", {yes, x, ones}, f32({2, 2}, {1, 2, 1, 1})) == 0);
  CHECK(r("Tensor.where", {x, yes, ones}, f32({2, 2}, {1, 2, 1, 1})) == 0);
  CHECK(r("Functional.dropout", {x, number(0.5)}, x, {{"training", truth}}) == 0);
  CHECK(r("Torch.dropout", {x, number(0.5), truth}, x) == 0);
  CHECK(r("Torch.max", {x, ones}, x) == 0);
  CHECK(r("Torch.max", {x}, x, {{"other", ones}}) == 0);
  CHECK(r("Torch.sum", {x}, f32({2}, {3, 8}), {{"axis", integer(1)}}) == 0);
  CHECK(r("Torch.var", {f32({2}, {1, 3}), truth}, f32({}, {1})) == 0);
  CHECK(r("Torch.var", {f32({2}, {1, 3}), integer(0), truth}, f32({}, {1})) == 0);
  CHECK(r("Torch.var", {f32({2}, {1, 3})}, f32({}, {1}), {{"unbiased", truth}}) == 0);
  CHECK(r("Torch.var", {f32({2}, {1, 3}), integer(0)}, f32({}, {1}), {{"correction", integer(0)}}) == 0);
  CHECK(r("Tensor.__rsub__", {x, integer(1)}, f32({2, 2}, {0, -1, -2, -4})) == 0);
  CHECK(r("Tensor.__rmatmul__", {x, ones}, f32({2, 2}, {4, 7, 4, 7})) == 0);
  CHECK(r("Tensor.to", {x, text("cuda:0"), {}, truth}, x) == 0);
  CHECK(r("Module.Mish", {f32({1}, {0})}, f32({1}, {0})) == 0);
  const auto status = [&](const std::string& name, std::vector<Value> positional) {
    return one(call_of(name, std::move(positional), x)).status;
  };
  // Its settings are not recorded; a private function may differ; no collective is replayed.
  CHECK(status("Module.Softplus", {x}) == Status::unknown_operation);
  CHECK(status("Distributed.gather", {x}) == Status::unknown_operation);
  CHECK(status("Torch._softmax", {x, integer(1), truth}) == Status::unknown_operation);
  CHECK(status("Torch.sum", {x, integer(0), truth, truth}) == Status::unknown_argument);
}

TEST_CASE("replay: where an operation may be in place an input that is the output says nothing") {
  const Value x = f32({2}, {-1, 2});
  const Value doubled = f32({2}, {-2, 4});
  CHECK(one(call_of("Tensor.mul_", {x, number(2)}, doubled)).r == 0);
  CHECK(one(call_of("Tensor.mul_", {doubled, number(2)}, doubled)).status == Status::argument_not_recorded);
  CHECK(one(call_of("Tensor.__imul__", {doubled, number(2)}, doubled)).status ==
        Status::argument_not_recorded);
  CHECK(one(call_of("Tensor.mul", {doubled, number(2)}, doubled)).r == doctest::Approx(0.5));
  CHECK(one(call_of("Module.SiLU", {doubled}, doubled)).status == Status::argument_not_recorded);
  CHECK(one(call_of("Module.ReLU", {f32({2}, {0, 2})}, f32({2}, {0, 2}))).r == 0);
}

TEST_CASE("replay: memory and time are bounded") {
  // Two vectors of a file of some bytes make a matrix of 2^40 elements.
  Tensor row = tensor_of(DType::float32, {1}, {1});
  const auto stretched = [&](std::vector<std::int64_t> shape) {
    Tensor result = row;
    result.shape = shape;
    formats::StoredTensor stored = row.open();
    stored.strides.assign(shape.size(), 0);
    stored.shape = std::move(shape);
    result.open = [stored] { return stored; };
    return value_of(result);
  };
  const Value long_row = stretched({1, 1 << 20});
  const Value long_column = stretched({1 << 20, 1});
  const Value x = f32({1}, {1});
  CHECK(one(call_of("Torch.add", {long_row, long_column}, x)).status == Status::too_large);
  CHECK(one(call_of("Torch.matmul", {long_column, long_row}, x)).status == Status::too_large);
  CHECK(one(call_of("Torch.relu", {stretched({1 << 20, 1 << 20, 1 << 20, 1 << 20})}, x)).status ==
        Status::too_large);
  CHECK(one(call_of("Torch.relu", {stretched({1 << 20})}, x), {1 << 19, 1 << 20}).status ==
        Status::too_large);
  const Value matrix = stretched({200, 200});
  CHECK(one(call_of("Torch.matmul", {matrix, matrix}, matrix), {1 << 20, 1 << 20}).status ==
        Status::too_large);
}

// ---------------------------------------------------------------------- entries

std::string npy(const std::string& descr, const std::string& shape, const std::vector<std::byte>& bytes) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118, ' ');
  header.back() = '\n';
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header +
         std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string tensor_text(const std::string& type, const std::string& dtype, const std::string& file) {
  return R"({"type":")" + type + R"(","dtype":")" + dtype + R"(","shape":[3],"Max":1,"data_name":")" + file +
         R"("})";
}

TEST_CASE("replay: an entry is read with its arguments, parameters and outputs") {
  const test::ScratchDirectory scratch;
  test::put_file(scratch / "x.npy", npy("<f4", "(3,)", bytes_of(DType::float32, {1, 2, 3})));
  test::put_file(scratch / "y.npy", npy("<f4", "(3,)", bytes_of(DType::float32, {4, 5, 6})));
  const std::string x = tensor_text("torch.Tensor", "torch.float32", "x.npy");
  const std::string y = tensor_text("torch.Tensor", "torch.float32", "y.npy");
  const std::string arguments =
      R"({"input_args":[)" + x +
      R"(,{"type":"int","value":3},{},[{"type":"bool","value":true},null]],"input_kwargs":)" +
      R"({"mode":{"type":"str","value":"a"},"dtype":{"type":"torch.dtype","value":"torch.float16"}},"output":[)" +
      x + "," + R"({"values":)" + y + "}]}";
  const auto call = read_call("Functional.linear.7.forward", dump::entry_of(arguments), scratch.path());
  REQUIRE(call.has_value());
  CHECK(call->prefix == "Functional");
  CHECK(call->operation == "linear");
  CHECK(!call->is_mindspore);
  REQUIRE(call->positional.size() == 4);
  CHECK(call->positional[0].tensor.shape == std::vector<std::int64_t>{3});
  CHECK(call->positional[1].number == 3);
  CHECK(call->positional[2].kind == Value::ValueForm::other);
  REQUIRE(call->positional[3].items.size() == 2);
  CHECK(call->positional[3].items[0].kind == Value::ValueForm::boolean);
  CHECK(call->positional[3].items[1].kind == Value::ValueForm::none);
  REQUIRE(call->keywords.size() == 2);
  CHECK(call->keywords[0].value.text == "a");
  CHECK(call->keywords[1].value.dtype == DType::float16);
  REQUIRE(call->outputs.size() == 2);
  CHECK(call->outputs[1].place == "output.1.values");

  const auto told = [&](const std::string& name, const std::string& other, const std::string& folder) {
    const std::string entry = R"({"input_args":[)" + other +
                              R"(,{"type":"int","value":3}],"input_kwargs":{},"output":[)" + y + "]}";
    return replay_entry(name, dump::entry_of(entry), folder);
  };
  REQUIRE(told("Tensor.__add__.0.forward", x, scratch.path()).size() == 1);
  CHECK(told("Tensor.__add__.0.forward", x, scratch.path())[0].r == 0);
  CHECK(told("Tensor.__rsub__.0.forward", x, scratch.path())[0].r > 0.1);
  const ReplayedOutput nowhere = told("Tensor.__add__.0.forward", x, scratch / "nowhere")[0];
  CHECK(nowhere.status == Status::broken_off);
  CHECK(nowhere.reason.find("nowhere") != std::string::npos);
  const std::string outside = tensor_text("torch.Tensor", "torch.float32", "../x.npy");
  CHECK(told("Tensor.__add__.0.forward", outside, scratch.path())[0].status == Status::broken_off);
  // A file that lost its end since the rows were measured.
  test::put_file(scratch / "z.npy", npy("<f4", "(3,)", bytes_of(DType::float32, {1, 2})));
  const std::string cut = tensor_text("torch.Tensor", "torch.float32", "z.npy");
  const ReplayedOutput lost = told("Tensor.__add__.0.forward", cut, scratch.path())[0];
  CHECK(lost.status == Status::broken_off);
  CHECK(lost.reason.find("z.npy: ") != std::string::npos);
  CHECK(told("Tensor.__add__.0.backward", x, scratch.path()).empty());
  // MindSpore's `Tensor.add` is the same, its `Functional.linear` need not be.
  const std::string of_mindspore = tensor_text("mindspore.Tensor", "Float32", "x.npy");
  CHECK(told("Tensor.add.0.forward", of_mindspore, scratch.path())[0].r == 0);
  CHECK(told("Functional.clamp.0.forward", of_mindspore, scratch.path())[0].status ==
        Status::unknown_operation);
  CHECK(told("Mint.clamp.0.forward", of_mindspore, scratch.path())[0].status == Status::computed);
  const std::string shard = tensor_text("torch.distributed.tensor.DTensor", "torch.float32", "x.npy");
  CHECK(told("Tensor.__add__.0.forward", shard, scratch.path())[0].status == Status::unknown_argument);
}

TEST_CASE("replay: entries of any form are taken without harm") {
  for (const std::string text :
       {"null", "[]", "{}", "3", R"({"input_args":null,"output":3})",
        R"({"input_args":[[[[[[[[1]]]]]]]],"output":{}})",
        R"({"input_args":[{"type":"torch.Tensor"}],"output":[{"type":"torch.Tensor","shape":[-1]}]})",
        R"({"input_args":[],"output":[{"type":"torch.Tensor","dtype":"torch.float32","shape":[1e300]}]})",
        R"({"input_args":[],"output":[{"type":"torch.Tensor","dtype":4,"shape":{"a":3},"data_name":5}]})"}) {
    CAPTURE(text);
    for (const auto& output : replay_entry("Torch.relu.0.forward", dump::entry_of(text), ".")) {
      CHECK(output.status != Status::computed);
    }
  }
}

TEST_CASE("replay: a module takes its parameters") {
  const auto told = [](bool has_weight, bool has_section) {
    Call call = call_of("Module.Linear", {f64({1, 2}, {1, 2})}, f64({1, 2}, {5, 10}));
    call.has_parameters = has_section;
    if (has_weight) call.parameters.push_back({"weight", f64({2, 2}, {1, 2, 3, 3})});
    if (has_weight) call.parameters.push_back({"bias", f64({2}, {0, 1})});
    return one(call);
  };
  CHECK(told(true, true).r == 0);
  CHECK(told(false, true).status == Status::argument_not_recorded);
  CHECK(told(false, false).status == Status::argument_not_recorded);
}

}  // namespace
}  // namespace msprobe::diagnosis::replay::replay_test

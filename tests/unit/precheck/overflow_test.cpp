// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/overflow.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace msprobe::precheck::overflow_test {
namespace {

using tensor::DType;

template <typename T>
bool overflows_in(DType dtype, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  const CallOutput tensor{TensorOutput{dtype, {bytes.size() / tensor::info(dtype).size}, bytes}};
  const CallOutput list{CallOutput::List{{CallOutput{}, tensor}, true}};
  CHECK(overflows(list) == overflows(tensor));
  return overflows(tensor);
}

bool overflows_as_number(ScalarOutput::ScalarKind kind, double value) {
  return overflows({ScalarOutput{kind, "", value}});
}

}  // namespace

TEST_CASE("NaN and infinities of any floating-point type are overflow, the largest numbers are not") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  CHECK(overflows_in<float>(DType::float32, {1, -kInfinity}));
  CHECK(overflows_in<float>(DType::float32, {std::numeric_limits<float>::quiet_NaN()}));
  CHECK_FALSE(overflows_in<float>(DType::float32, {kLargest, -kLargest, 0}));
  CHECK_FALSE(overflows_in<float>(DType::float32, {}));
  CHECK(overflows_in<float>(DType::complex64, {1, 2, 3, kInfinity}));
  CHECK_FALSE(overflows_in<float>(DType::complex64, {1, 2, 3, kLargest}));
  CHECK(overflows_in<std::uint16_t>(DType::float16, {0x7BFF, 0x7C00}));
  CHECK_FALSE(overflows_in<std::uint16_t>(DType::float16, {0x7BFF, 0xFBFF}));
  CHECK(overflows_in<std::uint16_t>(DType::bfloat16, {0xFF80}));
  CHECK(overflows_in<double>(DType::float64, std::vector<double>(5000, 1.0)) == false);
  std::vector<double> long_one(5000, 1.0);
  long_one.back() = std::numeric_limits<double>::infinity();  // in the last block
  CHECK(overflows_in<double>(DType::float64, long_one));
  CHECK_FALSE(overflows_in<std::uint32_t>(DType::int32, {0x7F800000}));
  CHECK_FALSE(overflows({}));
  CHECK(overflows_as_number(ScalarOutput::ScalarKind::real, std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(overflows_as_number(ScalarOutput::ScalarKind::real, 1e308));
  CHECK_FALSE(
      overflows_as_number(ScalarOutput::ScalarKind::integer, std::numeric_limits<double>::infinity()));
}

TEST_CASE("overflow on one side alone is abnormal, and what was not called is listed") {
  OverflowTally tally;
  const auto take = [&](const std::string& name, std::optional<CallOverflow> overflow,
                        const std::string& reason = "") {
    OperationReport report;
    report.name = name;
    report.overflow = overflow;
    report.reason = reason;
    tally.take(report);
  };
  take("Torch.exp.0", CallOverflow::both);
  take("Torch.mul.0", CallOverflow::device);
  take("Torch.add.0", CallOverflow::none);
  take("Torch.div.0", CallOverflow::reference);
  take("Torch.rand.0", std::nullopt, "its result is random");
  CheckSummary summary;
  summary.torch = "2.0";
  summary.device = "npu:0";
  CHECK(tally.called() == 4);
  CHECK(tally.text(summary, false) ==
        "4 operations on npu:0, PyTorch 2.0: 3 overflow, 2 of them abnormal, 1 not called\n"
        "  overflow  Torch.exp.0  on the CPU and on npu:0\n"
        "  abnormal  Torch.mul.0  only on npu:0\n"
        "  abnormal  Torch.div.0  only on the CPU\n"
        "  not called  Torch.rand.0  its result is random");
  summary.device = "cpu";
  CHECK(tally.text(summary, false)
            .starts_with("4 operations on cpu, PyTorch 2.0: 3 overflow, 0 of them abnormal"));
}

}  // namespace msprobe::precheck::overflow_test

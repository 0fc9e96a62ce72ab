// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "diagnosis/noise_floor.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"

namespace msprobe::diagnosis::unstable_calls_test {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();
constexpr std::string_view kHeader =
    "\xEF\xBB\xBFrank,pert_mode,stage,step,api_name,max_rel,dtype,shape,output_index\r\n";

std::string tensor(std::string_view dtype, std::string_view shape, std::string_view norm) {
  return R"({"type": "torch.Tensor", "dtype": "torch.)" + std::string(dtype) + R"(", "shape": )" +
         std::string(shape) + R"(, "Max": 1, "Min": -1, "Mean": 0, "Norm": )" + std::string(norm) + "}";
}

dump::Side golden_side() {
  const std::string half = tensor("bfloat16", "[4, 8]", "5");
  const std::string text =
      R"({"task": "statistics", "level": "L1", "data": {"Torch.matmul.0.forward": {"input_args": [)" + half +
      R"(], "input_kwargs": {}, "output": [)" + half + R"(]}, "Torch.sum.0.forward": {"input_args": [)" +
      tensor("float32", "[100]", "10") + R"(], "input_kwargs": {}, "output": [)" +
      tensor("float32", "[]", "1e-6") + "]}}}";
  return dump::load_side(*memory_source(text, "dump.json"));
}

std::uint32_t output_of(const dump::Side& side, std::string_view entry) {
  for (std::uint32_t i = 0; i < side.items.size(); ++i) {
    if (side.items[i].state == dump::State::output && side.text(side.apis[side.items[i].api].name) == entry)
      return i;
  }
  FAIL("no output");
  return 0;
}

diagnosis::Noise noise(std::string_view rows, std::string_view entry) {
  const dump::Side golden = golden_side();
  const auto source = memory_source(std::string(kHeader) + std::string(rows), "free_benchmark.csv");
  return (*noise_of_unstable_calls(*source, golden))(output_of(golden, entry));
}

constexpr std::string_view kMatmul = "Torch.matmul.0.forward";
constexpr std::string_view kSum = "Torch.sum.0.forward";

TEST_CASE("the largest change of an element becomes an error of the whole") {
  // 32 elements of size 0.884: the smallest is about 1/32 of that, which is more than the 0.01 that counts.
  const diagnosis::Noise half =
      noise("0,bit_noise,forward,0,Torch.matmul.0.forward,0.118,torch.bfloat16,\"torch.Size([4, 8])\",\r\n",
            kMatmul);
  CHECK(half.error == doctest::Approx(0.118 / 32));
  CHECK(half.element == 0.118);
  CHECK(half.growth == doctest::Approx(0.118 / 32 / (1.44 * 0x1p-8)));
  // A single element is the whole, and has no more than all of it.
  const diagnosis::Noise sum =
      noise("0,bit_noise,forward,0,Torch.sum.0.forward,0.25,torch.float32,torch.Size([]),\r\n", kSum);
  CHECK(sum.error == doctest::Approx(0.25));
  CHECK(sum.growth == doctest::Approx(0.25 / (1.44 * 0x1p-24)));
  CHECK(
      noise("0,no_change,forward,0,Torch.sum.0.forward,7.5,torch.float32,torch.Size([]),\r\n", kSum).error ==
      1);
}

TEST_CASE("what changed nothing but the kernel or the precision says nothing of the inputs") {
  for (const std::string mode : {"no_change", "improve_precision", "to_cpu", "add_noise"}) {
    const diagnosis::Noise found = noise(
        "," + mode + ",forward,0,Torch.matmul.0.forward,0.118,torch.bfloat16,\"torch.Size([4, 8])\",\r\n",
        kMatmul);
    CHECK(found.error > 0);
    CHECK(found.growth == 0);
  }
  const diagnosis::Noise exchanged =
      noise("0,change_value,forward,0,Torch.matmul.0.forward,9,torch.bfloat16,\"torch.Size([4, 8])\",\r\n",
            kMatmul);
  CHECK(exchanged.error == 0);
  CHECK(exchanged.element == 0);
}

TEST_CASE("signs, NaN and what has no size") {
  const auto of = [](const std::string& found) {
    return noise("0,bit_noise,forward,0,Torch.matmul.0.forward," + found +
                     ",torch.bfloat16,\"torch.Size([4, 8])\",\r\n",
                 kMatmul);
  };
  CHECK(of("symbol_flipping").error == doctest::Approx(2.0 / 32));
  CHECK(of("symbol_flipping").element == kNoBound);
  CHECK(of("inf").error == 1);
  CHECK(of("inf").growth == 0);
  CHECK(of("").error == 0);
  CHECK(of("").element == kNoBound);
}

TEST_CASE("the worst of several rows, and rows of other tensors") {
  const std::string rows =
      "0,bit_noise,forward,0,Torch.matmul.0.forward,0.1,torch.bfloat16,\"torch.Size([4, 8])\",\r\n"
      "0,bit_noise,forward,0,Torch.matmul.0.forward,0.3,torch.bfloat16,\"torch.Size([4, 8])\",1\r\n"
      "0,bit_noise,forward,0,Torch.matmul.0.forward,8,torch.bfloat16,\"torch.Size([8, 4])\",\r\n"
      "0,bit_noise,forward,0,Torch.matmul.0.forward,8,torch.float32,\"torch.Size([4, 8])\",\r\n"
      "0,bit_noise,forward,0,Torch.matmul.1.forward,8,torch.bfloat16,\"torch.Size([4, 8])\",\r\n";
  CHECK(noise(rows, kMatmul).element == 0.3);
  CHECK(noise(rows, kSum).element == 0);
  CHECK(noise("", kMatmul).error == 0);
}

TEST_CASE("files that are no such table") {
  const dump::Side golden = golden_side();
  const auto refused = [&](std::string_view text) {
    CHECK_THROWS_AS(noise_of_unstable_calls(*memory_source(text, "free_benchmark.csv"), golden), FormatError);
  };
  refused("");
  refused("rank,pert_mode,stage,step,api_name,dtype,shape\n");
  for (const std::string wrong : {"nan", "-1", "1e999", "what", "0x1p3"})
    refused(std::string(kHeader) + "0,bit_noise,forward,0,Torch.matmul.0.forward," + wrong +
            ",torch.bfloat16,\"torch.Size([4, 8])\",\r\n");
  refused(std::string(kHeader) + "0,bit_noise,forward\r\n");
  refused(std::string(kHeader) + "0,bit_noise,\"forward");
}

}  // namespace

}  // namespace msprobe::diagnosis::unstable_calls_test

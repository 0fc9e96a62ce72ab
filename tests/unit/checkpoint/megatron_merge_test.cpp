// SPDX-License-Identifier: Apache-2.0
// Slices cut by Megatron's rules out of a whole, and put together again.
#include "checkpoint/megatron_merge.hpp"

#include <doctest/doctest.h>

#include <map>
#include <numeric>

#include "unit/checkpoint/memory_tensor.hpp"

namespace msprobe::checkpoint::megatron_merge_test {
namespace {

using tensor::DType;

std::vector<float> counted(std::int64_t count, float first = 0) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

Parameter matrix(std::int64_t rows, std::int64_t columns, float first = 0) {
  return in_memory(DType::float32, {rows, columns}, counted(rows * columns, first));
}

MergeContext context(std::map<std::string, Parameter>& siblings) {
  MergeContext result;
  result.sibling = [&](const std::string& name) -> const Parameter* {
    const auto found = siblings.find(name);
    return found == siblings.end() ? nullptr : &found->second;
  };
  return result;
}

/// A slice as a rank saves it: a separate tensor.
Parameter saved(const Parameter& part) {
  return in_memory(DType::float32, part.shape, elements<float>(part));
}

}  // namespace

TEST_CASE("a gated projection keeps its halves apart, by the shape of the second projection alone") {
  const Parameter gate = matrix(6, 4);
  const Parameter up = matrix(6, 4, 100);
  std::vector<Parameter> slices;
  for (const std::int64_t rank : {0, 1}) {
    slices.push_back(saved(concatenate({narrow(gate, 0, 3 * rank, 3), narrow(up, 0, 3 * rank, 3)}, 0)));
  }
  std::map<std::string, Parameter> siblings = {{"mlp.linear_fc2.weight", matrix(4, 3)}};
  CheckpointEntry entry = merge_slices("mlp.linear_fc1.weight", slices, context(siblings));
  CHECK(entry.problem.empty());
  CHECK(entry.parameter.shape == Shape{12, 4});
  CHECK(elements<float>(entry.parameter) == elements<float>(concatenate({gate, up}, 0)));
  SUBCASE("not gated: as many rows as the second projection has columns") {
    siblings = {{"mlp.linear_fc2.weight", matrix(4, 6)}};
    entry = merge_slices("mlp.linear_fc1.weight", slices, context(siblings));
    CHECK(elements<float>(entry.parameter) == elements<float>(concatenate(slices, 0)));
  }
  SUBCASE("without the second projection the arguments decide") {
    siblings.clear();
    MergeContext gated = context(siblings);
    gated.gated = true;
    CHECK(elements<float>(merge_slices("mlp.linear_fc1.weight", slices, gated).parameter) ==
          elements<float>(concatenate({gate, up}, 0)));
  }
  SUBCASE("biases, also of grouped experts") {
    siblings = {{"mlp.experts.linear_fc2.weight3", matrix(4, 2)}};
    const std::vector<Parameter> biases = {in_memory<float>(DType::float32, {4}, {0, 1, 10, 11}),
                                           in_memory<float>(DType::float32, {4}, {2, 3, 12, 13})};
    entry = merge_slices("mlp.experts.linear_fc1.bias3", biases, context(siblings));
    CHECK(elements<float>(entry.parameter) == std::vector<float>{0, 1, 2, 3, 10, 11, 12, 13});
  }
}

TEST_CASE("an odd number of rows has no halves, which is a problem of that parameter") {
  std::map<std::string, Parameter> none;
  MergeContext gated = context(none);
  gated.gated = true;
  const CheckpointEntry entry = merge_slices("mlp.linear_fc1.weight", {matrix(3, 2), matrix(3, 2)}, gated);
  CHECK(entry.problem.find("has no halves") != std::string::npos);
}

TEST_CASE("experts side by side in one tensor, over tensor and expert ranks") {
  // 4 experts, hidden 3, feed-forward 4 (gated: 8 columns); 2 expert ranks x 2 tensor ranks.
  constexpr std::int64_t kExperts = 4;
  constexpr std::int64_t kHidden = 3;
  constexpr std::int64_t kInner = 4;
  const Parameter in =
      in_memory(DType::float32, {kExperts, kHidden, 2 * kInner}, counted(kExperts * kHidden * 2 * kInner));
  const Parameter out =
      in_memory(DType::float32, {kExperts, kInner, kHidden}, counted(kExperts * kInner * kHidden));
  std::vector<Parameter> ins;
  std::vector<Parameter> outs;
  for (const std::int64_t expert : {0, 2}) {
    std::vector<Parameter> in_slices;
    std::vector<Parameter> out_slices;
    for (const std::int64_t at : {0, 2}) {
      const Parameter mine = narrow(in, 0, expert, 2);
      Parameter slice = saved(concatenate({narrow(mine, 2, at, 2), narrow(mine, 2, kInner + at, 2)}, 2));
      in_slices.push_back(reshaped(slice, {kHidden, 2 * 4}));
      slice = saved(narrow(narrow(out, 0, expert, 2), 1, at, 2));
      out_slices.push_back(reshaped(slice, {2 * 2, kHidden}));
    }
    std::map<std::string, Parameter> siblings = {{"mlp.experts.weight2", out_slices[0]}};
    MergeContext rules = context(siblings);
    rules.local_experts = 2;
    ins.push_back(merge_slices("mlp.experts.weight1", in_slices, rules).parameter);
    outs.push_back(merge_slices("mlp.experts.weight2", out_slices, rules).parameter);
  }
  const CheckpointEntry joined_in = join_expert_groups("mlp.experts.weight1", ins);
  CHECK(joined_in.problem.empty());
  CHECK(elements<float>(joined_in.parameter) == elements<float>(in));
  CHECK(joined_in.parameter.shown_shape() == Shape{kHidden, kExperts * 2 * kInner});
  const CheckpointEntry joined_out = join_expert_groups("mlp.experts.weight2", outs);
  CHECK(elements<float>(joined_out.parameter) == elements<float>(out));
  CHECK(joined_out.parameter.shown_shape() == Shape{kExperts * kInner, kHidden});
}

TEST_CASE("copies on all ranks stay copies, and unknown names keep their slices for a second guess") {
  std::map<std::string, Parameter> none;
  const CheckpointEntry norm =
      merge_slices("input_layernorm.weight", {matrix(2, 2), matrix(2, 2)}, context(none));
  CHECK(norm.replicas.size() == 1);
  CHECK(norm.slices.empty());
  const CheckpointEntry odd =
      merge_slices("adapter.mystery.weight", {matrix(2, 2), matrix(2, 2)}, context(none));
  CHECK(odd.replicas.size() == 1);
  CHECK(odd.slices.size() == 2);
  const CheckpointEntry broken =
      merge_slices("input_layernorm.weight", {matrix(2, 2), matrix(2, 3)}, context(none));
  CHECK(broken.problem.find("[2, 3] on rank 1") != std::string::npos);
}

}  // namespace msprobe::checkpoint::megatron_merge_test

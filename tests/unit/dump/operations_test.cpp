// SPDX-License-Identifier: Apache-2.0
#include "dump/operations.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace msprobe::dump::operations_test {

OperationKind kind_of(std::string_view name) {
  const KnownOperation* const found = find_operation(name);
  return found == nullptr ? OperationKind::unknown : found->kind;
}

TEST_CASE("an operation is found by its name in any spelling of frameworks") {
  CHECK(kind_of("add") == OperationKind::arithmetic);
  CHECK(kind_of("add_") == OperationKind::arithmetic);
  CHECK(kind_of("__add__") == OperationKind::arithmetic);
  CHECK(kind_of("_foreach_norm") == OperationKind::reduction);
  CHECK(kind_of("LayerNorm") == OperationKind::norm);
  CHECK(kind_of("LlamaRMSNorm") == OperationKind::norm);
  CHECK(kind_of("npu_fusion_attention") == OperationKind::attention);
  CHECK(kind_of("swiglu") == OperationKind::activation);
  CHECK(kind_of("nobody_knows_it") == OperationKind::unknown);
  CHECK(kind_of("") == OperationKind::unknown);
  CHECK(kind_of("__") == OperationKind::unknown);
  CHECK(kind_of("____") == OperationKind::unknown);
}

TEST_CASE("norms of the size alone keep the mean") {
  CHECK(find_operation("layer_norm")->nature == Nature::normalising);
  for (const std::string_view name : {"rms_norm", "npu_rms_norm", "npu_add_rms_norm", "fused_rms_norm"})
    CHECK(find_operation(name)->nature == Nature::scaling);
}

TEST_CASE("arguments are those of the function that was called") {
  CHECK(arguments_of("Functional.dropout") == "input p=0.5 training=True inplace=False");
  CHECK(arguments_of("Torch.dropout") == "input p train");
  CHECK(arguments_of("Tensor.clamp_") == "input min=None max=None");
  CHECK(arguments_of("MindSpeed.gmm.npu_gmm").starts_with("x weight * "));
  CHECK(arguments_of("NPU.npu_rms_norm") == "self gamma epsilon=1e-06");
  CHECK(arguments_of("flash_attn.interface.flash_attn_func").starts_with("q k v dropout_p=0.0 "));
  CHECK(arguments_of("Functional.npu_rms_norm").empty());
  CHECK(arguments_of("Torch.nobody_knows_it").empty());
  CHECK(arguments_of("").empty());
}

TEST_CASE("an argument that overloads call differently has all its names") {
  CHECK(arguments_of("Torch.max") == "input dim|other keepdim=False");
  CHECK(position_of(arguments_of("Tensor.sum"), "keepdim") == 2);
  CHECK(position_of(arguments_of("Tensor.sum"), "keepdims") == std::nullopt);
}

TEST_CASE("lists of rules spell operations as entries do") {
  std::vector<std::string> names;
  for (const Listed& each : listed_operations("outputs_only")) names.push_back(each.name);
  CHECK(names == std::vector<std::string>{"_all_gather_base", "all_to_all_single", "batch_isend_irecv",
                                          "_reduce_scatter_base"});
  CHECK(is_listed("ulp", "addmm"));
  CHECK(is_listed("ulp", "addmm_"));
  CHECK(is_listed("level_2", "addmm"));
  CHECK_FALSE(is_listed("level_2", "addmm_"));
  CHECK(is_listed("ulp", "__matmul__"));
  CHECK_FALSE(is_listed("ulp", "__rmatmul__"));
  CHECK_FALSE(is_listed("ul", "addmm"));
  CHECK_FALSE(is_listed("ulp", "nobody_knows_it"));
  for (const Listed& each : listed_operations("write_only_inputs")) {
    CAPTURE(each.name);
    REQUIRE(each.parts.size() == 1);
    CHECK(position_of(arguments_of(*each.operation, "Distributed"), each.parts[0]).has_value());
  }
}

TEST_CASE("positions of parameters follow from the signature") {
  CHECK(find_operation("layer_norm")->parameters == 0b1100);
  CHECK(find_operation("batch_norm")->parameters == 0b11110);
  CHECK(find_operation("batch_norm")->running_statistics == 0b110);
  CHECK(find_operation("relu")->parameters == 0);
}

TEST_CASE("only marked names work in place") {
  for (const std::string_view name : {"add_", "__iadd__", "__setitem__"}) CHECK(has_in_place_mark(name));
  for (const std::string_view name : {"add", "__add__", "__invert__", "_", ""})
    CHECK_FALSE(has_in_place_mark(name));
}

}  // namespace msprobe::dump::operations_test

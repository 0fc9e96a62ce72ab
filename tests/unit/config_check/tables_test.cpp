// SPDX-License-Identifier: Apache-2.0
#include "config_check/tables.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

#include "support/error.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::config_check::tables_test {
namespace {

Tables loaded(const std::string& text) {
  const test::ScratchDirectory scratch;
  const std::string path = scratch / "t.yaml";
  test::put_file(path, text);
  return load_tables(path);
}

std::string refused(const std::string& text) {
  try {
    loaded(text);
  } catch (const FormatError& error) {
    const std::string what = error.what();
    return what.substr(what.find(": ") + 2);
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the built-in tables") {
  const Tables tables = default_tables();
  CHECK(tables.environment.size() == 6);
  CHECK(tables.packages.size() == 8);
  CHECK(tables.verl.size() == 17);
  for (const NumericVariable& variable : tables.numerics) {
    CAPTURE(variable.name);
    CHECK_FALSE(variable.reason.empty());
  }
  const auto kind = [&](std::string_view name) {
    const NumericVariable* const found = tables.numeric(name);
    return found == nullptr ? "none" : found->name.ends_with('*') ? "family" : "variable";
  };
  for (const char* const name :
       {"NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "LCCL_DETERMINISTIC", "CLOSE_MATMUL_K_SHIFT", "NCCL_PROTO", "OMP_NUM_THREADS", "MKL_CBWR",
        "ATEN_CPU_CAPABILITY"}) {
    CAPTURE(name);
    CHECK(kind(name) == std::string_view("variable"));
  }
  CHECK(kind("TORCHINDUCTOR_MAX_AUTOTUNE") == std::string_view("family"));
  CHECK(kind("TORCHINDUCTOR_CACHE_DIR") == std::string_view("none"));
  CHECK(kind("TORCHINDUCTOR") == std::string_view("none"));
  CHECK(kind("PATH") == std::string_view("none"));
  for (const AliasGroup& group : tables.aliases)
    CHECK(std::find(group.names.begin(), group.names.end(), "bf16") == group.names.end());
}

TEST_CASE("a file adds to the tables, or empties them before") {
  const Tables before = default_tables();
  const Tables tables = loaded(
      "environment:\n  HCCL_ALGO: {npu: X, npu_default: 1}\n  NEW: {gpu: Y}\npackages: [vllm, torch]\n"
      "numerics: {MINE_*: because, MINE_2: of this}\nno_numerics: [MINE_1]\n"
      "aliases: {learning_rate: [eta], mine: [yours]}\nsecrets!: [cookie]\nverl: {a/b: [1]}\n");
  CHECK(tables.environment.size() == before.environment.size() + 1);
  CHECK(tables.environment[1].npu->name == "X");
  CHECK_FALSE(tables.environment[1].gpu.has_value());
  CHECK(tables.packages.back() == "vllm");
  REQUIRE(tables.numeric("MINE_3") != nullptr);
  CHECK(tables.numeric("MINE_3")->reason == "because");
  CHECK(tables.numeric("MINE_2")->reason == "of this");
  CHECK(tables.numeric("MINE_1") == nullptr);
  CHECK(loaded("numerics!: {A: b}").numerics.size() == 1);
  CHECK(tables.aliases.front().names ==
        std::vector<std::string>{"learning_rate", "lr", "learningrate", "eta"});
  CHECK(tables.aliases.size() == before.aliases.size() + 1);
  CHECK(tables.secrets == std::vector<std::string>{"cookie"});
  CHECK(tables.verl.size() == 18);
}

TEST_CASE("mistakes in a file are named") {
  CHECK(refused("") == "accepted");
  CHECK(refused("[]") == "the tables must be a mapping of names");
  CHECK(refused("pakages: [x]") == "unknown table 'pakages'");
  CHECK(refused("packages: x") == "packages must be a list of names");
  CHECK(refused("packages: [1]") == "packages must be a name");
  CHECK(refused("environment: {X: {}}") == "X names no variable");
  CHECK(refused("environment: {X: {gpu_default: 1}}") == "X has a default without a variable");
  CHECK(refused("environment: {X: {gpux: Y}}") == "X has an unknown key 'gpux'");
  CHECK(refused("environment: {X: {gpu: Y, gpu_default: [1]}}") == "X: a default must be a single value");
  CHECK(refused("numerics: {X: 1}") == "X must have a reason, a text");
  CHECK(refused("numerics: {'*': all}") == "numerics: * names no variable");
  CHECK(refused("no_numerics: {X: 1}") == "no_numerics must be a list of names");
  CHECK(refused("environment: 1") == "environment must be a mapping of names");
  CHECK(refused("a: [").starts_with("line "));
}

}  // namespace msprobe::config_check::tables_test

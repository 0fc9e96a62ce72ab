// SPDX-License-Identifier: Apache-2.0
// Files with several tensors that the formats' own libraries wrote (tests/data/tensor_sets), read back.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/safetensors.hpp"
#include "formats/tensor_set.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/formats/elements.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::formats::tensor_sets_test {
namespace {

std::string data(const std::string& name) {
  return test::in_source("tests/data/" + name);
}

std::shared_ptr<const ByteSource> file(const std::string& name) {
  return open_file(data("tensor_sets/" + name));
}

}  // namespace

TEST_CASE("every tensor that the formats' own libraries wrote comes back") {
  const auto expected = nlohmann::json::parse(std::ifstream(data("tensor_sets/expected.json")));
  REQUIRE(expected.size() >= 7);
  for (const auto& [name, tensors] : expected.items()) {
    CAPTURE(name);
    const auto set = open_tensors(file(name));
    REQUIRE(set->size() == tensors.size());
    for (std::size_t i = 0; i < set->size(); ++i) {
      CAPTURE(set->name(i));
      REQUIRE(tensors.contains(set->name(i)));
      const auto& wanted = tensors[set->name(i)];
      const StoredTensor tensor = set->tensor(i);
      CHECK(tensor::info(tensor.dtype).name == wanted["dtype"].get<std::string>());
      CHECK(tensor.shape == wanted["shape"].get<std::vector<std::int64_t>>());
      CHECK(element_hex(tensor, 4) == wanted["hex"].get<std::string>());
    }
  }
}

TEST_CASE("containers are known by their first bytes") {
  CHECK(container_of(file("every_type.safetensors")) == Container::safetensors);
  CHECK(container_of(file("none.safetensors")) == Container::safetensors);
  CHECK(container_of(file("stored.npz")) == Container::npz);
  CHECK(container_of(file("none.npz")) == Container::npz);
  CHECK(container_of(file("checkpoint.pt")) == Container::torch_zip);
  CHECK(container_of(file("checkpoint_legacy.pt")) == Container::torch_legacy);
  CHECK(container_of(open_file(data("formats/refused_torchscript.pt"))) == Container::torchscript);
  CHECK(container_of(open_file(data("formats/npy_f4.npy"))) == Container::npy);
  CHECK(container_of(memory_source("cos\nsystem\n.")) == Container::unknown);
  CHECK(container_of(memory_source("")) == Container::unknown);
  CHECK_THROWS_AS(open_tensors(memory_source("no tensor file at all")), FormatError);
}

TEST_CASE("the metadata of a safetensors file") {
  const SafetensorsFile set(file("every_type.safetensors"));
  REQUIRE(set.metadata().size() == 2);
  for (const auto& [key, value] : set.metadata()) {
    CHECK(((key == "format" && value == "pt") || (key == "made by" && value == "the recipe")));
  }
  CHECK(SafetensorsFile(file("none.safetensors")).metadata().empty());
}

TEST_CASE("a broken member of an npz hides no other") {
  const auto set = open_tensors(file("hostile/object.npz"));
  REQUIRE(set->size() == 2);
  CHECK(set->name(0) == "good");
  CHECK(set->tensor(0).dtype == tensor::DType::float32);
  CHECK_THROWS_WITH_AS(set->tensor(1), doctest::Contains("object array"), FormatError);
}

TEST_CASE("a checkpoint whose pickle calls anything but tensors still tells its tensors") {
  const auto set = open_tensors(open_file(data("formats/refused_module.pt")));
  REQUIRE(set->size() == 2);
  CHECK(set->name(0) == "_parameters.weight");
  CHECK(set->name(1) == "_parameters.bias");
}

}  // namespace msprobe::formats::tensor_sets_test

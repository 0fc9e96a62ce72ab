// SPDX-License-Identifier: Apache-2.0
// Files written by PyTorch and NumPy, against what PyTorch and NumPy read from them (tests/data/formats).
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/tensor_file.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/formats/elements.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::formats::fixtures_test {
namespace {

std::string data_folder() {
  return test::in_source("tests/data/formats/");
}

nlohmann::json expectations() {
  std::ifstream in(data_folder() + "expected.json");
  REQUIRE(in.good());
  return nlohmann::json::parse(in);
}

}  // namespace

TEST_CASE("every fixture reads as PyTorch and NumPy read it, or is refused with its reason") {
  const nlohmann::json expected = expectations();
  CHECK(expected.size() > 100);
  for (const auto& [name, want] : expected.items()) {
    CAPTURE(name);
    const auto file = open_file(data_folder() + name);
    if (want.contains("refused")) {
      std::string message;
      try {
        open_tensor(file);
      } catch (const FormatError& error) {
        message = error.what();
      }
      CHECK(message.starts_with(data_folder() + name + ": "));
      for (const std::string word : want["refused"]) {
        CHECK_MESSAGE(message.find(word) != std::string::npos, message);
      }
      continue;
    }
    const StoredTensor tensor = open_tensor(file);
    CHECK(std::string(tensor::info(tensor.dtype).name) == want["dtype"].get<std::string>());
    CHECK(nlohmann::json(tensor.shape) == want["shape"]);
    CHECK(element_hex(tensor) == want["hex"].get<std::string>());
    // The same bytes must come out when they are asked for in small pieces.
    CHECK(element_hex(tensor, 1) == want["hex"].get<std::string>());
  }
}

}  // namespace msprobe::formats::fixtures_test

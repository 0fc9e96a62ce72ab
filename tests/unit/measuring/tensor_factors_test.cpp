// SPDX-License-Identifier: Apache-2.0
#include "measuring/tensor_factors.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "formats/element_values.hpp"
#include "support/error.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_tensor_factors_test {

using namespace msprobe;
using namespace msprobe::measuring;
using doctest::Contains;
using formats::StoredTensor;

namespace {

using Shape = std::vector<std::int64_t>;
using Values = std::vector<double>;
using Lines = std::vector<std::string>;

TensorFactors read(std::string_view text) {
  return TensorFactors(RuleFile("c.yaml", text));
}

StoredTensor doubles(const Values& values, const Shape& shape) {
  std::vector<std::byte> bytes(values.size() * sizeof(double));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  StoredTensor tensor;
  tensor.dtype = tensor::DType::float64;
  tensor.shape = shape;
  tensor.strides = formats::row_major_strides(shape);
  tensor.storage = memory_source(std::move(bytes), "x.pt");
  return tensor;
}

/// A file of NumPy with these doubles.
void put_matrix(const std::string& path, const Values& values, const std::string& shape) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  text += header;
  for (const double value : values) {
    char bytes[sizeof(double)];
    std::memcpy(bytes, &value, sizeof bytes);
    text.append(bytes, sizeof bytes);
  }
  test::put_file(path, text);
}

Values values_of(const StoredTensor& tensor) {
  formats::ValueReader reader(tensor);
  Values out;
  while (reader.remaining() > 0) {
    for (const double value : reader.read(16)) out.push_back(value);
  }
  return out;
}

}  // namespace

TEST_CASE("factors are in the order in which they are applied, by side and data name") {
  const TensorFactors factors = read(R"(
left_right_matmul:
  right_target_tensor_map: {r.npy: [a.pt]}
  left_target_tensor_map: {l.npy: [a.pt]}
left_matmul:
  target_tensor_map: {second.npy: [a.pt]}
  golden_tensor_map: {g.npy: [a.pt]}
right_matmul:
  target_tensor_map: {first.npy: [a.pt, b.pt]}
  golden_tensor_map:
)");
  CHECK(factors.remarks().empty());
  const auto files = [&](FactorSide side, const char* name) {
    Lines out;
    const auto place = factors.find(side, name);
    if (!place) return out;
    for (const TensorFactors::Factor& factor : factors.all()[*place].factors)
      out.push_back((factor.on_the_left ? "left " : "right ") + factor.matrix);
    return out;
  };
  CHECK(files(FactorSide::target, "a.pt") ==
        Lines{"right first.npy", "left second.npy", "left l.npy", "right r.npy"});
  CHECK(files(FactorSide::target, "b.pt") == Lines{"right first.npy"});
  CHECK(files(FactorSide::golden, "a.pt") == Lines{"left g.npy"});
  CHECK(files(FactorSide::golden, "b.pt").empty());
}

TEST_CASE("what has no effect in a file of factors is a remark with its line") {
  const TensorFactors factors = read(R"(right_matmul:
  target_tensor_map:
    one.npy: [a.pt, a.pt]
    two.npy: [a.pt, ~]
    three.npy: a.pt
  other_map: {}
middle_matmul: {}
)");
  CHECK(factors.remarks() ==
        Lines{"line 4: a.pt is also listed under one.npy, which is ignored",
              "line 4: not a data name, for two.npy", "line 5: three.npy has no list of data names",
              "line 6: unknown key 'other_map' in right_matmul", "line 7: unknown key 'middle_matmul'"});
  REQUIRE(factors.all().size() == 1);
  CHECK(factors.all()[0].factors.size() == 1);
  CHECK(factors.all()[0].factors[0].matrix == "two.npy");
}

TEST_CASE("a file of factors of another form is refused with its line") {
  const auto refused = [](const char* text, const char* reason) {
    CHECK_THROWS_WITH_AS(read(text), Contains(reason), FormatError);
  };
  refused("", "expected a mapping with right_matmul, left_matmul or left_right_matmul");
  refused("- right_matmul", "a mapping with right_matmul");
  refused("right_matmul: [a, b]", "right_matmul must be a mapping of matrices to data names");
  refused("right_matmul:\n  golden_tensor_map: a", "line 2: golden_tensor_map must be a mapping");
  refused("right_matmul: {target_tensor_map: {a: [b}", "c.yaml");
}

TEST_CASE("a tensor is multiplied by its factors, and what does not fit leaves it as it is") {
  const test::ScratchDirectory scratch;
  put_matrix(scratch / "swap.npy", {0, 1, 1, 0}, "(2, 2)");
  put_matrix(scratch / "wrong.npy", {1, 2, 3}, "(3, 1)");
  const StoredTensor tensor = doubles({1, 2, 3, 4}, {2, 1, 2});
  TensorFactors::FactoredTensor named{FactorSide::target, "a.pt", {{true, scratch / "swap.npy"}}};
  FactorNotes notes;
  std::optional<std::int64_t> valid_rows;
  // Axes of length 1 do not count.
  CHECK(values_of(multiplied(tensor, named, valid_rows, notes)) == Values{3, 4, 1, 2});
  CHECK(notes.messages == Lines{"NPU tensor multiplied by " + scratch / "swap.npy" + " from the left."});
  CHECK(notes.failures.empty());

  named.factors = {
      {false, scratch / "none.npy"}, {false, scratch / "swap.npy"}, {false, scratch / "wrong.npy"}};
  named.side = FactorSide::golden;
  notes = {};
  CHECK(values_of(multiplied(tensor, named, valid_rows, notes)) == Values{2, 1, 4, 3});
  CHECK(notes.failures == Lines{scratch / "none.npy" + ": No such file or directory",
                                scratch / "wrong.npy" + ": [2, 2] times [3, 1]: the shapes do not fit"});
  CHECK(notes.messages.front() ==
        "Bench tensor not multiplied: " + scratch / "none.npy" + ": No such file or directory.");
}

TEST_CASE("what is behind the valid length is 0 before a tensor is multiplied") {
  const test::ScratchDirectory scratch;
  put_matrix(scratch / "ones.npy", {1, 1, 1, 1}, "(2, 2)");
  const StoredTensor tensor = doubles({1, 2, 30, 40}, {2, 2});
  const TensorFactors::FactoredTensor named{FactorSide::target, "a.pt", {{true, scratch / "ones.npy"}}};
  FactorNotes notes;
  std::optional<std::int64_t> valid_rows = 1;
  CHECK(values_of(multiplied(tensor, named, valid_rows, notes)) == Values{1, 2, 1, 2});
  CHECK(!valid_rows);
  valid_rows = 1;
  const TensorFactors::FactoredTensor nothing{FactorSide::target, "a.pt", {{true, scratch / "none.npy"}}};
  multiplied(tensor, nothing, valid_rows, notes);
  CHECK(valid_rows == 1);
}

}  // namespace msprobe::compare_tensor_factors_test

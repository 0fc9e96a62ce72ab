// SPDX-License-Identifier: Apache-2.0
// Files that we write, against those that PyTorch and NumPy wrote of the same tensors (tests/data/formats),
// and read back.
#include "formats/tensor_writer.hpp"

#include <doctest/doctest.h>

#include <string>

#include "formats/npy.hpp"
#include "formats/stored_tensor.hpp"
#include "formats/tensor_set.hpp"
#include "formats/torch_file.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/formats/elements.hpp"
#include "unit/formats/golden_parse.hpp"
#include "unit/support/scratch_directory.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::formats::tensor_writer_test {
namespace {

using tensor::DType;

std::string fixture(const std::string& name) {
  return test::in_source("tests/data/formats/" + name);
}

std::vector<std::byte> elements(const StoredTensor& tensor) {
  ElementReader reader(tensor);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.numel()) * tensor::info(tensor.dtype).size);
  reader.read(bytes);
  return bytes;
}

/// Writes tensors as they are.
void write(OutputFormat format, const std::string& path,
           const std::vector<std::pair<std::string, StoredTensor>>& tensors) {
  OutputFile file(path);
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) specs.push_back({name, tensor.dtype, tensor.shape});
  const auto writer = make_tensor_writer(format, file, specs);
  for (const std::size_t index : writer->order()) {
    writer->begin(index);
    const std::vector<std::byte> bytes = elements(tensors[index].second);
    const std::size_t half = bytes.size() / 32 * 16;
    writer->write(std::span(bytes).first(half));
    writer->write(std::span(bytes).subspan(half));
    writer->end();
  }
  writer->finish();
  file.commit();
}

StoredTensor make(DType dtype, std::vector<std::int64_t> shape) {
  StoredTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.strides = row_major_strides(tensor.shape);
  std::string bytes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.numel()) * tensor::info(dtype).size; ++i)
    bytes += static_cast<char>(dtype == DType::boolean ? i % 2 : i + 1);
  tensor.storage = memory_source(bytes);
  return tensor;
}

}  // namespace

TEST_CASE("a .pt is byte for byte what PyTorch writes of the same tensor, but for its serial number") {
  const test::ScratchDirectory scratch;
  for (const char* name : {"type_float64",
                           "type_float32",
                           "type_float16",
                           "type_bfloat16",
                           "type_float8_e4m3fn",
                           "type_float8_e5m2",
                           "type_float8_e4m3fnuz",
                           "type_float8_e5m2fnuz",
                           "type_float8_e8m0fnu",
                           "type_int64",
                           "type_int32",
                           "type_int16",
                           "type_int8",
                           "type_uint64",
                           "type_uint32",
                           "type_uint16",
                           "type_uint8",
                           "type_bool",
                           "type_complex32",
                           "type_complex64",
                           "type_complex128",
                           "scalar",
                           "empty",
                           "empty_3d"}) {
    CAPTURE(std::string(name));
    const std::string original = fixture(name + std::string(".pt"));
    const std::string path = scratch / (name + std::string(".pt"));
    write(OutputFormat::pt, path, {{"", open_torch_tensor(open_file(original))}});
    const std::string expected = test::read_file(original);
    const std::string got = test::read_file(path);
    // One record has the number; its checksum is after it and in the directory.
    const std::string record = ".data/serialization_id";
    const std::size_t number = expected.find(record);
    REQUIRE(number != std::string::npos);
    CHECK(got.size() == expected.size());
    CHECK(got.substr(0, number) == expected.substr(0, number));
    const std::size_t directory = expected.find("PK\x01\x02");
    const std::size_t last = expected.rfind("PK\x01\x02");
    CHECK(got.substr(directory, last - directory) == expected.substr(directory, last - directory));
    CHECK(got.substr(expected.rfind(record)) == expected.substr(expected.rfind(record)));
    CHECK(element_hex(open_torch_tensor(open_file(path))) ==
          element_hex(open_torch_tensor(open_file(original))));
  }
}

TEST_CASE("a .npy is byte for byte what NumPy writes of the same array") {
  const test::ScratchDirectory scratch;
  for (const char* name :
       {"npy_f2", "npy_f4", "npy_f8", "npy_i1", "npy_i2", "npy_i4", "npy_i8", "npy_u1", "npy_u2", "npy_u4",
        "npy_u8", "npy_b1", "npy_c8", "npy_c16", "npy_scalar", "npy_empty"}) {
    CAPTURE(std::string(name));
    const std::string original = fixture(name + std::string(".npy"));
    const std::string path = scratch / "a.npy";
    write(OutputFormat::npy, path, {{"", open_npy(open_file(original))}});
    CHECK(test::read_file(path) == test::read_file(original));
  }
}

TEST_CASE("several tensors of every type come back out of .pt, .npz and .safetensors") {
  const test::ScratchDirectory scratch;
  for (const OutputFormat format : {OutputFormat::pt, OutputFormat::npz, OutputFormat::safetensors}) {
    std::vector<std::pair<std::string, StoredTensor>> tensors;
    for (int i = 0; i < tensor::kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (written_dtype(format, dtype) != dtype) continue;
      const std::string name(tensor::info(dtype).name);
      tensors.emplace_back(name, make(dtype, {2, 3}));
      tensors.emplace_back("scalar." + name, make(dtype, {}));
      tensors.emplace_back("empty \"" + name + "\" é\n", make(dtype, {0, 7, 2, 1}));
    }
    CHECK(tensors.size() >= 36);
    const std::string path = scratch / "many";
    write(format, path, tensors);
    const std::unique_ptr<TensorSet> set = open_tensors(open_file(path));
    REQUIRE(set->size() == tensors.size());
    for (std::size_t i = 0; i < set->size(); ++i) {
      const StoredTensor got = set->tensor(i);
      const auto want = std::find_if(tensors.begin(), tensors.end(),
                                     [&](const auto& each) { return each.first == set->name(i); });
      REQUIRE(want != tensors.end());
      CAPTURE(want->first);
      CHECK(got.dtype == want->second.dtype);
      CHECK(got.shape == want->second.shape);
      CHECK(element_hex(got) == element_hex(want->second));
    }
  }
}

TEST_CASE("tensors in a .safetensors are aligned to their types") {
  const test::ScratchDirectory scratch;
  write(OutputFormat::safetensors, scratch / "a",
        {{"a", make(DType::uint8, {3})}, {"b", make(DType::float64, {1})}, {"c", make(DType::int16, {1})}});
  const std::string text = test::read_file(scratch / "a");
  CHECK(text.substr(8).starts_with(
      R"({"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"c":{"dtype":"I16","shape":[1],"data_offsets":[8,10]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[10,13]}})"));
  CHECK((text.size() - 13) % 8 == 0);
}

TEST_CASE("many tensors in one .pt, more than a pickle batch and a byte of memo count") {
  const test::ScratchDirectory scratch;
  std::vector<std::pair<std::string, StoredTensor>> tensors;
  for (int i = 0; i < 2500; ++i) tensors.emplace_back("t" + std::to_string(i), make(DType::int16, {i % 5}));
  write(OutputFormat::pt, scratch / "a.pt", tensors);
  const std::unique_ptr<TensorSet> set = open_tensors(open_file(scratch / "a.pt"));
  REQUIRE(set->size() == tensors.size());
  CHECK(set->name(2499) == "t2499");
  CHECK(element_hex(set->tensor(2499)) == element_hex(tensors[2499].second));
}

TEST_CASE("large numbers in a .pt") {
  // Sizes and strides of more than 8, 16, 31 bits, in tensors without elements.
  const test::ScratchDirectory scratch;
  for (const std::int64_t length :
       {255LL, 256LL, 65535LL, 65536LL, 2147483647LL, 2147483648LL, 549755813888LL}) {
    CAPTURE(length);
    write(OutputFormat::pt, scratch / "a.pt", {{"", make(DType::int8, {0, length, 2, 1})}});
    const StoredTensor got = open_torch_tensor(open_file(scratch / "a.pt"));
    CHECK(got.shape == std::vector<std::int64_t>{0, length, 2, 1});
    CHECK(got.strides == std::vector<std::int64_t>{2 * length, 2, 1, 1});
  }
}

TEST_CASE("types that a format lacks are widened, or there is no place for them") {
  const auto written = [](OutputFormat format, DType dtype) { return written_dtype(format, dtype); };
  for (const OutputFormat numpy : {OutputFormat::npy, OutputFormat::npz}) {
    CHECK(written(numpy, DType::bfloat16) == DType::float32);
    CHECK(written(numpy, DType::float8_e5m2) == DType::float32);
    CHECK(written(numpy, DType::float8_e8m0fnu) == DType::float32);
    CHECK(written(numpy, DType::hifloat8) == DType::float32);
    CHECK(written(numpy, DType::complex32) == DType::complex64);
    CHECK(written(numpy, DType::float16) == DType::float16);
  }
  for (const OutputFormat format : {OutputFormat::pt, OutputFormat::safetensors}) {
    CHECK(written(format, DType::bfloat16) == DType::bfloat16);
    CHECK(written(format, DType::float8_e5m2) == DType::float8_e5m2);
    CHECK(written(format, DType::hifloat8) == DType::float32);
    CHECK(written(format, DType::qint8) == DType::int8);
  }
  CHECK(written(OutputFormat::pt, DType::complex32) == DType::complex32);
  CHECK(written(OutputFormat::pt, DType::complex128) == DType::complex128);
  CHECK_FALSE(written(OutputFormat::safetensors, DType::complex128).has_value());
  CHECK(written(OutputFormat::bin, DType::hifloat8) == DType::hifloat8);
}

TEST_CASE("names that would make a broken file are refused") {
  const test::ScratchDirectory scratch;
  const auto refused = [&](OutputFormat format, std::vector<std::string> names) {
    OutputFile file(scratch / "a");
    std::vector<TensorSpec> specs;
    for (const std::string& name : names) specs.push_back({name, DType::int8, {0}});
    CHECK_THROWS_AS(make_tensor_writer(format, file, specs), FormatError);
  };
  for (const OutputFormat format : {OutputFormat::pt, OutputFormat::npz, OutputFormat::safetensors}) {
    refused(format, {"a", "a"});
    refused(format, {"a", ""});
    refused(format, {"\xff"});
    refused(format, {std::string("a\0b", 3)});
    refused(format, {std::string(70'000, 'a')});
    refused(format, {"__metadata__"});
  }
  OutputFile file(scratch / "b");
  CHECK_THROWS_AS(make_tensor_writer(OutputFormat::npy, file,
                                     {{"", DType::int64, {std::int64_t{1} << 62, 0, std::int64_t{1} << 62}}}),
                  FormatError);
}

TEST_CASE("a tensor that is not complete is a mistake of the program") {
  const test::ScratchDirectory scratch;
  for (const OutputFormat format : {OutputFormat::pt, OutputFormat::npy, OutputFormat::npz,
                                    OutputFormat::safetensors, OutputFormat::bin}) {
    OutputFile file(scratch / "a");
    const auto writer = make_tensor_writer(format, file, {{"a", DType::int8, {3}}});
    writer->begin(0);
    const std::vector<std::byte> four(4);
    writer->write(std::span(four).first(2));
    CHECK_THROWS_AS(writer->end(), std::logic_error);
    CHECK_THROWS_AS(writer->write(std::span(four).first(2)), std::logic_error);
  }
}

}  // namespace msprobe::formats::tensor_writer_test

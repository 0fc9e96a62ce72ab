// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace msprobe::tensor::dtype_test {

TEST_CASE("every type is found under its PyTorch name, with and without the module") {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string name(info(dtype).name);
    CAPTURE(name);
    CHECK(dtype_from_torch(name) == dtype);
    CHECK(dtype_from_torch("torch." + name) == dtype);
    CHECK_FALSE(dtype_from_torch("numpy." + name).has_value());
  }
}

TEST_CASE("PyTorch's short names mean what they mean in PyTorch") {
  CHECK(dtype_from_torch("torch.half") == DType::float16);
  CHECK(dtype_from_torch("torch.float") == DType::float32);
  CHECK(dtype_from_torch("torch.double") == DType::float64);
  CHECK(dtype_from_torch("torch.long") == DType::int64);
  CHECK(dtype_from_torch("torch.int") == DType::int32);
  CHECK(dtype_from_torch("torch.short") == DType::int16);
  CHECK(dtype_from_torch("torch.chalf") == DType::complex32);
  CHECK(dtype_from_torch("torch.cfloat") == DType::complex64);
  CHECK(dtype_from_torch("torch.cdouble") == DType::complex128);
  for (const char* name :
       {"", "torch.", "torch.torch.float32", "Float32", "float 32", "float3", "torch.float4_e2m1fn_x2"}) {
    CAPTURE(name);
    CHECK_FALSE(dtype_from_torch(name).has_value());
  }
}

TEST_CASE("storage classes") {
  struct Row {
    const char* name;
    DType dtype;
  };
  const Row rows[] = {
      {"DoubleStorage", DType::float64},
      {"FloatStorage", DType::float32},
      {"HalfStorage", DType::float16},
      {"BFloat16Storage", DType::bfloat16},
      {"LongStorage", DType::int64},
      {"IntStorage", DType::int32},
      {"ShortStorage", DType::int16},
      {"CharStorage", DType::int8},
      {"ByteStorage", DType::uint8},
      {"BoolStorage", DType::boolean},
      {"QInt8Storage", DType::qint8},
      {"QUInt8Storage", DType::quint8},
      {"QInt32Storage", DType::qint32},
      {"ComplexFloatStorage", DType::complex64},
      {"ComplexDoubleStorage", DType::complex128},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(dtype_from_storage_class(row.name) == row.dtype);
    CHECK(dtype_from_storage_class(std::string("torch.") + row.name) == row.dtype);
  }
  CHECK_FALSE(dtype_from_storage_class("UntypedStorage").has_value());
  CHECK_FALSE(dtype_from_storage_class("QUInt4x2Storage").has_value());
  CHECK_FALSE(dtype_from_storage_class("").has_value());
}

TEST_CASE("MindSpore names") {
  CHECK(dtype_from_mindspore("Float32") == DType::float32);
  CHECK(dtype_from_mindspore("BFloat16") == DType::bfloat16);
  CHECK(dtype_from_mindspore("Bool") == DType::boolean);
  CHECK(dtype_from_mindspore("UInt8") == DType::uint8);
  CHECK(dtype_from_mindspore("Float8E5M2") == DType::float8_e5m2);
  CHECK(dtype_from_mindspore("Complex128") == DType::complex128);
  CHECK(dtype_from_mindspore("mindspore.float32") == DType::float32);
  CHECK(dtype_from_mindspore("mindspore.bool") == DType::boolean);
  CHECK_FALSE(dtype_from_mindspore("mindspore.Float32").has_value());
  CHECK_FALSE(dtype_from_mindspore("").has_value());  // types without such a name must not be found by it
  CHECK_FALSE(dtype_from_mindspore("float32").has_value());
}

TEST_CASE("sizes, kinds and NumPy's descriptions") {
  CHECK(info(DType::float64).size == 8);
  CHECK(info(DType::bfloat16).size == 2);
  CHECK(info(DType::float8_e8m0fnu).size == 1);
  CHECK(info(DType::complex32).size == 4);
  CHECK(info(DType::complex128).size == 16);
  CHECK(info(DType::qint32).size == 4);
  CHECK(info(DType::float8_e5m2).kind == DTypeKind::floating);
  CHECK(info(DType::quint8).kind == DTypeKind::integer);
  CHECK(info(DType::boolean).kind == DTypeKind::boolean);
  CHECK(info(DType::complex64).kind == DTypeKind::complex);
  CHECK(info(DType::boolean).numpy == "|b1");
  CHECK(info(DType::uint16).numpy == "<u2");
  CHECK(info(DType::complex64).numpy == "<c8");
  CHECK(info(DType::bfloat16).numpy.empty());
}

TEST_CASE("unit roundoff: half the distance of neighbours around 1") {
  CHECK(unit_roundoff(DType::float64) == std::numeric_limits<double>::epsilon() / 2);
  CHECK(unit_roundoff(DType::float32) == static_cast<double>(std::numeric_limits<float>::epsilon()) / 2);
  CHECK(unit_roundoff(DType::complex64) == unit_roundoff(DType::float32));
  CHECK(unit_roundoff(DType::float16) == 0x1p-11);
  CHECK(unit_roundoff(DType::bfloat16) == 0x1p-8);
  CHECK(unit_roundoff(DType::float8_e4m3fn) == 0x1p-4);
  CHECK(unit_roundoff(DType::int64) == 0);
  CHECK(unit_roundoff(DType::boolean) == 0);
}

}  // namespace msprobe::tensor::dtype_test

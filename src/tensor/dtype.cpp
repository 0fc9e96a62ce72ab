// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace msprobe::tensor {
namespace {

// The rows are in the order of DType.
constexpr std::array<DTypeInfo, kDTypeCount> kInfos = {{
    {"float64", 8, DTypeKind::floating, "<f8", "Float64"},
    {"float32", 4, DTypeKind::floating, "<f4", "Float32"},
    {"float16", 2, DTypeKind::floating, "<f2", "Float16"},
    {"bfloat16", 2, DTypeKind::floating, "", "BFloat16"},
    {"float8_e4m3fn", 1, DTypeKind::floating, "", "Float8E4M3FN"},
    {"float8_e5m2", 1, DTypeKind::floating, "", "Float8E5M2"},
    {"float8_e4m3fnuz", 1, DTypeKind::floating, "", ""},
    {"float8_e5m2fnuz", 1, DTypeKind::floating, "", ""},
    {"float8_e8m0fnu", 1, DTypeKind::floating, "", ""},
    {"hifloat8", 1, DTypeKind::floating, "", "HiFloat8"},
    {"int64", 8, DTypeKind::integer, "<i8", "Int64"},
    {"int32", 4, DTypeKind::integer, "<i4", "Int32"},
    {"int16", 2, DTypeKind::integer, "<i2", "Int16"},
    {"int8", 1, DTypeKind::integer, "|i1", "Int8"},
    {"uint64", 8, DTypeKind::integer, "<u8", "UInt64"},
    {"uint32", 4, DTypeKind::integer, "<u4", "UInt32"},
    {"uint16", 2, DTypeKind::integer, "<u2", "UInt16"},
    {"uint8", 1, DTypeKind::integer, "|u1", "UInt8"},
    {"bool", 1, DTypeKind::boolean, "|b1", "Bool"},
    {"complex32", 4, DTypeKind::complex, "", ""},
    {"complex64", 8, DTypeKind::complex, "<c8", "Complex64"},
    {"complex128", 16, DTypeKind::complex, "<c16", "Complex128"},
    {"qint8", 1, DTypeKind::integer, "", ""},
    {"quint8", 1, DTypeKind::integer, "", ""},
    {"qint32", 4, DTypeKind::integer, "", ""},
}};
static_assert(kInfos[static_cast<std::size_t>(DType::boolean)].name == "bool");
static_assert(kInfos[static_cast<std::size_t>(DType::qint32)].name == "qint32");

using NamedType = std::pair<std::string_view, DType>;

constexpr std::array<NamedType, 9> kTorchAliases = {{
    {"half", DType::float16},
    {"float", DType::float32},
    {"double", DType::float64},
    {"long", DType::int64},
    {"int", DType::int32},
    {"short", DType::int16},
    {"chalf", DType::complex32},
    {"cfloat", DType::complex64},
    {"cdouble", DType::complex128},
}};

constexpr std::array<NamedType, 15> kStorageClasses = {{
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
    {"ComplexFloatStorage", DType::complex64},
    {"ComplexDoubleStorage", DType::complex128},
    {"QInt8Storage", DType::qint8},
    {"QUInt8Storage", DType::quint8},
    {"QInt32Storage", DType::qint32},
}};

std::string_view without_torch(std::string_view name) {
  constexpr std::string_view kPrefix = "torch.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return name;
}

template <std::size_t N>
std::optional<DType> lookup(const std::array<NamedType, N>& table, std::string_view name) {
  const auto found = std::ranges::find_if(table, [&](const NamedType& e) { return e.first == name; });
  if (found == table.end()) return std::nullopt;
  return found->second;
}

std::optional<DType> lookup_column(std::string_view DTypeInfo::*column, std::string_view name) {
  if (name.empty()) return std::nullopt;  // an empty cell means "no such type"
  const auto found =
      std::ranges::find_if(kInfos, [&](const DTypeInfo& entry) { return entry.*column == name; });
  if (found == kInfos.end()) return std::nullopt;
  return static_cast<DType>(found - kInfos.begin());
}

}  // namespace

const DTypeInfo& info(DType dtype) {
  return kInfos.at(static_cast<std::size_t>(dtype));
}

std::optional<DType> dtype_from_torch(std::string_view name) {
  name = without_torch(name);
  if (const auto found = lookup_column(&DTypeInfo::name, name)) return found;
  return lookup(kTorchAliases, name);
}

std::optional<DType> dtype_from_storage_class(std::string_view name) {
  return lookup(kStorageClasses, without_torch(name));
}

std::string_view storage_class_of(DType dtype) {
  const auto* const found =
      std::ranges::find_if(kStorageClasses, [&](const NamedType& each) { return each.second == dtype; });
  return found == kStorageClasses.end() ? std::string_view() : found->first;
}

std::optional<DType> dtype_from_mindspore(std::string_view name) {
  constexpr std::string_view kPrefix = "mindspore.";
  if (!name.starts_with(kPrefix)) return lookup_column(&DTypeInfo::mindspore, name);
  return lookup_column(&DTypeInfo::name, name.substr(kPrefix.size()));
}

std::optional<DType> dtype_from_name(std::string_view name) {
  // Called for every tensor of a dump, nearly always with one of these names.
  constexpr std::array kUsual = {
      NamedType{"torch.float32", DType::float32}, NamedType{"torch.bfloat16", DType::bfloat16},
      NamedType{"torch.float16", DType::float16}, NamedType{"torch.int64", DType::int64}};
  if (const auto usual = lookup(kUsual, name)) return usual;
  const auto torch = dtype_from_torch(name);
  return torch ? torch : dtype_from_mindspore(name);
}

DType real_type(DType dtype) {
  switch (dtype) {
    case DType::complex32:
      return DType::float16;
    case DType::complex64:
      return DType::float32;
    case DType::complex128:
      return DType::float64;
    default:
      return dtype;
  }
}

double unit_roundoff(DType dtype) {
  switch (real_type(dtype)) {
    case DType::float64:
      return 0x1p-53;
    case DType::float32:
      return 0x1p-24;
    case DType::float16:
      return 0x1p-11;
    case DType::bfloat16:
      return 0x1p-8;
    default:
      return info(dtype).kind == DTypeKind::floating ? 0x1p-4 : 0;  // one-byte floats
  }
}

}  // namespace msprobe::tensor

// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/narrow.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <variant>

#include "precheck/calls/element_bits.hpp"
#include "tensor/convert.hpp"
#include "tensor/float_form.hpp"

namespace msprobe::precheck {
namespace {

bool is_of(const tensor::FloatForm& form, float value) {
  return std::isnan(value) || nearest_element(form, value) == value;
}

void put_rounded(tensor::DType dtype, std::span<const double> values, std::span<std::byte> out) {
  if (dtype != tensor::DType::bfloat16) {
    tensor::from_double(dtype, values, out);
    return;
  }
  const tensor::FloatForm form = *tensor::float_form(dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<std::uint16_t>(element_bits(dtype, nearest_element(form, values[i])));
    std::memcpy(out.data() + i * sizeof bits, &bits, sizeof bits);
  }
}

bool is_rounded_to(tensor::DType narrow, tensor::DType wide) {
  using enum tensor::DType;
  constexpr std::array kTypes{float16, bfloat16, float32, complex64};
  return std::ranges::find(kTypes, narrow) != kTypes.end() &&
         tensor::info(narrow).kind == tensor::info(wide).kind &&
         tensor::info(narrow).size < tensor::info(wide).size;
}

}  // namespace

void narrow_gradients(CallOutput& output, const std::optional<tensor::DType>& type,
                      std::vector<std::vector<std::byte>>& storage) {
  if (!type) return;
  if (auto* list = std::get_if<CallOutput::List>(&output.value)) {
    for (CallOutput& element : list->elements) narrow_gradients(element, type, storage);
    return;
  }
  auto* tensor = std::get_if<TensorOutput>(&output.value);
  const auto form = tensor::float_form(*type);
  if (tensor == nullptr || tensor->dtype != tensor::DType::float32 || !form || tensor->bytes.empty()) return;
  const std::size_t count = tensor->bytes.size() / sizeof(float);
  std::vector<std::byte> bytes(count * sizeof(std::uint16_t));
  for (std::size_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, tensor->bytes.data() + i * sizeof(float), sizeof(float));
    if (!is_of(*form, value)) return;
    const auto bits = static_cast<std::uint16_t>(element_bits(*type, value));
    std::memcpy(bytes.data() + i * sizeof bits, &bits, sizeof bits);
  }
  tensor->dtype = *type;
  tensor->bytes = storage.emplace_back(std::move(bytes));
}

void round_like(CallOutput& output, const CallOutput& like, std::vector<std::vector<std::byte>>& storage) {
  if (auto* list = std::get_if<CallOutput::List>(&output.value)) {
    const auto* other = std::get_if<CallOutput::List>(&like.value);
    if (other == nullptr) return;
    for (std::size_t i = 0; i < std::min(list->elements.size(), other->elements.size()); ++i)
      round_like(list->elements[i], other->elements[i], storage);
    return;
  }
  auto* tensor = std::get_if<TensorOutput>(&output.value);
  const auto* other = std::get_if<TensorOutput>(&like.value);
  if (tensor == nullptr || other == nullptr || !is_rounded_to(other->dtype, tensor->dtype)) return;
  const std::size_t wide = tensor::info(tensor->dtype).size;
  const std::size_t narrow = tensor::info(other->dtype).size;
  const std::size_t parts = tensor::info(other->dtype).kind == tensor::DTypeKind::complex ? 2 : 1;
  const std::size_t count = tensor->bytes.size() / wide;
  std::vector<std::byte> bytes(count * narrow);
  constexpr std::size_t kTogether = 4096;
  std::vector<double> values;
  for (std::size_t at = 0; at < count; at += kTogether) {
    const std::size_t block = std::min(kTogether, count - at);
    values.resize(block * parts);
    tensor::to_double(tensor->dtype, tensor->bytes.subspan(at * wide, block * wide), values);
    put_rounded(other->dtype, values, std::span(bytes).subspan(at * narrow, block * narrow));
  }
  tensor->dtype = other->dtype;
  tensor->bytes = storage.emplace_back(std::move(bytes));
}

}  // namespace msprobe::precheck

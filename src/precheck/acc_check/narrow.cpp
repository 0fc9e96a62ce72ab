// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/narrow.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <variant>

#include "precheck/calls/element_bits.hpp"
#include "tensor/float_form.hpp"

namespace msprobe::precheck {
namespace {

bool is_of(const tensor::FloatForm& form, float value) {
  return !std::isfinite(value) ||
         (std::fabs(value) <= form.largest && tensor::nearest_in(form, value) == value);
}

}  // namespace

void narrow_gradients(Output& output, const std::optional<tensor::DType>& type,
                      std::vector<std::vector<std::byte>>& storage) {
  if (!type) return;
  if (auto* list = std::get_if<Output::List>(&output.value)) {
    for (Output& element : list->elements) narrow_gradients(element, type, storage);
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

}  // namespace msprobe::precheck

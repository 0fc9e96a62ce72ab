// SPDX-License-Identifier: Apache-2.0
#include "measuring/scalar_xors.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "measuring/choose_mode.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::measuring {
namespace {

std::optional<std::uint64_t> word_of(std::string_view text) {
  constexpr std::size_t kSize = 18;
  constexpr int kHexadecimal = 16;
  if (text.size() != kSize || !text.starts_with("0x")) return std::nullopt;
  std::uint64_t word = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, word, kHexadecimal);
  if (error != std::errc() || stop != end) return std::nullopt;
  return word;
}

}  // namespace

void show_scalar_xors_as_numbers(dump::Side& side) {
  if (!are_xor(side).value_or(false)) return;
  for (dump::Item& item : side.items) {
    if (!item.is_tensor || side.text(item.shape) != "[]") continue;
    const auto word = word_of(side.text(item.checksum));
    const auto dtype = tensor::dtype_from_name(side.text(item.dtype));
    if (!word || !dtype) continue;
    const tensor::DTypeInfo& type = tensor::info(*dtype);
    if (type.size > sizeof *word) continue;
    if (type.kind == tensor::DTypeKind::floating) {
      std::array<std::byte, sizeof *word> bytes{};
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(*word >> (8 * i));
      double number = 0;
      tensor::to_double(*dtype, std::span(bytes).first(type.size), std::span(&number, 1));
      item.checksum = side.pool.intern(python_repr(number));
    } else if (type.kind == tensor::DTypeKind::integer && type.name.starts_with("int")) {
      // Negative numbers have 64 bits there.
      const auto unused = static_cast<unsigned>(8 * (sizeof *word - type.size));
      const auto number = static_cast<std::int64_t>(*word << unused) >> unused;
      item.checksum = side.pool.intern(fmt::format("0x{:016x}", static_cast<std::uint64_t>(number)));
    }
  }
}

}  // namespace msprobe::measuring

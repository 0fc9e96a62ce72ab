// SPDX-License-Identifier: Apache-2.0
// What {fmt} keeps out of its headers, compiled once. Debian has it as a shared library only, and the
// collector brings none; -DFMT_HEADER_ONLY would compile it again in every file.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto locale_ref::get<std::locale>() const -> std::locale;
template auto decimal_point_impl<char>(locale_ref) -> char;

namespace dragonbox {
template auto to_decimal(float) noexcept -> decimal_fp<float>;
template auto to_decimal(double) noexcept -> decimal_fp<double>;
}  // namespace dragonbox

}  // namespace detail
FMT_END_NAMESPACE

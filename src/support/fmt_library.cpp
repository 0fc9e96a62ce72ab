// SPDX-License-Identifier: Apache-2.0
// Compiles once the parts of {fmt} that are not in its headers. Debian has them only as a shared library, and
// the collector brings none; -DFMT_HEADER_ONLY would compile them again in every file.
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

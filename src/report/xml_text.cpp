// SPDX-License-Identifier: Apache-2.0
#include "report/xml_text.hpp"

#include <fmt/format.h>

#include <iterator>

#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::report {
namespace {

std::size_t utf16_units(char32_t code) {
  return code >= 0x10000 ? 2 : 1;
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The entity of a character that would begin or end markup; empty for other characters.
std::string_view entity_of(char32_t code) {
  return code == '&' ? "&amp;" : code == '<' ? "&lt;" : code == '>' ? "&gt;" : "";
}

/// May XML contain the character? Control characters are handled elsewhere.
bool is_in_xml(const Utf8& c) {
  return c.valid && c.code != 0xFFFE && c.code != 0xFFFF;
}

/// The size of the part of `text` that is kept if the limit is `limit` units, including the ellipsis; the
/// whole size if the text is not too long.
std::size_t kept_size(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text.size();
  std::size_t units = 0;
  std::size_t cut = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8 c = utf8_at(text, i);
    units += utf16_units(c.code);
    if (units > limit) return cut;
    i += c.length;
    if (units < limit) cut = i;
  }
  return text.size();
}

/// Would a spreadsheet read `text`, which begins with an underscore, as the `_x001B_` notation?
bool is_escape(std::string_view text) {
  return text.size() >= 7 && text[1] == 'x' && is_hex(text[2]) && is_hex(text[3]) && is_hex(text[4]) &&
         is_hex(text[5]) && text[6] == '_';
}

}  // namespace

bool is_plain_xml(std::string_view text, TextTraits traits) {
  if (traits.has(TextTraits::kXml | TextTraits::kHigh) || text.size() > kMostCellText) return false;
  if (!text.empty() && (text.front() == ' ' || text.back() == ' ')) return false;
  return !traits.has(TextTraits::kUnderscore) || text.find("_x") == std::string_view::npos;
}

void append_xml(std::string& out, std::string_view text, std::size_t limit) {
  const std::size_t kept = kept_size(text, limit);
  for (std::size_t i = 0; i < kept;) {
    const Utf8 c = utf8_at(text, i);
    const bool control = c.code < 0x20 && c.code != '\t' && c.code != '\n';
    if (const std::string_view entity = entity_of(c.code); !entity.empty()) {
      out += entity;
    } else if (control) {
      fmt::format_to(std::back_inserter(out), "_x{:04X}_", static_cast<unsigned>(c.code));
    } else if (c.code == '_' && is_escape(text.substr(i))) {
      out += "_x005F_";
    } else if (!is_in_xml(c)) {
      out += kReplacement;
    } else {
      out += text.substr(i, c.length);
    }
    i += c.length;
  }
  if (kept != text.size()) out += "\xE2\x80\xA6";  // …
}

void append_xml_text(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8 c = utf8_at(text, i);
    if (const std::string_view entity = entity_of(c.code); !entity.empty()) {
      out += entity;
    } else if (c.code == '"') {
      out += "&quot;";
    } else if ((c.code < 0x20 && c.code != '\t' && c.code != '\n') || !is_in_xml(c)) {
      out += kReplacement;
    } else {
      out += text.substr(i, c.length);
    }
    i += c.length;
  }
}

}  // namespace msprobe::report

// SPDX-License-Identifier: Apache-2.0
#include "inspect/plain_files.hpp"

#include <cstddef>
#include <cstdint>

#include "formats/message_fields.hpp"
#include "inspect/text_blocks.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

using formats::MessageFields;

constexpr std::uint64_t kLargestVocabulary = std::uint64_t{64} << 20;
constexpr std::string_view kVocabulary = "SentencePiece model";

bool lays_out_text(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v' || c == 0x1B;
}

bool has_portable_executable(const ByteSource& file, std::string_view start) {
  if (!start.starts_with("MZ") || start.size() < 64) return false;
  const auto at = load_le<std::uint32_t>(reinterpret_cast<const std::byte*>(start.data()) + 60);
  return std::uint64_t{at} + 4 <= file.size() && read_text(file, at, 4) == std::string_view("PE\0\0", 4);
}

}  // namespace

std::string code_kind(const ByteSource& file, std::string_view name) {
  const std::string start = first_bytes(file, 64);
  if (start.starts_with("\x7f"
                        "ELF") ||
      start.starts_with("\xfe\xed\xfa") || start.starts_with("\xcf\xfa\xed\xfe") ||
      start.starts_with("\xce\xfa\xed\xfe") || start.starts_with("\xca\xfe\xba\xbe") ||
      start.starts_with(std::string_view("\0asm", 4)) || has_portable_executable(file, start) ||
      is_named(name, {".so", ".dll", ".dylib", ".exe", ".pyd", ".cubin", ".o", ".a"}))
    return "machine code";
  if (is_named(name, {".pyc", ".pyo"})) return "compiled Python";
  if (is_named(name, {".py", ".pyw", ".pyx"})) return "Python source";
  // Python runs the lines of such a file that begin so, where packages are.
  if (is_named(name, {".pth"}) && start.starts_with("import")) return "Python source";
  if (is_named(name, {".ipynb"})) return "a notebook";
  const std::string base = lower_case(name.substr(name.rfind('/') + 1));
  if (base == "makefile" || base == "pyproject.toml" || base == "setup.cfg") return "a build file";
  if (start.starts_with("#!") || is_named(name, {".sh", ".bash", ".bat", ".cmd", ".ps1"})) return "a script";
  return {};
}

bool is_text(const ByteSource& file) {
  std::size_t at = 0;  // beyond the length of a block if its last character crosses the end
  return each_block(file, [&](std::string_view block, std::size_t length) {
    while (at < length) {
      const Utf8 c = utf8_at(block, at);
      if (!c.valid || (c.code < 0x20 && !lays_out_text(c.code)) || c.code == 0x7F) return false;
      at += c.length;
    }
    at -= length;
    return true;
  });
}

bool is_sentencepiece(const ByteSource& file) {
  if (file.size() == 0 || file.size() > kLargestVocabulary) return false;
  try {
    const auto bytes = memory_source(read_all(file, kLargestVocabulary), file.name());
    MessageFields message(*bytes, 0, bytes->size(), kVocabulary);
    MessageFields::MessageField field;
    bool has_pieces = false;
    while (message.next(field)) {
      if (field.wire != 2 || (field.number > 5 && field.number < 200)) return false;
      if (field.number != 1) continue;
      // A text, then the logarithm of its probability and its type.
      MessageFields piece(*bytes, field.offset, field.offset + field.length, kVocabulary);
      MessageFields::MessageField part;
      while (piece.next(part)) {
        if (part.number > 3 || (part.wire == 2) != (part.number == 1)) return false;
      }
      has_pieces = true;
    }
    return has_pieces;
  } catch (const FormatError&) {
    return false;
  }
}

}  // namespace msprobe::inspect

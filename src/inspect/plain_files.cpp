// SPDX-License-Identifier: Apache-2.0
#include "inspect/plain_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "formats/protobuf.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;
// What a mark and the name behind it may take.
constexpr std::size_t kOverlap = 512;
constexpr std::size_t kMostFindings = 20;
constexpr std::uint64_t kLargestVocabulary = std::uint64_t{64} << 20;

/// Hands on the file in blocks, each with the beginning of the next one behind its own `length` bytes, until
/// `take` says false.
bool each_block(const ByteSource& file,
                const std::function<bool(std::string_view block, std::size_t length)>& take) {
  for (std::uint64_t at = 0; at < file.size(); at += kBlock) {
    check_interrupt();
    const std::uint64_t left = file.size() - at;
    const std::string block = read_text(file, at, std::min<std::uint64_t>(left, kBlock + kOverlap));
    if (!take(block, static_cast<std::size_t>(std::min<std::uint64_t>(left, kBlock)))) return false;
  }
  return true;
}

bool lays_out_text(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v' || c == 0x1B;
}

bool is_name_character(char c) {
  return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

std::string_view name_at(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_name_character);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// The rating of "package.module.name".
Rating rate_dotted(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return formats::rate_global(name, "");
  return formats::rate_global(name.substr(0, dot), name.substr(dot + 1));
}

bool is_named(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  const std::string low = lower_case(name);
  return std::ranges::any_of(suffixes, [&](std::string_view suffix) { return low.ends_with(suffix); });
}

using Finding = std::optional<ContentFacts>;

constexpr std::string_view kOwnTags = "YAML tags of its own";

Finding always(std::string_view what, Rating rating = Rating::unknown) {
  return ContentFacts{std::string(what), "", rating};
}

/// Behind the mark: `tuple`, `name:os.system`, `object/apply:os.system` (PyYAML's constructor.py).
Finding yaml_tag(std::string_view rest) {
  static constexpr std::array<std::string_view, 12> kPlain = {
      "none", "bool", "str", "unicode", "bytes", "int", "long", "float", "complex", "list", "tuple", "dict"};
  const auto end =
      std::ranges::find_if(rest, [](char c) { return c == ':' || static_cast<unsigned char>(c) <= ' '; });
  const std::string_view kind = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  if (std::ranges::find(kPlain, kind) != kPlain.end()) return {};
  std::string_view name = rest.substr(std::min(kind.size() + 1, rest.size()));
  if (name.starts_with('\'') || name.starts_with('"')) name.remove_prefix(1);
  name = name_at(name);
  const Rating rating = name.empty() ? Rating::unknown : rate_dotted(name);
  if (rating == Rating::ok) return {};
  return ContentFacts{
      fmt::format("YAML tag !!python/{}{}{}", kind.substr(0, 40), name.empty() ? "" : ":", name), "", rating};
}

/// YAML reads `!!p%79thon/` as the mark.
Finding yaml_escape(std::string_view rest) {
  const std::string_view tag = rest.substr(0, rest.find_first_of(" \t\r\n!"));
  if (tag.find('%') == std::string_view::npos) return {};
  std::string plain;
  for (std::size_t i = 0; i < tag.size(); ++i) {
    unsigned code = 0;
    const bool escape = tag[i] == '%' && tag.size() - i > 2 &&
                        std::from_chars(&tag[i + 1], &tag[i + 1] + 2, code, 16).ptr == &tag[i + 1] + 2;
    plain += escape ? static_cast<char>(code) : tag[i];
    if (escape) i += 2;
  }
  constexpr std::string_view kMark = "python/";
  if (!plain.starts_with(kMark)) return {};
  return yaml_tag(std::string_view(plain).substr(kMark.size()));
}

/// What stands behind a key of JSON, YAML or TOML, within a string too; empty if this was no key.
std::string_view value_behind(std::string_view rest) {
  constexpr std::string_view kBetween = "\\\"' \t\r\n";
  const auto skip = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(kBetween), rest.size())); };
  skip();
  if (!rest.starts_with(':') && !rest.starts_with('=')) return {};
  rest.remove_prefix(1);
  skip();
  return rest;
}

/// Hydra's key for what is to be called.
Finding hydra_target(std::string_view rest) {
  const std::string_view value = value_behind(rest);
  const std::string_view name = name_at(value);
  if (name.empty()) {
    constexpr std::string_view kComputing = "$>|!&*";
    if (value.empty() || kComputing.find(value.front()) == std::string_view::npos) return {};
    return always("_target_ that is computed");
  }
  const Rating rating = rate_dotted(name);
  if (rating == Rating::ok) return {};
  return ContentFacts{fmt::format("_target_ {}", name), "", rating};
}

/// transformers takes an attention function from the repository that is named here.
Finding attention_repository(std::string_view rest) {
  if (rest.starts_with("_internal")) rest.remove_prefix(9);
  const std::string_view value = value_behind(rest);
  const std::string_view name = value.substr(0, value.find_first_of("\\\"',}\r\n"));
  if (name.find('/') == std::string_view::npos) return {};
  return ContentFacts{fmt::format("attn_implementation {}, code of another repository", name), "",
                      Rating::unknown};
}

Finding keras_class(std::string_view rest) {
  if (name_at(value_behind(rest)) != "Lambda") return {};
  return always("a Lambda layer of Keras, which holds code");
}

/// Of a serialized object of Keras, which imports the module.
Finding keras_module(std::string_view rest) {
  const std::string_view module = name_at(value_behind(rest));
  constexpr std::string_view kClass = "\"class_name\"";
  const std::size_t at = rest.find(kClass);
  if (module.empty() || at > 200 || module == "null" || module.starts_with("keras")) return {};
  const std::string_view name = name_at(value_behind(rest.substr(at + kClass.size())));
  const Rating rating = formats::rate_global(module, name);
  return ContentFacts{fmt::format("Keras's {} of module {}", name, module), "",
                      std::max(rating, Rating::unknown)};
}

struct Mark {
  std::string_view text;
  Finding (*judge)(std::string_view rest);
};

constexpr std::array kMarks = {
    Mark{"!!python/", yaml_tag},
    Mark{"tag:yaml.org,2002:python/", yaml_tag},
    Mark{"!!", yaml_escape},
    Mark{"\n%TAG", [](std::string_view) { return always(kOwnTags); }},
    Mark{"_target_", hydra_target},
    Mark{"\"auto_map\"",
         [](std::string_view) { return always("auto_map, which names code that trust_remote_code runs"); }},
    Mark{"attn_implementation", attention_repository},
    Mark{"\"class_name\"", keras_class},
    Mark{"\"module\"", keras_module},
    Mark{"\"__lambda__\"",
         [](std::string_view) { return always("a Python lambda of Keras", Rating::dangerous); }},
};

// What reaches from any value of a template to the modules of Python.
constexpr std::array<std::string_view, 6> kGadgets = {"__globals__", "__subclasses__", "__builtins__",
                                                      "__import__",  "__mro__",        "__bases__"};

/// `\u0061`: a letter of a key that is spelt as an escape, which no writer of JSON does: it hides the key.
bool is_hidden_letter(std::string_view rest) {
  unsigned code = 0;
  if (rest.size() < 6 || std::from_chars(&rest[4], &rest[4] + 2, code, 16).ptr != &rest[4] + 2) return false;
  return code == '_' || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
}

class TextRating {
 public:
  TextRating(const ByteSource& file, std::string_view name, const std::string& where)
      : file_(file),
        where_(where),
        is_c_(is_named(name, {".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".js"})) {}

  std::vector<ContentFacts> run() {
    each_block(file_, [&](std::string_view block, std::size_t length) {
      look_at(block, length);
      return true;
    });
    return std::move(found_);
  }

 private:
  void look_at(std::string_view block, std::size_t length) {
    for (const Mark& mark : kMarks) {
      each_place(block, length, mark.text, [&](std::string_view rest) { add(mark.judge(rest)); });
    }
    if (first_block_ && block.starts_with("%TAG")) add(always(kOwnTags));
    first_block_ = false;
    for (std::size_t at = block.find("\\u00"); at < length; at = block.find("\\u00", at + 1)) {
      if (is_hidden_letter(block.substr(at))) {
        add(always("letters that are spelt as escapes"));
        break;
      }
    }
    if (!is_c_) look_at_templates(block, length);
  }

  /// `{{ x.__globals__` or `{% set y = x['__globals__'`: an attribute within a tag of Jinja.
  void look_at_templates(std::string_view block, std::size_t length) {
    for (std::size_t at = 0; at < length; ++at) {
      const std::string_view rest = block.substr(at);
      if (rest.starts_with("{{") || rest.starts_with("{%")) in_tag_ = true;
      if (rest.starts_with("}}") || rest.starts_with("%}")) in_tag_ = false;
      constexpr std::string_view kBefore = ".['\"";
      const bool is_attribute = at > 0 && kBefore.find(block[at - 1]) != std::string_view::npos;
      if (!in_tag_ || !is_attribute || !rest.starts_with("__")) continue;
      for (const std::string_view gadget : kGadgets) {
        if (rest.starts_with(gadget))
          add(always(fmt::format("a template that leads to Python's internals ({})", gadget),
                     Rating::dangerous));
      }
    }
  }

  template <typename Take>
  static void each_place(std::string_view block, std::size_t length, std::string_view text,
                         const Take& take) {
    for (std::size_t at = block.find(text); at < length; at = block.find(text, at + 1))
      take(block.substr(at + text.size(), kOverlap - text.size()));
  }

  void add(Finding finding) {
    if (!finding || found_.size() == kMostFindings || !known_.insert(finding->what).second) return;
    finding->where = where_;
    found_.push_back(*std::move(finding));
  }

  const ByteSource& file_;
  const std::string& where_;
  std::vector<ContentFacts> found_;
  std::set<std::string> known_;
  bool is_c_;  // braces mean something else there
  bool first_block_ = true;
  bool in_tag_ = false;
};

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
  if (start.starts_with("#!") || is_named(name, {".sh", ".bash", ".bat", ".cmd", ".ps1"})) return "a script";
  return {};
}

bool is_text(const ByteSource& file) {
  std::size_t at = 0;  // behind the length of a block if its last character lies across its end
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

std::vector<ContentFacts> rate_text(const ByteSource& file, std::string_view name, const std::string& where) {
  return TextRating(file, name, where).run();
}

bool is_picture(const ByteSource& file) {
  const std::string start = first_bytes(file, 12);
  return start.starts_with("\x89PNG\r\n\x1a\n") || start.starts_with("\xff\xd8\xff") ||
         start.starts_with("GIF8") || (start.starts_with("RIFF") && start.ends_with("WEBP"));
}

bool is_sentencepiece(const ByteSource& file) {
  if (file.size() == 0 || file.size() > kLargestVocabulary) return false;
  const formats::ProtobufReader::Fail fail = [&](const std::string& reason) {
    throw FormatError(display(file.name()), reason);
  };
  try {
    const std::string bytes = read_all(file, kLargestVocabulary);
    formats::ProtobufReader message(bytes, fail);
    formats::ProtobufField field;
    bool has_pieces = false;
    while (message.next(field)) {
      if (!field.is_bytes || field.number == 0 || (field.number > 5 && field.number < 200)) return false;
      if (field.number != 1) continue;
      // A text, then the logarithm of its probability and its type.
      formats::ProtobufReader piece(field.bytes, fail);
      formats::ProtobufField part;
      while (piece.next(part)) {
        if (part.number > 3 || part.is_bytes != (part.number == 1)) return false;
      }
      has_pieces = true;
    }
    return has_pieces;
  } catch (const FormatError&) {
    return false;
  }
}

}  // namespace msprobe::inspect

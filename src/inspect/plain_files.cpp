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

/// `%79` as the character that it stands for in a tag of YAML.
std::string without_percents(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const bool escape = text[i] == '%' && text.size() - i > 2 &&
                        std::from_chars(&text[i + 1], &text[i + 1] + 2, code, 16).ptr == &text[i + 1] + 2;
    plain += escape ? static_cast<char>(code) : text[i];
    if (escape) i += 2;
  }
  return plain;
}

/// A tag behind `!!`, and one that is written in full: `!<tag:yaml.org,2002:python/...>`.
Finding escaped_tag(std::string_view tag, std::string_view mark) {
  if (tag.find('%') == std::string_view::npos) return {};
  const std::string plain = without_percents(tag);
  if (!plain.starts_with(mark)) return {};
  return yaml_tag(std::string_view(plain).substr(mark.size()));
}
Finding short_tag(std::string_view rest) {
  return escaped_tag(rest.substr(0, rest.find_first_of(" \t\r\n!")), "python/");
}
Finding full_tag(std::string_view rest) {
  return escaped_tag(rest.substr(0, rest.find_first_of(" \t\r\n>!")), "tag:yaml.org,2002:python/");
}

/// `%TAG ! tag:yaml.org,2002:python/` gives a tag of Python another name.
Finding tag_directive(std::string_view rest) {
  const std::string line = without_percents(rest.substr(0, rest.find_first_of("\r\n")));
  const bool python = line.find("tag:yaml.org,2002:") != std::string::npos;
  return always("YAML tags of its own", python ? Rating::dangerous : Rating::unknown);
}

/// `&key _target_`: a name for the key, to be used as `*key: os.system`.
Finding anchored_target(std::string_view rest) {
  rest.remove_prefix(name_at(rest).size());
  const std::size_t at = rest.find_first_not_of(" \t\"'");
  if (at == std::string_view::npos || at == 0 || !rest.substr(at).starts_with("_target_")) return {};
  return always("_target_ that is computed");
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
  std::string_view value = value_behind(rest);
  // A block of YAML, and a tag that says what is a text anyway.
  if (value.starts_with('>') || value.starts_with('|'))
    value.remove_prefix(std::min(value.find('\n'), value.size()));
  if (value.starts_with("!!str")) value.remove_prefix(5);
  value.remove_prefix(std::min(value.find_first_not_of(" \t\r\n\"'"), value.size()));
  const std::string_view name = name_at(value);
  const bool dotted = name.find('.') != std::string_view::npos && !(name[0] >= '0' && name[0] <= '9');
  constexpr std::string_view kComputing = "$!&*\\";
  const std::string_view next = value.substr(name.size(), 1);
  if (!next.empty() && kComputing.find(next) != std::string_view::npos)
    return always("_target_ that is computed");
  if (!dotted) return {};
  const Rating rating = rate_dotted(name);
  if (rating == Rating::ok) return {};
  return ContentFacts{fmt::format("_target_ {}", name), "", rating};
}

/// transformers takes an attention function from the repository that is named here, or in one of the values
/// of a dict.
Finding kernel_repository(std::string_view rest) {
  if (rest.starts_with("_internal")) rest.remove_prefix(9);
  const std::string_view value = value_behind(rest);
  const std::string_view name =
      value.substr(0, value.find_first_of(value.starts_with('{') ? "}" : "\\\"',}\r\n"));
  if (name.find('/') == std::string_view::npos) return {};
  if (name.starts_with('{')) return always("an implementation from another repository");
  return always(fmt::format("an implementation from another repository, {}", name));
}

/// A key whose value names a class or a function by its module, but for those of packages that are expected.
Finding named_code(std::string_view key, std::string_view rest,
                   std::initializer_list<std::string_view> expected) {
  const std::string_view value = value_behind(rest);
  const std::string_view name = value.substr(0, value.find_first_of("\\\"',}] \r\n"));
  const bool dotted =
      name.find('.') != std::string_view::npos && !name.empty() && !(name[0] >= '0' && name[0] <= '9');
  const bool fine =
      std::ranges::any_of(expected, [&](std::string_view head) { return name.starts_with(head); });
  if (!dotted || fine) return {};
  return always(fmt::format("{} {}", key, name), std::max(Rating::unknown, rate_dotted(name)));
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
    Mark{"!!", short_tag},
    Mark{"!<", full_tag},
    Mark{"\n%TAG", tag_directive},
    Mark{"_target_", hydra_target},
    Mark{"&", anchored_target},
    Mark{"${oc.decode:", [](std::string_view) { return always("a value that is computed (oc.decode)"); }},
    Mark{"${oc.create:", [](std::string_view) { return always("a value that is computed (oc.create)"); }},
    Mark{"\"auto_map\"",
         [](std::string_view rest) {
           return value_behind(rest).starts_with('{')
                      ? always("auto_map, which names code that trust_remote_code runs")
                      : Finding();
         }},
    Mark{"\"custom_pipelines\"",
         [](std::string_view rest) {
           return value_behind(rest).starts_with('{')
                      ? always("custom_pipelines, which name code that trust_remote_code runs")
                      : Finding();
         }},
    Mark{"_implementation", kernel_repository},
    Mark{"\"activation_function\"",
         [](std::string_view rest) { return named_code("activation_function", rest, {"torch.nn."}); }},
    Mark{"\"activation_fn\"",
         [](std::string_view rest) { return named_code("activation_fn", rest, {"torch.nn."}); }},
    Mark{"\"sbert_ce_default_activation_function\"",
         [](std::string_view rest) { return named_code("activation function", rest, {"torch.nn."}); }},
    Mark{"\"parent_library\"",
         [](std::string_view rest) {
           const std::string_view value = value_behind(rest);
           const std::string_view name = value.substr(0, value.find_first_of("\\\"',} \r\n"));
           const std::string_view root = name.substr(0, name.find('.'));
           const bool fine = root.empty() || root == "null" || root == "transformers" || root == "torch" ||
                             root == "diffusers" || root == "peft";
           return fine ? Finding() : always(fmt::format("parent_library {}", name));
         }},
    Mark{"\"class_name\"", keras_class},
    Mark{"\"module\"", keras_module},
    Mark{"\"__lambda__\"",
         [](std::string_view) { return always("a Python lambda of Keras", Rating::dangerous); }},
};

/// sentence-transformers makes the modules of `modules.json` by these.
constexpr Mark kModuleType{
    "\"type\"", [](std::string_view rest) { return named_code("module", rest, {"sentence_transformers."}); }};

// What reaches from any value of a template to the modules of Python.
constexpr std::array<std::string_view, 6> kGadgets = {"__globals__", "__subclasses__", "__builtins__",
                                                      "__import__",  "__mro__",        "__bases__"};

// Of such a name, where it is put together, and the filter that takes one.
constexpr std::array<std::string_view, 3> kParts = {"globals", "subclasses", "builtins"};

/// `\x61`, `\u0061`, `\U00000061`: a letter that is spelt as an escape, which no writer of JSON or YAML does.
/// It hides a key.
bool is_hidden_letter(std::string_view rest) {
  if (rest.size() < 2) return false;
  const std::size_t digits = rest[1] == 'x' ? 2 : rest[1] == 'u' ? 4 : rest[1] == 'U' ? 8 : 0;
  if (digits == 0 || rest.size() < 2 + digits) return false;
  unsigned code = 0;
  const char* const begin = rest.data() + 2;
  if (std::from_chars(begin, begin + digits, code, 16).ptr != begin + digits) return false;
  return code == '_' || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
}

// Words for people, in which an escape is an example.
bool is_prose(std::string_view name) {
  return is_named(name, {".md", ".rst", ".txt", ".html", ".tex", ".csv", ".tsv", ".log"});
}

/// diffusers makes the parts of a pipeline by these: `"unet": ["diffusers", "UNet2DConditionModel"]`.
constexpr Mark kPipelinePart{
    "[", [](std::string_view rest) {
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
      if (!rest.starts_with('"')) return Finding();
      const std::string_view name = name_at(rest.substr(1));
      const bool fine = name == "diffusers" || name == "transformers" || name == "onnxruntime" ||
                        name == "flax" || name == "stable_diffusion";
      return name.empty() || fine ? Finding() : always(fmt::format("a part of a pipeline from {}", name));
    }};

class TextRating {
 public:
  TextRating(const ByteSource& file, std::string_view name, const std::string& where)
      : file_(file),
        where_(where),
        is_c_(is_named(name, {".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".js"})),
        is_prose_(is_prose(name)),
        is_yaml_(is_named(name, {".yaml", ".yml"})),
        named_(is_named(name, {"modules.json"})       ? &kModuleType
               : is_named(name, {"model_index.json"}) ? &kPipelinePart
                                                      : nullptr) {}

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
    if (named_ != nullptr)
      each_place(block, length, named_->text, [&](std::string_view rest) { add(named_->judge(rest)); });
    if (first_block_ && block.starts_with("%TAG")) add(tag_directive(block.substr(4, kOverlap)));
    first_block_ = false;
    if (!is_c_ && !is_prose_) look_for_escapes(block, length);
    if (!is_c_) look_at_templates(block, length);
  }

  void look_for_escapes(std::string_view block, std::size_t length) {
    for (std::size_t at = block.find('\\'); at < length; at = block.find('\\', at + 1)) {
      if (block.substr(at).starts_with("\\\\")) {
        ++at;  // a backslash itself
      } else if (is_hidden_letter(block.substr(at)) || (is_yaml_ && block.substr(at).starts_with("\\\n"))) {
        return add(always("letters that are spelt as escapes"));
      }
    }
  }

  /// `{{ x.__globals__` or `{% set y = x['__globals__'`: an attribute within a tag of Jinja.
  void look_at_templates(std::string_view block, std::size_t length) {
    for (std::size_t at = 0; at < length; ++at) {
      const std::string_view rest = block.substr(at);
      if (rest.starts_with("{{") || rest.starts_with("{%")) in_tag_ = true;
      if (rest.starts_with("}}") || rest.starts_with("%}")) in_tag_ = false;
      if (!in_tag_) continue;
      const std::string_view word = name_at(rest);
      if (word.empty()) continue;
      const auto is_gadget = [&](std::string_view gadget) {
        return word.find(gadget) != std::string_view::npos;
      };
      if (const auto* gadget = std::ranges::find_if(kGadgets, is_gadget); gadget != kGadgets.end()) {
        add(always(fmt::format("a template that leads to Python's internals ({})", *gadget),
                   Rating::dangerous));
      } else if (word.find("__") != std::string_view::npos || std::ranges::any_of(kParts, is_gadget) ||
                 (word == "attr" && at > 0 && (block[at - 1] == '|' || block[at - 1] == ' '))) {
        add(always("a template that may lead to Python's internals"));
      }
      at += word.size() - 1;
    }
  }

  template <typename Take>
  static void each_place(std::string_view block, std::size_t length, std::string_view text,
                         const Take& take) {
    for (std::size_t at = block.find(text); at < length; at = block.find(text, at + 1)) {
      if (!is_comment(block, at)) take(block.substr(at + text.size(), kOverlap - text.size()));
    }
  }

  /// Of YAML, TOML and Python.
  static bool is_comment(std::string_view block, std::size_t at) {
    const std::string_view before = block.substr(at > kOverlap ? at - kOverlap : 0, std::min(at, kOverlap));
    const std::size_t begin = before.rfind('\n') + 1;
    const std::size_t first = before.find_first_not_of(" \t", begin);
    return first != std::string_view::npos && before[first] == '#';
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
  bool is_prose_;
  bool is_yaml_;
  const Mark* named_;  // of files of this name alone
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
  // Python runs the lines of such a file that begin so, where packages are.
  if (is_named(name, {".pth"}) && start.starts_with("import")) return "Python source";
  if (is_named(name, {".ipynb"})) return "a notebook";
  const std::string base = lower_case(name.substr(name.rfind('/') + 1));
  if (base == "makefile" || base == "pyproject.toml" || base == "setup.cfg") return "a build file";
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

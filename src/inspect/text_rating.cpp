// SPDX-License-Identifier: Apache-2.0
#include "inspect/text_rating.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "inspect/loader_marks.hpp"
#include "inspect/text_blocks.hpp"

namespace msprobe::inspect {
namespace {

constexpr std::size_t kMostFindings = 20;

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

class TextRating {
 public:
  TextRating(const ByteSource& file, std::string_view name, const std::string& where)
      : file_(file),
        where_(where),
        is_c_(is_named(name, {".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".js"})),
        is_prose_(is_prose(name)),
        is_yaml_(is_named(name, {".yaml", ".yml"})),
        named_(mark_of_file(name)) {}

  std::vector<ContentFacts> run() {
    each_block(file_, [&](std::string_view block, std::size_t length) {
      look_at(block, length);
      return true;
    });
    return std::move(found_);
  }

 private:
  void look_at(std::string_view block, std::size_t length) {
    for (const Mark& mark : loader_marks()) {
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

}  // namespace

std::vector<ContentFacts> rate_text(const ByteSource& file, std::string_view name, const std::string& where) {
  return TextRating(file, name, where).run();
}

}  // namespace msprobe::inspect

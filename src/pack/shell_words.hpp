// SPDX-License-Identifier: Apache-2.0
// Words of shell scripts: the tokens as they are written, and what they become when variables are known.
// Nothing is executed; what only a shell could tell (commands in $(...), arithmetic, positional parameters)
// stays as written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace msprobe::pack {

/// A stretch of a word.
struct ShellPart {
  enum class Kind : std::uint8_t {
    text,
    reference,  // $NAME, ${NAME}, …
    separator,  // between the elements of "${ARRAY[@]}"
  };
  enum class Mode : std::uint8_t { plain, all, joined, element, fallback, alternative };

  Kind kind = Kind::text;
  bool quoted = false;    // whether blanks in it are kept together
  bool verbatim = false;  // text for a running shell only, as it is written: never taken apart
  std::string text;       // of a reference: as it is written
  // Of a reference:
  Mode mode = Mode::plain;
  bool empty_counts = false;  // `:-` and `:+`: an empty value counts as none
  std::size_t index = 0;      // of an element
  std::string name;
  std::vector<ShellPart> word;  // of a fallback or an alternative
};
using ShellWord = std::vector<ShellPart>;

/// Reads words from a script, or from the inside of quotes.
class ShellLexer {
 public:
  explicit ShellLexer(std::string_view text, int depth = 0) : text_(text), depth_(depth) {}

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void advance(std::size_t count = 1) { at_ = at_ + count < text_.size() ? at_ + count : text_.size(); }
  std::string_view rest() const { return text_.substr(at_ < text_.size() ? at_ : text_.size()); }

  /// Past blanks and escaped line ends.
  void skip_blanks();
  void skip_line();
  /// The word that starts here; empty if a blank or an operator does.
  ShellWord word();
  /// All that is left as one word, blanks too. `quoted`: it stands between double quotes.
  ShellWord whole(bool quoted);
  /// From a parenthesis to behind its partner, or to the end.
  std::string_view parenthesized();

 private:
  /// Past an escaped line end, if one is here.
  bool joins_lines();
  void single_quotes(ShellWord& out);
  void ansi_quotes(ShellWord& out);
  void double_quotes(ShellWord& out);
  void dollar(ShellWord& out, bool quoted);
  void braces(ShellWord& out, bool quoted);
  void backticks(ShellWord& out);

  std::string_view text_;
  int depth_;
  std::size_t at_ = 0;
};

/// Values by name, and the expansion of words with them.
class ShellVariables {
 public:
  explicit ShellVariables(std::string file) : file_(std::move(file)) {}

  /// `append` is `+=`.
  void assign(const std::string& name, const ShellWord& value, bool append);
  void assign_array(const std::string& name, const std::vector<ShellWord>& words, bool append);

  /// The fields a word becomes: none, one, or several. References to what is not known stay as written.
  /// FormatError if the script makes more text than any honest one.
  std::vector<std::string> fields(const ShellWord& word);
  /// The text of a word that stands for one field, taken apart at blanks only if `splits`; nothing if only a
  /// running shell knows it, or if it is none or several.
  std::optional<std::string> known(const ShellWord& word, bool splits);

 private:
  struct Variable {
    bool array = false;
    std::vector<ShellWord> elements;  // one if it is no array
    bool open = false;                // of no array: it has references that may become known
  };
  bool extend(const std::string& name, const ShellWord& value);
  ShellWord resolve(const ShellWord& word, int depth);
  void resolve_reference(const ShellPart& reference, int depth, ShellWord& out);
  static void keep_outer(ShellWord& word, const std::string& name);
  static std::vector<ShellWord> split(const ShellWord& word);
  void spend(std::size_t size);

  std::string file_;
  std::unordered_map<std::string, Variable> variables_;
  std::size_t spent_ = 0;
};

}  // namespace msprobe::pack

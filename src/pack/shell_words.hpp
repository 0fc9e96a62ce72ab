// SPDX-License-Identifier: Apache-2.0
// Words of shell scripts with their variables inserted. Nothing is executed; parts that only a shell could
// evaluate (commands in $(...), arithmetic, positional parameters) stay as written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace msprobe::pack {

/// Reads a script from its beginning to its end. Text between kWritten and kEndWritten, two letters that no
/// script has, stays as written and is never split; a reference in it is looked up again later.
class ShellWords {
 public:
  ShellWords(std::string_view script, const std::string& file)
      : file_(file), text_(script), end_(script.size()) {}

  bool at_end() const { return at_ >= end_; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < end_ ? text_[at_ + ahead] : '\0'; }
  void advance(std::size_t count = 1) { at_ = at_ + count < end_ ? at_ + count : end_; }
  std::string_view rest() const { return text_.substr(at_, end_ - at_); }

  /// Past blanks and escaped line ends.
  void skip_blanks();
  void skip_line();
  /// Skips from a parenthesis or brace to the place after its partner, or to the end. `quoted`: between
  /// double quotes.
  void skip_pair(char open, char close, bool quoted);

  /// The fields that the word here becomes: none, one, or several. `written`: the word as it is in the
  /// script, empty if a blank or an operator is here. FormatError if the script makes too much text.
  std::vector<std::string> fields(std::string_view& written);
  /// The word here as the value of a variable, which is not taken apart.
  std::string value();

  /// `append` is `+=`. Without `array` there is one element.
  void assign(const std::string& name, std::vector<std::string> elements, bool array, bool append);
  /// Its value becomes unknown.
  void forget(const std::string& name) { variables_.erase(name); }

  /// Notes this line as not understood.
  void note();
  /// The noted lines in order, each once.
  const std::vector<std::size_t>& noted() const { return noted_; }

  /// How many letters at the beginning are the name of a variable.
  static std::size_t name_size(std::string_view text);

  static constexpr char kWritten = '\x01';
  static constexpr char kEndWritten = '\x02';

 private:
  struct Fields {
    bool splits = true;
    std::vector<std::string> list = {};
    bool open = false;

    std::string& last();
    void add(std::string_view text, bool quoted);
  };
  enum class Until : std::uint8_t { word_end, quote, text_end };

  bool joins_lines();
  void read(Fields& out, Until until, bool quoted);
  void ansi_quotes(Fields& out);
  void dollar(Fields& out, bool quoted);
  void refer(Fields& out, std::string_view written, bool quoted);
  void read_inside(Fields& out, std::string_view text, bool quoted);
  void expand(Fields& out, std::string_view name, std::string_view value, bool quoted);
  void spend(std::size_t size);

  const std::string& file_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t end_;
  std::unordered_map<std::string, std::vector<std::string>> variables_;
  std::vector<std::string_view> expanding_;  // the variables whose values are put in, the inner last
  std::size_t defaults_ = 0;                 // that are read inside of each other
  bool no_elements_ = false;                 // the last array that was put in is empty
  std::size_t spent_ = 0;
  std::vector<std::size_t> noted_;
  std::size_t line_ = 1;
  std::size_t counted_ = 0;  // where that line is
};

}  // namespace msprobe::pack

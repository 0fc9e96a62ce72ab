// SPDX-License-Identifier: Apache-2.0
#include "pack/shell_script.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "pack/several_values.hpp"
#include "pack/shell_condition.hpp"
#include "pack/shell_words.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

constexpr std::size_t kMostLaunches = 1000;
constexpr std::size_t kDeepestScript = 1000;  // if, case and groups inside of each other
constexpr std::size_t kMostWays = 64;         // through a script whose conditions only a shell knows
constexpr std::size_t kMostText = std::size_t{32} << 20;  // read in all of them together

using NameSet = std::set<std::string_view>;

const NameSet kDeclarations = {"export", "declare", "local", "readonly", "typeset"};
const NameSet kKeywords = {"while", "until", "do", "!"};
const NameSet kTests = {"[", "[[", "test"};
const NameSet kWrappers = {"command", "env",    "eval",   "exec", "ionice",  "nice", "nohup",
                           "numactl", "setsid", "stdbuf", "sudo", "taskset", "time", "timeout"};
const NameSet kLaunchers = {"accelerate", "deepspeed", "horovodrun", "mpiexec",
                            "mpirun",     "msrun",     "srun",       "torchrun"};
const NameSet kTorchModules = {"torch.distributed.launch", "torch.distributed.run"};
const NameSet kOtherModules = {"ensurepip", "pip", "venv"};

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_python(std::string_view name) {
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string_view::npos;
}

/// if … fi, case … esac or { … }: what is read now runs, or does not.
struct Branches {
  enum class Kind : std::uint8_t { conditional, selection, group };
  Kind kind = Kind::group;
  bool reached = false;  // it stands in a part that runs
  bool runs = false;     // the branch that is read
  bool over = false;     // a branch was taken for certain: no later one is
  bool taken = false;    // a branch was taken on this way
  std::size_t open = 0;  // branches that only a shell can tell of, so far
  // Of a conditional, while its condition is read:
  bool in_condition = false;
  Truth condition = Truth::unknown;
  // Of a selection:
  std::optional<std::string> subject = {};
  bool expects_pattern = false;
};

/// Reads a script command by command and follows its assignments, on one way through what cannot be decided:
/// of branches that nobody knows the one of this number is taken, or the last.
class ScriptReader {
 public:
  ScriptReader(std::string_view script, const std::string& file, std::size_t way)
      : file_(file), lexer_(script), variables_(file), way_(way) {}

  std::vector<Launch> run() {
    while (!lexer_.at_end()) {
      check_interrupt();
      token();
    }
    end_command(Join::sequence);
    return std::move(launches_);
  }

  /// How many ways there are; after run().
  std::size_t ways() const { return ways_; }

 private:
  enum class Join : std::uint8_t { sequence, pipe, and_then, or_else };

  void token() {
    lexer_.skip_blanks();
    const char c = lexer_.peek();
    if (lexer_.at_end()) return;
    if (!branches_.empty() && branches_.back().expects_pattern) {
      pattern();
    } else if (in_brackets_ && c != ';' && test_operator(c)) {
      return;
    } else if (c == '#') {
      lexer_.skip_line();
    } else if (c == '\n') {
      lexer_.advance();
      end_command(Join::sequence);
      skip_documents();
    } else if (c == ';') {
      semicolon();
    } else if ((c == '&' || c == '|') && lexer_.peek(1) == c) {
      lexer_.advance(2);
      end_command(c == '&' ? Join::and_then : Join::or_else);
    } else if (c == '|') {
      lexer_.advance();
      end_command(Join::pipe);
    } else if (c == '(') {
      if (words_.empty() && lexer_.peek(1) == '(') {
        lexer_.parenthesized();
      } else {
        lexer_.advance();
      }
      end_command(Join::sequence);
    } else if (c == ')' || (c == '&' && lexer_.peek(1) != '>')) {
      lexer_.advance();
      end_command(Join::sequence);
    } else if (c == '&' || ((c == '<' || c == '>') && lexer_.peek(1) != '(')) {
      redirection();
    } else if (!assignment()) {
      word();
    }
  }

  /// Of `[[ ]]`, where && and parentheses end no command.
  bool test_operator(char c) {
    if (c == '\n') {
      lexer_.advance();
      return true;
    }
    if (std::string_view("&|()<>").find(c) == std::string_view::npos) return false;
    const std::size_t size = (c == '&' || c == '|') && lexer_.peek(1) == c ? 2 : 1;
    operands_.emplace_back(std::string(size, c));
    lexer_.advance(size);
    return true;
  }

  void semicolon() {
    lexer_.advance();
    end_command(Join::sequence);
    if (lexer_.peek() != ';' && lexer_.peek() != '&') return;
    if (branches_.empty() || branches_.back().kind != Branches::Kind::selection) return;
    while (lexer_.peek() == ';' || lexer_.peek() == '&') lexer_.advance();
    branches_.back().expects_pattern = true;
    branches_.back().runs = false;
  }

  /// Does the command that is read run?
  bool runs() const { return guard_runs_ && reaches(); }
  bool reaches() const {
    if (branches_.empty()) return true;
    const Branches& inner = branches_.back();
    return inner.in_condition ? inner.reached && !inner.over : inner.runs;
  }

  void open(Branches branches) {
    if (branches_.size() == kDeepestScript)
      throw FormatError(display(file_),
                        "refused: it is nested more than " + std::to_string(kDeepestScript) + " deep");
    branches.reached = runs();
    branches_.push_back(std::move(branches));
  }

  /// One of several ways: the branch behind a condition.
  void choose(Branches& branches, Truth truth) {
    branches.runs = branches.reached && !branches.over && !branches.taken && truth != Truth::no;
    if (!branches.reached || branches.over || truth == Truth::no) return;
    if (truth == Truth::yes) {
      branches.over = true;
    } else {
      branches.runs = branches.runs && way_ <= branches.open;
      ways_ = std::max(ways_, ++branches.open + 1);
    }
    branches.taken = branches.taken || branches.runs;
  }

  /// Words that shape the script, where a command may begin.
  bool keyword(std::string_view text) {
    using Kind = Branches::Kind;
    Branches* const inner = branches_.empty() ? nullptr : &branches_.back();
    const bool conditional = inner != nullptr && inner->kind == Kind::conditional;
    if (text == "if") {
      open({.kind = Kind::conditional, .in_condition = true});
    } else if (text == "elif" && conditional) {
      inner->in_condition = true;
      inner->condition = Truth::unknown;
    } else if (text == "then" && conditional && inner->in_condition) {
      inner->in_condition = false;
      choose(*inner, inner->condition);
    } else if (text == "else" && conditional) {
      choose(*inner, Truth::yes);
    } else if (text == "case") {
      lexer_.skip_blanks();
      Branches selection{.kind = Kind::selection, .expects_pattern = true};
      selection.subject = variables_.known(lexer_.word(), false);
      open(std::move(selection));
      while (!lexer_.at_end() && (lexer_.peek() == '\n' || lexer_.peek() == ' ' || lexer_.peek() == '\t' ||
                                  lexer_.peek() == '\r')) {
        lexer_.advance();
      }
      lexer_.word();  // in
    } else if (text == "{") {
      open({.kind = Kind::group, .runs = runs()});
    } else if (inner != nullptr &&
               ((text == "fi" && conditional) || (text == "}" && inner->kind == Kind::group) ||
                (text == "esac" && inner->kind == Kind::selection))) {
      branches_.pop_back();
    } else {
      return false;
    }
    join_ = Join::sequence;
    guard_runs_ = true;
    return true;
  }

  /// `a | b)`, perhaps behind a parenthesis, or the end of the selection.
  void pattern() {
    if (lexer_.peek() == '\n') {
      lexer_.advance();
      return;
    }
    if (lexer_.peek() == '#') {
      lexer_.skip_line();
      return;
    }
    Branches& selection = branches_.back();
    if (lexer_.peek() == '(') {
      lexer_.advance();
    } else if (lexer_.rest().starts_with("esac")) {
      lexer_.word();
      branches_.pop_back();
      return;
    }
    Truth truth = Truth::no;
    while (true) {
      lexer_.skip_blanks();
      const ShellWord word = lexer_.word();
      truth = either(truth, fits(selection, word));
      lexer_.skip_blanks();
      const char next = lexer_.peek();
      lexer_.advance();
      if (next != '|') break;  // a parenthesis, or what does not belong here
    }
    selection.expects_pattern = false;
    choose(selection, truth);
  }

  Truth fits(const Branches& selection, const ShellWord& word) {
    const std::optional<std::string> text = variables_.known(word, false);
    const auto is_quoted = [](const ShellPart& part) { return part.quoted; };
    const bool quoted = std::ranges::any_of(word, is_quoted);
    if (text == "*" && !quoted) return Truth::yes;
    if (!text || !selection.subject) return Truth::unknown;
    std::optional<bool> fitting;
    if (!quoted) {
      fitting = fits_pattern(*text, *selection.subject);
    } else if (std::ranges::all_of(word, is_quoted) || text->find_first_of("*?[") == std::string::npos) {
      fitting = *text == *selection.subject;
    }
    return !fitting ? Truth::unknown : *fitting ? Truth::yes : Truth::no;
  }

  void word() {
    const ShellWord word = lexer_.word();
    const char next = lexer_.peek();
    const bool plain = word.size() == 1 && word.front().kind == ShellPart::Kind::text && !word.front().quoted;
    const bool descriptor = (next == '<' || next == '>') && plain &&
                            word.front().text.find_first_not_of("0123456789") == std::string::npos;
    if (descriptor) return;  // the 2 of 2>&1
    if (!started_ && plain && keyword(word.front().text)) return;
    if (!runs()) {
      started_ = true;
      return;
    }
    if (!operands_.empty() || (plain && !started_ && kTests.contains(word.front().text))) {
      if (operands_.empty()) in_brackets_ = word.front().text == "[[";
      operands_.push_back(variables_.known(word, !in_brackets_));
      if (in_brackets_ && plain && word.front().text == "]]") in_brackets_ = false;
      started_ = true;
      return;
    }
    std::vector<std::string> fields = variables_.fields(word);
    for (std::string& field : fields) {
      if (words_.empty()) declaration_ = kDeclarations.contains(field);
      started_ = started_ || !kKeywords.contains(field);
      words_.push_back(std::move(field));
    }
  }

  /// NAME=value, NAME+=value, NAME=(…): before a command, or as arguments of `export` and the like.
  bool assignment() {
    if (started_ && !declaration_) return false;
    const std::string_view rest = lexer_.rest();
    std::size_t size = 0;
    while (size < rest.size() &&
           (rest[size] == '_' || (rest[size] >= '0' && rest[size] <= '9' && size != 0) ||
            ((rest[size] | 0x20) >= 'a' && (rest[size] | 0x20) <= 'z'))) {
      ++size;
    }
    const bool append = rest.substr(size).starts_with("+=");
    if (size == 0 || (!append && !rest.substr(size).starts_with('='))) return false;
    const std::string name(rest.substr(0, size));
    lexer_.advance(size + (append ? 2 : 1));
    if (lexer_.peek() == '(') {
      lexer_.advance();
      const std::vector<ShellWord> words = array_words();
      if (runs()) variables_.assign_array(name, words, append);
    } else {
      const ShellWord value = lexer_.word();
      if (runs()) variables_.assign(name, value, append);
    }
    assigned_ = true;
    return true;
  }

  std::vector<ShellWord> array_words() {
    std::vector<ShellWord> words;
    while (!lexer_.at_end()) {
      lexer_.skip_blanks();
      const char c = lexer_.peek();
      if (c == ')') {
        lexer_.advance();
        break;
      }
      if (c == '#') {
        lexer_.skip_line();
        continue;
      }
      ShellWord word = lexer_.word();
      if (word.empty()) {
        lexer_.advance();  // a line end, or what does not belong here
      } else {
        words.push_back(std::move(word));
      }
    }
    return words;
  }

  void redirection() {
    const bool here = lexer_.rest().starts_with("<<") && !lexer_.rest().starts_with("<<<");
    while (std::string_view("<>&|").find(lexer_.peek()) != std::string_view::npos && !lexer_.at_end())
      lexer_.advance();
    const bool tabs = here && lexer_.peek() == '-';
    if (tabs) lexer_.advance();
    lexer_.skip_blanks();
    const ShellWord target = lexer_.word();
    if (!here) return;
    std::string delimiter;
    for (const ShellPart& part : target) delimiter += part.text;
    documents_.push_back({delimiter, tabs});
  }

  /// The lines of `<<END` documents, which follow the line that announces them.
  void skip_documents() {
    for (const Document& document : documents_) {
      while (!lexer_.at_end()) {
        std::string_view line = lexer_.rest().substr(0, lexer_.rest().find('\n'));
        lexer_.advance(line.size() + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (document.tabs) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
        if (line == document.end) break;
      }
    }
    documents_.clear();
  }

  /// `next`: what stands between this command and the one behind it.
  void end_command(Join next) {
    const bool empty = words_.empty() && operands_.empty() && !assigned_ && !started_;
    if (!empty) {
      follow(truth_of_command(), next);
      look_for_launch(std::move(words_));
    }
    words_.clear();
    operands_.clear();
    started_ = declaration_ = assigned_ = in_brackets_ = false;
    if (!empty || next != Join::sequence) guard(next);
  }

  /// Of a test, `true` and `false`; nothing for other commands, which nobody runs here.
  std::optional<Truth> truth_of_command() const {
    std::optional<Truth> truth;
    if (!operands_.empty()) {
      truth = evaluate_test(operands_);
    } else if (!words_.empty() &&
               (words_.back() == "true" || words_.back() == ":" || words_.back() == "false") &&
               words_.size() - 1 == static_cast<std::size_t>(std::count(words_.begin(), words_.end(), "!"))) {
      truth = words_.back() == "false" ? Truth::no : Truth::yes;
    } else if (words_.empty() && assigned_) {
      truth = Truth::yes;
    }
    if (truth && std::count(words_.begin(), words_.end(), "!") % 2 == 1) truth = negated(*truth);
    return truth;
  }

  /// The list of commands so far, and the condition that it may be.
  void follow(std::optional<Truth> truth, Join next) {
    if (next == Join::pipe || join_ == Join::pipe) truth = std::nullopt;
    if (!branches_.empty() && branches_.back().in_condition) {
      Truth& condition = branches_.back().condition;
      const Truth here = truth.value_or(Truth::unknown);
      condition = join_ == Join::and_then  ? both(condition, here)
                  : join_ == Join::or_else ? either(condition, here)
                                           : here;
      return;
    }
    if (guard_runs_) list_ = truth;
  }

  /// Whether the next command runs, by what the commands ahead of it in its list gave. Those whose end nobody
  /// knows are taken to allow it.
  void guard(Join next) {
    join_ = next;
    const bool depends = next == Join::and_then || next == Join::or_else;
    if (!depends) list_.reset();
    guard_runs_ = true;
    if (!depends || !list_ || (!branches_.empty() && branches_.back().in_condition) || !reaches()) return;
    const Truth wanted = next == Join::and_then ? *list_ : negated(*list_);
    guard_runs_ = wanted == Truth::yes || (wanted == Truth::unknown && way_ == 0);
    if (wanted == Truth::unknown) ways_ = std::max(ways_, std::size_t{2});
  }

  void look_for_launch(std::vector<std::string> words) {
    std::size_t at = 0;
    while (at < words.size() && kKeywords.contains(words[at])) ++at;
    if (at == words.size()) return;
    if (kWrappers.contains(base_name(words[at]))) {
      while (at < words.size() && !launcher_at(words, at)) ++at;
    }
    if (at == words.size()) return;
    const auto launch = launcher_at(words, at);
    if (!launch) return;
    if (launches_.size() == kMostLaunches) {
      throw FormatError(display(file_),
                        "refused: it starts training more than " + std::to_string(kMostLaunches) + " times");
    }
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
    launches_.push_back({std::move(words), *launch});
  }

  /// Does a launcher stand there, and is it a distributed one?
  static std::optional<bool> launcher_at(const std::vector<std::string>& words, std::size_t at) {
    const std::string_view name = base_name(words[at]);
    if (name == "accelerate" && (at + 1 == words.size() || words[at + 1] != "launch")) return std::nullopt;
    if (kLaunchers.contains(name)) return true;
    if (!is_python(name)) return std::nullopt;
    for (std::size_t i = at + 1; i < words.size() && words[i].starts_with('-'); ++i) {
      if (words[i] == "-c") return std::nullopt;
      if (words[i] != "-m" || i + 1 == words.size()) continue;
      if (kOtherModules.contains(words[i + 1])) return std::nullopt;
      return kTorchModules.contains(words[i + 1]);
    }
    return false;
  }

  struct Document {
    std::string end;
    bool tabs = false;
  };
  const std::string& file_;
  ShellLexer lexer_;
  ShellVariables variables_;
  std::size_t way_;
  std::size_t ways_ = 1;
  std::vector<Branches> branches_;                    // the inner last
  std::vector<std::string> words_;                    // of the command that is read
  std::vector<std::optional<std::string>> operands_;  // the same of a test
  bool in_brackets_ = false;                          // of [[ ]]
  bool started_ = false;                              // there is more than keywords
  bool declaration_ = false;                          // it is `export` or the like
  bool assigned_ = false;
  Join join_ = Join::sequence;  // between the command ahead and this one
  bool guard_runs_ = true;      // as far as that is concerned
  std::optional<Truth> list_;   // what the list so far came to
  std::vector<Document> documents_;
  std::vector<Launch> launches_;
};

/// The name in `name=value` as Hydra takes it, perhaps after one or two plus signs.
std::optional<std::pair<std::string, std::string>> as_override(std::string_view word) {
  for (int i = 0; i < 2 && word.starts_with('+'); ++i) word.remove_prefix(1);
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  const std::string_view name = word.substr(0, equals);
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '.' ||
           c == '@' || c == '/' || c == '-';
  };
  const char first = static_cast<char>(name.front() | 0x20);
  if (first < 'a' || first > 'z' || !std::ranges::all_of(name, fits)) return std::nullopt;
  return std::pair{std::string(name), std::string(word.substr(equals + 1))};
}

}  // namespace

std::vector<std::vector<Launch>> find_launches(std::string_view script, const std::string& file) {
  std::vector<std::vector<Launch>> found;
  std::size_t ways = 1;
  for (std::size_t way = 0; way < ways; ++way) {
    check_interrupt();
    ScriptReader reader(script, file, way);
    found.push_back(reader.run());
    ways = std::max(ways, reader.ways());
    if (ways > kMostWays || (ways > 1 && ways * script.size() > kMostText))
      throw FormatError(display(file), "refused: too many branches that only a shell could decide");
  }
  return found;
}

FlatMap options_of(const Launch& launch) {
  FlatMap options;
  std::string key;       // whose values are read; empty: none
  bool program = false;  // has the training program been named?
  std::vector<std::string> values;
  const auto finish = [&] {
    if (!key.empty()) {
      Value value = Value::of(true);
      if (values.size() == 1) value = Value::of_text(values.front());
      if (values.size() > 1) {
        value = Value::list();
        for (std::string& each : values) value.push(Value::of_text(std::move(each)));
      }
      options.set(std::move(key), std::move(value));
    }
    key.clear();
    values.clear();
  };
  const std::vector<std::string>& words = launch.words;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() > 2 && word.starts_with("--")) {
      finish();
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) {
        key = word.substr(2);
      } else if (equals > 2) {
        options.set(word.substr(2, equals - 2), Value::of_text(word.substr(equals + 1)));
      }
    } else if (word == "--") {
      finish();
    } else if (word.size() > 1 && word[0] == '-' && !parse_number(word)) {
      finish();
      if (word == "-m" && i + 1 < words.size() && !program) program = !kTorchModules.contains(words[++i]);
    } else if (!program && word.ends_with(".py")) {
      finish();
      program = true;
    } else if (!key.empty()) {
      values.push_back(word);
    } else if (program) {
      if (auto pair = as_override(word))
        options.set(std::move(pair->first), Value::of_text(std::move(pair->second)));
    }
  }
  finish();
  return options;
}

FlatMap read_shell_script(std::string_view script, const std::string& file) {
  const std::vector<std::vector<Launch>> ways = find_launches(script, file);
  bool distributed = false;
  for (const std::vector<Launch>& launches : ways) {
    distributed = distributed || std::ranges::any_of(launches, [](const Launch& l) { return l.distributed; });
  }
  std::vector<FlatMap> options;
  for (const std::vector<Launch>& launches : ways) {
    FlatMap& merged = options.emplace_back();
    for (const Launch& launch : launches) {
      if (launch.distributed == distributed) merge(merged, options_of(launch));
    }
  }
  return merge_ways(options);
}

}  // namespace msprobe::pack

// SPDX-License-Identifier: Apache-2.0
#include "pack/shell_script.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "pack/hyper_parameters.hpp"
#include "pack/shell_words.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

constexpr std::size_t kMostLaunches = 1000;

using NameSet = std::set<std::string_view>;

const NameSet kDeclarations = {"export", "declare", "local", "readonly", "typeset"};
const NameSet kKeywords = {"if", "then", "elif", "else", "while", "until", "do", "{", "!"};
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

/// Reads a script command by command and follows its assignments.
class ScriptReader {
 public:
  ScriptReader(std::string_view script, const std::string& file)
      : file_(file), lexer_(script), variables_(file) {}

  std::vector<Launch> run() {
    while (!lexer_.at_end()) token();
    end_command();
    return std::move(launches_);
  }

 private:
  void token() {
    lexer_.skip_blanks();
    const char c = lexer_.peek();
    if (lexer_.at_end()) return;
    if (c == '#') {
      lexer_.skip_line();
    } else if (c == '\n') {
      lexer_.advance();
      end_command();
      skip_documents();
    } else if (c == ';' || c == '|' || c == ')') {
      lexer_.advance();
      end_command();
    } else if (c == '(') {
      if (words_.empty() && lexer_.peek(1) == '(') {
        lexer_.parenthesized();
      } else {
        lexer_.advance();
      }
      end_command();
    } else if (c == '&' && lexer_.peek(1) != '>') {
      lexer_.advance();
      end_command();
    } else if (c == '&' || ((c == '<' || c == '>') && lexer_.peek(1) != '(')) {
      redirection();
    } else if (!assignment()) {
      word();
    }
  }

  void word() {
    const ShellWord word = lexer_.word();
    const char next = lexer_.peek();
    const bool descriptor = (next == '<' || next == '>') && word.size() == 1 && !word.front().quoted &&
                            word.front().text.find_first_not_of("0123456789") == std::string::npos;
    if (descriptor) return;  // the 2 of 2>&1
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
      variables_.assign_array(name, array_words(), append);
    } else {
      variables_.assign(name, lexer_.word(), append);
    }
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

  void end_command() {
    std::vector<std::string> words = std::move(words_);
    words_.clear();
    started_ = declaration_ = false;
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
  std::vector<std::string> words_;  // of the command that is read
  bool started_ = false;            // there is more than keywords
  bool declaration_ = false;        // it is `export` or the like
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
  if (first < 'a' || first > 'z' || !std::all_of(name.begin(), name.end(), fits)) return std::nullopt;
  return std::pair{std::string(name), std::string(word.substr(equals + 1))};
}

}  // namespace

std::vector<Launch> find_launches(std::string_view script, const std::string& file) {
  return ScriptReader(script, file).run();
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
  const std::vector<Launch> launches = find_launches(script, file);
  const bool distributed =
      std::any_of(launches.begin(), launches.end(), [](const Launch& l) { return l.distributed; });
  FlatMap merged;
  for (const Launch& launch : launches) {
    if (launch.distributed == distributed) merge(merged, options_of(launch));
  }
  return merged;
}

}  // namespace msprobe::pack

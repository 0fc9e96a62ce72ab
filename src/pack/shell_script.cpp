// SPDX-License-Identifier: Apache-2.0
#include "pack/shell_script.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "pack/several_values.hpp"
#include "pack/shell_words.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

constexpr std::size_t kMostLaunches = 1000;
constexpr std::size_t kDeepestScript = 1000;  // if, case, loops and groups inside of each other
constexpr std::size_t kMostWays = 256;
constexpr std::size_t kMostText = std::size_t{8} << 20;  // read on all ways together

using NameSet = std::set<std::string_view>;

const NameSet kDeclarations = {"export", "declare", "local", "readonly", "typeset"};
const NameSet kTests = {"[", "[[", "false", "test", "true"};
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

/// Between two commands.
enum class CommandJoin : std::uint8_t { sequence, pipe, and_then, or_else };
/// The command before && or ||.
enum class Guard : std::uint8_t { none, command, test };

/// if … fi, case … esac, a loop, the body of a function, or { … }.
struct ScriptBlock {
  enum class BlockKind : std::uint8_t { conditional, selection, loop, function, group };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  BlockKind kind = BlockKind::group;
  char closing = '\0';          // closes the current parentheses or braces
  bool reached = false;         // this way leads to it
  bool runs = false;            // and to the part that is read now
  std::size_t way = 0;          // through it
  std::size_t number = kNone;   // of this block in the script
  std::size_t branch = kNone;   // the same of the branch that is read
  std::size_t ways_before = 0;  // past all branches, and through the earlier ones
  std::size_t ways_in_branch = 1;
  bool expects_pattern = false;  // of a selection
  // The state of the list of commands around it:
  Guard guard = Guard::none;
  CommandJoin join = CommandJoin::sequence;
};

/// The first reading finds these out.
struct Ways {
  struct OfBlock {
    bool past = true;  // the block has no `else` or `*)`, so it may be skipped
    std::size_t last_branch = ScriptBlock::kNone;
  };
  std::vector<OfBlock> blocks;
  std::vector<std::size_t> branches;  // how many ways lead through each
};

/// Reads a script command by command along one path through it. The first path skips the branches of a block
/// without `else`; the next ones take its first branch, its second, and so on. Further paths take the last
/// branch, so that they combine with all paths through the next block.
class ScriptReader {
 public:
  ScriptReader(std::string_view script, const std::string& file, std::size_t way, Ways& ways)
      : file_(file), words_(script, file), way_(way), ways_(ways) {}

  std::vector<Launch> run() {
    while (!words_.at_end()) {
      check_interrupt();
      token();
    }
    end_command(CommandJoin::sequence);
    while (!blocks_.empty()) close();
    return std::move(launches_);
  }

  /// After run().
  std::size_t count() const { return count_; }
  const std::vector<std::size_t>& not_understood() const { return words_.noted(); }

 private:
  void token() {
    words_.skip_blanks();
    const char c = words_.peek();
    const char next = words_.peek(1);
    if (words_.at_end()) return;
    if (c == '#') {
      words_.skip_line();
    } else if (c == '\n') {
      words_.advance();
      end_command(CommandJoin::sequence);
      skip_documents();
    } else if (c == ';') {
      words_.advance();
      end_command(CommandJoin::sequence);
      if (words_.peek() == ';' || words_.peek() == '&') expect_pattern();
    } else if ((c == '&' || c == '|') && next == c) {
      words_.advance(2);
      end_command(c == '&' ? CommandJoin::and_then : CommandJoin::or_else);
    } else if (c == '(') {
      parenthesis();
    } else if (c == ')') {
      words_.advance();
      if (in_pattern()) {
        blocks_.back().expects_pattern = false;
        branch(last_written_ == "*");
        forget_command();
        return;
      }
      end_command(CommandJoin::sequence);
      if (!blocks_.empty() && blocks_.back().closing == ')') close();
    } else if (c == '|' || (c == '&' && next != '>')) {
      words_.advance();
      end_command(c == '|' ? CommandJoin::pipe : CommandJoin::sequence);
    } else if (c == '&' || ((c == '<' || c == '>') && next != '(')) {
      redirection();
    } else if (!assignment()) {
      word();
    }
  }

  bool in(ScriptBlock::BlockKind kind) const { return !blocks_.empty() && blocks_.back().kind == kind; }
  bool in_pattern() const { return !blocks_.empty() && blocks_.back().expects_pattern; }

  /// Is the command here read on this path? After `grep x y && …`, launches are assumed to run, while the
  /// values of variables are open; after a test both are open.
  bool runs(Guard open = Guard::test) const {
    if (!blocks_.empty() && !blocks_.back().runs) return false;
    return guard_ == Guard::none || guard_ < open || (way_here() == 0) == (join_ == CommandJoin::or_else);
  }

  std::size_t way_here() const {
    return blocks_.empty() ? way_ : blocks_.back().way - blocks_.back().ways_before;
  }

  void open(ScriptBlock::BlockKind kind, char closing = '\0') {
    if (blocks_.size() == kDeepestScript)
      throw FormatError(display(file_),
                        "refused: it is nested more than " + std::to_string(kDeepestScript) + " deep");
    ScriptBlock block{.kind = kind, .closing = closing, .reached = runs(), .runs = runs(), .way = way_here()};
    if (kind != ScriptBlock::BlockKind::group) {
      block.number = opened_++;
      if (block.number == ways_.blocks.size()) ways_.blocks.emplace_back();
      block.ways_before = ways_.blocks[block.number].past ? 1 : 0;
    }
    block.guard = std::exchange(guard_, Guard::none);
    block.join = join_;
    blocks_.push_back(block);
  }

  /// `{` or `(`: perhaps the body of a function, which may never be called.
  void open_group(char closing) {
    const bool function = std::exchange(function_, false);
    open(function ? ScriptBlock::BlockKind::function : ScriptBlock::BlockKind::group, closing);
    if (function) branch(false);
  }

  void need_ways(std::size_t ways) {
    std::size_t& most = blocks_.empty() ? count_ : blocks_.back().ways_in_branch;
    most = std::max(most, ways);
  }

  void end_branch(ScriptBlock& block) {
    if (block.branch == ScriptBlock::kNone) return;
    ways_.branches[block.branch] = block.ways_in_branch;
    block.ways_before += std::exchange(block.ways_in_branch, 1);
  }

  void branch(bool covers_rest) {
    ScriptBlock& block = blocks_.back();
    end_branch(block);
    block.branch = branches_++;
    if (block.branch == ways_.branches.size()) {
      ways_.branches.push_back(1);
      ways_.blocks[block.number].last_branch = block.branch;
      ways_.blocks[block.number].past = !covers_rest;
    }
    const bool last = block.branch == ways_.blocks[block.number].last_branch;
    block.runs = block.reached && block.way >= block.ways_before &&
                 (last || block.way < block.ways_before + ways_.branches[block.branch]);
  }

  void close() {
    ScriptBlock block = blocks_.back();
    blocks_.pop_back();
    end_branch(block);
    const bool group = block.kind == ScriptBlock::BlockKind::group;
    need_ways(group ? block.ways_in_branch : block.ways_before);
    guard_ = block.guard;
    join_ = block.join;
    closed_ = true;
  }

  void parenthesis() {
    words_.advance();
    if (in_pattern()) return;
    if (words_.peek() == '(') {  // ((…)), for ((…))
      words_.note();
      words_.skip_pair('(', ')', false);
      words_.skip_blanks();
      words_.advance(words_.peek() == ')' ? 1 : 0);
      started_ = test_ = true;
      return;
    }
    words_.skip_blanks();
    if ((started_ || function_) && words_.peek() == ')') {  // name()
      words_.advance();
      words_.note();
      forget_command();
      function_ = true;
      return;
    }
    open_group(')');
  }

  void expect_pattern() {
    if (!in(ScriptBlock::BlockKind::selection)) return;
    while (words_.peek() == ';' || words_.peek() == '&') words_.advance();
    blocks_.back().expects_pattern = true;
    blocks_.back().runs = false;
  }

  /// Words that shape the script, where a command may begin.
  bool keyword(std::string_view text) {
    using Kind = ScriptBlock::BlockKind;
    const bool conditional = in(Kind::conditional);
    if (in_pattern() && text != "esac") return false;
    if (text == "if" || text == "while" || text == "until" || text == "case") {
      words_.note();
      open(text == "if" ? Kind::conditional : text == "case" ? Kind::selection : Kind::loop);
      if (text == "case") blocks_.back().expects_pattern = started_ = true;
      if (text == "case") blocks_.back().runs = false;
    } else if (text == "for" || text == "select" || text == "function") {
      words_.note();
      words_.skip_blanks();
      const std::string name = words_.value();
      if (text == "function") {
        function_ = true;
        return true;
      }
      if (runs()) words_.forget(name);
      open(Kind::loop);
      started_ = true;
    } else if (text == "elif" && conditional) {
      blocks_.back().runs = blocks_.back().reached;
    } else if ((text == "then" || text == "else") && conditional) {
      branch(text == "else");
    } else if (text == "do" && in(Kind::loop)) {
      branch(false);
    } else if (text == "{") {
      open_group('}');
    } else if ((text == "fi" && conditional) || (text == "done" && in(Kind::loop)) ||
               (text == "esac" && in(Kind::selection)) ||
               (text == "}" && !blocks_.empty() && blocks_.back().closing == '}')) {
      close();
    } else {
      return text == "!";
    }
    return true;
  }

  void word() {
    std::string_view written;
    std::vector<std::string> fields = words_.fields(written);
    last_written_ = written;
    const bool descriptor = (words_.peek() == '<' || words_.peek() == '>') &&
                            written.find_first_not_of("0123456789") == std::string_view::npos;
    if (descriptor) return;  // the 2 of 2>&1
    if (!started_ && keyword(written)) return;
    if (!started_) declaration_ = kDeclarations.contains(written);
    if (!started_) test_ = kTests.contains(written);
    started_ = true;
    if (test_ && written == "[[") skip_test();
    if (!runs()) return;
    for (std::string& field : fields) {
      std::erase_if(field, [](char c) { return c == ShellWords::kWritten || c == ShellWords::kEndWritten; });
      command_.push_back(std::move(field));
    }
  }

  /// The words up to `]]`, among which && and parentheses end no command.
  void skip_test() {
    std::string_view written;
    while (!words_.at_end() && words_.peek() != ';' && written != "]]") {
      words_.skip_blanks();
      words_.fields(written);
      if (written.empty() && words_.peek() != ';') words_.advance();
    }
  }

  /// NAME=value, NAME+=value, NAME=(…): before a command, or as arguments of `export` and the like.
  bool assignment() {
    if ((started_ && !declaration_) || in_pattern()) return false;
    const std::string_view rest = words_.rest();
    const std::size_t size = ShellWords::name_size(rest);
    const bool append = rest.substr(size).starts_with("+=");
    if (size == 0 || (!append && !rest.substr(size).starts_with('='))) return false;
    const std::string name(rest.substr(0, size));
    words_.advance(size + (append ? 2 : 1));
    if (guard_ == Guard::command) depend();
    const bool array = words_.peek() == '(';
    std::vector<std::string> elements = array ? array_elements() : std::vector{words_.value()};
    if (runs(Guard::command)) words_.assign(name, std::move(elements), array, append);
    assigned_ = true;
    return true;
  }

  std::vector<std::string> array_elements() {
    std::vector<std::string> elements;
    words_.advance();
    while (!words_.at_end()) {
      words_.skip_blanks();
      if (words_.peek() == ')') {
        words_.advance();
        break;
      }
      if (words_.peek() == '#') {
        words_.skip_line();
        continue;
      }
      std::string_view written;
      for (std::string& field : words_.fields(written)) elements.push_back(std::move(field));
      if (written.empty()) words_.advance();  // a line end, or a character that does not belong here
    }
    return elements;
  }

  void redirection() {
    const bool here = words_.rest().starts_with("<<") && !words_.rest().starts_with("<<<");
    while (std::string_view("<>&|").find(words_.peek()) != std::string_view::npos && !words_.at_end())
      words_.advance();
    const bool tabs = here && words_.peek() == '-';
    if (tabs) words_.advance();
    words_.skip_blanks();
    const std::string target = words_.value();
    if (here) documents_.push_back({target, tabs});
  }

  /// The lines of `<<END` documents, which follow the line that announces them.
  void skip_documents() {
    for (const HereDocument& document : documents_) {
      while (!words_.at_end()) {
        std::string_view line = words_.rest().substr(0, words_.rest().find('\n'));
        words_.advance(line.size() + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (document.tabs) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
        if (line == document.end) break;
      }
    }
    documents_.clear();
  }

  /// The next command may run or not.
  void depend() {
    words_.note();
    need_ways(2);
  }

  /// `next` joins this command to the next one.
  void end_command(CommandJoin next) {
    if (!started_ && !assigned_ && !closed_) return;
    look_for_launch(std::move(command_));
    if (next == CommandJoin::sequence) guard_ = Guard::none;
    if (next == CommandJoin::and_then || next == CommandJoin::or_else) {
      if (test_) guard_ = Guard::test;
      if (guard_ == Guard::none && (closed_ || (started_ && !declaration_))) guard_ = Guard::command;
      if (guard_ == Guard::test) depend();
      join_ = next;
    }
    forget_command();
  }

  void forget_command() {
    command_.clear();
    started_ = declaration_ = test_ = assigned_ = closed_ = false;
  }

  void look_for_launch(std::vector<std::string> words) {
    std::size_t at = 0;
    if (words.empty()) return;
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

  /// Nothing if no launcher is at this place; else whether it is a distributed one.
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

  struct HereDocument {
    std::string end;
    bool tabs = false;
  };
  const std::string& file_;
  ShellWords words_;
  std::size_t way_;
  Ways& ways_;
  std::size_t count_ = 1;  // of the ways through the script
  std::size_t opened_ = 0;
  std::size_t branches_ = 0;
  std::vector<ScriptBlock> blocks_;   // the inner last
  std::vector<std::string> command_;  // its words so far
  std::string_view last_written_;     // the last one in its written form
  bool started_ = false;              // there is more than keywords
  bool declaration_ = false;          // it is `export` or the like
  bool test_ = false;                 // it is `[` or the like
  bool assigned_ = false;
  bool closed_ = false;                       // the command is a block
  bool function_ = false;                     // a function has been named whose body comes next
  CommandJoin join_ = CommandJoin::sequence;  // before the command, in the same list
  Guard guard_ = Guard::none;
  std::vector<HereDocument> documents_;
  std::vector<Launch> launches_;
};

/// The name in `name=value` as Hydra takes it, perhaps after one or two plus signs.
std::optional<std::pair<std::string, std::string>> as_override(std::string_view word) {
  for (int i = 0; i < 2 && word.starts_with('+'); ++i) word.remove_prefix(1);
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  const std::string_view name = word.substr(0, equals);
  const auto fits = [](char c) {
    return is_digit(c) || is_letter(c) || std::string_view("_.@/-").find(c) != std::string_view::npos;
  };
  if (!is_letter(name.front()) || !std::ranges::all_of(name, fits)) return std::nullopt;
  return std::pair{std::string(name), std::string(word.substr(equals + 1))};
}

}  // namespace

ShellScript read_script(std::string_view script, const std::string& file) {
  std::string text(script);
  std::ranges::replace_if(
      text, [](char c) { return c == ShellWords::kWritten || c == ShellWords::kEndWritten; }, '?');
  Ways ways;
  ScriptReader first(text, file, 0, ways);
  first.run();
  ScriptReader second(text, file, 0, ways);  // it is known now which blocks can be passed
  ShellScript out;
  out.ways.push_back(second.run());
  out.not_understood = second.not_understood();
  const std::size_t count = second.count();
  if (count > kMostWays || (count > 1 && count * text.size() > kMostText))
    throw FormatError(display(file), "refused: too many branches that only a shell could decide");
  while (out.ways.size() < count) out.ways.push_back(ScriptReader(text, file, out.ways.size(), ways).run());
  return out;
}

FlatMap options_of(const Launch& launch) {
  FlatMap options;
  std::string key;       // whose values are read; empty: none
  bool program = false;  // has the training program been named?
  std::vector<std::string> values;
  const auto finish = [&] {
    if (!key.empty()) {
      PackValue value = PackValue::of(true);
      if (values.size() == 1) value = PackValue::of_text(values.front());
      if (values.size() > 1) {
        value = PackValue::list();
        for (std::string& each : values) value.push(PackValue::of_text(std::move(each)));
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
        options.set(word.substr(2, equals - 2), PackValue::of_text(word.substr(equals + 1)));
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
        options.set(std::move(pair->first), PackValue::of_text(std::move(pair->second)));
    }
  }
  finish();
  return options;
}

FlatMap options_of(const ShellScript& script) {
  bool distributed = false;
  for (const std::vector<Launch>& launches : script.ways)
    distributed = distributed || std::ranges::any_of(launches, &Launch::distributed);
  std::vector<FlatMap> options;
  for (const std::vector<Launch>& launches : script.ways) {
    FlatMap& merged = options.emplace_back();
    for (const Launch& launch : launches) {
      if (launch.distributed == distributed) merge(merged, options_of(launch));
    }
  }
  return merge_ways(options);
}

}  // namespace msprobe::pack

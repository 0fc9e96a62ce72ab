// SPDX-License-Identifier: Apache-2.0
#include "inspect/configuration.hpp"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "dump/member_stream.hpp"
#include "formats/pickle_rating.hpp"
#include "inspect/key_rules.hpp"
#include "inspect/template_rating.hpp"
#include "inspect/text_blocks.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/json_scan.hpp"
#include "support/text.hpp"
#include "support/yaml_document.hpp"
#include "support/yaml_events.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::inspect {
namespace {

constexpr std::size_t kMostFindings = 20;
constexpr std::size_t kMostShown = 60;

struct KeyRule {
  enum class KeyMeaning { text, code, library, kernel, refuse };
  std::string file;
  std::string key;
  KeyMeaning kind = KeyMeaning::text;
  std::vector<std::string> names;  // names that are allowed, or refused
};

std::vector<KeyRule> read_rules() {
  const std::string name = "inspect_keys.yaml";
  const YamlDocument document(kInspectKeys, name, {});
  std::vector<KeyRule> rules;
  for (std::size_t i = 0; i < document.size(document.root()); ++i) {
    const auto& node = document.child(document.root(), i);
    KeyRule& rule = rules.emplace_back();
    for (std::size_t k = 0; k + 1 < document.size(node); k += 2) {
      const std::string& word = document.child(node, k).text;
      const auto& value = document.child(node, k + 1);
      if (word == "file") rule.file = value.text;
      if (word == "key") rule.key = value.text;
      if (word == "code") rule.kind = KeyRule::KeyMeaning::code;
      if (word == "library") rule.kind = KeyRule::KeyMeaning::library;
      if (word == "kernel") rule.kind = KeyRule::KeyMeaning::kernel;
      if (word == "refuse") rule.kind = KeyRule::KeyMeaning::refuse;
      if (word != "but" && word != "refuse") continue;
      for (std::size_t n = 0; n < document.size(value); ++n)
        rule.names.push_back(document.child(value, n).text);
    }
  }
  return rules;
}

bool begins_word(char c) {
  return c == '_' || is_letter(c);
}
bool is_word(char c) {
  return begins_word(c) || is_digit(c);
}

/// The number of ASCII identifiers separated by dots; 0 for other texts.
std::size_t identifiers(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    if (!begins_word(text.front())) return 0;
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, is_word) - text.begin());
    ++count;
    if (end == text.size()) return count;
    if (text[end] != '.') return 0;
    text.remove_prefix(end + 1);
  }
  return 0;
}

Rating rate_dotted(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return formats::rate_global(name, "");
  return formats::rate_global(name.substr(0, dot), name.substr(dot + 1));
}

/// Is the text a name that repositories give to data files?
bool names_data_file(std::string_view text) {
  return is_named(text,
                  {".safetensors", ".bin",  ".pt",   ".pth",     ".ckpt",    ".json",  ".jsonl",     ".txt",
                   ".model",       ".gguf", ".onnx", ".h5",      ".npy",     ".npz",   ".yaml",      ".yml",
                   ".csv",         ".tsv",  ".md",   ".msgpack", ".png",     ".jpg",   ".jpeg",      ".wav",
                   ".mp4",         ".zip",  ".gz",   ".tar",     ".parquet", ".index", ".onnx_data", ".data",
                   ".log",         ".html", ".xml",  ".db",      ".arrow",   ".vocab", ".jinja"});
}

/// Is the text the last part of a parameter's name? Some files list the modules to save by it.
bool names_parameter(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  return dot != std::string_view::npos &&
         has_word("weight bias scale running_mean running_var gamma beta", text.substr(dot + 1));
}

bool is_importable(std::string_view text) {
  // transformers writes classes of other repositories as "repository--module.Class".
  if (const std::size_t other = text.rfind("--"); other != std::string_view::npos)
    text.remove_prefix(other + 2);
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos)
    return identifiers(text.substr(0, colon)) > 0 && identifiers(text.substr(colon + 1)) > 0;
  if (identifiers(text) < 2 || names_data_file(text) || names_parameter(text)) return false;
  if (text.starts_with("torch.") && tensor::dtype_from_torch(text.substr(6))) return false;
  return rate_dotted(text) != Rating::ok;
}

bool is_path_of_code(std::string_view text) {
  if (text.find_first_of(" \t\n") != std::string_view::npos) return false;
  text = text.substr(0, text.rfind(':'));
  return is_named(text, {".py", ".pyc", ".pyx", ".so", ".ipynb", ".dll", ".dylib", ".pyd", ".sh", ".whl"});
}

/// Is the text an expression such as `${oc.env:X}`, `$import os`, `f(x)` or `lambda x: x`?
bool is_expression(std::string_view text) {
  if (text.find("${") != std::string_view::npos) return true;
  if (text.size() > 1 && text[0] == '$') return true;
  if (text.starts_with("pipe:") || text.starts_with('|') || (text.size() > 1 && text.ends_with('|')))
    return true;
  if (text.starts_with("lambda ") || text.starts_with("lambda:") || text.starts_with("import ") ||
      text.find("__import__") != std::string_view::npos)
    return true;
  // A call such as open('x'), at any place.
  for (const std::string_view quote : {"('", "(\"", "(b'", "(f'"}) {
    const std::size_t at = text.find(quote);
    if (at != std::string_view::npos && at > 0 && is_word(text[at - 1])) return true;
  }
  // A loader may pass the address to a shell.
  if ((text.starts_with("http://") || text.starts_with("https://")) &&
      text.find_first_of("'\"`;|<> \t\n") != std::string_view::npos)
    return true;
  const auto name = static_cast<std::size_t>(
      std::ranges::find_if_not(text, [](char c) { return is_word(c) || c == '.'; }) - text.begin());
  const std::size_t opened = text.find_first_not_of(" \t", name);
  if (name == 0 || opened == std::string_view::npos || text[opened] != '(') return false;
  // Python allows blanks before a parenthesis; people also write them before a remark: `MIT (Expat)`.
  const bool nested = text.find_first_of("('\"", opened + 1) != std::string_view::npos;
  return opened == name ? text.ends_with(')') || nested : nested;
}

/// Judges keys and texts one by one, in the order of the file.
class KeyJudge {
 public:
  explicit KeyJudge(std::string_view name) : file_(lower_case(name)) {}

  void open(bool is_map) { levels_.push_back({.is_map = is_map}); }
  void close() {
    levels_.pop_back();
    next();
  }
  void key(std::string key) {
    if (auto found = rate_template(key, true)) add(std::move(found->what), found->rating);
    if (key.starts_with("json://")) add("a key that holds JSON");
    levels_.back().key = std::move(key);
  }
  void other() { next(); }

  void text(std::string_view text) {
    judge(text);
    judge_object_of_keras(text);
    next();
  }

  /// Does a rule say that the texts below the current key are words, not names of code?
  bool is_free() const { return rule() != nullptr && rule()->kind == KeyRule::KeyMeaning::text; }

  void add(std::string what, Rating rating = Rating::unknown) {
    if (found_.size() == kMostFindings || !known_.insert(what).second) return;
    found_.push_back({std::move(what), "", rating});
  }
  std::size_t count() const { return found_.size(); }
  void drop_to(std::size_t count) { found_.resize(std::min(count, found_.size())); }
  std::vector<ContentFacts> take() { return std::move(found_); }

 private:
  struct NestingLevel {
    bool is_map = false;
    std::string key = {};
    std::size_t index = 0;
    std::string module = {};
  };

  void next() {
    if (!levels_.empty() && !levels_.back().is_map) ++levels_.back().index;
  }

  bool is_of_file(const KeyRule& rule) const {
    if (rule.file == "*") return true;
    return file_.ends_with(rule.file) &&
           (file_.size() == rule.file.size() || file_[file_.size() - rule.file.size() - 1] == '/');
  }

  /// The rule of the innermost key that has one. If an outer key has words, the keys below it have words,
  /// too, except those whose value a loader calls; in a file of a known kind there are no such exceptions.
  const KeyRule* rule() const {
    const KeyRule* found = nullptr;
    const auto consider = [&](std::string_view key) {
      const auto known = by_key().find(key);
      if (known == by_key().end()) return;
      const auto own =
          std::ranges::find_if(known->second, [&](const KeyRule* each) { return is_of_file(*each); });
      if (own == known->second.end() || (found != nullptr && (*own)->kind == KeyRule::KeyMeaning::text))
        return;
      if (found == nullptr || found->kind != KeyRule::KeyMeaning::text || found->file == "*") found = *own;
    };
    for (const NestingLevel& level : levels_) {
      if (level.is_map) consider(level.key);
    }
    consider("*");
    return found;
  }
  static const std::map<std::string, std::vector<const KeyRule*>, std::less<>>& by_key() {
    static const std::vector<KeyRule> kRules = read_rules();
    static const auto kByKey = [] {
      std::map<std::string, std::vector<const KeyRule*>, std::less<>> map;
      for (const KeyRule& rule : kRules) map[rule.key].push_back(&rule);
      return map;
    }();
    return kByKey;
  }

  static bool is_below(std::string_view text, const std::vector<std::string>& names) {
    return std::ranges::any_of(names, [&](const std::string& name) {
      return text == name || (text.starts_with(name) && text[name.size()] == '.');
    });
  }

  std::string_view key_shown() const {
    for (std::size_t i = levels_.size(); i-- > 0;) {
      if (levels_[i].is_map) return std::string_view(levels_[i].key).substr(0, kMostShown);
    }
    return {};
  }

  void judge_nested(std::string_view text);

  void judge(std::string_view text) {
    judge_nested(text);
    if (auto found = rate_template(text, is_free())) add(std::move(found->what), found->rating);
    const KeyRule* rule = this->rule();
    const std::string_view shown = text.substr(0, kMostShown);
    if (rule != nullptr) {
      switch (rule->kind) {
        case KeyRule::KeyMeaning::text:
          return;
        case KeyRule::KeyMeaning::code:
          if (rule->key == "download" && text.starts_with("https://") &&
              text.find_first_of(" \n") == std::string_view::npos)
            return;
          if (text.empty() || is_below(text, rule->names) || rate_dotted(text) == Rating::ok) return;
          return add(fmt::format("{} {}", rule->key, shown), rate_dotted(text));
        case KeyRule::KeyMeaning::library:
          if (levels_.back().is_map || levels_.back().index > 0) break;
          if (!is_below(text, rule->names)) add(fmt::format("a part of a pipeline from {}", shown));
          return;
        case KeyRule::KeyMeaning::kernel:
          if (text.find('/') != std::string_view::npos)
            add(fmt::format("an implementation from another repository, {}", shown));
          break;
        case KeyRule::KeyMeaning::refuse:
          if (std::ranges::find(rule->names, text) != rule->names.end())
            return add(fmt::format("{} {}, which holds code", rule->key, shown),
                       text.starts_with("__") ? Rating::dangerous : Rating::unknown);
          break;
      }
    }
    if (is_activation() && text.starts_with("torch.nn.modules.")) return;
    if (is_importable(text))
      return add(fmt::format("{} {}, which could be imported", key_shown(), shown),
                 is_named_code() ? std::max(rate_dotted(text), Rating::unknown) : Rating::unknown);
    if (is_path_of_code(text)) return add(fmt::format("{} {}, a path of code", key_shown(), shown));
    if (is_expression(text)) return add(fmt::format("{} {}, an expression", key_shown(), shown));
  }

  /// Keras imports the module of {"module": "keras.layers", "class_name": "Dense"}.
  void judge_object_of_keras(std::string_view text) {
    if (levels_.empty() || !levels_.back().is_map) return;
    NestingLevel& level = levels_.back();
    if (level.key == "module") level.module = text;
    if (level.key != "class_name" || level.module.empty() || is_below(level.module, {"keras", "builtins"}))
      return;
    const Rating rating = formats::rate_global(level.module, text);
    add(fmt::format("Keras's {} of module {}", text.substr(0, kMostShown), level.module),
        std::max(rating, Rating::unknown));
  }

  /// sentence-transformers accepts no other activations by default.
  bool is_activation() const {
    const std::string_view key = key_shown();
    return key == "activation_function" || key == "activation_fn" ||
           key == "sbert_ce_default_activation_function";
  }

  /// Loaders use these keys for the class or function that they call.
  bool is_named_code() const {
    static constexpr std::string_view kKeys =
        "type class target func function callable activation_function activation_fn "
        "sbert_ce_default_activation_function";
    return has_word(kKeys, key_shown());
  }

  static constexpr int kMostNesting = 3;

  std::string file_;
  int nesting_ = 0;
  std::vector<NestingLevel> levels_;
  std::set<std::string> known_;
  std::vector<ContentFacts> found_;
};

class JsonTokens : public IgnoreTokens {
 public:
  explicit JsonTokens(KeyJudge& judge) : judge_(judge) {}

  void open(bool object) { judge_.open(object); }
  void close(bool) { judge_.close(); }
  void key(std::string_view raw, bool escaped) { judge_.key(std::string(plain(raw, escaped))); }
  void string(std::string_view raw, bool escaped) { judge_.text(plain(raw, escaped)); }
  void number(std::string_view, const char*) { judge_.other(); }
  void literal(char) { judge_.other(); }

 private:
  std::string_view plain(std::string_view raw, bool escaped) {
    if (!escaped) return raw;
    buffer_.clear();
    dump::append_unescaped(buffer_, raw);
    return buffer_;
  }

  KeyJudge& judge_;
  std::string buffer_;
};

/// The reason why the text is not JSON; empty for JSON.
std::string scan_json(std::string_view text, KeyJudge& judge, bool many);

/// A text may contain JSON itself.
void KeyJudge::judge_nested(std::string_view text) {
  if (text.size() < 2 || (text.front() != '{' && text.front() != '[') || nesting_ == kMostNesting) return;
  KeyJudge inner(file_);
  inner.nesting_ = nesting_ + 1;
  if (!scan_json(text, inner, false).empty()) return;
  for (ContentFacts& found : inner.take()) add(std::move(found.what), found.rating);
}

std::string scan_json(std::string_view text, KeyJudge& judge, bool many) {
  const std::string padded = std::string(text) + std::string(kScanPadding, '\0');
  Scan scan{padded.data(), padded.data() + text.size(), nullptr};
  JsonTokens tokens(judge);
  do {
    // A number is complete only if something follows it; at the end of the text nothing does.
    const ScanStatus status = scan_value(scan, tokens);
    const bool at_number = status == ScanStatus::incomplete && scan.at == scan.end && !text.empty() &&
                           text.find_first_of("{[\"") == std::string_view::npos;
    if (status != ScanStatus::done && !at_number) {
      const auto line = std::count(padded.data(), scan.at, '\n') + 1;
      return fmt::format("not JSON (line {}: {})", line,
                         scan.reason == nullptr ? "it is cut off" : scan.reason);
    }
    skip_blanks(scan);
  } while (many && scan.at < scan.end);
  if (scan.at == scan.end) return {};
  return fmt::format("not JSON (something follows in line {})", std::count(padded.data(), scan.at, '\n') + 1);
}

class YamlTokens {
 public:
  YamlTokens(std::string_view text, KeyJudge& judge) : judge_(judge), parser_(text, YAML_UTF8_ENCODING) {}

  void run() {
    for (;;) {
      YamlEvent next;
      if (!parser_.read(next)) {
        // Loaders make objects only from complete documents.
        judge_.drop_to(std::max(complete_, before_));
        return judge_.add(fmt::format("not YAML (line {}: {})", parser_.line() + 1,
                                      parser_.problem() == nullptr ? "broken" : display(parser_.problem())));
      }
      if (next.event.type == YAML_STREAM_END_EVENT) return;
      if (levels_.size() > kMostDepth) {
        judge_.drop_to(std::max(complete_, before_));
        return judge_.add(fmt::format("YAML that is nested more than {} deep", kMostDepth));
      }
      take(next.event);
      if (next.event.type == YAML_DOCUMENT_END_EVENT) complete_ = judge_.count();
    }
  }

 private:
  /// libyaml needs time proportional to the square of the depth; real configurations are a few levels deep.
  static constexpr std::size_t kMostDepth = 256;
  struct YamlLevel {
    bool is_map = false;
    bool at_key = true;
  };

  void take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        anchors_.clear();
        for (const auto* each = event.data.document_start.tag_directives.start;
             each != event.data.document_start.tag_directives.end; ++each)
          judge_.add("YAML tag definitions", yaml_text(each->prefix).starts_with("tag:yaml.org,2002:")
                                                 ? Rating::dangerous
                                                 : Rating::unknown);
        return;
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event.data.scalar;
        judge_tag(yaml_text(scalar.tag));
        const std::string value(reinterpret_cast<const char*>(scalar.value), scalar.length);
        if (scalar.anchor != nullptr) anchors_[std::string(yaml_text(scalar.anchor))] = value;
        return this->value(value);
      }
      case YAML_ALIAS_EVENT: {
        const auto found = anchors_.find(yaml_text(event.data.alias.anchor));
        if (found != anchors_.end()) return value(found->second);
        if (at_key()) judge_.add("a key of YAML that is not text");
        judge_.other();
        return step();
      }
      case YAML_SEQUENCE_START_EVENT:
        judge_tag(yaml_text(event.data.sequence_start.tag));
        return open(false, event.data.sequence_start.anchor);
      case YAML_MAPPING_START_EVENT:
        judge_tag(yaml_text(event.data.mapping_start.tag));
        return open(true, event.data.mapping_start.anchor);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        levels_.pop_back();
        judge_.close();
        return step();
      default:
        return;
    }
  }

  void open(bool is_map, const yaml_char_t* anchor) {
    if (at_key()) judge_.add("a key of YAML that is not text");
    // An alias may put the same texts under another key, with another meaning.
    if (anchor != nullptr && judge_.is_free()) judge_.add("an anchor of YAML below a key of words");
    levels_.push_back({is_map, true});
    judge_.open(is_map);
  }

  void step() {
    if (!levels_.empty() && levels_.back().is_map) levels_.back().at_key = !levels_.back().at_key;
  }
  bool at_key() const { return !levels_.empty() && levels_.back().is_map && levels_.back().at_key; }
  void value(const std::string& text) {
    if (at_key()) {
      judge_.key(text);
    } else {
      judge_.text(text);
    }
    step();
  }

  void judge_tag(std::string_view tag) {
    constexpr std::string_view kYaml = "tag:yaml.org,2002:";
    if (tag.empty() || tag == "!") return;
    const std::string shown(tag.substr(0, kMostShown));
    if (!tag.starts_with(kYaml)) return judge_.add("the YAML tag " + shown);
    tag.remove_prefix(kYaml.size());
    static constexpr std::string_view kPlain =
        "str int float bool null seq map set omap pairs binary timestamp merge value yaml";
    if (has_word(kPlain, tag)) return;
    constexpr std::string_view kPython = "python/";
    if (!tag.starts_with(kPython)) return judge_.add("the YAML tag " + shown);
    tag.remove_prefix(kPython.size());
    static constexpr std::string_view kTypes =
        "none bool str unicode bytes int long float complex list tuple dict";
    if (has_word(kTypes, tag)) return;
    const std::size_t colon = tag.find(':');
    const Rating rating =
        colon == std::string_view::npos ? Rating::unknown : rate_dotted(tag.substr(colon + 1));
    if (rating != Rating::ok)
      judge_.add(fmt::format("YAML tag !!python/{}", tag.substr(0, kMostShown)), rating);
  }

  KeyJudge& judge_;
  std::size_t before_ = judge_.count();
  std::size_t complete_ = 0;  // findings in complete documents
  YamlParser parser_;
  std::vector<YamlLevel> levels_;
  std::map<std::string, std::string, std::less<>> anchors_;  // of scalar values
};

/// Does the text have other line breaks than LF? Parsers of YAML differ in what else ends a line.
bool has_other_line_breaks(std::string_view text) {
  for (std::size_t at = text.find('\r'); at != std::string_view::npos; at = text.find('\r', at + 1)) {
    if (at + 1 == text.size() || text[at + 1] != '\n') return true;
  }
  return std::ranges::any_of(
      std::array<std::string_view, 4>{"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xef\xbb\xbf"},
      [&](std::string_view each) { return text.find(each) != std::string_view::npos; });
}

}  // namespace

std::vector<ContentFacts> rate_json(std::string_view text, std::string_view name, bool many) {
  KeyJudge judge(name);
  if (std::string reason = scan_json(text, judge, many); !reason.empty()) judge.add(std::move(reason));
  return judge.take();
}

std::vector<ContentFacts> rate_yaml(std::string_view text, std::string_view name) {
  KeyJudge judge(name);
  if (has_other_line_breaks(text)) judge.add("YAML whose lines end in other ways than LF and CR LF");
  YamlTokens(text, judge).run();
  return judge.take();
}

std::vector<ContentFacts> rate_tags(std::string_view text) {
  KeyJudge judge("");
  YamlTokens(text, judge).run();
  // Readers of model cards parse the text between two such lines.
  for (std::size_t at = text.find("---"); at != std::string_view::npos; at = text.find("---", at + 3)) {
    const std::string_view part = text.substr(at + 3);
    YamlTokens(part.substr(0, part.find("---")), judge).run();
  }
  std::vector<ContentFacts> found = judge.take();
  std::erase_if(found,
                [](const ContentFacts& each) { return each.what.find("YAML tag") == std::string::npos; });
  return found;
}

std::vector<ContentFacts> rate_assignments(std::string_view text) {
  constexpr std::string_view kAround = " \t\r\"'";
  const auto bare = [&](std::string_view part) {
    const std::size_t begin = std::min(part.find_first_not_of(kAround), part.size());
    return part.substr(begin, part.find_last_not_of(kAround) + 1 - begin);
  };
  KeyJudge judge("");
  judge.open(true);
  // A list of the lines would take 16 bytes for each byte of a text of line ends.
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t sign = line.find('=');
    if (sign == std::string_view::npos) continue;
    judge.key(std::string(bare(line.substr(0, sign))));
    judge.text(bare(line.substr(sign + 1)));
  }
  judge.close();
  return judge.take();
}

std::vector<ContentFacts> rate_value(std::string_view key, std::string_view value) {
  KeyJudge judge("");
  judge.open(true);
  judge.key(std::string(key));
  judge.text(value);
  judge.close();
  return judge.take();
}

}  // namespace msprobe::inspect

// SPDX-License-Identifier: Apache-2.0
#include "inspect/plain_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "inspect/configuration.hpp"
#include "inspect/template_rating.hpp"
#include "inspect/text_blocks.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

constexpr std::uint64_t kLargestText = std::uint64_t{512} << 20;

// Names of files without an extension, or with one that has no fixed meaning.
constexpr std::string_view kProse =
    "readme license licence notice copying copyright changelog authors contributors citation security "
    "code_of_conduct contributing todo news use_policy merges vocab vocabulary labels latest checkpoint "
    ".gitattributes .gitignore .gitkeep .gitmodules .keep .no_exist .dockerignore "
    "latest_checkpointed_iteration dict md5sums sha256sums terms_of_use";
constexpr std::string_view kProseEndings =
    ".md .markdown .txt .rst .csv .tsv .jinja .jinja2 .log .bib .tex .vocab .bpe .sha256 .md5 .labels "
    ".names .lst .license .codes";
// Files that make tools build, install or start something.
constexpr std::string_view kPrograms =
    ".pre-commit-config.yaml .gitlab-ci.yml taskfile.yml dvc.yaml mkdocs.yml project.yml compose.yaml "
    "compose.yml devcontainer.json package.json playbook.yml playbook.yaml cookiecutter.json .travis.yml "
    "cmakelists.txt entry_points.txt requirements.txt constraints.txt conda.yaml environment.yml "
    "environment.yaml action.yml";

/// Does the text consist only of blanks of ASCII and Unicode?
bool is_blank(std::string_view text) {
  constexpr std::array<std::string_view, 8> kBlanks = {"\xc2\xa0",     "\xc2\x85",     "\xe1\x9a\x80",
                                                       "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
                                                       "\xe2\x81\x9f", "\xe3\x80\x80"};
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const auto blank =
        std::ranges::find_if(kBlanks, [&](std::string_view each) { return text.starts_with(each); });
    // U+2000 to U+200A are blanks, too.
    const bool general = text.starts_with("\xe2\x80") && text.size() > 2 &&
                         static_cast<unsigned char>(text[2]) >= 0x80 &&
                         static_cast<unsigned char>(text[2]) <= 0x8a;
    if (first <= 0x20) {
      text.remove_prefix(1);
    } else if (general) {
      text.remove_prefix(3);
    } else if (blank != kBlanks.end()) {
      text.remove_prefix(blank->size());
    } else {
      return false;
    }
  }
  return true;
}

/// Does the text have `${x}`, `<% x %>` or lines such as `% for x in y:`, which Mako runs as Python?
/// Documents for people contain such text in examples for shells.
bool may_be_mako(std::string_view text) {
  if (text.find("<%") != std::string_view::npos) return true;
  for (std::size_t at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 1)) {
    const std::size_t end = text.find_first_of("}\n", at);
    if (end != std::string_view::npos && end > at + 2 && text[end] == '}') return true;
  }
  // Kaldi runs a line that ends with a bar as a command; it strips the same blanks as Python.
  for (std::size_t at = text.find('|'); at != std::string_view::npos; at = text.find('|', at + 1)) {
    const std::string_view rest = text.substr(at + 1, text.find('\n', at) - at - 1);
    if (is_blank(rest)) return true;
  }
  if (text.starts_with("pipe:") || text.find("\npipe:") != std::string_view::npos)
    return true;  // webdataset runs it as a command
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    const std::string_view before = text.substr(0, at);
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    const std::size_t last = before.find_last_not_of(" \t");
    const bool begins = last == std::string_view::npos || before[last] == '\n';
    if (begins && line.find(':') != std::string_view::npos) return true;
  }
  return false;
}

/// Does the text have a section of an INI file, `[name]` with `key = value` below? logging.config evaluates
/// the arguments of handlers in such a file, whatever its name.
bool has_section(std::string_view text) {
  bool section = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (section && line.front() != '[' && line.find_first_of("=:") != std::string_view::npos) return true;
    section = line.size() > 2 && line.front() == '[' && line.back() == ']';
  }
  return false;
}

bool is_for_people(std::string_view name) {
  const std::string base = lower_case(name.substr(name.rfind('/') + 1));
  return is_named(base, {".jinja", ".jinja2", ".md", ".markdown", ".rst", ".tex", ".bib"}) ||
         base.starts_with("readme") || base.starts_with("license") || base.starts_with("changelog") ||
         base.starts_with("vocab") || base.starts_with("merges");
}

}  // namespace

TextKind text_kind(std::string_view name) {
  const std::string base = lower_case(name.substr(name.rfind('/') + 1));
  // pytest runs the examples in texts with such names.
  const bool tests = base.starts_with("test") && base.ends_with(".txt");
  if (has_word(kPrograms, base) || base.starts_with("requirements") || base.starts_with("docker-compose") ||
      name.find(".github/") != std::string_view::npos || tests)
    return TextKind::program;
  const std::size_t dot = base.rfind('.');
  const std::string_view ending =
      dot == std::string::npos ? std::string_view() : std::string_view(base).substr(dot);
  if (ending == ".json") return TextKind::json;
  if (ending == ".jsonl") return TextKind::json_lines;
  if (ending == ".yaml" || ending == ".yml" || ending == ".cff") return TextKind::yaml;
  if (has_word(kProseEndings, ending) || has_word(kProse, base)) return TextKind::prose;
  // Names such as LICENSE-MIT and README_zh.
  const bool begins = std::ranges::any_of(
      std::array<std::string_view, 4>{"readme", "license", "licence", "notice"}, [&](std::string_view word) {
        return base.starts_with(word) && (base[word.size()] == '-' || base[word.size()] == '_') &&
               ending.empty();
      });
  return begins ? TextKind::prose : TextKind::other;
}

std::vector<ContentFacts> rate_text(const ByteSource& file, std::string_view name) {
  const TextKind kind = text_kind(name);
  if (kind == TextKind::program)
    return {{"a list for a tool that installs or builds what it names", "", Rating::unknown}};
  if (file.size() > kLargestText)
    return {{fmt::format("a text of {}, of which at most {} are read", human_bytes(file.size()),
                         human_bytes(kLargestText)),
             "", Rating::unknown}};
  const std::string text = read_all(file, kLargestText);
  switch (kind) {
    case TextKind::json:
    case TextKind::json_lines:
      return rate_json(text, name, kind == TextKind::json_lines);
    case TextKind::yaml:
      return rate_yaml(text, name);
    default:
      break;
  }
  std::vector<ContentFacts> found;
  if (auto finding = rate_template(text, kind == TextKind::prose && !is_named(name, {".jinja", ".jinja2"})))
    found.push_back({std::move(finding->what), "", finding->rating});
  if (kind != TextKind::other) {
    if (kind == TextKind::prose && !is_for_people(name) && may_be_mako(text))
      found.push_back({"what Mako, Kaldi or webdataset would run", "", Rating::unknown});
    if (kind == TextKind::prose && !is_for_people(name) && has_section(text))
      found.push_back({"sections of an INI file", "", Rating::unknown});
    for (ContentFacts& each : rate_tags(text)) found.push_back(std::move(each));
    constexpr std::size_t kMostRead = std::size_t{16} << 20;
    if (text.size() > kMostRead) return found;
    for (ContentFacts& each : rate_yaml(text, name)) {
      if (each.rating == Rating::dangerous) found.push_back(std::move(each));
    }
    return found;
  }
  // A loader may read any text as YAML (of which JSON is a part) or as TOML, so dangerous findings of these
  // parsers are reported.
  std::vector<ContentFacts> read = rate_yaml(text, name);
  for (ContentFacts& each : rate_assignments(text)) read.push_back(std::move(each));
  for (ContentFacts& each : read) {
    if (each.rating == Rating::dangerous) found.push_back(std::move(each));
  }
  found.push_back({"a text of a kind that is not known by its name", "", Rating::unknown});
  return found;
}

}  // namespace msprobe::inspect

// SPDX-License-Identifier: Apache-2.0
#include "dump/stack_json.hpp"

#include <algorithm>
#include <utility>

#include "dump/member_stream.hpp"
#include "support/folder.hpp"

namespace msprobe::dump {
namespace {

/// Is it a list of nothing but values for which `regular` holds?
template <typename Regular>
bool is_list_of(const Entry& value, Entry::Index list, Regular&& regular) {
  if (!value.is(list, NodeKind::array)) return false;
  bool all = true;
  value.children(list, [&](Entry::Index item) { all = all && regular(item); });
  return all;
}

bool is_list_of_texts(const Entry& value, Entry::Index list) {
  return is_list_of(value, list, [&](Entry::Index item) { return value.is(item, NodeKind::string); });
}

StackTable::Frames frames_of(const Entry& value, Entry::Index list) {
  StackTable::Frames frames;
  value.children(list, [&](Entry::Index item) { frames.emplace_back(value.text(item)); });
  return frames;
}

}  // namespace

const StackTable::Frames* StackTable::find(std::string_view entry) const {
  const std::uint32_t number = entries_.find(entry);
  if (number >= stack_of_.size() || stack_of_[number] == kNoStack) return nullptr;
  return &stacks_[stack_of_[number]];
}

void StackTable::add_entry(std::string_view entry, std::uint32_t stack) {
  const std::uint32_t number = entries_.intern(entry);
  if (number >= stack_of_.size()) stack_of_.resize(number + 1, kNoStack);
  stack_of_[number] = stack;
}

std::uint32_t StackTable::add_stack(Frames frames) {
  stacks_.push_back(std::move(frames));
  return static_cast<std::uint32_t>(stacks_.size() - 1);
}

bool is_framework_frame(std::string_view frame, const std::vector<std::string>& framework) {
  std::string_view file = frame.substr(0, frame.find(", line "));
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    if (const std::size_t at = file.rfind(packages); at != std::string_view::npos) file.remove_prefix(at);
  }
  return std::ranges::any_of(
      framework, [&](const std::string& part) { return file.find(part) != std::string_view::npos; });
}

std::string user_frame(const std::vector<std::string>& frames, const std::vector<std::string>& framework) {
  auto found = std::ranges::find_if_not(
      frames, [&](const std::string& frame) { return is_framework_frame(frame, framework); });
  if (found == frames.end()) found = frames.begin();
  if (found == frames.end()) return {};
  std::string line = found->substr(found->starts_with("File ") ? 5 : 0);
  // The frame has the code on a separate line.
  if (const std::size_t at = line.find(", \n "); at != std::string::npos) line.replace(at, 4, ": ");
  return line;
}

std::optional<SourceLine> source_line(std::string_view frame) {
  constexpr std::string_view kLine = ", line ";
  constexpr std::string_view kIn = ", in ";
  const std::size_t line = frame.find(kLine);
  if (line == 0 || line == std::string_view::npos) return {};
  SourceLine found{frame.substr(0, line), frame.substr(line + kLine.size()), {}};
  const std::size_t digits = found.number.find_first_not_of("0123456789");
  if (digits == 0) return {};
  if (digits == std::string_view::npos) return found;
  const std::string_view rest = found.number.substr(digits);
  found.number = found.number.substr(0, digits);
  if (!rest.starts_with(kIn)) return {};
  if (const std::size_t code = rest.find(": "); code != std::string_view::npos)
    found.code = rest.substr(code + 2);
  return found;
}

StackTable read_stack_json(const ByteSource& file) {
  // The key "0" shows which layout the file has (docs/formats.md, "stack.json").
  StackTable plain;
  StackTable grouped;
  bool grouped_layout = false;
  MemberStream stream(file);
  stream.enter();
  std::string key;
  Entry value;
  while (stream.next(key)) {
    stream.entry(value, key);
    const bool frames = is_list_of_texts(value, 0);
    const bool lists = is_list_of(value, 0, [&](Entry::Index item) { return is_list_of_texts(value, item); });
    if (key == "0" && (frames || lists) && !value.empty(0)) grouped_layout = true;
    if (frames) {
      plain.add_entry(key, plain.add_stack(frames_of(value, 0)));
    } else if (lists) {
      std::vector<Entry::Index> parts;
      value.children(0, [&](Entry::Index list) { parts.push_back(list); });
      if (parts.size() != 2) continue;
      const std::uint32_t stack = grouped.add_stack(frames_of(value, parts[1]));
      value.children(parts[0], [&](Entry::Index entry) { grouped.add_entry(value.text(entry), stack); });
    }
  }
  return grouped_layout ? std::move(grouped) : std::move(plain);
}

std::optional<StackTable> read_stacks_if_any(const std::string& path) {
  if (!path_exists(path)) return {};
  return read_stack_json(*open_file(path));
}

}  // namespace msprobe::dump

// SPDX-License-Identifier: Apache-2.0
#include "dump/stack_json.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "dump/member_stream.hpp"

namespace msprobe::dump {
namespace {

using Texts = std::vector<std::string>;

/// The texts of a list of nothing else.
std::optional<Texts> texts_of(const Entry& value, Entry::Index list) {
  if (!value.is(list, NodeKind::array)) return std::nullopt;
  Texts texts;
  bool regular = true;
  value.children(list, [&](Entry::Index item) {
    regular = regular && value.is(item, NodeKind::string);
    if (regular) texts.emplace_back(value.text(item));
  });
  if (!regular) return std::nullopt;
  return texts;
}

/// The lists of texts in a list of nothing else.
std::optional<std::vector<Texts>> lists_of(const Entry& value) {
  if (!value.is(0, NodeKind::array)) return std::nullopt;
  std::vector<Texts> lists;
  bool regular = true;
  value.children(0, [&](Entry::Index item) {
    std::optional<Texts> texts = texts_of(value, item);
    regular = regular && texts;
    if (regular) lists.push_back(*std::move(texts));
  });
  if (!regular) return std::nullopt;
  return lists;
}

}  // namespace

const StackTable::Frames* StackTable::find(std::string_view entry) const {
  const auto found = index_.find(entry);
  return found == index_.end() ? nullptr : &stacks_[found->second];
}

std::uint32_t StackTable::add_stack(Frames frames) {
  stacks_.push_back(std::move(frames));
  return static_cast<std::uint32_t>(stacks_.size() - 1);
}

std::string user_frame(const std::vector<std::string>& frames, const std::vector<std::string>& framework) {
  const auto own = [&](const std::string& frame) {
    const std::size_t end = std::min(frame.find(", line "), frame.size());
    const std::string_view file = std::string_view(frame).substr(0, end);
    return std::none_of(framework.begin(), framework.end(),
                        [&](const std::string& part) { return file.find(part) != std::string_view::npos; });
  };
  auto found = std::find_if(frames.begin(), frames.end(), own);
  if (found == frames.end()) found = frames.begin();
  if (found == frames.end()) return {};
  std::string line = found->substr(found->starts_with("File ") ? 5 : 0);
  // The source line stands on a line of its own.
  if (const std::size_t at = line.find(", \n "); at != std::string::npos) line.replace(at, 4, ": ");
  return line;
}

StackTable read_stack_json(const ByteSource& file) {
  StackTable table;
  // Which layout the file has is known when the key "0" was seen (spec/dump-format.md 4.1).
  std::vector<std::pair<std::string, std::uint32_t>> plain;
  std::vector<std::pair<std::string, std::uint32_t>> grouped;
  bool grouped_layout = false;
  MemberStream stream(file);
  stream.enter();
  std::string key;
  Entry value;
  while (stream.next(key)) {
    stream.entry(value, key);
    std::optional<Texts> frames = texts_of(value, 0);
    std::optional<std::vector<Texts>> lists = lists_of(value);
    if (key == "0" && (frames || lists) && !value.empty(0)) grouped_layout = true;
    if (frames) {
      plain.emplace_back(key, table.add_stack(*std::move(frames)));
    } else if (lists && lists->size() == 2) {
      const std::uint32_t stack = table.add_stack(std::move((*lists)[1]));
      for (std::string& entry : (*lists)[0]) grouped.emplace_back(std::move(entry), stack);
    }
  }
  for (auto& [entry, stack] : grouped_layout ? grouped : plain) table.add_entry(std::move(entry), stack);
  return table;
}

}  // namespace msprobe::dump

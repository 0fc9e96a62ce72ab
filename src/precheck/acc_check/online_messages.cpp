// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_messages.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "dump/member_stream.hpp"
#include "precheck/acc_check/config.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace msprobe::precheck {
namespace {

using dump::Entry;
using dump::NodeKind;

constexpr std::size_t kLongestMessage = std::size_t{256} << 20;
constexpr int kPause = 500;  // milliseconds between looks at signals
constexpr std::int64_t kMostDescriptors = 1 << 20;

[[noreturn]] void malformed(std::string_view what) {
  throw FormatError("the training", fmt::format("sent a message {}", what));
}

std::uint64_t number_of(const Entry& entry, Entry::Index object, std::string_view key) {
  const auto value = entry.integer(entry.find(object, key));
  if (!value || *value < 0) malformed(fmt::format("whose {} is not a number", key));
  return static_cast<std::uint64_t>(*value);
}

int descriptor_of(const Entry& entry, Entry::Index object, std::string_view key) {
  const std::uint64_t value = number_of(entry, object, key);
  if (value > kMostDescriptors) malformed(fmt::format("whose {} is not a descriptor", key));
  return static_cast<int>(value);
}

std::vector<std::string> texts_of(const Entry& entry, Entry::Index list) {
  std::vector<std::string> texts;
  if (entry.is(list, NodeKind::array))
    entry.children(list, [&](Entry::Index child) { texts.emplace_back(entry.string(child)); });
  return texts;
}

/// Whether a text can be the name of a rank's folder.
bool is_leaf(std::string_view leaf) {
  return std::ranges::any_of(std::array<std::string_view, 2>{"rank", "proc"}, [&](std::string_view kind) {
    return leaf.starts_with(kind) && whole_number<std::uint64_t>(leaf.substr(kind.size()));
  });
}

void read_blocks(const Entry& entry, std::vector<std::pair<std::uint64_t, std::uint64_t>>& blocks) {
  const Entry::Index list = entry.find(0, "blocks");
  if (!entry.is(list, NodeKind::array)) return;
  entry.children(list, [&](Entry::Index child) {
    std::vector<std::uint64_t> parts;
    if (entry.is(child, NodeKind::array))
      entry.children(child, [&](Entry::Index part) {
        const auto value = entry.integer(part);
        if (value && *value >= 0) parts.push_back(static_cast<std::uint64_t>(*value));
      });
    if (parts.size() != 2) malformed("with a block that is not a pair of numbers");
    blocks.emplace_back(parts[0], parts[1]);
  });
}

}  // namespace

bool MessageReader::next(std::string& line) {
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched_);
    if (end != std::string::npos) {
      line.assign(buffer_, 0, end);
      buffer_.erase(0, end + 1);
      searched_ = 0;
      return true;
    }
    searched_ = buffer_.size();
    if (buffer_.size() > kLongestMessage) malformed("of more than 256 MiB");
    check_interrupt();
    pollfd look = {descriptor_, POLLIN, 0};
    if (::poll(&look, 1, kPause) <= 0) continue;
    std::array<char, std::size_t{1} << 16> piece;
    const ssize_t got = ::read(descriptor_, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) throw IoError("the training", std::strerror(errno));
    if (got == 0) return false;  // an incomplete line is dropped
    buffer_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

void read_online_start(const std::string& line, OnlineStart& start) {
  const Entry entry = dump::read_json(line, "the first message of the training");
  const Entry::Index begin = entry.find(0, "begin");
  if (!entry.is(begin, NodeKind::object)) malformed("without the member begin");
  const auto descriptor = [&](std::string_view key) {
    return entry.find(begin, key) == Entry::kNone ? -1 : descriptor_of(entry, begin, key);
  };
  start.replies = descriptor("replies");
  const auto text = [&](std::string_view key) { return std::string(entry.string(begin, key)); };
  start.folder = text("folder");
  start.cases = text("cases");
  start.python = text("python");
  start.device = text("device");
  if (start.folder.empty() || start.cases.empty() || start.python.empty() || start.device.empty())
    malformed("without a folder, a Python or a device");
  start.time_limit = static_cast<double>(number_of(entry, begin, "timeout"));
  start.compare = entry.flag(begin, "compare");
  start.tensors = descriptor("tensors");
  for (const auto& [type, names] :
       {std::pair{"white_list", &start.lists.white}, std::pair{"black_list", &start.lists.black}}) {
    if (const Entry::Index list = entry.find(begin, type); list != Entry::kNone)
      read_operation_names(entry, list, type, "acc_check", *names);
  }
  const Entry::Index operations = entry.find(begin, "operations");
  if (entry.is(operations, NodeKind::array))
    entry.children(operations, [&](Entry::Index child) {
      const std::vector<std::string> parts = texts_of(entry, child);
      if (parts.size() != 2) malformed("with an operation that has no type and name");
      start.operations.emplace_back(parts[0], parts[1]);
    });
}

OnlineMessage read_online_message(std::string_view line) {
  OnlineMessage message;
  message.json = dump::read_json(line, "a message of the training");
  const Entry& entry = message.json;
  const auto has = [&](std::string_view key) { return entry.find(0, key) != Entry::kNone; };
  using Kind = OnlineMessage::MessageKind;
  constexpr std::array<std::pair<std::string_view, Kind>, 6> kKinds = {{{"call", Kind::call},
                                                                        {"backward", Kind::backward},
                                                                        {"skipped", Kind::skipped},
                                                                        {"unused", Kind::unused},
                                                                        {"step_ends", Kind::step},
                                                                        {"end", Kind::end}}};
  const auto* const kind = std::ranges::find_if(kKinds, [&](const auto& one) { return has(one.first); });
  if (kind == kKinds.end()) malformed("of an unknown kind");
  message.kind = kind->second;
  message.id = number_of(entry, 0, kind->first);
  read_blocks(entry, message.blocks);
  if (has("file")) message.file = number_of(entry, 0, "file");
  if (message.kind == Kind::unused || message.kind == Kind::step || message.kind == Kind::end) return message;
  if (message.kind != Kind::backward) {
    message.step = number_of(entry, 0, "step");
    message.api = {std::string(entry.string(0, "type")), std::string(entry.string(0, "name")),
                   std::to_string(number_of(entry, 0, "number"))};
    message.leaf = entry.string(0, "leaf");
    if (!is_leaf(message.leaf)) malformed("of a call without a rank");
    if (message.api.type.empty() || message.api.name.empty()) malformed("of a call without a name");
  }
  message.reason = entry.string(0, "reason");
  if (message.kind == Kind::skipped) return message;
  const Entry::Index content = entry.find(0, "entry");
  if (!entry.is(content, NodeKind::object)) malformed("without an entry");
  dump::append_json(message.entry, entry, content, 0, 0);
  message.tensors = entry.find(0, "tensors");
  message.follows = entry.flag(0, "follows");
  if (has("place")) {
    message.place = std::string(entry.string(0, "place"));
    message.where = entry.string(0, "where");
    message.frames = texts_of(entry, entry.find(0, "frames"));
  }
  return message;
}

}  // namespace msprobe::precheck

// SPDX-License-Identifier: Apache-2.0
#include "parse/old_dump.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "dump/member_stream.hpp"
#include "parse/line_input.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

using dump::Entry;
using dump::NodeKind;

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 30;
constexpr std::size_t kLongestRecord = std::size_t{16} << 20;
constexpr int kDeepest = 8;

/// The lines of a file; memory holds one at a time.
class FileLines {
 public:
  explicit FileLines(std::shared_ptr<const ByteSource> file) : file_(std::move(file)) {}

  std::optional<std::string> next() {
    std::string line;
    while (true) {
      const std::size_t end = block_.find('\n', at_);
      line.append(block_, at_, end - at_);
      if (line.size() > kLongestRecord)
        throw FormatError(display(file_->name()), "a line too long for an entry");
      if (end != std::string::npos) {
        at_ = end + 1;
        return line;
      }
      at_ = 0;
      block_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, file_->size() - offset_)));
      if (block_.empty()) break;
      check_interrupt();
      file_->read_at(offset_, std::as_writable_bytes(std::span(block_)));
      offset_ += block_.size();
    }
    if (line.empty()) return std::nullopt;
    return line;
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{64} << 10;

  std::shared_ptr<const ByteSource> file_;
  std::string block_;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;
};

/// Appends a value as Python prints it; numbers stay as they are in the file.
void append_python(const Entry& entry, Entry::Index value, int depth, std::string& out) {
  const NodeKind kind = entry.kind(value);
  if (kind == NodeKind::null) {
    out += "None";
  } else if (kind == NodeKind::boolean) {
    out += entry.boolean(value) ? "True" : "False";
  } else if (kind != NodeKind::array && kind != NodeKind::object) {
    out += display(entry.text(value));
  } else if (kind == NodeKind::array && depth < kDeepest) {
    out += '[';
    bool first = true;
    entry.children(value, [&](Entry::Index item) {
      if (!first) out += ", ";
      first = false;
      append_python(entry, item, depth + 1, out);
    });
    out += ']';
  } else {
    out += "...";
  }
}

std::string python_text(const Entry& entry, Entry::Index value) {
  std::string out;
  append_python(entry, value, 0, out);
  return out;
}

/// The elements of a list; nothing for any other value.
std::vector<Entry::Index> elements_of(const Entry& entry, Entry::Index list) {
  std::vector<Entry::Index> elements;
  if (entry.is(list, NodeKind::array))
    entry.children(list, [&](Entry::Index element) { elements.push_back(element); });
  return elements;
}

void append_stack(const Entry& entry, Entry::Index name, Entry::Index list, std::string& out) {
  out += fmt::format("\nTrace back({}):\n", display(entry.text(name)));
  const std::vector<Entry::Index> frames = elements_of(entry, list);
  for (std::size_t i = frames.size(); i-- > 0;) {
    const std::vector<Entry::Index> frame = elements_of(entry, frames[i]);
    if (frame.size() < 4) continue;
    const auto part = [&](std::size_t number) { return python_text(entry, frame[number]); };
    out += fmt::format("  File \"{}\", line {}, in {}\n    {}\n", part(0), part(1), part(2), part(3));
  }
}

/// Parses the list on a line; false if the line is something else, or has no name.
bool read_line(const std::string& line, const std::string& path, Entry& entry) {
  try {
    entry = dump::read_json(line, path);
  } catch (const FormatError&) {
    return false;
  }
  return entry.is(0, NodeKind::array) && !entry.empty(0) && entry.is(1, NodeKind::string);
}

}  // namespace

std::string show_old_dump(const std::string& path, const std::string& prefix) {
  const auto file = open_file(path);
  if (file->size() >= kLargestFile)
    throw FormatError(display(path), "too large for a dump of the first releases");
  FileLines lines(file);
  std::string out;
  bool titled = false;
  std::uint64_t number = 0;
  Entry entry;
  while (const std::optional<std::string> line = lines.next()) {
    ++number;
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    if (!read_line(*line, path, entry))
      throw FormatError(display(path), fmt::format("line {} is not a JSON list with a name", number));
    const std::vector<Entry::Index> parts = elements_of(entry, 0);
    const std::string_view name = entry.text(parts[0]);
    if (!name.starts_with(prefix)) continue;
    if (name.find("stack_info") != std::string_view::npos && parts.size() == 2 &&
        entry.is(parts[1], NodeKind::array)) {
      append_stack(entry, parts[0], parts[1], out);
    } else if (parts.size() > 5) {
      const std::vector<Entry::Index> summary = elements_of(entry, parts[5]);
      if (summary.size() < 3) continue;
      if (!titled) out += "\nStatistic Info:\n";
      titled = true;
      const auto text = [&](Entry::Index value) { return python_text(entry, value); };
      out +=
          fmt::format("  [{}][dtype: {}][shape: {}][max: {}][min: {}][mean: {}]\n", display(name),
                      text(parts[3]), text(parts[4]), text(summary[0]), text(summary[1]), text(summary[2]));
    }
  }
  return out.empty() ? "No entry begins with " + display(prefix) + "\n" : out;
}

}  // namespace msprobe::parse

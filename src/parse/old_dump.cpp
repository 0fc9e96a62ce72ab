// SPDX-License-Identifier: Apache-2.0
#include "parse/old_dump.hpp"

#include <fmt/format.h>
#include <rapidjson/document.h>

#include <memory>
#include <optional>

#include "parse/line_input.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

using rapidjson::Value;

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 30;
constexpr std::size_t kLongestRecord = std::size_t{16} << 20;
constexpr int kDeepest = 8;

/// Lines of a file, one in memory at a time.
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

std::string_view text_of(const Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

/// A value as Python prints it; numbers stand as they stood in the file.
void append_python(const Value& value, int depth, std::string& out) {
  if (value.IsNull()) {
    out += "None";
  } else if (value.IsBool()) {
    out += value.GetBool() ? "True" : "False";
  } else if (value.IsString()) {
    out += display(text_of(value));
  } else if (value.IsArray() && depth < kDeepest) {
    out += '[';
    for (rapidjson::SizeType i = 0; i < value.Size(); ++i) {
      if (i > 0) out += ", ";
      append_python(value[i], depth + 1, out);
    }
    out += ']';
  } else {
    out += "...";
  }
}

std::string python_text(const Value& value) {
  std::string out;
  append_python(value, 0, out);
  return out;
}

void append_stack(const Value& entry, std::string& out) {
  out += fmt::format("\nTrace back({}):\n", display(text_of(entry[0])));
  const Value& frames = entry[1];
  for (rapidjson::SizeType i = frames.Size(); i-- > 0;) {
    const Value& frame = frames[i];
    if (!frame.IsArray() || frame.Size() < 4) continue;
    out += fmt::format("  File \"{}\", line {}, in {}\n    {}\n", python_text(frame[0]),
                       python_text(frame[1]), python_text(frame[2]), python_text(frame[3]));
  }
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
  while (const std::optional<std::string> line = lines.next()) {
    ++number;
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    constexpr unsigned kFlags = rapidjson::kParseNanAndInfFlag | rapidjson::kParseNumbersAsStringsFlag |
                                rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
    rapidjson::Document entry;
    entry.Parse<kFlags>(line->data(), line->size());
    if (entry.HasParseError() || !entry.IsArray() || entry.Empty() || !entry[0].IsString()) {
      throw FormatError(display(path), fmt::format("line {} is no JSON list with a name", number));
    }
    const std::string_view name = text_of(entry[0]);
    if (!name.starts_with(prefix)) continue;
    if (name.find("stack_info") != std::string_view::npos && entry.Size() == 2 && entry[1].IsArray()) {
      append_stack(entry, out);
    } else if (entry.Size() > 5 && entry[5].IsArray() && entry[5].Size() >= 3) {
      if (!titled) out += "\nStatistic Info:\n";
      titled = true;
      const Value& summary = entry[5];
      out += fmt::format("  [{}][dtype: {}][shape: {}][max: {}][min: {}][mean: {}]\n", display(name),
                         python_text(entry[3]), python_text(entry[4]), python_text(summary[0]),
                         python_text(summary[1]), python_text(summary[2]));
    }
  }
  return out.empty() ? "No entry begins with " + display(prefix) + "\n" : out;
}

}  // namespace msprobe::parse

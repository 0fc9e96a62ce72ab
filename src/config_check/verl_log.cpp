// SPDX-License-Identifier: Apache-2.0
#include "config_check/verl_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "config_check/literal_stream.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using pack::PackValue;

constexpr std::string_view kKey = "actor_rollout_ref";
constexpr std::uint64_t kContext = std::uint64_t{64} << 10;     // bytes kept before a start
constexpr std::uint64_t kMostConfig = std::uint64_t{64} << 20;  // bytes read after it
constexpr std::size_t kMostPrefix = 4096;                       // bytes of a line's prefix
constexpr std::size_t kBlock = std::size_t{4} << 20;
constexpr std::size_t kMostPaths = std::size_t{64} << 20;  // bytes of all paths

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

struct DictStart {
  std::size_t line = 0;   // where the line begins that contains the start
  std::size_t brace = 0;  // the opening brace
};

/// The start of the dictionary whose first key is at `at`; nothing if the key is not a first key.
std::optional<DictStart> start_at(std::string_view log, std::size_t at) {
  if (at == 0) return std::nullopt;
  const char quote = log[at - 1];
  std::size_t behind = at + kKey.size();
  if ((quote != '\'' && quote != '"') || behind >= log.size() || log[behind] != quote) return std::nullopt;
  ++behind;
  while (behind < log.size() && is_blank(log[behind])) ++behind;
  if (behind >= log.size() || log[behind] != ':') return std::nullopt;
  const auto line_of = [&](std::size_t place) {
    // The search is limited to the length of a prefix, because a log may be a single line that is full of
    // starts.
    const std::size_t from = place > kMostPrefix ? place - kMostPrefix : 0;
    const void* const end = ::memrchr(log.data() + from, '\n', place - from);
    return end == nullptr ? from : static_cast<std::size_t>(static_cast<const char*>(end) - log.data()) + 1;
  };
  std::size_t before = at - 1;
  while (before > 0 && is_blank(log[before - 1])) --before;
  if (before > 0 && log[before - 1] == '{') return DictStart{line_of(before - 1), before - 1};
  // The dictionary may be printed with each bracket on a separate line.
  const std::size_t line = line_of(at);
  if (line == 0) return std::nullopt;
  std::size_t end = line - 1;
  while (end > 0 && (is_blank(log[end - 1]) || log[end - 1] == '\r')) --end;
  if (end == 0 || log[end - 1] != '{') return std::nullopt;
  const DictStart start{line_of(end - 1), end - 1};
  std::string_view prefix = log.substr(start.line, start.brace - start.line);
  if (!log.substr(line, at - line).starts_with(prefix)) return std::nullopt;
  return start;
}

std::string shape_of(std::string_view text) {
  std::string shape(text);
  for (char& c : shape) {
    if (c >= '0' && c <= '9') c = '0';
  }
  return shape;
}

/// Feeds the lines after a start to a stream, without their prefix.
class Extraction {
 public:
  Extraction(std::string_view log, const DictStart& start)
      : log_(log), start_(start), prefix_(log.substr(start.line, start.brace - start.line)) {
    const bool blank = std::ranges::all_of(prefix_, is_blank);
    if (blank) prefix_ = {};
  }

  /// `exact`: the prefix must be equal in all lines; otherwise its digits may differ, as in a time.
  bool run(bool exact) {
    stream_ = {};
    std::size_t at = start_.brace;
    bool first = true;
    const std::string shape = shape_of(prefix_);
    while (at < log_.size() && !stream_.done()) {
      const std::size_t end = std::min(log_.find('\n', at), log_.size());
      const std::string_view line = log_.substr(at, end - at);
      at = end + 1;
      if (first || prefix_.empty()) {
        stream_.feed(line);
      } else if (!exact) {
        if (shape_of(line.substr(0, prefix_.size())) == shape) stream_.feed(line.substr(prefix_.size()));
      } else {
        pieces(line);
      }
      first = false;
    }
    return stream_.done();
  }
  bool has_prefix() const { return !prefix_.empty(); }
  LiteralStream& stream() { return stream_; }

 private:
  /// Text before the first prefix was printed by another process.
  void pieces(std::string_view line) {
    std::size_t at = line.find(prefix_);
    while (at != std::string_view::npos && !stream_.done()) {
      at += prefix_.size();
      const std::size_t next = line.find(prefix_, at);
      stream_.feed(line.substr(at, next == std::string_view::npos ? next : next - at));
      at = next;
    }
  }

  std::string_view log_;
  DictStart start_;
  std::string_view prefix_;
  LiteralStream stream_;
};

class LogFlattener {
 public:
  explicit LogFlattener(const std::string& file) : file_(file) {}
  void add(const std::string& path, const PackValue& value) {
    spent_ += path.size();
    if (spent_ > kMostPaths)
      throw FormatError(display(file_), "refused: its nested names are too long in total");
    if (!value.is(PackValue::Type::map) || value.items().empty()) {
      if (!path.empty()) out_.set(path, value);
      return;
    }
    for (std::size_t i = 0; i < value.items().size(); ++i)
      add(path.empty() ? value.keys()[i] : path + "/" + value.keys()[i], value.items()[i]);
  }
  pack::FlatMap take() { return std::move(out_); }

 private:
  const std::string& file_;
  pack::FlatMap out_;
  std::size_t spent_ = 0;
};

/// The configuration with this start.
PackValue config_at(std::string_view log, const DictStart& start, const std::string& file) {
  Extraction extraction(log, start);
  if (!extraction.run(true)) {
    const std::size_t depth = extraction.stream().depth();
    if (!extraction.has_prefix() || !extraction.run(false))
      throw FormatError(display(file), fmt::format("Unclosed dictionary, mismatched brackets of {}", depth));
  }
  PackValue value = extraction.stream().take();
  if (!value.is(PackValue::Type::map))
    throw FormatError(display(file), "the configuration is not a dictionary");
  return value;
}

}  // namespace

VerlConfig read_verl_log(const ByteSource& log) {
  std::uint64_t last = 0;
  std::uint64_t count = 0;
  std::string text;
  std::uint64_t begin = 0;  // offset of `text` in the file
  for (std::uint64_t read = 0; read < log.size();) {
    check_interrupt();
    // The end of the previous block stays in memory, for a key that crosses the border and for the text
    // before it.
    if (text.size() > kContext) {
      begin += text.size() - kContext;
      text.erase(0, text.size() - kContext);
    }
    const std::size_t kept = text.size();
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, log.size() - read));
    text.resize(kept + size);
    log.read_at(read, std::as_writable_bytes(std::span(text.data() + kept, size)));
    read += size;
    // A key too close to the end is found again in the next block, together with the text after it.
    constexpr std::size_t kBehind = 256;
    const std::size_t until = read == log.size() ? text.size() : text.size() - std::min(kBehind, text.size());
    const std::size_t from = kept > kBehind ? kept - kBehind : 0;
    for (std::size_t at = text.find(kKey, from); at < until; at = text.find(kKey, at + 1)) {
      if (!start_at(text, at)) continue;
      last = begin + at;
      ++count;
    }
  }
  const std::uint64_t from = last > kContext ? last - kContext : 0;
  text = read_text(log, from, std::min(kContext + kMostConfig, log.size() - from));
  const auto start = count == 0 ? std::nullopt : start_at(text, static_cast<std::size_t>(last - from));
  if (!start)
    throw FormatError(display(log.name()), "Not found the start with 'actor_rollout_ref' dict in log.");
  VerlConfig config{config_at(text, *start, log.name()), {}};
  if (count > 1) {
    config.warnings.push_back(
        fmt::format("{}: the log has {} configurations; the last one is used", display(log.name()), count));
  }
  return config;
}

pack::FlatMap flatten_verl(const PackValue& config, const std::string& file) {
  LogFlattener flattener(file);
  flattener.add("", config);
  return flattener.take();
}

bool equal_verl(const PackValue& a, const PackValue& b) {
  if (a.is(PackValue::Type::integer) && b.is(PackValue::Type::integer)) return a.text() == b.text();
  if (a.is_number() && b.is_number())
    return a.number() == b.number() || (std::isnan(a.number()) && std::isnan(b.number()));
  if (a.kind() != b.kind()) return false;
  if (a.is(PackValue::Type::boolean)) return a.boolean() == b.boolean();
  if (a.is(PackValue::Type::text)) return a.text() == b.text();
  return pack::equal_items(a, b, equal_verl);
}

bool is_runtime_path(std::string_view path) {
  const std::vector<std::string_view> parts = split(path, "/");
  return std::ranges::any_of(parts, [&](const std::string_view& part) {
    const bool folder = &part != &parts.back();
    return part.starts_with("ray_") || (folder && (part == "profiler" || part.ends_with("_profiler")));
  });
}

}  // namespace msprobe::config_check

// SPDX-License-Identifier: Apache-2.0
#include "config_check/slime_log.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using pack::PackValue;

constexpr std::string_view kBegin = "------------------------ arguments ------------------------";
constexpr std::string_view kEnd = "-------------------- end of arguments ---------------------";
constexpr std::string_view kBlanks = " \t\r";
constexpr std::uint64_t kMostRead = std::uint64_t{64} << 20;
constexpr std::size_t kMostDigits = 4300;  // Python's own limit

std::string_view stripped(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// Name and value of a line `  name ..... value`.
std::optional<std::pair<std::string_view, std::string_view>> split_line(std::string_view line) {
  if (line.empty() || kBlanks.find(line.front()) == std::string_view::npos) return std::nullopt;
  const std::string_view text = stripped(line);
  for (std::size_t at = text.find(" ."); at != std::string_view::npos; at = text.find(" .", at + 1)) {
    const std::size_t behind = text.find_first_not_of('.', at + 1);
    if (behind == std::string_view::npos || kBlanks.find(text[behind]) == std::string_view::npos) continue;
    return std::pair(stripped(text.substr(0, at)), stripped(text.substr(behind)));
  }
  return std::nullopt;
}

/// Converts booleans and decimal numbers; everything else stays text.
PackValue value_of(std::string_view text) {
  if (text == "True" || text == "False") return PackValue::of(text == "True");
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos) {
    if (digits.size() > kMostDigits) return PackValue::of_text(std::string(text));
    const std::size_t first = std::min(digits.find_first_not_of('0'), digits.size() - 1);
    const bool minus = digits.size() != text.size() && digits[first] != '0';
    return PackValue::of_integer((minus ? "-" : "") + std::string(digits.substr(first)));
  }
  const bool decimal = text.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
  if (const auto number = decimal ? parse_number(text) : std::nullopt; number && std::isfinite(*number))
    return PackValue::of(*number);
  return PackValue::of_text(std::string(text));
}

}  // namespace

PackValue find_slime_config(std::string_view log, const std::string& file) {
  const std::size_t begin = log.find(kBegin);
  if (begin == std::string_view::npos)
    throw FormatError(display(file), "found no block of arguments in the first 64 MiB of the log");
  // In the log of a job each line has the prefix of its process.
  const std::size_t before = log.rfind('\n', begin);
  const std::size_t line_begin = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view prefix = log.substr(line_begin, begin - line_begin);
  PackValue config = PackValue::map();
  bool ended = false;
  for (std::size_t at = log.find('\n', begin); at != std::string_view::npos && !ended;) {
    const std::size_t end = log.find('\n', at + 1);
    std::string_view line = log.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
    at = end;
    if (!line.starts_with(prefix)) continue;
    line.remove_prefix(prefix.size());
    ended = line.starts_with(kEnd);
    if (const auto pair = ended ? std::nullopt : split_line(line))
      config.push(std::string(pair->first), value_of(pair->second));
  }
  if (!ended) throw FormatError(display(file), "the block of arguments has no end");
  if (config.items().empty()) throw FormatError(display(file), "the block of arguments is empty");
  config.settle();
  return config;
}

PackValue read_slime_log(const ByteSource& log) {
  return find_slime_config(first_bytes(log, kMostRead), log.name());
}

}  // namespace msprobe::config_check

// SPDX-License-Identifier: Apache-2.0
#include "measuring/choose_mode.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::measuring {

std::string_view mode_name(Mode mode) {
  static constexpr std::array<std::string_view, 3> kNames = {"statistics", "md5", "tensor"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::optional<bool> are_xor(const Side& side) {
  constexpr std::size_t kXorDigits = 18;  // 0x and 16 digits
  constexpr std::size_t kCrcDigits = 8;
  for (const Item& item : side.items) {
    if (!item.is_tensor || !item.has_checksum) continue;
    const std::string_view text = side.text(item.checksum);
    if (text.size() == kXorDigits && text.starts_with("0x")) return true;
    if (text.size() == kCrcDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos)
      return false;
  }
  return std::nullopt;
}

Mode choose_mode(const Side& target, const Side& golden) {
  const auto check = [](const Side& side, std::string_view name) {
    if (side.header.task.empty())
      throw FormatError(display(side.json), fmt::format("'task' of {} is missing or empty", name));
    if (!side.header.has_data)
      throw FormatError(display(side.json), fmt::format("'data' of {} is missing", name));
  };
  check(target, "target");
  check(golden, "golden");
  const std::string& task = target.header.task;
  if (task != golden.header.task) {
    throw FormatError(fmt::format("the dump tasks differ: {} has '{}', {} has '{}'", display(target.json),
                                  display(task), display(golden.json), display(golden.header.task)));
  }
  if (task == "tensor") return Mode::tensor;
  if (task != "statistics" && task != "structure") {
    throw FormatError(
        display(target.json),
        fmt::format("task '{}' cannot be compared: only tensor and statistics can", display(task)));
  }
  if (target.has_md5 != golden.has_md5) {
    throw FormatError(
        fmt::format("only {} has checksums: both sides must be dumped with statistics, or both with md5",
                    display(target.has_md5 ? target.json : golden.json)));
  }
  if (!target.has_md5) return Mode::statistics;
  const std::optional<bool> ours = are_xor(target);
  const std::optional<bool> theirs = are_xor(golden);
  if (ours && theirs && *ours != *theirs) {
    throw FormatError(
        fmt::format("{} has XOR checksums, the other side CRC-32: both sides must be dumped with the same "
                    "summary_mode",
                    display(*ours ? target.json : golden.json)));
  }
  return Mode::md5;
}

}  // namespace msprobe::measuring

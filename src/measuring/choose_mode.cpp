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

using dump::Side;

std::string_view mode_name(Mode mode) {
  static constexpr std::array<std::string_view, 3> kNames = {"statistics", "md5", "tensor"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::optional<bool> are_xor(const Side& side) {
  constexpr std::size_t kXorDigits = 18;  // 0x and 16 digits
  constexpr std::size_t kCrcDigits = 8;
  for (const dump::Item& item : side.items) {
    if (!item.is_tensor || !item.has_checksum) continue;
    const std::string_view text = side.text(item.checksum);
    if (text.size() == kXorDigits && text.starts_with("0x")) return true;
    if (text.size() == kCrcDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos)
      return false;
  }
  return std::nullopt;
}

std::string other_data(const Side& target, const Side& golden) {
  const auto data = [](const Side& side) -> std::string_view {
    if (side.header.task == "tensor") return "tensors";
    return side.header.task == "structure" ? "shapes" : side.has_md5 ? "checksums" : "statistics";
  };
  if (data(target) == data(golden)) return {};
  return fmt::format("this run has {}, golden {}: they are compared by the statistics that both have",
                     data(target), data(golden));
}

Mode choose_mode(const Side& target, const Side& golden) {
  const auto check = [](const Side& side, std::string_view name) {
    const std::string& task = side.header.task;
    if (task.empty())
      throw FormatError(display(side.json), fmt::format("'task' of {} is missing or empty", name));
    if (!side.header.has_data)
      throw FormatError(display(side.json), fmt::format("'data' of {} is missing", name));
    if (task != "tensor" && task != "statistics" && task != "structure") {
      throw FormatError(
          display(side.json),
          fmt::format("task '{}' cannot be compared: only tensor and statistics can", display(task)));
    }
  };
  check(target, "target");
  check(golden, "golden");
  if (!other_data(target, golden).empty()) return Mode::statistics;
  if (target.header.task == "tensor") return Mode::tensor;
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

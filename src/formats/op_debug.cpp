// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "formats/adump_header.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::string hexadecimal(std::uint64_t value) {
  return fmt::format("{:#x}", value);
}

bool shown_hexadecimal(std::string_view name) {
  for (const std::string_view each : {"pc_start", "para_base", "src_addr", "dst_addr", "kernel_code"}) {
    if (name == each) return true;
  }
  return false;
}

class Record {
 public:
  Record(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  template <std::unsigned_integral T>
  T at(std::size_t offset) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset)
      throw FormatError(display(file_), "its overflow record is cut off");
    return load_le<T>(std::as_bytes(std::span(bytes_)).data() + offset);
  }

  /// Numbers of 64 bits, one after the other.
  void words(std::size_t offset, std::span<const std::string_view> names, ordered_json& out) const {
    for (const std::string_view name : names) {
      const auto value = at<std::uint64_t>(offset);
      if (shown_hexadecimal(name)) {
        out[std::string(name)] = hexadecimal(value);
      } else {
        out[std::string(name)] = value;
      }
      offset += kWord;
    }
  }

 private:
  std::string_view bytes_;
  const std::string& file_;
};

constexpr std::array<std::string_view, 10> kCore = {"model_id",   "stream_id", "task_id",  "task_type",
                                                    "context_id", "thread_id", "pc_start", "para_base",
                                                    "core_id",    "block_id"};
constexpr std::array<std::string_view, 10> kSdma = {"model_id",   "stream_id", "task_id",  "task_type",
                                                    "context_id", "thread_id", "src_addr", "dst_addr",
                                                    "channel_id", "status"};
constexpr std::array<std::string_view, 8> kAicpu = {"model_id",   "stream_id", "task_id",   "task_type",
                                                    "context_id", "cpu_id",    "thread_id", "status"};

std::string new_form(const Record& record, const std::string& file) {
  constexpr std::size_t kData = 24;
  constexpr std::array<std::string_view, 4> kTypes = {"AIC", "AIV", "AICPU", "SDMA"};
  ordered_json out;
  const auto version = record.at<std::uint32_t>(4);
  out["magic"] = hexadecimal(record.at<std::uint32_t>(0));
  out["version"] = version;
  ordered_json& list = out["acc_list"];
  const auto type = record.at<std::uint32_t>(12);
  if (type >= kTypes.size())
    throw FormatError(display(file), fmt::format("its overflow record is of an unknown kind, {}", type));
  list["valid"] = record.at<std::uint32_t>(8);
  list["acc_type"] = kTypes[type];
  list["rsv"] = record.at<std::uint32_t>(16);
  list["data_len"] = record.at<std::uint32_t>(20);
  ordered_json& data = list["data"];
  if (type == 3) {
    record.words(kData, kSdma, data);
  } else if (type == 2) {
    record.words(kData, kAicpu, data);
  } else {
    record.words(kData, kCore, data);
    const std::size_t status = kData + kCore.size() * kWord;
    if (version == 1) {
      data["status"] = ordered_json::array();
      for (std::size_t i = 0; i < 4; ++i)
        data["status"].push_back(record.at<std::uint64_t>(status + i * kWord));
    } else {
      data["status"] = record.at<std::uint64_t>(status);
    }
  }
  return out.dump(4);
}

std::string old_form(const Record& record) {
  constexpr std::array<std::string_view, 6> kCommon = {"model_id",  "stream_id", "task_id",
                                                       "task_type", "pc_start",  "para_base"};
  constexpr std::array<std::string_view, 1> kStatus = {"status"};
  constexpr std::array<std::string_view, 3> kAiCore = {"kernel_code", "block_idx", "status"};
  ordered_json out;
  record.words(0, kCommon, out["DHA Atomic Add"]);
  record.words(512, kStatus, out["DHA Atomic Add"]);
  record.words(128, kCommon, out["L2 Atomic Add"]);
  record.words(768, kStatus, out["L2 Atomic Add"]);
  record.words(256, kCommon, out["AI Core"]);
  record.words(1024, kAiCore, out["AI Core"]);
  return out.dump(4);
}

}  // namespace

bool is_op_debug_name(std::string_view name) {
  return name.starts_with("Opdebug.Node_OpDebug.");
}

std::string op_debug_json(std::string_view bytes, const std::string& file) {
  constexpr std::size_t kOldSize = 2048;
  const Record record(bytes, file);
  if (bytes.size() >= sizeof kAdumpMagic && record.at<std::uint32_t>(0) == kAdumpMagic)
    return new_form(record, file);
  if (bytes.size() != kOldSize)
    throw FormatError(display(file), fmt::format("not an overflow record: {} bytes", bytes.size()));
  return old_form(record);
}

}  // namespace msprobe::formats

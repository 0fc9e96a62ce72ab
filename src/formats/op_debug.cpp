// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <span>

#include "formats/adump_header.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

constexpr JsonStyle kLayout = {.indent = 4};

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

class OpDebugRecord {
 public:
  OpDebugRecord(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  template <std::unsigned_integral T>
  T at(std::size_t offset) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset)
      throw FormatError(display(file_), "its overflow record is cut off");
    return load_le<T>(std::as_bytes(std::span(bytes_)).data() + offset);
  }

  /// Numbers of 64 bits, one after the other.
  void words(std::size_t offset, std::span<const std::string_view> names, JsonWriter& out) const {
    for (const std::string_view name : names) {
      const auto value = at<std::uint64_t>(offset);
      if (shown_hexadecimal(name)) {
        out.member(name, hexadecimal(value));
      } else {
        out.member(name, value);
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

std::string new_form(const OpDebugRecord& record, const std::string& file) {
  constexpr std::size_t kData = 24;
  constexpr std::array<std::string_view, 4> kTypes = {"AIC", "AIV", "AICPU", "SDMA"};
  JsonWriter out(kLayout);
  const auto version = record.at<std::uint32_t>(4);
  out.open_object();
  out.member("magic", hexadecimal(record.at<std::uint32_t>(0)));
  out.member("version", version);
  const auto type = record.at<std::uint32_t>(12);
  if (type >= kTypes.size())
    throw FormatError(display(file), fmt::format("its overflow record has an unknown kind, {}", type));
  out.open_object("acc_list");
  out.member("valid", record.at<std::uint32_t>(8));
  out.member("acc_type", kTypes[type]);
  out.member("rsv", record.at<std::uint32_t>(16));
  out.member("data_len", record.at<std::uint32_t>(20));
  out.open_object("data");
  if (type == 3) {
    record.words(kData, kSdma, out);
  } else if (type == 2) {
    record.words(kData, kAicpu, out);
  } else {
    record.words(kData, kCore, out);
    const std::size_t status = kData + kCore.size() * kWord;
    if (version == 1) {
      std::array<std::uint64_t, 4> all{};
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = record.at<std::uint64_t>(status + i * kWord);
      out.member("status", all);
    } else {
      out.member("status", record.at<std::uint64_t>(status));
    }
  }
  out.close();
  out.close();
  out.close();
  return out.take();
}

std::string old_form(const OpDebugRecord& record) {
  constexpr std::array<std::string_view, 6> kCommon = {"model_id",  "stream_id", "task_id",
                                                       "task_type", "pc_start",  "para_base"};
  constexpr std::array<std::string_view, 1> kStatus = {"status"};
  constexpr std::array<std::string_view, 3> kAiCore = {"kernel_code", "block_idx", "status"};
  JsonWriter out(kLayout);
  const auto part = [&](std::string_view name, std::size_t common, std::size_t rest_at,
                        std::span<const std::string_view> rest) {
    out.open_object(name);
    record.words(common, kCommon, out);
    record.words(rest_at, rest, out);
    out.close();
  };
  out.open_object();
  part("DHA Atomic Add", 0, 512, kStatus);
  part("L2 Atomic Add", 128, 768, kStatus);
  part("AI Core", 256, 1024, kAiCore);
  out.close();
  return out.take();
}

}  // namespace

bool is_op_debug_name(std::string_view name) {
  return name.starts_with("Opdebug.Node_OpDebug.");
}

std::string op_debug_json(std::string_view bytes, const std::string& file) {
  constexpr std::size_t kOldSize = 2048;
  const OpDebugRecord record(bytes, file);
  if (bytes.size() >= sizeof kAdumpMagic && record.at<std::uint32_t>(0) == kAdumpMagic)
    return new_form(record, file);
  if (bytes.size() != kOldSize)
    throw FormatError(display(file), fmt::format("not an overflow record: {} bytes", bytes.size()));
  return old_form(record);
}

}  // namespace msprobe::formats

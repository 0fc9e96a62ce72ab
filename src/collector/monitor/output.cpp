// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/output.hpp"

#include <unistd.h>

#include <array>
#include <exception>
#include <utility>

#include "collector/monitor/row_text.hpp"
#include "series/event_file.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"

namespace msprobe::collector::monitor {
namespace {

/// Makes "events.out.tfevents.<seconds>.<host>.<process>.0", the name that TensorBoard looks for.
std::string event_file_name(double wall_time) {
  std::array<char, 256> host{};
  const bool named = ::gethostname(host.data(), host.size() - 1) == 0;
  return "events.out.tfevents." + std::to_string(static_cast<std::int64_t>(wall_time)) + "." +
         (named ? host.data() : "localhost") + "." + std::to_string(::getpid()) + ".0";
}

}  // namespace

MonitorOutput::MonitorOutput(std::string folder, const std::string& anomaly_folder)
    : folder_(std::move(folder)), anomalies_(anomaly_folder) {}

std::optional<std::string> MonitorOutput::write(const Batch& batch) {
  std::optional<std::string> failure;
  try {
    write_files(batch);
  } catch (const std::bad_alloc&) {
    failure = "not enough memory (rows of step " + std::to_string(batch.step) + ")";
  } catch (const std::exception& error) {
    failure = std::string(error.what()) + " (rows or alerts of step " + std::to_string(batch.step) + ")";
  }
  const bool is_told = std::exchange(failing_, failure.has_value());
  return is_told ? std::nullopt : failure;
}

void MonitorOutput::write_files(const Batch& batch) {
  if (batch.settings != settings_) {
    if (!settings_ && batch.settings->dump_alerts) anomalies_.remove_old();
    settings_ = batch.settings;
    files_.clear();
  }
  if (!has_folder_ && !batch.rows.empty()) {
    create_directories(folder_);
    has_folder_ = true;
  }
  if (settings_->format == FileFormat::csv) {
    write_csv(batch);
  } else {
    write_events(batch);
  }
  if (settings_->dump_alerts && !settings_->rules.empty()) anomalies_.append(batch.anomalies);
}

void MonitorOutput::write_csv(const Batch& batch) {
  std::exception_ptr first_failure;
  const std::uint64_t first_step = settings_->layout == 2 ? settings_->window.start : 0;
  for (const StepText& block : csv_blocks(batch)) {
    try {
      auto file = files_.find(block.prefix);
      if (file == files_.end()) {
        const std::string prefix = settings_->layout == 2 ? block.prefix : block.prefix + "_";
        file = files_.try_emplace(block.prefix, folder_, prefix, first_step, settings_->steps_per_file).first;
      }
      file->second.append(batch.step, block.header, block.rows);
    } catch (const Error&) {
      // Goes on, because the other files may have room.
      if (!first_failure) first_failure = std::current_exception();
    }
  }
  if (first_failure) std::rethrow_exception(first_failure);
}

void MonitorOutput::write_events(const Batch& batch) {
  if (!events_.is_open()) {
    events_.open(folder_ + "/" + event_file_name(batch.wall_time), false);
    std::string begin;
    series::append_event_version(begin, batch.wall_time);
    events_.append(begin);
  }
  const std::string records = event_records(batch);
  if (!records.empty()) events_.append(records);
}

}  // namespace msprobe::collector::monitor

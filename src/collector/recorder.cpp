// SPDX-License-Identifier: Apache-2.0
// Manages the open step and its files.
#include "collector/recorder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>

#include "collector/last_error.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/format_version.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"
#include "support/version.hpp"

namespace msprobe::collector {
namespace {

namespace fs = std::filesystem;

// A killed process may lose at most this many bytes, or this share of the file.
constexpr std::uint64_t kFlushBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kFlushShare = 16;
// If more than this is waiting after an entry that stays open, the entry is closed as it is.
constexpr std::uint64_t kMaxHeld = std::uint64_t{128} << 20;
// A program may use ever new folders without ending its step, so only this many are kept to be continued.
constexpr std::size_t kMaxResting = 64;

std::string leaf_name(std::int64_t rank) {
  return rank >= 0 ? "rank" + std::to_string(rank) : "proc" + std::to_string(::getpid());
}

std::string step_folder(const std::string& root, const ProgramPosition& place) {
  return root + "/step" + std::to_string(place.step);
}

/// Renames a folder; if the target exists already, moves file by file.
void rename_folder(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  create_directories(to);
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator file(from, error), end; !error && file != end; file.increment(error))
    files.push_back(file->path().lexically_relative(from));
  // Files that were not listed would be removed together with the folder.
  if (error) throw IoError(display(from), "cannot be read: " + error.message());
  for (const fs::path& file : files) {
    if (fs::is_directory(from / file, error)) {
      fs::create_directories(to / file, error);
      if (error) throw IoError(display(to), "cannot be written: " + error.message());
    } else {
      fs::rename(from / file, to / file, error);
      if (error) throw IoError(display(to), "cannot be written: " + error.message());
    }
  }
  fs::remove_all(from, error);
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 64> text;
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S %z", &local));
}

void write_whole(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

template <typename Change>
void change(LostData& losses, const LostData& by, Change change) {
  change(losses.entries, by.entries);
  change(losses.files, by.files);
}

template <typename Change>
void change(KeptEntries& kept, const KeptEntries& by, Change change) {
  change(kept.entries, by.entries);
  change(kept.steps, by.steps);
}

}  // namespace

void Recorder::adopt(Config config) {
  config_ = std::move(config);
  if (framework_ != "pytorch") config_.risk_level = RiskLevel::all;  // as in the Python tool
  queue_.set_budget(config_.write_buffer << 20);
  filter_ = std::make_unique<Filter>(config_, own_risks_);
}

void Recorder::set_risk(const std::string& operation, RiskLevel risk) {
  own_risks_.insert_or_assign(operation, risk);
  filter_->set_risk(operation, risk);
}

std::string Recorder::header(const ProgramPosition& place) const {
  JsonWriter out({.indent = 1});
  out.open_object();
  out.member("task", name_of(config_.task));
  out.member("level", name_of(config_.level));
  out.member("framework", framework_);
  // Readers learn from it that sums were computed in double. Other tools ignore keys that they do not know.
  if (!config_.python_compatible) {
    out.member("recorder", std::string("msprobe ") + kVersion);
    out.member("format", kDumpFormat);
    // Calls that the recording was not asked for are not missing.
    if (!config_.scope.empty()) out.member("scope", config_.scope);
    if (!config_.list.empty()) out.member("list", config_.list);
  }
  out.key("dump_data_dir");
  if (config_.wants_tensor_folder()) {
    out.value(step_folder(config_.dump_path, place) + '/' + leaf_name(place.rank) + "/dump_tensor_data");
  } else {
    out.null();
  }
  out.open_object("data");
  return out.take();
}

void Recorder::begin_step(const ProgramPosition& place) {
  if (step_) return;
  try {
    open_step(place);
  } catch (const std::exception& error) {
    step_.reset();
    losses_.no_steps.insert("step" + std::to_string(place.step));
    if (losses_.reason.empty()) losses_.reason = error.what();
    throw;
  }
  // The step may have been tried before, when the disk was full.
  losses_.no_steps.erase("step" + std::to_string(place.step));
  ++steps_;
}

void Recorder::open_step(const ProgramPosition& place) {
  const bool debug = config_.level == Level::debug;
  const std::string folder = step_folder(config_.root, place) + '/' + leaf_name(place.rank);
  std::unique_ptr<const Bench> bench;
  if (config_.has_bench()) {
    try {
      bench = std::make_unique<const Bench>(config_.bench_path, "step" + std::to_string(place.step),
                                            leaf_name(place.rank));
    } catch (const Error& error) {
      throw IoError("bench_path", error.what());
    }
  }
  if (config_.has_step_folders())
    create_directories(config_.wants_tensor_folder() ? folder + "/dump_tensor_data" : folder);
  auto step = std::make_unique<Step>(step_folder(config_.root, place), leaf_name(place.rank),
                                     folder + (debug ? "/debug.json" : "/dump.json"), header(place), 2);
  step->debug = debug;
  RecordRules rules{{config_.high_precision, config_.python_compatible, framework_ != "pytorch"},
                    config_.summary_mode,
                    suffix_,
                    bench != nullptr,
                    config_.links_tensors(),
                    config_.slice};
  if (!config_.request_id.empty() && place.tokens)
    rules.slice.push_back({0, std::nullopt, place.tokens->first, place.tokens->second});
  step->rules = std::make_shared<const RecordRules>(std::move(rules));
  step->bench = std::move(bench);
  if (config_.extra_info && !debug) write_whole(folder + "/stack.json", "{}");
  step_ = std::move(step);
  step_->numbers = std::move(numbers_);
  numbers_ = {};
  stacks_.next_step();
  filter_->next_step();
  if (config_.has_entries()) step_->data.write({});
  if (config_.extra_info && !debug) step_->construct.write({});
  step_->changed = false;
}

bool Recorder::move_step(const ProgramPosition& place) {
  const std::string leaf = leaf_name(place.rank);
  if (!step_ || step_->leaf == leaf) return false;
  const std::string from = step_->folder();
  const std::string to = step_->parent + '/' + leaf;
  finish_tensor_files();
  queue_.forget_files();
  if (config_.has_step_folders()) rename_folder(from, to);
  step_->leaf = leaf;
  step_->data.move(to + (step_->debug ? "/debug.json" : "/dump.json"));
  step_->data.set_head(header(place));
  step_->construct.move(to + "/construct.json");
  step_->changed = true;
  return true;
}

/// True if buffers and settings of the training are recorded, which the Python tool does not know.
bool Recorder::records_surroundings() const {
  return (config_.task == Task::statistics || config_.task == Task::tensor) && !config_.python_compatible;
}

/// Numbers steps in the process, so that an event of an earlier session never counts for a later one.
std::uint64_t Recorder::next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// Closes the step, so that nothing in it can change.
msprobe_status Recorder::close_step() {
  for (PendingEntry* entry : step_->entries.open()) close_entry(*entry);
  step_->entries.close_all();
  const msprobe_status status = write_all_files();
  queue_.forget_files();
  entries_ += step_->entries.count();
  change(losses_, open_losses(), [](std::uint64_t& all, std::uint64_t each) { all += each; });
  change(kept_, open_kept(), [](std::uint64_t& all, std::uint64_t each) { all += each; });
  slots_.clear();
  serial_ = next_serial();
  return status;
}

msprobe_status Recorder::end_step() {
  const msprobe_status status = step_ ? close_step() : MSPROBE_OK;
  step_.reset();
  resting_.clear();
  numbers_ = {};
  return status;
}

msprobe_status Recorder::drop_step(const ProgramPosition& place) {
  losses_.no_steps.erase("step" + std::to_string(place.step));
  if (!step_ || step_->entries.count() > 0) return end_step();
  const std::string folder = step_->folder();
  const std::string parent = step_->parent;
  finish_tensor_files();
  queue_.forget_files();
  slots_.clear();
  serial_ = next_serial();
  step_.reset();
  --steps_;
  std::error_code error;
  fs::remove_all(folder, error);
  fs::remove(parent, error);  // this fails if other ranks have folders there
  return end_step();
}

msprobe_status Recorder::redirect(const std::string& dump_path, const std::string& folder) {
  const std::string before = config_.root;
  config_.set_dump_path(dump_path, folder);
  const std::string& root = config_.root;
  if (root == before) return MSPROBE_OK;
  msprobe_status status = MSPROBE_OK;
  if (step_) {
    status = close_step();
    numbers_ = std::move(step_->numbers);
    if (resting_.size() == kMaxResting) resting_.erase(resting_.begin());
    resting_.push_back({before, std::move(step_), std::exchange(stacks_, {})});
  }
  if (const auto found = std::ranges::find(resting_, root, &Resting::root); found != resting_.end()) {
    step_ = std::move(found->step);
    stacks_ = std::move(found->stacks);
    resting_.erase(found);
    step_->numbers = std::exchange(numbers_, {});
    entries_ -= step_->entries.count();
    change(losses_, open_losses(), [](std::uint64_t& all, std::uint64_t each) { all -= each; });
    change(kept_, open_kept(), [](std::uint64_t& all, std::uint64_t each) { all -= each; });
    filter_->next_step();
  }
  return status;
}

LostData Recorder::open_losses() const {
  LostData losses;
  const std::uint64_t count = step_->entries.count();
  losses.entries = config_.has_entries() ? count - std::min(count, step_->written) : 0;
  if (step_->failing && config_.extra_info && !step_->debug)
    losses.files = (stacks_.changed() ? 1 : 0) + (step_->structure.changed() ? 1 : 0);
  return losses;
}

LostData Recorder::losses() {
  LostData all = losses_;
  if (step_ && step_->failing)
    change(all, open_losses(), [](std::uint64_t& sum, std::uint64_t each) { sum += each; });
  all.files += queue_.lost();
  return all;
}

KeptEntries Recorder::open_kept() const {
  const std::uint64_t count = step_->entries.count();
  KeptEntries kept;
  kept.entries = config_.has_entries() ? std::min(count, step_->written) : count;
  kept.steps = kept.entries > 0 || count == 0 ? 1 : 0;
  return kept;
}

KeptEntries Recorder::kept() const {
  KeptEntries all = kept_;
  if (step_) change(all, open_kept(), [](std::uint64_t& sum, std::uint64_t each) { sum += each; });
  return all;
}

/// Waits for the tensor files.
void Recorder::finish_tensor_files() {
  for (const std::string& failure : queue_.finish()) note_failure("tensor file", failure);
}

msprobe_status Recorder::write_all_files() {
  finish_tensor_files();
  return write_files();
}

msprobe_status Recorder::write_files() {
  try {
    step_->entries.take_final(step_->data);
    if (step_->changed && config_.has_entries()) {
      step_->data.write(step_->entries.provisional(step_->data));
      step_->written = step_->data.members() + step_->entries.waiting();
      step_->changed = false;
    }
    if (config_.extra_info && !step_->debug) {
      if (stacks_.changed()) {
        write_whole(step_->folder() + "/stack.json", stacks_.text());
        stacks_.set_written();
      }
      if (step_->structure.changed()) {
        step_->construct.write(step_->structure.provisional(step_->construct));
        step_->structure.set_written();
      }
    }
    step_->fresh = 0;
    step_->failing = false;
    return MSPROBE_OK;
  } catch (const std::exception& error) {
    // The next write waits until more has been recorded.
    step_->fresh = 0;
    step_->failing = true;
    note_failure("write", error.what());
    return MSPROBE_FAILED;
  }
}

msprobe_status Recorder::write_if_due() {
  if (step_->fresh < std::max(kFlushBytes, step_->data.size() / kFlushShare)) return MSPROBE_OK;
  step_->entries.take_final(step_->data);
  if (step_->entries.held() > kMaxHeld) step_->entries.close_all();
  return write_files();
}

void Recorder::note_failure(const char* kind, const std::string& text) noexcept {
  set_last_error(text.c_str());
  try {
    if (losses_.reason.empty()) losses_.reason = text;
    write_error(kind, text);
  } catch (...) {
    // Only the status can report this failure.
    return;
  }
}

void Recorder::write_error(std::string_view kind, std::string_view text) {
  if (!step_ || !step_->logged.insert(std::string(kind)).second) return;
  if (!config_.has_step_folders()) create_directories(step_->folder());
  const std::string path = step_->folder() + "/dump_error_info.log";
  std::string block = "[" + now() + "] [ERROR] ";
  block += text;
  if (block.back() != '\n') block += '\n';
  block += '\n';
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) throw IoError(display(path), "cannot be opened");
  const auto closer = std::shared_ptr<void>(nullptr, [file](void*) { ::close(file); });
  write_all(file, block, path);
}

msprobe_status Recorder::log_error(std::string_view kind, std::string_view text) {
  if (!step_) return MSPROBE_SKIP;
  write_error(kind, text);
  return MSPROBE_OK;
}

}  // namespace msprobe::collector

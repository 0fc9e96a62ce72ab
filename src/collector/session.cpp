// SPDX-License-Identifier: Apache-2.0
#include "collector/session.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "collector/last_error.hpp"
#include "collector/value_writer.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::collector {
namespace {

namespace fs = std::filesystem;

// What a process that is killed may lose: so much, or a share of the file.
constexpr std::uint64_t kFlushBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kFlushShare = 16;
// Behind an entry that stays open, so much is held; then it is closed as it is.
constexpr std::uint64_t kMaxHeld = std::uint64_t{128} << 20;

std::atomic<std::uint64_t> g_forks{0};

void watch_forks() {
  static const int kWatching = ::pthread_atfork(lock_names, unlock_names, [] {
    unlock_names();
    ++g_forks;
  });
  if (kWatching != 0) throw Error("the process cannot be watched for forks");
}

std::string leaf_name(std::int64_t rank) {
  return rank >= 0 ? "rank" + std::to_string(rank) : "proc" + std::to_string(::getpid());
}

/// Into a folder that may be there already: then file by file.
void rename_folder(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  create_directories(to);
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(from, error))
    files.push_back(file.path().lexically_relative(from));
  for (const fs::path& file : files) {
    if (fs::is_directory(from / file, error)) {
      fs::create_directories(to / file, error);
    } else {
      fs::rename(from / file, to / file, error);
      if (error) throw IoError(display(to), "cannot be written: " + error.message());
    }
  }
  fs::remove_all(from, error);
}

constexpr auto kLookEvery = std::chrono::milliseconds(500);
constexpr auto kLookEveryWhileOff = std::chrono::seconds(3);

/// Do they differ in more than whether recording is on?
bool other_settings(const Config& a, const Config& b) {
  auto first = nlohmann::json::parse(a.text);
  auto second = nlohmann::json::parse(b.text);
  first.erase("dump_enable");
  second.erase("dump_enable");
  return first != second;
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

}  // namespace

std::uint64_t fork_count() {
  return g_forks.load(std::memory_order_relaxed);
}

Session::Session(Config config, Origin origin) : origin_(std::move(origin)) {
  watch_forks();
  child_ = fork_count();
  adopt(std::move(config));
  if (!origin_.path.empty()) origin_.path = fs::absolute(origin_.path).string();
  struct stat status {};
  if (!origin_.path.empty() && ::stat(origin_.path.c_str(), &status) == 0) {
    seen_time_ = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
    seen_size_ = status.st_size;
  }
}

Session::~Session() {
  close();
}

msprobe_status Session::close() {
  if (orphaned()) return MSPROBE_SKIP;
  reuse_.clear();
  const std::lock_guard lock(mutex_);
  running_ = 0;
  return step_ ? end_step() : MSPROBE_OK;
}

bool Session::orphaned() const {
  return child_ != fork_count();
}

std::string Session::header(Level level) const {
  ValueWriter out(0);
  const auto member = [&](std::string_view key, std::string_view value) {
    out.item(key);
    append_json_string(out.text(), value);
  };
  out.open({}, true);
  member("task", name_of(config_.task));
  member("level", name_of(level));
  member("framework", origin_.framework);
  if (wants_tensor_folder()) {
    member("dump_data_dir", step_folder(config_.dump_path) + '/' + leaf_name(rank_) + "/dump_tensor_data");
  } else {
    out.item("dump_data_dir");
    out.text() += "null";
  }
  out.open("data", true);
  return std::move(out.text());
}

std::string Session::step_folder(const std::string& root) const {
  return root + "/step" + std::to_string(loop_ + init_step_);
}

bool Session::wants_tensor_folder() const {
  return config_.task == Task::tensor || config_.task == Task::overflow_check ||
         (config_.task == Task::statistics && config_.level != Level::debug && !config_.tensor_list.empty());
}

bool Session::wants_files(std::string_view entry) const {
  if (config_.task == Task::tensor || config_.task == Task::overflow_check) return true;
  if (config_.task != Task::statistics || config_.level == Level::debug) return false;
  return std::any_of(config_.tensor_list.begin(), config_.tensor_list.end(),
                     [&](const std::string& item) { return entry.find(item) != std::string_view::npos; });
}

bool Session::step_listed() const {
  return config_.steps.empty() ||
         std::binary_search(config_.steps.begin(), config_.steps.end(), loop_ + init_step_);
}

void Session::begin_step() {
  if (step_) return;
  const bool debug = config_.level == Level::debug;
  const std::string folder = step_folder(root_) + '/' + leaf_name(rank_);
  create_directories(wants_tensor_folder() ? folder + "/dump_tensor_data" : folder);
  auto step =
      std::make_unique<Step>(step_folder(root_), leaf_name(rank_),
                             folder + (debug ? "/debug.json" : "/dump.json"), header(config_.level), 2);
  step->debug = debug;
  const bool bench = config_.task == Task::tensor && !config_.bench_path.empty() && !debug;
  RecordRules rules{rules_, config_.summary_mode, origin_.framework != "pytorch", origin_.suffix,
                    bench,  config_.slice};
  if (!config_.request_id.empty() && tokens_)
    rules.slice.push_back({0, std::nullopt, tokens_->first, tokens_->second});
  step->rules = std::make_shared<const RecordRules>(std::move(rules));
  if (bench) {
    step->bench = std::make_unique<const Bench>(config_.bench_path,
                                                "step" + std::to_string(loop_ + init_step_), step->leaf);
  }
  if (config_.extra_info && !debug) write_whole(folder + "/stack.json", "{}");
  step_ = std::move(step);
  stacks_.next_step();
  filter_->next_step();
  try {
    step_->data.write({});
    if (config_.extra_info && !debug) step_->construct.write({});
  } catch (...) {
    step_.reset();
    throw;
  }
  step_->changed = false;
}

msprobe_status Session::start(msprobe_decision& decision, bool& first_time) {
  const std::lock_guard lock(mutex_);
  decision = MSPROBE_NOT_NOW;
  first_time = false;
  running_ = 0;
  if (config_.dump_enable == false || config_.level == Level::debug) return MSPROBE_OK;
  if (!finished_ && !config_.steps.empty() && loop_ + init_step_ > config_.steps.back()) {
    finished_ = true;
    first_time = true;
  }
  if (finished_) {
    decision = MSPROBE_ALL_DONE;
    return MSPROBE_OK;
  }
  if (!step_listed()) return MSPROBE_OK;
  if (!config_.ranks.empty() && (rank_ < 0 || !std::binary_search(config_.ranks.begin(), config_.ranks.end(),
                                                                  static_cast<std::uint64_t>(rank_)))) {
    return MSPROBE_OK;
  }
  if (!config_.request_id.empty() && tokens_ && tokens_->first < 0) return MSPROBE_OK;
  begin_step();
  running_ = 1;
  decision = MSPROBE_RECORDING;
  return MSPROBE_OK;
}

msprobe_status Session::stop() {
  const std::lock_guard lock(mutex_);
  running_ = 0;
  if (!step_) return MSPROBE_OK;
  finish_files();
  return write_files();
}

msprobe_status Session::step() {
  reuse_.clear();
  const std::lock_guard lock(mutex_);
  running_ = 0;
  const msprobe_status status = step_ ? end_step() : MSPROBE_OK;
  if (!finished_) ++loop_;
  return status;
}

msprobe_status Session::set_init_step(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  const msprobe_status status = step_ ? end_step() : MSPROBE_OK;
  running_ = 0;
  init_step_ = step;
  loop_ = 0;
  return status;
}

msprobe_status Session::set_recording(bool on) {
  const std::lock_guard lock(mutex_);
  if (!step_ || step_->debug || finished_) return MSPROBE_SKIP;
  running_ = on ? 1 : 0;
  return MSPROBE_OK;
}

msprobe_status Session::set_tokens(std::int64_t begin, std::int64_t end) {
  const std::lock_guard lock(mutex_);
  if (end < begin) return MSPROBE_INVALID;
  tokens_ = {begin, end};
  return MSPROBE_OK;
}

msprobe_status Session::set_rank(std::int64_t rank) {
  const std::lock_guard lock(mutex_);
  if (rank < 0 || rank == rank_) return MSPROBE_OK;
  rank_ = rank;
  if (!step_ || step_->leaf == leaf_name(rank)) return MSPROBE_OK;
  const std::string from = step_->folder();
  const std::string to = step_->parent + '/' + leaf_name(rank);
  finish_files();
  rename_folder(from, to);
  step_->leaf = leaf_name(rank);
  step_->data.move(to + (step_->debug ? "/debug.json" : "/dump.json"));
  step_->data.set_head(header(config_.level));
  step_->construct.move(to + "/construct.json");
  step_->changed = true;
  if (!config_.ranks.empty() && !step_->debug &&
      !std::binary_search(config_.ranks.begin(), config_.ranks.end(), static_cast<std::uint64_t>(rank))) {
    running_ = 0;
  }
  return MSPROBE_OK;
}

msprobe_status Session::flush() {
  const std::lock_guard lock(mutex_);
  return step_ ? write_files() : MSPROBE_OK;
}

msprobe_status Session::end_step() {
  step_->entries.each_open([this](Entry& entry) { close_entry(entry); });
  step_->entries.close_all();
  finish_files();
  const msprobe_status status = write_files();
  step_.reset();
  slots_.clear();
  ++serial_;
  return status;
}

/// Waits for the tensors' files.
void Session::finish_files() {
  for (const std::string& failure : queue_.finish()) note_failure("tensor file", failure);
}

msprobe_status Session::write_files() {
  try {
    step_->entries.take_final(step_->data);
    if (step_->changed) {
      step_->data.write(step_->entries.provisional(step_->data));
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
    return MSPROBE_OK;
  } catch (const std::exception& error) {
    // Not tried again at once.
    step_->fresh = 0;
    note_failure("write", error.what());
    return MSPROBE_FAILED;
  }
}

msprobe_status Session::write_if_due() {
  if (step_->fresh < std::max(kFlushBytes, step_->data.size() / kFlushShare)) return MSPROBE_OK;
  step_->entries.take_final(step_->data);
  if (step_->entries.held() > kMaxHeld) step_->entries.close_all();
  return write_files();
}

void Session::note_failure(const char* kind, const std::string& text) noexcept {
  set_last_error(text.c_str());
  try {
    write_error(kind, text);
  } catch (...) {
    // There is no place left to tell it but the status.
    return;
  }
}

void Session::write_error(std::string_view kind, std::string_view text) {
  if (!step_ || !step_->logged.insert(std::string(kind)).second) return;
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

msprobe_status Session::reload(bool& changed) {
  changed = false;
  const std::lock_guard lock(mutex_);
  if (origin_.path.empty() || !config_.dump_enable) return MSPROBE_OK;
  const auto time = std::chrono::steady_clock::now();
  if (time - looked_ < (*config_.dump_enable ? kLookEvery : kLookEveryWhileOff)) return MSPROBE_OK;
  looked_ = time;
  struct stat status {};
  const bool there = ::stat(origin_.path.c_str(), &status) == 0;
  const std::int64_t mtime = there ? status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec : -1;
  if (!broken_ && mtime == seen_time_ && status.st_size == seen_size_) return MSPROBE_OK;
  std::optional<Config> fresh;
  try {
    fresh = read_config(origin_.path, origin_.overrides);
  } catch (const Error& error) {
    changed = !broken_;
    broken_ = true;
    config_.dump_enable = false;
    running_ = 0;
    if (step_) write_files();
    set_last_error(error.what());
    return MSPROBE_INVALID;
  }
  if (!fresh->dump_enable) fresh->dump_enable = enabled_;
  // While a step is open only the switch is turned; the rest waits for its end, so that its files are of one
  // kind.
  if (step_ && other_settings(*fresh, config_)) return MSPROBE_OK;
  changed = broken_ || other_settings(*fresh, config_) || fresh->dump_enable != config_.dump_enable;
  broken_ = false;
  seen_time_ = mtime;
  seen_size_ = status.st_size;
  adopt(std::move(*fresh));
  finished_ = false;
  if (*config_.dump_enable) return MSPROBE_OK;
  running_ = 0;
  return step_ ? write_files() : MSPROBE_OK;
}

void Session::adopt(Config config) {
  config_ = std::move(config);
  if (origin_.framework == "mindspore") config_.risk_level = RiskLevel::all;  // the names rated are PyTorch's
  root_ = fs::absolute(config_.dump_path).string();
  enabled_ = config_.dump_enable.value_or(true);
  filter_ = std::make_unique<Filter>(config_);
  rules_ = {config_.high_precision, config_.python_compatible, origin_.framework != "pytorch"};
}

msprobe_status Session::log_error(std::string_view kind, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (!step_) return MSPROBE_SKIP;
  write_error(kind, text);
  return MSPROBE_OK;
}

void Session::get_info(msprobe_info& info) {
  const std::lock_guard lock(mutex_);
  info.task = static_cast<msprobe_task>(config_.task);
  info.level = static_cast<msprobe_level>(config_.level);
  info.records_modules = config_.level == Level::l0 || config_.level == Level::mix ? 1 : 0;
  info.records_apis = config_.level == Level::l1 || config_.level == Level::mix ? 1 : 0;
  info.enabled = config_.dump_enable == false ? 0 : 1;
  info.reloads = config_.dump_enable.has_value() && !origin_.path.empty() ? 1 : 0;
  info.wants_bytes = config_.summary_mode != SummaryMode::statistics || wants_tensor_folder() ? 1 : 0;
  info.async_dump = config_.async_dump ? 1 : 0;
  info.step = loop_ + init_step_;
  info.rank = rank_;
  info.finished = finished_ ? 1 : 0;
}

const char* Session::setting(const char* key) {
  const std::lock_guard lock(mutex_);
  thread_local std::string value;
  value = config_.setting(key);
  return value.c_str();
}

}  // namespace msprobe::collector

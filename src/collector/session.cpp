// SPDX-License-Identifier: Apache-2.0
#include "collector/session.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "collector/c_tensor.hpp"
#include "collector/last_error.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::collector {
namespace {

// A file that cannot be used is read again after this time even if it looks unchanged: it may be half
// written.
constexpr auto kTryAgainAfter = std::chrono::milliseconds(500);

/// True if they differ in more than whether recording is on.
bool other_settings(const Config& a, const Config& b) {
  auto first = nlohmann::json::parse(a.text);
  auto second = nlohmann::json::parse(b.text);
  first.erase("dump_enable");
  second.erase("dump_enable");
  return first != second;
}

}  // namespace

Session::Session(Config config, const ConfigOrigin& origin)
    : recorder_(origin.framework, origin.suffix), overrides_(origin.overrides) {
  std::error_code gone;  // if set, a relative path is rejected
  overrides_.folder = std::filesystem::current_path(gone).string();
  enabled_ = config.dump_enable.value_or(true);
  recorder_.adopt(std::move(config));
  if (origin.path.empty()) return;
  path_ = std::filesystem::absolute(origin.path).string();
  tried_ = stamp_of(path_);
}

Session::~Session() {
  close();
}

msprobe_status Session::close() {
  if (orphaned()) return MSPROBE_SKIP;
  reuse_.clear();
  const std::lock_guard lock(mutex_);
  recorder_.run(false);
  gradients_.finish();
  return recorder_.end_step();
}

bool Session::step_listed() const {
  const std::vector<std::uint32_t>& steps = recorder_.config().steps;
  return steps.empty() || std::binary_search(steps.begin(), steps.end(), present_step());
}

bool Session::rank_listed() const {
  const std::vector<std::uint32_t>& ranks = recorder_.config().ranks;
  return ranks.empty() ||
         (rank_ >= 0 && std::binary_search(ranks.begin(), ranks.end(), static_cast<std::uint64_t>(rank_)));
}

msprobe_status Session::start(msprobe_decision& decision, bool& first_time) {
  const std::lock_guard lock(mutex_);
  const Config& config = recorder_.config();
  decision = MSPROBE_NOT_NOW;
  first_time = false;
  recorder_.run(false);
  if (!config.records() || config.level == Level::debug || config.task == Task::grad_probe) return MSPROBE_OK;
  if (!recorder_.finished() && !config.steps.empty() && present_step() > config.steps.back()) {
    recorder_.set_finished(true);
    first_time = true;
  }
  if (recorder_.finished()) {
    decision = MSPROBE_ALL_DONE;
    return MSPROBE_OK;
  }
  if (!step_listed() || !rank_listed()) return MSPROBE_OK;
  if (!config.request_id.empty() && tokens_ && tokens_->first < 0) return MSPROBE_OK;
  recorder_.begin_step(place());
  recorder_.run(true);
  decision = MSPROBE_RECORDING;
  return MSPROBE_OK;
}

msprobe_status Session::stop() {
  const std::lock_guard lock(mutex_);
  recorder_.run(false);
  return recorder_.has_step() ? recorder_.write_all_files() : MSPROBE_OK;
}

msprobe_status Session::step() {
  reuse_.clear();
  const std::lock_guard lock(mutex_);
  recorder_.run(false);
  const msprobe_status status = recorder_.end_step();
  if (!recorder_.finished()) ++loop_;
  gradients_.finish();
  return status;
}

msprobe_status Session::set_risk(const std::string& operation, std::string_view risk) {
  if (risk != "core" && risk != "low") throw InvalidCall("the risk of an operation is core or low");
  const std::lock_guard lock(mutex_);
  recorder_.set_risk(operation, risk == "core" ? RiskLevel::core : RiskLevel::all);
  return MSPROBE_OK;
}

msprobe_status Session::set_init_step(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  const msprobe_status status = recorder_.end_step();
  recorder_.run(false);
  init_step_ = step;
  loop_ = 0;
  return status;
}

msprobe_status Session::set_dump_path(const std::string& path) {
  if (path.empty() || path.size() > kMaxDumpPath)
    throw InvalidCall(path.empty() ? "dump_path is empty" : "dump_path is longer than 4096 bytes");
  reuse_.clear();
  const std::lock_guard lock(mutex_);
  overrides_.dump_path = path;  // applies also when the configuration is read again
  return recorder_.redirect(path, overrides_.folder);
}

msprobe_status Session::restart_step() {
  reuse_.clear();
  const std::lock_guard lock(mutex_);
  recorder_.run(false);
  return recorder_.end_step();
}

msprobe_status Session::drop_step() {
  reuse_.clear();
  const std::lock_guard lock(mutex_);
  recorder_.run(false);
  return recorder_.drop_step(place());
}

msprobe_status Session::set_recording(bool on) {
  const std::lock_guard lock(mutex_);
  if (!recorder_.has_started_step() || recorder_.finished()) return MSPROBE_SKIP;
  recorder_.run(on);
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
  if (recorder_.move_step(place()) && recorder_.has_started_step() && !rank_listed()) recorder_.run(false);
  return MSPROBE_OK;
}

msprobe_status Session::flush() {
  const std::lock_guard lock(mutex_);
  return recorder_.has_step() ? recorder_.write_files() : MSPROBE_OK;
}

msprobe_status Session::reload(bool& changed) {
  changed = false;
  const std::lock_guard lock(mutex_);
  const Config& config = recorder_.config();
  if (path_.empty() || !config.dump_enable) return MSPROBE_OK;
  // The file is checked at every call, so that recording that is switched on between two steps is on for the
  // second one. The check takes a microsecond.
  const FileStamp stamp = stamp_of(path_);
  const auto time = std::chrono::steady_clock::now();
  if (stamp == tried_ && (!broken_ || time - looked_ < kTryAgainAfter)) return MSPROBE_OK;
  looked_ = time;
  std::optional<Config> fresh;
  try {
    fresh = read_config(path_, overrides_);
  } catch (const Error& error) {
    changed = !broken_;
    broken_ = true;
    tried_ = stamp;
    recorder_.enable(false);
    recorder_.run(false);
    if (recorder_.has_step()) recorder_.write_files();
    set_last_error(error.what());
    return MSPROBE_INVALID;
  }
  if (!fresh->dump_enable) fresh->dump_enable = enabled_;
  // While a step is open, only the switch takes effect. Other changes wait for the end of the step, so that
  // its files are of one kind.
  const bool other = other_settings(*fresh, config);
  if (recorder_.has_step() && other) return MSPROBE_OK;
  changed = broken_ || other || fresh->dump_enable != config.dump_enable;
  broken_ = false;
  tried_ = stamp;
  enabled_ = *fresh->dump_enable;
  recorder_.adopt(std::move(*fresh));
  recorder_.set_finished(false);
  if (enabled_) return MSPROBE_OK;
  recorder_.run(false);
  return recorder_.has_step() ? recorder_.write_files() : MSPROBE_OK;
}

std::unique_ptr<Builder> Session::begin_save(std::string_view name, bool gradient,
                                             std::uint64_t& gradient_entry) {
  gradient_entry = 0;
  return build([&](Recorder& recorder) -> std::optional<Builder::Target> {
    const Config& config = recorder.config();
    if (config.level != Level::debug || (config.task != Task::tensor && config.task != Task::statistics) ||
        !config.records() || recorder.finished() || !step_listed()) {
      return std::nullopt;
    }
    recorder.begin_step(place());
    return recorder.begin_save(name, gradient, gradient_entry);
  });
}

msprobe_status Session::fill_gradient(std::uint64_t gradient_entry, std::string_view path,
                                      const msprobe_tensor& tensor) {
  TensorView view = view_of(tensor);
  const auto leaf = locked([&](Recorder& recorder) { return recorder.find_leaf(gradient_entry, path); });
  if (!leaf) return MSPROBE_SKIP;
  RecordedTensor record;
  record.level = leaf->level;
  if (has_file(tensor, view)) record.data_name = leaf->file;
  crop(view, leaf->rules->slice);
  std::string text;
  append_record(text, *leaf->rules, tensor, view, {}, record);
  // These numbers cannot be filled in later, so only known ones are written.
  for (auto gap = record.gaps.rbegin(); gap != record.gaps.rend(); ++gap)
    text.insert(gap->offset, gap->slot->text);
  const msprobe_status status =
      record.data_name.empty() ? MSPROBE_OK : save_tensor(leaf->serial, record.data_name, view, record.keep);
  const bool filled = locked([&](Recorder& recorder) { return recorder.fill_leaf(*leaf, std::move(text)); });
  return filled ? status : MSPROBE_SKIP;
}

msprobe_status Session::fill_tensor(std::uint64_t slot, TensorView view) {
  const auto deferred = locked([&](Recorder& recorder) -> std::optional<Deferred> {
    const Deferred* found = recorder.find_slot(slot);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  });
  if (!deferred) return MSPROBE_SKIP;
  crop(view, deferred->rules->slice);
  const TensorView& expected = deferred->there;
  if (!deferred->kind.dtype || view.dtype != expected.dtype || view.lengths() != expected.lengths())
    throw InvalidCall("the dtype or shape of a tensor differs from the announced one");
  Keep keep;
  keep.possible = deferred->owner != nullptr;
  if (keep.possible) {
    keep.identity = deferred->identity;
    keep.results = reuse_.find(view, keep.identity, Check::checksum);
  }
  LateTexts texts = late_texts(*deferred, view, keep);
  const msprobe_status status = deferred->data_name.empty()
                                    ? MSPROBE_OK
                                    : save_tensor(deferred->serial, deferred->data_name, view, keep);
  if (keep.possible && keep.fresh) reuse_.keep(view, keep.identity, deferred->owner, keep.results);
  const msprobe_status filled =
      locked([&](Recorder& recorder) { return recorder.fill_slot(slot, std::move(texts)); });
  return status != MSPROBE_OK ? status : filled;
}

msprobe_status Session::probe_gradient(std::string_view parameter, const TensorView& gradient) {
  const std::lock_guard lock(mutex_);
  const Config& config = recorder_.config();
  if (config.task != Task::grad_probe) throw InvalidCall("the task is not grad_probe");
  if (!config.records() || !step_listed() || !config.gradient_probe.takes(parameter)) return MSPROBE_SKIP;
  const std::int64_t rank = std::max<std::int64_t>(rank_, 0);
  if (!config.ranks.empty() && !std::ranges::binary_search(config.ranks, rank)) return MSPROBE_SKIP;
  if (tensor::info(gradient.dtype).kind == tensor::DTypeKind::complex)
    throw InvalidCall("complex numbers have no sign: " + display(parameter));
  const std::string folder = config.root + "/rank" + std::to_string(rank);
  gradients_.add(config.gradient_probe, folder, present_step(), parameter, gradient);
  return MSPROBE_OK;
}

msprobe_status Session::save_tensor(std::uint64_t serial, const std::string& name, const TensorView& view,
                                    Keep& keep) {
  const std::string folder = locked([&](Recorder& recorder) { return recorder.tensor_folder(serial); });
  if (folder.empty()) return MSPROBE_SKIP;
  if (!keep.possible) {
    queue().write(folder + name, view);
  } else if (queue().write_once(folder + name, view, keep.results)) {
    keep.fresh = true;
  }
  return MSPROBE_OK;
}

void Session::get_info(msprobe_info& info) {
  const std::lock_guard lock(mutex_);
  const Config& config = recorder_.config();
  info.task = static_cast<msprobe_task>(config.task);
  info.level = static_cast<msprobe_level>(config.level);
  info.records_modules = config.level == Level::l0 || config.level == Level::mix ? 1 : 0;
  info.records_apis = config.records_apis() ? 1 : 0;
  info.enabled = config.records() ? 1 : 0;
  info.reloads = config.dump_enable.has_value() && !path_.empty() ? 1 : 0;
  info.takes_later = config.task != Task::overflow_check && !config.has_bench() ? 1 : 0;
  info.wants_files = config.wants_tensor_folder() ? 1 : 0;
  info.wants_bytes = config.wants_tensor_folder() || config.reads_elements() ? 1 : 0;
  info.async_dump = config.async_dump ? 1 : 0;
  info.step = present_step();
  info.rank = rank_;
  info.finished = recorder_.finished() ? 1 : 0;
  info.entries = recorder_.entries() + gradients_.gradients();
  info.steps = recorder_.steps() + gradients_.steps();
  info.links_tensors = config.links_tensors() ? 1 : 0;
}

const char* Session::setting(const char* key) {
  const std::lock_guard lock(mutex_);
  thread_local std::string value;
  const auto show = [](const nlohmann::json& found) {
    value = found.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  if (std::string_view(key) == "unmatched") {
    const Filter& filter = recorder_.filter();
    show({{"names", filter.unmatched()}, {"passed", filter.passed()}});
  } else if (std::string_view(key) == "lost") {
    const LostData losses = recorder_.losses();
    show({{"entries", losses.entries + gradients_.lost()},
          {"files", losses.files},
          {"no_steps", losses.no_steps},
          {"reason", losses.reason.empty() ? gradients_.reason() : losses.reason}});
  } else if (std::string_view(key) == "kept") {
    const KeptEntries kept = recorder_.kept();
    show({{"entries", kept.entries + gradients_.kept()}, {"steps", kept.steps + gradients_.steps()}});
  } else {
    value = recorder_.config().setting(key);
  }
  return value.c_str();
}

}  // namespace msprobe::collector

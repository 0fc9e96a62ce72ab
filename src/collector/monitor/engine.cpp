// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/engine.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "collector/monitor/folder.hpp"
#include "collector/monitor/row_text.hpp"
#include "series/setting_error.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"

namespace msprobe::collector::monitor {
namespace {

constexpr std::size_t kMostSeries = 10'000'000;

double seconds_since_1970() {
  using namespace std::chrono;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

Settings settings_of(const Json& configuration, const EngineOptions& options) {
  return options.layout == 2 ? read_settings_v2(configuration, options.framework)
                             : read_settings(configuration);
}

bool tells_zeros(const Settings& settings) {
  const auto among = [](const std::vector<MonitorStatistic>& statistics) {
    return std::find(statistics.begin(), statistics.end(), MonitorStatistic::zeros) != statistics.end();
  };
  return among(settings.statistics) ||
         std::ranges::any_of(settings.parts, [&](const MonitorPart& part) { return among(part.statistics); });
}

std::string absolute_path(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

}  // namespace

Engine::Engine(const std::string& text, const std::string& path, EngineOptions options)
    : options_(std::move(options)), path_(absolute_path(path)), rank_(options_.rank) {
  apply(
      settings_of(parse_configuration(text, path.empty() ? "the monitor's configuration" : path), options_));
  active_ = !options_.dynamic;
  set_rank(options_.rank);
}

void Engine::apply(Settings settings) {
  eps_.store(tells_zeros(settings) ? settings.eps : std::nan(""), std::memory_order_relaxed);
  settings_ = std::make_shared<const Settings>(std::move(settings));
  for (EngineSeries& series : series_) series.means.clear();
}

std::optional<double> Engine::eps() const {
  const double eps = eps_.load(std::memory_order_relaxed);
  return std::isnan(eps) ? std::nullopt : std::optional(eps);
}

bool Engine::wants(std::uint64_t step) const {
  const std::vector<std::int64_t>& ranks = settings_->ranks;
  return active_ && collected_ < settings_->window.times && settings_->window.holds(step) &&
         (ranks.empty() || std::find(ranks.begin(), ranks.end(), rank_) != ranks.end());
}

void Engine::update_collecting() {
  collecting_.store(wants(step_) ? 1 : 0, std::memory_order_relaxed);
}

std::string Engine::base_folder() const {
  if (options_.layout == 2) return settings_->output_dir;
  if (!options_.output_dir.empty()) return options_.output_dir;
  const char* const folder = std::getenv("MONITOR_OUTPUT_DIR");
  return folder != nullptr && *folder != '\0' ? folder : "./monitor_output";
}

void Engine::set_rank(std::int64_t rank) {
  const std::lock_guard lock(mutex_);
  rank_ = rank;
  const std::string base = absolute_path(base_folder());
  if (options_.layout == 2) {
    folder_ = base + "/rank_" + std::to_string(rank);
  } else {
    folder_ = new_rank_folder(base, rank);
    if (settings_->append_output) {
      const auto existing = existing_rank_folder(base, rank, *settings_->append_output);
      if (existing && options_.distributed) folder_ = *existing;
    }
  }
  update_collecting();
}

void Engine::set_step(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  update_collecting();
}

void Engine::set_statistics(const Json& names) {
  const std::lock_guard lock(mutex_);
  Settings changed = *settings_;
  changed.warnings.clear();
  monitor::set_statistics(changed, names);
  apply(std::move(changed));
}

std::optional<std::string> Engine::setting(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto text = [](const Json& value) {
    return value.dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  if (key == "warnings") return text(settings_->warnings);
  if (key == "folder") return text(folder_);
  if (key == "step") return text(step_);
  if (key == "collected") return text(collected_);
  if (key == "active") return text(active_);
  if (key == "rank") return text(rank_);
  const auto found = settings_->effective.find(key);
  if (found == settings_->effective.end()) return std::nullopt;
  return text(*found);
}

std::uint32_t Engine::add_series(const SeriesKey& key) {
  const std::lock_guard lock(mutex_);
  std::string text = key.quantity + '\n' + std::to_string(key.stage) + '\n' + std::to_string(key.micro_step) +
                     '\n' + key.scope + '\n' + key.name;
  if (const auto known = ids_.find(text); known != ids_.end()) return known->second;
  if (series_.size() >= kMostSeries) throw Error("too many series");
  EngineSeries series;
  SeriesInfo& info = series.info;
  info.stage = key.stage;
  info.micro_step = key.micro_step;
  info.name = key.name;
  info.scope = key.scope;
  const std::string place = "/rank" + std::to_string(rank_) + "/";
  if (settings_->layout == 2) {
    const auto part = std::ranges::find_if(settings_->parts,
                                           [&](const MonitorPart& one) { return one.name == key.quantity; });
    if (part == settings_->parts.end())
      throw series::SettingError("ValueError", "no monitor " + key.quantity);
    info.part = static_cast<std::size_t>(part - settings_->parts.begin());
    info.is_call = part->communication;
  } else {
    info.quantity = series::find_quantity(key.quantity);
    if (info.quantity == nullptr) throw series::SettingError("ValueError", "no quantity " + key.quantity);
    if (key.quantity == "comm") {
      info.is_call = true;
      info.tag = key.name + place + key.scope;
      info.name = info.tag;
    } else {
      info.tag = std::to_string(key.stage) + ":" + key.name;
      if (key.micro_step >= 0) info.tag += ":" + std::to_string(key.micro_step);
      info.tag += place;
      info.tag += key.scope.empty() ? info.quantity->task : std::string_view(key.scope);
    }
    info.event_tag = info.tag + "_";
  }
  const auto id = static_cast<std::uint32_t>(series_.size());
  series_.push_back(std::move(series));
  ids_.emplace(std::move(text), id);
  return id;
}

Engine::EngineSeries& Engine::series_of(std::uint32_t id) {
  if (id >= series_.size()) throw std::out_of_range("unknown series number");
  return series_[id];
}

bool Engine::hold(std::uint32_t id, Observation observation) {
  const std::lock_guard lock(mutex_);
  EngineSeries& series = series_of(id);
  if (collecting_.load(std::memory_order_relaxed) == 0) return false;
  const bool is_call = series.info.is_call;
  if (series.step_mark == mark_ && (settings_->layout == 1 || is_call)) {
    Observation& held = rows_[series.row].held;
    if (is_call) {
      held.fold(observation);
    } else {
      observation.call = held.call;
      held = std::move(observation);
    }
    return true;
  }
  observation.call = is_call ? 0 : calls_++;
  series.step_mark = mark_;
  series.row = rows_.size();
  rows_.push_back({&series.info, std::move(observation)});
  row_series_.push_back(id);
  return true;
}

std::string Engine::dtype_text(tensor::DType dtype) const {
  const tensor::DTypeInfo& info = tensor::info(dtype);
  if (options_.framework == "mindspore" && !info.mindspore.empty()) return std::string(info.mindspore);
  return "torch." + std::string(info.name);
}

bool Engine::observe(std::uint32_t id, const TensorView& view, std::string dtype) {
  if (collecting_.load(std::memory_order_relaxed) == 0) return false;
  if (dtype.empty()) dtype = dtype_text(view.dtype);
  return hold(id, observe_view(view, eps(), std::move(dtype)));
}

bool Engine::observe(std::uint32_t id, const Measured& measured, std::optional<std::uint64_t> below,
                     std::vector<std::int64_t> shape, std::optional<tensor::DType> dtype, std::string text) {
  Observation observation;
  observation.held = Observation::HeldValue::tensor;
  observation.extrema = dtype ? extrema_of(*dtype) : Extrema::real;
  observation.measured = measured;
  observation.has_zeros = below.has_value();
  observation.zeros = static_cast<float>(below.value_or(0)) / static_cast<float>(measured.count);
  observation.shape = std::move(shape);
  observation.dtype = text.empty() && dtype ? dtype_text(*dtype) : std::move(text);
  return hold(id, std::move(observation));
}

bool Engine::observe_values(std::uint32_t id, std::vector<double> values) {
  const series::Quantity* const quantity = [&] {
    const std::lock_guard lock(mutex_);
    return series_of(id).info.quantity;
  }();
  const bool own_columns = quantity != nullptr && !quantity->columns.empty();
  if (values.size() != (own_columns ? quantity->columns.size() : 1))
    throw series::SettingError("ValueError", "the number of values differs from the columns of the series");
  if (!own_columns) {
    return hold(id, observe_number(values.front(), eps(), dtype_text(tensor::DType::float32)));
  }
  Observation observation;
  observation.held = Observation::HeldValue::values;
  observation.values = std::move(values);
  return hold(id, std::move(observation));
}

bool Engine::absent(std::uint32_t id) {
  return hold(id, Observation());
}

std::optional<std::string> Engine::value(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const EngineSeries& series = series_of(id);
  if (series.step_mark != mark_) return std::nullopt;
  const SeriesRow& row = rows_[series.row];
  const std::vector<MonitorStatistic>& statistics = statistics_of(series.info);
  const std::vector<ObservedCell> cells = cells_of(row, statistics);
  JsonWriter json;
  json.open_object();
  for (std::size_t column = 0; column < cells.size(); ++column) {
    json.key(column_name(series.info, statistics, column));
    const ObservedCell& cell = cells[column];
    using Type = ObservedCell::ObservedType;
    if (cell.kind == Type::absent) json.null();
    if (cell.kind == Type::text) json.value(cell.text);
    if (cell.kind == Type::real) json.value(cell.real);
    if (cell.kind == Type::boolean) json.value(cell.integer != 0);
    if (cell.kind == Type::natural) json.value(static_cast<std::uint64_t>(cell.integer));
    if (cell.kind == Type::integer) json.value(cell.integer);
  }
  json.close();
  return json.take();
}

const std::vector<MonitorStatistic>& Engine::statistics_of(const SeriesInfo& info) const {
  return settings_->layout == 2 ? settings_->parts[info.part].statistics : settings_->statistics;
}

void Engine::judge_row(const SeriesRow& row, EngineSeries& series) {
  const std::vector<ObservedCell> cells = cells_of(row, settings_->statistics);
  series.means.resize(cells.size());
  bool first = true;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    const ObservedCell& cell = cells[column];
    if (!cell.is_number()) continue;
    const std::string_view statistic = column_name(series.info, settings_->statistics, column);
    series::RunningMean& mean = series.means[column];
    const series::AlertRule* const rule = series::first_broken(settings_->rules, statistic, cell.real, mean);
    const double history = mean.value();
    mean.add(cell.real);
    if (rule == nullptr) continue;
    Hit hit;
    hit.rule = rule->name();
    hit.tag = series.info.tag;
    hit.statistic = statistic;
    hit.value = quoted_value(cell);
    hit.message = series::alert_message(*rule, hit.tag, statistic, step_, hit.value, history);
    hit.mean = history;
    hit.step = static_cast<std::int64_t>(step_);
    hit.rank = rank_;
    hit.micro_step = std::max(series.info.micro_step, 0);
    hit.pp_stage = options_.pp_stage;
    hit.vpp_stage = series.info.is_call ? 0 : series.info.stage;
    hit.call_id = series.info.is_call ? -1 : std::int64_t{row.held.call};
    hit.first_of_tag = std::exchange(first, false);
    hits_.push_back(std::move(hit));
  }
}

MonitorOutput& Engine::output() {
  if (!output_) {
    const std::string alerts =
        absolute_path(base_folder()) + "/anomaly_detected/rank" + std::to_string(rank_);
    output_ = std::make_unique<MonitorOutput>(folder_, alerts);
  }
  return *output_;
}

StepResult Engine::end_step() {
  const std::lock_guard lock(mutex_);
  StepResult result;
  hits_.clear();
  if (wants(step_)) {
    if (!settings_->rules.empty()) {
      for (std::size_t i = 0; i < rows_.size(); ++i) judge_row(rows_[i], series_[row_series_[i]]);
    }
    result.alerts = static_cast<std::uint32_t>(hits_.size());
    ++collected_;
    if (!rows_.empty()) {
      Batch batch;
      batch.step = step_;
      batch.wall_time = seconds_since_1970();
      batch.settings = settings_;
      batch.rows = std::exchange(rows_, {});
      if (settings_->dump_alerts) {
        for (const Hit& hit : hits_) batch.anomalies.push_back(anomaly_member(hit, options_.group_mates));
      }
      result.failure = output().write(batch);
      result.written = true;
      rows_ = std::move(batch.rows);  // the next step uses its memory
    }
  }
  rows_.clear();
  row_series_.clear();
  calls_ = 0;
  ++mark_;
  ++step_;
  const bool over = active_ && (collected_ >= settings_->window.times || step_ >= settings_->window.stop);
  if (over && !told_finished_) {
    told_finished_ = result.finished = true;
    if (options_.dynamic) finish_dynamic();
  }
  update_collecting();
  return result;
}

std::string Engine::hits() {
  const std::lock_guard lock(mutex_);
  return hits_json(hits_, options_.group_mates);
}

void Engine::finish_dynamic() {
  active_ = false;
  if (path_.empty()) return;
  try {
    Json configuration = parse_configuration(read_configuration(path_), path_);
    configuration["dynamic_on"] = false;
    OutputFile file(std::filesystem::canonical(path_).string());  // it belongs to the user, and may be a link
    file.write(configuration.dump(2, ' ', true));
    file.commit();
  } catch (const std::exception&) {
    // The file cannot be written: it still says on, and is read again when it changes.
  }
  stamp_ = stamp_of(path_);
}

Reload Engine::reload() {
  const std::lock_guard lock(mutex_);
  if (!options_.dynamic || path_.empty()) return Reload::nothing;
  const FileStamp stamp = stamp_of(path_);
  if (stamp == stamp_) return Reload::nothing;
  stamp_ = stamp;
  const Json configuration = [&] {
    try {
      return parse_configuration(read_configuration(path_), path_);
    } catch (const Error& error) {
      throw FormatError("get config.json wrong because " + std::string(error.what()) + ", not updated");
    }
  }();
  try {
    const auto on = configuration.find("dynamic_on");
    if (on == configuration.end() || *on == false) {
      const bool was_active = std::exchange(active_, false);
      update_collecting();
      return was_active ? Reload::stopped : Reload::nothing;
    }
    Settings settings = settings_of(configuration, options_);
    settings.window.start = step_;
    settings.effective["start_step"] = step_;
    apply(std::move(settings));
  } catch (const series::SettingError& error) {
    throw FormatError("set config wrong because " + std::string(error.what()) + ", not updated");
  }
  active_ = true;
  collected_ = 0;
  told_finished_ = false;
  update_collecting();
  return Reload::started;
}

}  // namespace msprobe::collector::monitor

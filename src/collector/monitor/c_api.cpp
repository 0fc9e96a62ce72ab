// SPDX-License-Identifier: Apache-2.0
// The C interface of the monitor. It checks arguments and lets no exception out.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "collector/c_guard.hpp"
#include "collector/monitor/engine.hpp"
#include "msprobe/monitor.h"

struct msprobe_monitor {
  msprobe::collector::monitor::Engine engine;
};

namespace msprobe::collector::monitor {
namespace {

thread_local std::string t_monitor_text;  // returned to the caller; valid until the next call of the thread

msprobe_status hand_out_text(std::string text, const char** to) {
  t_monitor_text = std::move(text);
  needed(to, "the output pointer of the text") = t_monitor_text.c_str();
  return MSPROBE_OK;
}

template <typename Body>
msprobe_status with_engine(msprobe_monitor* monitor, Body body) noexcept {
  if (monitor == nullptr) return failed(MSPROBE_INVALID, "the monitor is missing");
  if (monitor->engine.orphaned()) return MSPROBE_SKIP;
  return guarded(MSPROBE_INVALID, [&] { return body(monitor->engine); });
}

msprobe_status ok_or_skip(bool done) {
  return done ? MSPROBE_OK : MSPROBE_SKIP;
}

std::string text_or(const char* text, const char* fallback) {
  return text == nullptr ? fallback : text;
}

EngineOptions options_of(const msprobe_monitor_options* given) {
  EngineOptions options;
  if (given == nullptr) return options;
  const msprobe_monitor_options known = known_part(given);
  if (known.layout < 0 || known.layout > 2) throw InvalidCall("the layout must be 1 or 2");
  options.layout = known.layout == 2 ? 2 : 1;
  options.rank = known.rank;
  options.pp_stage = known.pp_stage;
  options.dynamic = known.dynamic != 0 && options.layout == 1;
  options.distributed = known.distributed != 0;
  options.framework = text_or(known.framework, "");
  options.output_dir = text_or(known.output_dir, "");
  if (known.group_mates != nullptr) {
    const Json list = Json::parse(known.group_mates, nullptr, false);
    if (!list.is_array()) throw InvalidCall("group_mates must be a JSON list");
    options.group_mates.clear();
    for (const Json& rank : list) {
      if (!rank.is_number_integer()) throw InvalidCall("group_mates must hold whole numbers");
      options.group_mates.push_back(rank.get<std::int64_t>());
    }
  }
  return options;
}

std::vector<std::int64_t> shape_of(const std::int64_t* shape, std::uint32_t ndim) {
  if (ndim > kMaxRank) throw InvalidCall("a tensor has more than 64 axes");
  if (ndim > 0) needed(shape, "the shape");
  return ndim == 0 ? std::vector<std::int64_t>() : std::vector<std::int64_t>(shape, shape + ndim);
}

}  // namespace
}  // namespace msprobe::collector::monitor

using namespace msprobe::collector;           // NOLINT: this file is their C interface
using namespace msprobe::collector::monitor;  // NOLINT

extern "C" {

msprobe_status msprobe_monitor_open(const char* config_path, const char* config_text,
                                    const msprobe_monitor_options* options, msprobe_monitor** monitor) {
  return guarded(MSPROBE_INVALID, [&] {
    needed(monitor, "the output pointer of the monitor") = nullptr;
    const std::string text =
        config_path != nullptr ? read_configuration(config_path) : text_or(config_text, "{}");
    *monitor = new msprobe_monitor{Engine(text, text_or(config_path, ""), options_of(options))};
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_monitor_close(msprobe_monitor* monitor) {
  if (monitor == nullptr) return MSPROBE_OK;
  // Its files belong to the parent process.
  if (monitor->engine.orphaned()) return MSPROBE_SKIP;
  delete monitor;
  return MSPROBE_OK;
}

msprobe_status msprobe_monitor_setting(msprobe_monitor* monitor, const char* key, const char** json) {
  return with_engine(monitor, [&](Engine& engine) {
    std::optional<std::string> text = engine.setting(&needed(key, "the key"));
    return text ? hand_out_text(std::move(*text), json) : MSPROBE_SKIP;
  });
}

msprobe_status msprobe_monitor_set(msprobe_monitor* monitor, const char* key, const char* json) {
  return with_engine(monitor, [&](Engine& engine) {
    if (std::strcmp(&needed(key, "the key"), "ops") != 0) throw InvalidCall("only ops may be set");
    engine.set_statistics(Json::parse(&needed(json, "the value"), nullptr, false));
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_monitor_set_rank(msprobe_monitor* monitor, int32_t rank) {
  return with_engine(monitor, [&](Engine& engine) {
    engine.set_rank(rank);
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_monitor_set_step(msprobe_monitor* monitor, uint64_t step) {
  return with_engine(monitor, [&](Engine& engine) {
    engine.set_step(step);
    return MSPROBE_OK;
  });
}

const volatile int* msprobe_monitor_collecting(const msprobe_monitor* monitor) {
  static const int kNever = 0;
  if (monitor == nullptr) return &kNever;
  static_assert(sizeof(std::atomic<int>) == sizeof(int));
  return reinterpret_cast<const volatile int*>(&monitor->engine.collecting());
}

msprobe_status msprobe_monitor_series(msprobe_monitor* monitor, const msprobe_series* series, uint32_t* id) {
  return with_engine(monitor, [&](Engine& engine) {
    const msprobe_series known = known_part(series);
    SeriesKey key;
    key.quantity = &needed(known.quantity, "the quantity");
    key.stage = known.stage;
    key.micro_step = known.micro_step;
    key.name = &needed(known.name, "the name");
    key.scope = text_or(known.scope, "");
    needed(id, "the output pointer of the number") = engine.add_series(key);
    return MSPROBE_OK;
  });
}

msprobe_status msprobe_monitor_observe(msprobe_monitor* monitor, uint32_t id, const msprobe_tensor* tensor) {
  return with_engine(monitor, [&](Engine& engine) {
    const msprobe_tensor known = known_part(tensor);
    std::string dtype = text_or(known.dtype_text, "");
    if (known.statistics != nullptr) {
      return ok_or_skip(engine.observe(id, measured_of(known_part(known.statistics)), std::nullopt,
                                       shape_of(known.shape, known.ndim), dtype_of(known.dtype),
                                       std::move(dtype)));
    }
    return ok_or_skip(engine.observe(id, filled_view(known), std::move(dtype)));
  });
}

msprobe_status msprobe_monitor_observe_statistics(msprobe_monitor* monitor, uint32_t id,
                                                  const msprobe_statistics* statistics, uint64_t below,
                                                  const int64_t* shape, uint32_t ndim, uint32_t dtype) {
  return with_engine(monitor, [&](Engine& engine) {
    const auto known_below = below == UINT64_MAX ? std::nullopt : std::optional(below);
    return ok_or_skip(engine.observe(id, measured_of(known_part(statistics)), known_below,
                                     shape_of(shape, ndim), dtype_of(dtype), ""));
  });
}

msprobe_status msprobe_monitor_observe_values(msprobe_monitor* monitor, uint32_t id, const double* values,
                                              size_t count) {
  return with_engine(monitor, [&](Engine& engine) {
    if (count > 0) needed(values, "the values");
    return ok_or_skip(engine.observe_values(id, std::vector<double>(values, values + count)));
  });
}

msprobe_status msprobe_monitor_absent(msprobe_monitor* monitor, uint32_t id) {
  return with_engine(monitor, [&](Engine& engine) { return ok_or_skip(engine.absent(id)); });
}

msprobe_status msprobe_monitor_value(msprobe_monitor* monitor, uint32_t id, const char** json) {
  return with_engine(monitor, [&](Engine& engine) {
    std::optional<std::string> text = engine.value(id);
    return text ? hand_out_text(std::move(*text), json) : MSPROBE_SKIP;
  });
}

msprobe_status msprobe_monitor_step_end(msprobe_monitor* monitor, msprobe_step_result* result) {
  return with_engine(monitor, [&](Engine& engine) {
    const StepResult done = engine.end_step();
    if (result != nullptr) {
      msprobe_step_result given = known_part(result);
      given.written = done.written ? 1 : 0;
      given.finished = done.finished ? 1 : 0;
      given.alerts = done.alerts;
      give_known_part(result, given);
    }
    return done.failure ? failed(MSPROBE_FAILED, done.failure->c_str()) : MSPROBE_OK;
  });
}

msprobe_status msprobe_monitor_alerts(msprobe_monitor* monitor, const char** json) {
  return with_engine(monitor, [&](Engine& engine) { return hand_out_text(engine.hits(), json); });
}

msprobe_status msprobe_monitor_reload(msprobe_monitor* monitor, int* changed) {
  return with_engine(monitor, [&](Engine& engine) {
    needed(changed, "the output pointer of the answer") = 0;
    *changed = static_cast<int>(engine.reload());
    return MSPROBE_OK;
  });
}

}  // extern "C"

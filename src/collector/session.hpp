// SPDX-License-Identifier: Apache-2.0
// One recording from its callers' view: when it records, with which configuration, in which process. The
// recorder does the recording. All functions are thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "collector/builder.hpp"
#include "collector/config.hpp"
#include "collector/file_stamp.hpp"
#include "collector/forks.hpp"
#include "collector/recorder.hpp"
#include "collector/reuse.hpp"
#include "msprobe/collector.h"

namespace msprobe::collector {

struct ConfigOrigin {
  std::string path;  // of the configuration file; may be empty
  ConfigOverrides overrides;
  std::string framework = "pytorch";
  std::string suffix = "pt";
};

class Session {
 public:
  Session(Config config, const ConfigOrigin& origin);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// True in a child that was forked while the session was open.
  bool orphaned() const { return process_.left(); }

  msprobe_status start(msprobe_decision& decision, bool& first_time);
  msprobe_status stop();
  msprobe_status step();
  msprobe_status set_risk(const std::string& operation, std::string_view risk);
  msprobe_status set_init_step(std::uint64_t step);
  msprobe_status set_dump_path(const std::string& path);
  msprobe_status restart_step();
  msprobe_status drop_step();
  msprobe_status set_recording(bool on);
  msprobe_status set_rank(std::int64_t rank);
  msprobe_status set_tokens(std::int64_t begin, std::int64_t end);
  msprobe_status flush();
  msprobe_status reload(bool& changed);
  /// Ends the open step.
  msprobe_status close();
  void get_info(msprobe_info& info);
  const char* setting(const char* key);
  const std::atomic<int>& running() const { return recorder_.running(); }

  /// Calls `body(recorder)` while no other thread can.
  template <typename Body>
  auto locked(Body body) {
    const std::lock_guard lock(mutex_);
    return body(recorder_);
  }
  /// A builder for the target that `body(recorder)` gives; null without a target.
  template <typename Body>
  std::unique_ptr<Builder> build(Body body) {
    auto target = locked(body);
    return target ? std::make_unique<Builder>(*this, std::move(*target)) : nullptr;
  }
  std::unique_ptr<Builder> begin_save(std::string_view name, bool gradient, std::uint64_t& gradient_entry);
  msprobe_status fill_gradient(std::uint64_t gradient_entry, std::string_view path,
                               const msprobe_tensor& tensor);

  msprobe_status fill_tensor(std::uint64_t slot, TensorView view);

  ReuseCache& reuse() { return reuse_; }
  TensorQueue& queue() { return recorder_.queue(); }
  /// Returns MSPROBE_SKIP for a parameter that was not asked for.
  msprobe_status probe_gradient(std::string_view parameter, const TensorView& gradient);
  /// If the same elements have a file already, only adds a name for it; `keep` receives the results to keep.
  msprobe_status save_tensor(std::uint64_t serial, const std::string& name, const TensorView& view,
                             Keep& keep);

 private:
  std::uint64_t present_step() const { return loop_ + init_step_; }
  ProgramPosition place() const { return {present_step(), rank_, tokens_}; }
  bool step_listed() const;
  bool rank_listed() const;

  const OwnProcess process_;
  ReuseCache reuse_;
  std::mutex mutex_;
  Recorder recorder_;
  std::uint64_t loop_ = 0;
  std::uint64_t init_step_ = 0;
  std::int64_t rank_ = -1;
  std::optional<std::pair<std::int64_t, std::int64_t>> tokens_;
  // The configuration file, and its state at the last look.
  std::string path_;
  ConfigOverrides overrides_;
  std::chrono::steady_clock::time_point looked_;
  FileStamp tried_;
  bool broken_ = false;
  GradientProbe gradients_;
  bool enabled_ = true;  // the last value of dump_enable
};

}  // namespace msprobe::collector

struct msprobe_session {
  msprobe::collector::Session session;
};

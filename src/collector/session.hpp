// SPDX-License-Identifier: Apache-2.0
// One recording: when it records, and what of what is called it records. Builders (builder.hpp) fill in the
// contents of events. Any thread may call anything.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/builder.hpp"
#include "collector/config.hpp"
#include "collector/filter.hpp"
#include "collector/reuse.hpp"
#include "collector/step.hpp"
#include "collector/tensor_queue.hpp"
#include "collector/tensor_record.hpp"
#include "msprobe/collector.h"

namespace msprobe::collector {

struct Origin {
  std::string path;  // of the configuration file; empty: none
  ConfigOverrides overrides;
  std::string framework = "pytorch";
  std::string suffix = "pt";
};

class Session {
 public:
  Session(Config config, Origin origin);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Is this a child that was forked while the session was open?
  bool orphaned() const;

  msprobe_status start(msprobe_decision& decision, bool& first_time);
  msprobe_status stop();
  msprobe_status step();
  msprobe_status set_init_step(std::uint64_t step);
  msprobe_status set_recording(bool on);
  msprobe_status set_rank(std::int64_t rank);
  msprobe_status set_tokens(std::int64_t begin, std::int64_t end);
  msprobe_status flush();
  msprobe_status reload(bool& changed);
  /// Ends the step that is open.
  msprobe_status close();
  msprobe_status log_error(std::string_view kind, std::string_view text);
  void get_info(msprobe_info& info);
  const char* setting(const char* key);
  const std::atomic<int>& running() const { return running_; }

  msprobe_status enter(bool module, std::uint32_t name, msprobe_event& event);
  msprobe_status leave(const msprobe_event& event);
  msprobe_status enter_backward(const msprobe_event& forward, msprobe_event& event);
  msprobe_status set_pseudo_parent(const char* name);
  msprobe_status set_micro_step(std::uint32_t micro_step);
  msprobe_status use_stack(const msprobe_event& event, std::uint64_t key);
  msprobe_status define_stack(std::uint64_t key, std::vector<std::string> frames);
  msprobe_status hold(const msprobe_event& event, bool on);
  msprobe_status fill_statistics(std::uint64_t slot, const msprobe_statistics& statistics);
  msprobe_status fill_gradient(std::uint64_t gradient_entry, std::string_view path,
                               const msprobe_tensor& tensor);

  /// Null where nothing is to be recorded.
  std::unique_ptr<Builder> begin_section(const msprobe_event& event, msprobe_section section);
  std::unique_ptr<Builder> begin_parameter_gradient(std::uint32_t module, std::string_view parameter,
                                                    std::uint32_t expected);
  std::unique_ptr<Builder> begin_save(std::string_view name, bool gradient, std::uint64_t& gradient_entry);

  // Of builders.
  ReuseCache& reuse() { return reuse_; }
  TensorQueue& queue() { return queue_; }
  std::uint64_t add_slot(const DeferredNumbers& numbers);
  msprobe_status save_tensor(std::uint64_t serial, const std::string& name, const TensorView& view);
  msprobe_status commit(const Builder::Target& target, Section section, Findings findings);
  msprobe_status commit_saved(const Builder::Target& target, Section section, Section gradient,
                              std::vector<GradientLeaf> leaves);

 private:
  std::string header(Level level) const;
  std::string step_folder(const std::string& root) const;
  bool wants_tensor_folder() const;
  bool wants_files(std::string_view entry) const;
  bool step_listed() const;
  void begin_step();
  /// All that is open becomes final, the step's files are written and the step forgotten.
  msprobe_status end_step();
  msprobe_status commit_locked(const Builder::Target& target, Section section);
  void finish_files();
  msprobe_status write_files();
  void adopt(Config config);
  msprobe_status write_if_due();
  void write_error(std::string_view kind, std::string_view text);
  void note_failure(const char* kind, const std::string& text) noexcept;

  bool has_structure(bool module) const;
  void add_node(const Call& call, Parent parent);
  std::uint32_t wants_of(const std::string& entry, const Call& call, bool recorded) const;
  void check_output(OpenCall& open);
  void finish_call(OpenCall& open);
  void close_entry(Entry& entry);
  bool keeps_files() const;
  Entry& new_entry(std::string name, bool later);

  TensorQueue queue_;
  ReuseCache reuse_;
  std::mutex mutex_;
  Config config_;
  Origin origin_;
  std::string root_;  // dump_path, wherever the program may go to
  std::unique_ptr<Filter> filter_;
  Stacks stacks_;
  NumberRules rules_;
  std::uint64_t child_;  // how many forks lie above the process that opened it
  std::atomic<int> running_{0};
  bool finished_ = false;
  std::int64_t wanted_ = 0;  // calls of interest, where only such are looked for
  std::uint64_t loop_ = 0;
  std::uint64_t init_step_ = 0;
  std::int64_t rank_ = -1;
  std::optional<std::pair<std::int64_t, std::int64_t>> tokens_;
  std::uint64_t serial_ = 1;    // of the step; never 0
  std::unique_ptr<Step> step_;  // null: nothing is recorded of this one
  std::uint64_t next_slot_ = 0;
  // The configuration file as it was seen last.
  std::chrono::steady_clock::time_point looked_;
  std::int64_t seen_time_ = 0;  // ns
  std::int64_t seen_size_ = 0;
  bool broken_ = false;
  bool enabled_ = true;  // what dump_enable was last
  std::unordered_map<std::uint64_t, DeferredNumbers> slots_;
};

/// Counts the forks that lead to this process.
std::uint64_t fork_count();

}  // namespace msprobe::collector

struct msprobe_session {
  msprobe::collector::Session session;
};

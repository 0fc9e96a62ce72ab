// SPDX-License-Identifier: Apache-2.0
// Records calls: the open step, its events, its files. Builders (builder.hpp) fill in the contents of events.
// The session's lock lets only one thread in at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/builder.hpp"
#include "collector/config.hpp"
#include "collector/filter.hpp"
#include "collector/step.hpp"
#include "collector/tensor_queue.hpp"
#include "collector/tensor_record.hpp"
#include "msprobe/collector.h"

namespace msprobe::collector {

/// The position of the program.
struct ProgramPosition {
  std::uint64_t step = 0;
  std::int64_t rank = -1;  // unknown if negative; then the number of the process replaces it
  std::optional<std::pair<std::int64_t, std::int64_t>> tokens;
};

/// A leaf of a saved value that gets its gradient.
struct SavedLeaf {
  std::shared_ptr<const RecordRules> rules;
  std::shared_ptr<LateText> slot;
  std::uint64_t serial = 0;
  int level = 0;
  std::string file;  // of its elements; may be empty
};

/// Recorded data that is not in the files.
struct LostData {
  std::uint64_t entries = 0;
  std::uint64_t files = 0;         // of tensors, stacks or the construction
  std::set<std::string> no_steps;  // steps that could not be begun: "step2"
  std::string reason;              // of the first loss
};

/// The entries that the files hold, and their steps.
struct KeptEntries {
  std::uint64_t entries = 0;
  std::uint64_t steps = 0;  // a step that lost all its entries does not count
};

class Recorder {
 public:
  /// `framework` is its name; `suffix` is the ending of tensor files.
  Recorder(std::string framework, std::string suffix)
      : framework_(std::move(framework)), suffix_(std::move(suffix)) {}

  /// Requires that no step is open, unless the configuration differs only in dump_enable.
  void adopt(Config config);
  void enable(bool on) { config_.dump_enable = on; }
  const Config& config() const { return config_; }

  /// True if events are recorded now.
  const std::atomic<int>& running() const { return running_; }
  void run(bool on) { running_ = on ? 1 : 0; }
  /// True if everything that was asked for has been recorded.
  bool finished() const { return finished_; }
  void set_finished(bool finished) { finished_ = finished; }

  const Filter& filter() const { return *filter_; }
  void set_risk(const std::string& operation, RiskLevel risk);

  /// The number of entries in all steps.
  std::uint64_t entries() const { return entries_ + (step_ ? step_->entries.count() : 0); }
  std::uint64_t steps() const { return steps_; }
  /// The losses in all steps; for the open step, as of the last attempt to write.
  LostData losses();
  /// The contents of the files; for the open step, as of the last write.
  KeptEntries kept() const;

  bool has_step() const { return step_ != nullptr; }
  /// True if start() and stop() made the step, not saved values.
  bool has_started_step() const { return step_ && !step_->debug; }
  void begin_step(const ProgramPosition& place);
  /// Moves the step after the rank became known. Returns false if the step is already there, or if no step is
  /// open.
  bool move_step(const ProgramPosition& place);
  msprobe_status write_files();
  /// The same, and waits until tensor files are written, too.
  msprobe_status write_all_files();
  /// Closes all open entries, writes the step's files and forgets the step; does nothing without a step.
  msprobe_status end_step();
  /// Removes the folder of the open step, which has no entries and shall leave no trace. `place` is the
  /// step's place, also if it could not be begun.
  msprobe_status drop_step(const ProgramPosition& place);
  /// Records into another folder from now on. An open step in the old folder rests until that folder is used
  /// again; call numbers continue.
  msprobe_status redirect(const std::string& dump_path, const std::string& folder);
  msprobe_status log_error(std::string_view kind, std::string_view text);

  // The C interface passes only valid events: entered, of a forward call, with an entry.
  msprobe_status enter(bool module, std::uint32_t name, msprobe_event& event);
  msprobe_status leave(const msprobe_event& event);
  msprobe_status enter_backward(const msprobe_event& forward, msprobe_event& event);
  msprobe_status set_pseudo_parent(const char* name);
  msprobe_status describe_training(std::string_view json);
  msprobe_status set_micro_step(std::uint32_t micro_step);
  msprobe_status use_stack(const msprobe_event& event, std::uint64_t key);
  msprobe_status define_stack(std::uint64_t key, std::vector<std::string> frames);
  msprobe_status hold(const msprobe_event& event, bool on);

  /// The target for a builder; nothing if this is not recorded.
  std::optional<Builder::Target> begin_section(const msprobe_event& event, msprobe_section section);
  std::optional<Builder::Target> begin_parameter_gradient(std::uint32_t module, std::string_view parameter,
                                                          std::uint32_t expected);
  /// A step must be open.
  Builder::Target begin_save(std::string_view name, bool gradient, std::uint64_t& gradient_entry);

  std::uint64_t add_slot(Deferred deferred);
  /// Null if the slot was filled, or its step is over.
  const Deferred* find_slot(std::uint64_t number) const;
  msprobe_status fill_slot(std::uint64_t number, const DeviceResults& results);
  msprobe_status fill_slot(std::uint64_t number, LateTexts texts);
  /// The rules of the open step; null without one.
  std::shared_ptr<const RecordRules> record_rules() const { return step_ ? step_->rules : nullptr; }
  msprobe_status commit(const Builder::Target& target, MemberText section, EntryFacts findings);
  msprobe_status commit_saved(const Builder::Target& target, MemberText section, MemberText gradient,
                              std::vector<GradientLeaf> leaves);
  std::optional<SavedLeaf> find_leaf(std::uint64_t gradient_entry, std::string_view path) const;
  /// Returns false if its step is over.
  bool fill_leaf(const SavedLeaf& leaf, std::string text);

  /// The folder of the step's tensor files, with a trailing slash; empty if the step is over.
  std::string tensor_folder(std::uint64_t serial) const;
  /// Needs no lock.
  TensorQueue& queue() { return queue_; }

 private:
  bool records_surroundings() const;
  void open_step(const ProgramPosition& place);
  std::string header(const ProgramPosition& place) const;
  Builder::Target new_target() const;
  msprobe_status put(const Builder::Target& target, MemberText section);
  static std::uint64_t next_serial();
  msprobe_status close_step();
  /// The data that the files of the open step lack.
  LostData open_losses() const;
  KeptEntries open_kept() const;
  void finish_tensor_files();
  msprobe_status write_if_due();
  void write_error(std::string_view kind, std::string_view text);
  void note_failure(const char* kind, const std::string& text) noexcept;

  void add_node(const CollectedCall& call, Parent parent);
  std::uint32_t wants_of(const std::string& entry, const CollectedCall& call, bool recorded) const;
  void check_output(OpenCall& open);
  void finish_call(OpenCall& open);
  void close_entry(PendingEntry& entry);
  bool keeps_files() const;
  PendingEntry& new_entry(std::string name, bool later);

  TensorQueue queue_;
  std::string framework_;
  std::string suffix_;
  Config config_;
  std::unique_ptr<Filter> filter_;
  Filter::Risks own_risks_;  // of the user's operations
  Stacks stacks_;
  std::atomic<int> running_{0};
  bool finished_ = false;
  std::int64_t wanted_ = 0;               // calls of interest, if only such calls are recorded
  std::uint64_t serial_ = next_serial();  // of the step; never 0
  std::unique_ptr<Step> step_;            // null: this step is not recorded
  struct Resting {
    std::string root;
    std::unique_ptr<Step> step;
    Stacks stacks;
  };
  std::vector<Resting> resting_;  // of this step, the one that has rested longest first
  CallNumbers numbers_;           // with which the next folder continues
  std::uint64_t entries_ = 0;     // of steps that are over
  std::uint64_t steps_ = 0;       // that have begun
  LostData losses_;               // of steps that are over
  KeptEntries kept_;              // likewise
  std::unordered_map<std::uint64_t, Deferred> slots_;
};

}  // namespace msprobe::collector

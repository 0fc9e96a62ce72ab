// SPDX-License-Identifier: Apache-2.0
// What of what is called is recorded: the step that is open, its events, its files. Builders (builder.hpp)
// fill in the contents of events. One thread at a time: the session's lock is around all of it.
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

/// Where the program is.
struct Place {
  std::uint64_t step = 0;
  std::int64_t rank = -1;  // as long as it is not known, the process's number stands for it
  std::optional<std::pair<std::int64_t, std::int64_t>> tokens;
};

/// A leaf of a saved value that gets its gradient.
struct SavedLeaf {
  std::shared_ptr<const RecordRules> rules;
  std::shared_ptr<Slot> slot;
  std::uint64_t serial = 0;
  int level = 0;
  std::string file;  // of its elements; empty: none is wanted
};

/// What was recorded and is not in the files.
struct Losses {
  std::uint64_t entries = 0;
  std::uint64_t files = 0;         // of tensors, stacks or the construction
  std::set<std::string> no_steps;  // that could not be begun: "step2"
  std::string reason;              // the first one
};

/// The entries that the files hold, and their steps.
struct Kept {
  std::uint64_t entries = 0;
  std::uint64_t steps = 0;  // a step that lost all its entries does not count
};

class Recorder {
 public:
  /// Of the framework, and what tensor files end with.
  Recorder(std::string framework, std::string suffix)
      : framework_(std::move(framework)), suffix_(std::move(suffix)) {}

  /// Not while a step is open, unless it differs in dump_enable alone.
  void adopt(Config config);
  void enable(bool on) { config_.dump_enable = on; }
  const Config& config() const { return config_; }

  /// Are events recorded now?
  const std::atomic<int>& running() const { return running_; }
  void run(bool on) { running_ = on ? 1 : 0; }
  /// Was all recorded that was asked for?
  bool finished() const { return finished_; }
  void set_finished(bool finished) { finished_ = finished; }

  const Filter& filter() const { return *filter_; }

  /// Of all steps.
  std::uint64_t entries() const { return entries_ + (step_ ? step_->entries.count() : 0); }
  std::uint64_t steps() const { return steps_; }
  /// Of all steps; of the one that is open, what could not be written when that was tried last.
  Losses losses();
  /// Of the step that is open, what was there when its files were written last.
  Kept kept() const;

  bool has_step() const { return step_ != nullptr; }
  /// Is it one of start() and stop(), not of saved values?
  bool has_started_step() const { return step_ && !step_->debug; }
  void begin_step(const Place& place);
  /// The rank became known. False if the open step lies there already, or none is open.
  bool move_step(const Place& place);
  msprobe_status write_files();
  /// As above, when tensors' files are written, too.
  msprobe_status write_all_files();
  /// All that is open becomes final, the step's files are written and the step forgotten; nothing without
  /// one.
  msprobe_status end_step();
  /// The step that is open has no entries and is to be none: its folder goes. `place` is the step's, also
  /// where it could not be begun.
  msprobe_status drop_step(const Place& place);
  /// What is recorded from now on lies in another folder. The step that is open there, if any, comes to rest
  /// until that folder comes again; call numbers go on.
  msprobe_status redirect(const std::string& dump_path, const std::string& folder);
  msprobe_status log_error(std::string_view kind, std::string_view text);

  // Events as the C interface lets them through: entered, of a forward call, with an entry.
  msprobe_status enter(bool module, std::uint32_t name, msprobe_event& event);
  msprobe_status leave(const msprobe_event& event);
  msprobe_status enter_backward(const msprobe_event& forward, msprobe_event& event);
  msprobe_status set_pseudo_parent(const char* name);
  msprobe_status describe_training(std::string_view json);
  msprobe_status set_micro_step(std::uint32_t micro_step);
  msprobe_status use_stack(const msprobe_event& event, std::uint64_t key);
  msprobe_status define_stack(std::uint64_t key, std::vector<std::string> frames);
  msprobe_status hold(const msprobe_event& event, bool on);

  /// What a builder is to make; nothing where nothing is to be recorded.
  std::optional<Builder::Target> begin_section(const msprobe_event& event, msprobe_section section);
  std::optional<Builder::Target> begin_parameter_gradient(std::uint32_t module, std::string_view parameter,
                                                          std::uint32_t expected);
  /// A step must be open.
  Builder::Target begin_save(std::string_view name, bool gradient, std::uint64_t& gradient_entry);

  std::uint64_t add_slot(Deferred deferred);
  /// Null if it was filled, or its step is over.
  const Deferred* find_slot(std::uint64_t number) const;
  msprobe_status fill_slot(std::uint64_t number, const DeviceResults& results);
  msprobe_status fill_slot(std::uint64_t number, LateTexts texts);
  /// Of the step that is open; null if none is.
  std::shared_ptr<const RecordRules> record_rules() const { return step_ ? step_->rules : nullptr; }
  msprobe_status commit(const Builder::Target& target, Section section, Findings findings);
  msprobe_status commit_saved(const Builder::Target& target, Section section, Section gradient,
                              std::vector<GradientLeaf> leaves);
  std::optional<SavedLeaf> find_leaf(std::uint64_t gradient_entry, std::string_view path) const;
  /// False if its step is over.
  bool fill_leaf(const SavedLeaf& leaf, std::string text);

  /// Where the step's tensor files lie, with a slash behind; empty if the step is over.
  std::string tensor_folder(std::uint64_t serial) const;
  /// Needs no lock.
  TensorQueue& queue() { return queue_; }

 private:
  bool records_surroundings() const;
  void open_step(const Place& place);
  std::string header(const Place& place) const;
  Builder::Target new_target() const;
  msprobe_status put(const Builder::Target& target, Section section);
  template <typename Fill>
  msprobe_status fill_slot(std::uint64_t number, Fill fill_with);
  static std::uint64_t next_serial();
  msprobe_status close_step();
  /// What the files of the open step lack.
  Losses open_losses() const;
  Kept open_kept() const;
  void finish_tensor_files();
  msprobe_status write_if_due();
  void write_error(std::string_view kind, std::string_view text);
  void note_failure(const char* kind, const std::string& text) noexcept;

  void add_node(const Call& call, Parent parent);
  std::uint32_t wants_of(const std::string& entry, const Call& call, bool recorded) const;
  void check_output(OpenCall& open);
  void finish_call(OpenCall& open);
  void close_entry(Entry& entry);
  bool keeps_files() const;
  Entry& new_entry(std::string name, bool later);

  TensorQueue queue_;
  std::string framework_;
  std::string suffix_;
  Config config_;
  std::unique_ptr<Filter> filter_;
  Stacks stacks_;
  NumberRules rules_;
  std::atomic<int> running_{0};
  bool finished_ = false;
  std::int64_t wanted_ = 0;               // calls of interest, where only such are looked for
  std::uint64_t serial_ = next_serial();  // of the step; never 0
  std::unique_ptr<Step> step_;            // null: nothing is recorded of this one
  struct Resting {
    std::string root;
    std::unique_ptr<Step> step;
    Stacks stacks;
  };
  std::vector<Resting> resting_;  // of this step, the one that rests longest first
  CallNumbers numbers_;           // that the next folder goes on with
  std::uint64_t entries_ = 0;     // of steps that are over
  std::uint64_t steps_ = 0;       // that were begun
  Losses losses_;                 // of steps that are over
  Kept kept_;                     // likewise
  std::unordered_map<std::uint64_t, Deferred> slots_;
};

}  // namespace msprobe::collector

// SPDX-License-Identifier: Apache-2.0
// The collector's configuration file, config.json: its keys, their defaults and what is wrong with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/gradient_probe.hpp"
#include "support/error.hpp"

namespace msprobe::collector {

enum class Task : std::uint8_t {
  statistics,
  tensor,
  structure,
  overflow_check,
  free_benchmark,
  grad_probe,
  acc_check,
  exception_dump
};
enum class Level : std::uint8_t { l0, l1, mix, debug, l2 };
enum class SummaryMode : std::uint8_t { statistics, md5, xor_ };
enum class RiskLevel : std::uint8_t { all, core, focus };

std::string_view name_of(Task task);
std::string_view name_of(Level level);

/// As a dump names a call of one: "Functional.linear.0.forward".
bool is_api_name(std::string_view name);

/// A wrong `scope` or `list`: users tell it from other errors by its class.
class ScopeError : public Error {
 public:
  using Error::Error;
};

/// One rule that crops tensors before they are measured and saved, as Python slices them.
struct SliceRule {
  std::uint64_t dim = 0;
  std::optional<std::uint64_t> size;  // only tensors whose axis has this length
  std::int64_t begin = 0;
  std::optional<std::int64_t> end;
};

struct DataMode {
  bool forward = true;
  bool backward = true;
  bool input = true;
  bool output = true;
  bool parameter_gradients = true;  // not if only the forward is named
  bool direction(bool is_backward) const { return is_backward ? backward : forward; }
};

struct Config {
  Task task = Task::statistics;
  Level level = Level::l1;
  std::string dump_path;             // as it was given
  std::string root;                  // that folder, wherever the program may go to
  std::vector<std::uint32_t> ranks;  // sorted; empty: all
  std::vector<std::uint32_t> steps;  // sorted; empty: all
  bool extra_info = true;
  bool async_dump = false;
  bool high_precision = false;
  RiskLevel risk_level = RiskLevel::focus;
  std::optional<bool> dump_enable;  // present: the file is looked at again and again
  std::vector<std::string> custom_op_namespaces;
  /// Values where the Python tool 26.2 leaves none or odd ones are left out or odd here, too.
  bool python_compatible = false;
  /// Inputs of modules are taken from a dump; and nothing is recorded.
  bool loads = false;
  bool loads_only = false;
  /// Level L2 of MindSpore: the runtime of the NPU dumps kernels, and nothing else is recorded. (With PyTorch
  /// it dumps those of one call, which the front end makes.)
  bool by_runtime = false;
  /// A tensor that was saved before in the step gets another name of that file.
  bool hard_links = true;
  std::uint64_t write_buffer = 256;  // MiB of tensors that wait to be written

  // Of the section that has the task's name.
  std::vector<std::string> scope;  // none or two
  std::vector<std::string> list;
  DataMode data_mode;
  SummaryMode summary_mode = SummaryMode::statistics;
  std::vector<std::string> tensor_list;
  std::vector<SliceRule> slice;
  std::string request_id;
  std::string bench_path;
  std::int64_t diff_nums = 1;      // -1: no limit
  std::int64_t overflow_nums = 1;  // -1: no limit
  GradientProbeConfig gradient_probe;

  /// What was corrected or ignored; one line each.
  std::vector<std::string> warnings;
  /// A key of the file after defaults and overrides, as JSON, "null" if absent; "section.<key>" is one of the
  /// task's section. For keys that only a front end understands. "warnings" is the above as
  /// a list.
  std::string setting(std::string_view key) const;

  std::string text;  // what setting() looks into

  /// Nothing else changes. A relative path begins at `folder`, or where the process is if that is empty.
  void set_dump_path(const std::string& path, const std::string& folder);

  /// Is anything recorded?
  bool records() const { return dump_enable != false && !loads_only && !by_runtime; }
  bool records_apis() const {
    return level == Level::l1 || level == Level::mix || (level == Level::l2 && !by_runtime);
  }
  /// Can a step have files of tensors?
  bool wants_tensor_folder() const;
  /// Besides files: for checksums, or a part that is cut out.
  bool reads_elements() const;
  /// Are outputs compared with those of another dump?
  bool has_bench() const { return task == Task::tensor && !bench_path.empty() && level != Level::debug; }
  /// Does a tensor that was saved before get another name of that file? What waits until it is known whether
  /// it is wanted has no file yet.
  bool links_tensors() const {
    return hard_links && wants_tensor_folder() && task != Task::overflow_check && !has_bench();
  }
  /// Are the tensors of an entry saved?
  bool wants_files(std::string_view entry) const;
  /// Does a step have a dump.json?
  bool has_entries() const {
    return task != Task::free_benchmark && task != Task::grad_probe && task != Task::acc_check &&
           level != Level::l2;
  }
  /// Does a step have a folder from its begin on?
  bool has_step_folders() const { return task != Task::acc_check && level != Level::l2; }
  /// Does the front end make, or follow, each call?
  bool calls_again() const {
    return task == Task::free_benchmark || task == Task::acc_check || level == Level::l2;
  }
  /// Are calls of modules, or of APIs, written into construct.json?
  bool has_structure(bool module) const;
};

inline constexpr std::size_t kMaxDumpPath = 4096;

struct ConfigOverrides {
  std::optional<std::string> task;
  std::optional<std::string> dump_path;
  std::optional<std::string> level;
  std::optional<std::string> step;  // JSON
  std::string kernels_of{};         // the framework whose runtime can dump kernels; empty: none can
  std::string folder{};             // where relative paths begin; empty: where the process is
};

/// Reads and checks a configuration; `name` stands for it in messages. FormatError or ScopeError.
Config parse_config(std::string_view text, const std::string& name, const ConfigOverrides& overrides);
/// As above, from a file. IoError if it cannot be read.
Config read_config(const std::string& path, const ConfigOverrides& overrides);

}  // namespace msprobe::collector

// SPDX-License-Identifier: Apache-2.0
// The collector's configuration file, config.json: its keys, their defaults, and the errors in them.
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

/// A wrong `scope` or `list`. It is a separate class so that users can distinguish it from other errors.
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
  std::string root;                  // the same folder as an absolute path
  std::vector<std::uint32_t> ranks;  // sorted; empty: all
  std::vector<std::uint32_t> steps;  // sorted; empty: all
  bool extra_info = true;
  bool async_dump = false;
  bool high_precision = false;
  RiskLevel risk_level = RiskLevel::focus;
  std::optional<bool> dump_enable;  // if set, the file is read again whenever it changes
  std::vector<std::string> custom_op_namespaces;
  /// Reproduces values that the Python tool 26.2 leaves out or records in an odd form.
  bool python_compatible = false;
  /// Inputs of modules are taken from a dump. `loads_only`: nothing is recorded.
  bool loads = false;
  bool loads_only = false;
  /// Level L2 of MindSpore: the runtime of the NPU dumps kernels, and nothing else is recorded. (With PyTorch
  /// the runtime dumps the kernels of one call, which the front end makes.)
  bool by_runtime = false;
  /// A tensor that was saved before in the step gets another name for the same file.
  bool hard_links = true;
  std::uint64_t write_buffer = 256;  // MiB of tensors that wait to be written

  // Values of the section with the task's name.
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

  /// Remarks about values that were corrected or ignored; one line each.
  std::vector<std::string> warnings;
  /// The value of a key after defaults and overrides, as JSON; "null" if absent. "section.<key>" is a key of
  /// the task's section. This serves keys that only a front end understands. "warnings" gives the lines above
  /// as a list.
  std::string setting(std::string_view key) const;

  std::string text;  // the text that setting() searches

  /// Changes only the path. A relative path begins at `folder`, or at the current folder if that is empty.
  void set_dump_path(const std::string& path, const std::string& folder);

  /// True if anything is recorded.
  bool records() const { return dump_enable != false && !loads_only && !by_runtime; }
  bool records_apis() const {
    return level == Level::l1 || level == Level::mix || (level == Level::l2 && !by_runtime);
  }
  /// True if a step can have tensor files.
  bool wants_tensor_folder() const;
  /// True if elements are read for more than files: for checksums, or for a part that is cut out.
  bool reads_elements() const;
  /// True if outputs are compared with those of another dump.
  bool has_bench() const { return task == Task::tensor && !bench_path.empty() && level != Level::debug; }
  /// True if a tensor that was saved before gets another name for the same file. Tensors that wait until it
  /// is known whether they are needed have no file yet.
  bool links_tensors() const {
    return hard_links && wants_tensor_folder() && task != Task::overflow_check && !has_bench();
  }
  /// True if the tensors of an entry are saved.
  bool wants_files(std::string_view entry) const;
  /// True if a step has a dump.json.
  bool has_entries() const {
    return task != Task::free_benchmark && task != Task::grad_probe && task != Task::acc_check &&
           level != Level::l2;
  }
  /// True if a step has a folder from its begin on.
  bool has_step_folders() const { return task != Task::acc_check && level != Level::l2; }
  /// True if the front end makes, or follows, each call.
  bool calls_again() const {
    return task == Task::free_benchmark || task == Task::acc_check || level == Level::l2;
  }
  /// True if calls of modules (or of APIs) are written into construct.json.
  bool has_structure(bool module) const;
};

inline constexpr std::size_t kMaxDumpPath = 4096;

struct ConfigOverrides {
  std::optional<std::string> task;
  std::optional<std::string> dump_path;
  std::optional<std::string> level;
  std::optional<std::string> step;  // JSON
  std::string kernels_of{};         // the framework whose runtime can dump kernels; empty if it cannot
  std::string folder{};             // where relative paths begin; empty: the current folder
};

/// Reads and checks a configuration; messages call it `name`. Throws FormatError and ScopeError.
Config parse_config(std::string_view text, const std::string& name, const ConfigOverrides& overrides);
/// The same, from a file. Throws IoError if it cannot be read.
Config read_config(const std::string& path, const ConfigOverrides& overrides);

}  // namespace msprobe::collector

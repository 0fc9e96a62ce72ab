// SPDX-License-Identifier: Apache-2.0
// The state of the step that is being recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collector/bench.hpp"
#include "collector/config.hpp"
#include "collector/entry_store.hpp"
#include "collector/growing_file.hpp"
#include "collector/stacks.hpp"
#include "collector/structure.hpp"
#include "collector/tensor_queue.hpp"
#include "collector/tensor_record.hpp"

namespace msprobe::collector {

/// The gradients of one module's parameters.
struct ModuleGradients {
  std::string first;        // the parameter that came first
  std::uint32_t count = 0;  // how often it has come
  std::uint64_t entry = 0;  // of the current accumulation
  std::unordered_set<std::string> arrived;
};

/// A leaf of a saved value whose gradient may come.
struct GradientLeaf {
  std::string path;  // "key2.2"
  int level = 0;
  std::shared_ptr<LateText> slot;
};

/// The rules for records of tensors; the same for the whole step.
struct RecordRules {
  NumberRules numbers;
  SummaryMode summary = SummaryMode::statistics;
  std::string suffix;       // of tensor files
  bool bench = false;       // md5 comes before data_name
  bool hard_links = false;  // a tensor that was saved before gets another name for the same file
  std::vector<SliceRule> slice;
};

/// The facts that decide whether an entry, or its tensor files, are kept.
struct EntryFacts {
  bool nonfinite = false;
  std::vector<SeenTensor> seen;
  std::vector<std::pair<std::string, TensorCopy>> files;  // by name
};

/// The number of calls of each function and module.
struct CallNumbers {
  std::unordered_map<std::uint32_t, std::uint32_t> calls;
  std::unordered_map<std::string, std::uint32_t> saves;
};

struct Step {
  Step(std::string step_folder, std::string leaf_name, std::string data_path, std::string head, int level)
      : parent(std::move(step_folder)),
        leaf(std::move(leaf_name)),
        data(std::move(data_path), std::move(head), "\n}", level),
        construct(folder() + "/construct.json", "{", "", 1) {}

  std::string folder() const { return parent + '/' + leaf; }

  std::string parent;  // <dump_path>/step<N>
  std::string leaf;    // rank<R> or proc<pid>
  bool debug = false;
  GrowingFile data;  // dump.json or debug.json
  GrowingFile construct;
  EntryStore entries;
  Structure structure;
  std::shared_ptr<const RecordRules> rules;
  std::unique_ptr<const Bench> bench;
  CallNumbers numbers;
  std::unordered_map<std::string, std::uint64_t> backward_entries;  // by name, as long as they can change
  std::unordered_map<std::uint32_t, ModuleGradients> gradients;
  std::unordered_map<std::uint64_t, std::vector<GradientLeaf>> gradient_leaves;  // by entry
  std::unordered_map<std::uint64_t, EntryFacts> findings;                        // by entry
  std::set<std::string, std::less<>> logged;                                     // kinds of errors
  std::uint64_t fresh = 0;    // bytes since the files were written
  std::uint64_t written = 0;  // entries in the file
  bool failing = false;       // the last attempt to write the files failed
  bool changed = false;
};

}  // namespace msprobe::collector

// SPDX-License-Identifier: Apache-2.0
// What is known of the step that is being recorded.
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
struct ParameterGradients {
  std::string first;        // the parameter that came first
  std::uint32_t count = 0;  // how often it has
  std::uint64_t entry = 0;  // of the accumulation that goes on
  std::unordered_set<std::string> arrived;
};

/// A leaf of a saved value whose gradient may come.
struct GradientLeaf {
  std::string path;  // "key2.2"
  int level = 0;
  std::shared_ptr<Slot> slot;
};

/// What records of tensors are made by; the same for the whole step.
struct RecordRules {
  NumberRules numbers;
  SummaryMode summary = SummaryMode::statistics;
  bool mindspore = false;
  std::string suffix;       // of tensor files
  bool bench = false;       // md5 stands before data_name
  bool hard_links = false;  // a tensor that was saved before gets another name of that file
  std::vector<SliceRule> slice;
};

/// What decides whether an entry, or its tensors' files, are kept.
struct Findings {
  bool nonfinite = false;
  std::vector<SeenTensor> seen;
  std::vector<std::pair<std::string, TensorCopy>> files;  // by name
};

/// How often each was called.
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
  std::unordered_map<std::string, std::uint64_t> backward_entries;  // by name, while they can change
  std::unordered_map<std::uint32_t, ParameterGradients> gradients;
  std::unordered_map<std::uint64_t, std::vector<GradientLeaf>> gradient_leaves;  // by entry
  std::unordered_map<std::uint64_t, Findings> findings;                          // by entry
  std::set<std::string, std::less<>> logged;                                     // kinds of errors
  std::uint64_t fresh = 0;    // bytes since the files were written
  std::uint64_t written = 0;  // entries that the file has
  bool failing = false;       // the files could not be written when that was tried last
  bool changed = false;
};

}  // namespace msprobe::collector

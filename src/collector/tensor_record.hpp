// SPDX-License-Identifier: Apache-2.0
// The object that stands for a tensor in dump.json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/config.hpp"
#include "collector/entry_store.hpp"
#include "collector/measure.hpp"
#include "collector/reuse.hpp"
#include "collector/tensor_view.hpp"
#include "msprobe/collector.h"

namespace msprobe::collector {

/// What decides which numbers stand in a record, and how they are rounded.
struct NumberRules {
  bool high_precision = false;
  bool python_compatible = false;  // the gaps and roundings of the Python tool
  bool mindspore = false;          // there the Python tool always has means, and norms of complex numbers
};

/// What the numbers are rendered by; it outlives the tensor for those that come later.
struct NumberKind {
  std::optional<tensor::DType> dtype;  // none: a type without values here
  bool scalar = false;                 // no axis
  bool array = false;                  // NumPy's array, by NumPy's rules
};

/// Appends `"Max": …, "Min": …, "Mean": …, "Norm": …` (with a comma and a new line before each); nulls
/// without `measured`.
void append_numbers(std::string& out, int level, const NumberKind& kind, const NumberRules& rules,
                    const Measured* measured);

struct RecordRules;

/// Where results of the same elements may be known from before.
struct Reuse {
  ReuseCache* cache = nullptr;
  std::shared_ptr<const Owner> owner;  // null: nothing is
};

/// What of a tensor's results is to be kept for the next one who brings it.
struct Keep {
  Identity identity;
  Results results;
  bool possible = false;  // it can be told whether a tensor is this one
  bool fresh = false;     // there is something to keep that was not kept before
};

/// Numbers of a tensor that come later.
struct DeferredNumbers {
  std::shared_ptr<Slot> slot;
  int level = 0;
  NumberKind kind;
};

/// Takes what the rules cut away off a view.
void crop(TensorView& view, const std::vector<SliceRule>& rules);
/// Are there bytes to put into a file?
bool has_file(const msprobe_tensor& tensor, const TensorView& view);

struct Record {
  int level = 0;                            // at which the object stands
  std::string data_name;                    // of the file; empty: none
  std::optional<DeferredNumbers> deferred;  // set if the numbers come later:
  std::size_t gap = 0;                      // where in the text
  bool nonfinite = false;                   // Max or Min is NaN or infinite
  std::string md5;                          // if there is one
  Keep keep;
};

/// Appends the object of a tensor.
void append_record(std::string& out, const RecordRules& rules, const msprobe_tensor& tensor,
                   const TensorView& view, const Reuse& reuse, Record& record);

}  // namespace msprobe::collector

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

struct RecordRules;

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

/// What of a tensor's record comes later.
struct Deferred {
  std::shared_ptr<Slot> numbers;   // null: there are none
  std::shared_ptr<Slot> checksum;  // null: none comes
  SummaryMode summary = SummaryMode::statistics;
  int level = 0;
  NumberKind kind;
  TensorView there;  // without data, unless the elements are on a device
  // Of elements that come later.
  std::shared_ptr<const RecordRules> rules;
  std::uint64_t serial = 0;  // of the step
  std::string data_name;     // of the file; empty: none
  Identity identity;
  std::shared_ptr<const Owner> owner;  // null: it cannot be told whether the elements were seen before
};

/// Takes what the rules cut away off a view.
void crop(TensorView& view, const std::vector<SliceRule>& rules);
/// Are there bytes to put into a file?
bool has_file(const msprobe_tensor& tensor, const TensorView& view);

struct Record {
  int level = 0;                     // at which the object stands
  std::string data_name;             // of the file; empty: none
  std::optional<Deferred> deferred;  // set if something comes later:
  std::vector<Section::Gap> gaps;    // where in the text
  bool nonfinite = false;            // Max or Min is NaN or infinite
  std::string md5;                   // if there is one
  Keep keep;
};

/// What comes for the gaps of a record.
struct LateTexts {
  std::string numbers;
  std::string checksum;
};
LateTexts late_texts(const Deferred& deferred, const DeviceResults& results, const NumberRules& rules);
/// What the elements, which are cropped, say.
LateTexts late_texts(const Deferred& deferred, const TensorView& view, Keep& keep);
void fill(const Deferred& deferred, LateTexts texts);

/// Appends the object of a tensor. `view` has no data where the elements are not on the host.
void append_record(std::string& out, const RecordRules& rules, const msprobe_tensor& tensor,
                   const TensorView& view, const Reuse& reuse, Record& record);

}  // namespace msprobe::collector

// SPDX-License-Identifier: Apache-2.0
// The object for a tensor in dump.json.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/config.hpp"
#include "collector/entry_store.hpp"
#include "collector/measure.hpp"
#include "collector/reuse.hpp"
#include "collector/tensor_view.hpp"
#include "msprobe/collector.h"

namespace msprobe::collector {

/// The rules for which numbers are in a record, and how they are rounded.
struct NumberRules {
  bool high_precision = false;
  bool python_compatible = false;  // with the gaps and roundings of the Python tool
  bool mindspore = false;          // here the Python tool always has means, and norms of complex numbers
};

struct RecordRules;

/// The properties that formatting of numbers needs; they outlive the tensor for numbers that arrive later.
struct NumberTraits {
  std::optional<tensor::DType> dtype;  // empty: a type without values here
  bool scalar = false;                 // no axis
  bool array = false;                  // NumPy's array, by NumPy's rules
};

/// Appends `"Max": …, "Min": …, "Mean": …, "Norm": …` (with a comma and a new line before each); nulls
/// without `measured`.
void append_numbers(std::string& out, int level, const NumberTraits& kind, const NumberRules& rules,
                    const Measured* measured);

/// Where results for the same elements may be known from.
struct Reuse {
  ReuseCache* cache = nullptr;
  std::shared_ptr<const Owner> owner;  // null: nothing is known
};

/// The results of a tensor that are kept for the next caller that brings it.
struct Keep {
  Identity identity;
  Results results;
  bool possible = false;  // it can be recognized later
  bool fresh = false;     // there are results to keep that were not kept before
};

/// The parts of a tensor's record that arrive later.
struct Deferred {
  std::shared_ptr<LateText> numbers;   // null: no numbers
  std::shared_ptr<LateText> checksum;  // null: no checksum
  int level = 0;
  NumberTraits kind;
  TensorView there;  // without data, unless the elements are on a device
  std::shared_ptr<const RecordRules> rules;
  // These are for elements that arrive later.
  std::uint64_t serial = 0;  // of the step
  std::string data_name;     // of the file; may be empty
  Identity identity;
  std::shared_ptr<const Owner> owner;  // null: the elements cannot be recognized
};

/// Removes the parts of a view that the rules cut away.
void crop(TensorView& view, const std::vector<SliceRule>& rules);
/// True if there are bytes for a file.
bool has_file(const msprobe_tensor& tensor, const TensorView& view);

struct RecordedTensor {
  int level = 0;                          // of the object
  std::string data_name;                  // of the file; may be empty
  std::optional<Deferred> deferred;       // set if something arrives later:
  std::vector<MemberText::TextGap> gaps;  // its places in the text
  bool nonfinite = false;                 // Max or Min is NaN or infinite
  std::string md5;                        // may be empty
  Keep keep;
};

/// The texts for the gaps of a record.
struct LateTexts {
  std::string numbers;
  std::string checksum;
};
LateTexts late_texts(const Deferred& deferred, const DeviceResults& results);
/// The texts from the elements, which are cropped.
LateTexts late_texts(const Deferred& deferred, const TensorView& view, Keep& keep);
void fill(const Deferred& deferred, LateTexts texts);

/// Appends the object of a tensor. `view` has no data if the elements are not on the host.
void append_record(std::string& out, const RecordRules& rules, const msprobe_tensor& tensor,
                   const TensorView& view, const Reuse& reuse, RecordedTensor& record);

}  // namespace msprobe::collector

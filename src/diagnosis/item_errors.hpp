// SPDX-License-Identifier: Apache-2.0
// The errors of the items of a rank, before a rule judges them. A walk that may stop early measures them
// entry by entry, and no more than it needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnosis/loss_scale.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "diagnosis/structure.hpp"
#include "dump/names.hpp"
#include "pairing/operations.hpp"
#include "support/text_pool.hpp"

namespace msprobe::diagnosis {

/// The errors of a module's tensors, by which the gradients of its parameters are judged.
struct ModuleErrors {
  double e = 0;  // largest error of its forward tensors and of its outputs' gradients
  double b = 0;
  double hidden = 0;
  bool has_gradient = false;
  double gradient_norm = 0;  // norm of its output's gradient
  std::uint64_t gradient_elements = 0;
  double input_norm = 0;
  double u = 0;                        // largest unit roundoff of its tensors
  std::vector<std::uint32_t> entries;  // whose tensors these are
};

class ItemErrors {
 public:
  /// `lazily`: an entry and its items are measured only when they are asked for. `measure_entry`, if given,
  /// measures their tensors then.
  ItemErrors(const measuring::MeasuredRank& rank, const measuring::StatisticsPrecision& precision,
             bool lazily, const MeasureEntry& measure_entry);

  /// Measures an entry and its items, once.
  void measure(std::uint32_t api);

  std::vector<std::uint32_t> golden_item;  // by item under test
  std::optional<LossScale> loss_scale;     // the errors below do not contain it
  std::vector<float> e;                    // by item; NaN where nothing was measured
  std::vector<float> b;
  std::vector<float> hidden;                // by item: see Measure
  std::vector<std::uint8_t> by_statistics;  // by item: measured by statistics, since its tensors were missing
  std::vector<std::uint8_t> blind;          // by item: see Measure
  std::vector<std::uint8_t> partial;        // by item: see Measure
  std::vector<std::uint8_t> other_uses;  // by item: one side says that its gradient is from other uses, too
  std::vector<std::uint8_t> unmasked;    // by entry: its recorder writes another gradient
  std::vector<float> output;             // by entry under test: largest e of its floating outputs
  std::vector<float> anything;           // by entry: largest error of all its tensors
  std::vector<float> anything_b;
  std::vector<float> anything_hidden;  // by entry: of its tensors that are not of half types
  std::vector<float> u;                // unit roundoff of the coarsest of its tensors, of both sides

  /// Leaves the entry out of the comparison.
  void leave_out(std::uint32_t api);
  /// Whether all elements are exactly zero on one side, and not on the other.
  bool vanishes(std::uint32_t item) const;

  /// The scale of the loss at an entry; null where it changes nothing.
  const LossScale* scale_at(std::uint32_t api) const;
  measuring::Tolerance tolerance_of(std::uint32_t item, std::uint32_t golden) const;
  /// The error by the statistics of both items, within their precision; the item has `factor` times golden's
  /// value.
  measuring::Measure by_statistics_of(std::uint32_t item, std::uint32_t golden, double factor = 1) const;

  /// The two tensors that a call takes, if they are all that it takes as tensors, both have partners, and
  /// their order matters, as in a difference; else empty.
  std::vector<std::uint32_t> ordered_operands(std::uint32_t api, std::string_view operation) const;

  /// Whether two operands whose order matters have each other's contents, as in `b - a` for `a - b`.
  bool are_exchanged(std::uint32_t api, std::string_view operation) const;
  /// The entry of each side with a name, or kNone.
  std::uint32_t entry_named(std::string_view name) const;
  std::uint32_t golden_named(std::string_view name);
  /// The forward entry of a backward one, or kNone.
  std::uint32_t forward_of(std::uint32_t backward_api) const;
  /// The errors of a module, by the base of its entries' names. All of these entries are measured first. Null
  /// if the base has no entries.
  const ModuleErrors* module(std::string_view base);

 private:
  void measure_items(std::uint32_t api);
  void exchange_operands(std::uint32_t api);
  void leave_out_overwritten(std::uint32_t api, std::string_view operation);
  void leave_out_unmasked(std::uint32_t api);
  void add_to_module(std::uint32_t api, ModuleErrors& module);

  /// The error where one side has the item times the scale of the loss, or computed through it; nothing for
  /// other items.
  std::optional<measuring::Measure> without_scale(std::uint32_t item) const;
  /// The error from tensors; nothing where a pair has no tensors, so that its statistics are used.
  std::optional<measuring::Measure> from_tensors(std::uint32_t item) const;

  const measuring::MeasuredRank& rank_;
  const measuring::StatisticsPrecision& precision_;
  MeasureEntry measure_entry_;
  std::vector<std::uint32_t> row_of_;  // by item under test: its first row, or kNone
  TextIndex names_;
  TextIndex golden_names_;
  std::uint32_t golden_indexed_ = 0;  // how many entries of golden these are
  std::unordered_map<std::string_view, ModuleErrors> modules_;
  std::vector<ModuleErrors*> module_of_;  // by entry of the target; null: it counts for no module
  std::vector<bool> measured_;            // by entry under test
};

}  // namespace msprobe::diagnosis

// SPDX-License-Identifier: Apache-2.0
// How far the items of a rank are apart, before anyone is blamed for it. Who may stop early has them measured
// entry by entry, and no more than were asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnosis/imports.hpp"
#include "diagnosis/loss_scale.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "diagnosis/structure.hpp"
#include "dump/names.hpp"
#include "pairing/operations.hpp"
#include "support/text_pool.hpp"

namespace msprobe::diagnosis {

/// What the gradients of a module's parameters are judged by.
struct ModuleErrors {
  double e = 0;  // largest of its tensors, forward, and of the gradients of its outputs
  double b = 0;
  double hidden = 0;
  bool has_gradient = false;
  double gradient_norm = 0;  // of its output's gradient, and how many elements it has
  std::uint64_t gradient_elements = 0;
  double input_norm = 0;
  double u = 0;                        // largest of its tensors
  std::vector<std::uint32_t> entries;  // whose tensors these are
};

class ItemErrors {
 public:
  /// `lazily`: nothing is known of an entry and its items before it is asked for, and `measure_entry`, if
  /// given, measures its tensors then.
  ItemErrors(const measuring::MeasuredRank& rank, const StatisticsPrecision& precision, bool lazily,
             const MeasureEntry& measure_entry);

  /// An entry and its items, once.
  void measure(std::uint32_t api);

  std::vector<std::uint32_t> golden_item;  // by item under test
  std::optional<LossScale> loss_scale;     // taken out of what follows
  std::vector<float> e;                    // by item; NaN where nothing was measured
  std::vector<float> b;
  std::vector<float> hidden;                // by item: see Measure
  std::vector<std::uint8_t> by_statistics;  // by item: its tensors were not to be had, where others' were
  std::vector<std::uint8_t> blind;          // by item: see Measure
  std::vector<std::uint8_t> partial;        // by item: see Measure
  std::vector<std::uint8_t> other_uses;     // by item: one side says that its gradient is of other uses, too
  std::vector<std::uint8_t> unmasked;       // by entry: its gradient is another one by its recorder
  std::vector<float> output;                // by entry under test: largest e of its floating outputs
  std::vector<float> anything;              // of all its tensors
  std::vector<float> anything_b;
  std::vector<float> anything_hidden;  // of those that are not of half types
  std::vector<float> u;                // unit roundoff of the coarsest of its tensors, of both sides

  /// Nothing of the entry is compared.
  void leave_out(std::uint32_t api);

  /// Null where it changes nothing.
  const LossScale* scale_at(std::uint32_t api) const;
  Tolerance tolerance_of(std::uint32_t item, std::uint32_t golden) const;
  /// By their statistics, within what these can show; the item has `factor` times golden's value.
  Measure by_statistics_of(std::uint32_t item, std::uint32_t golden, double factor = 1) const;

  std::uint32_t entry_named(std::string_view name) const;
  /// The forward entry of a backward one, or kNone.
  std::uint32_t forward_of(std::uint32_t backward_api) const;
  /// By the base of its entries' names, all of which are measured; null if it has none.
  const ModuleErrors* module(std::string_view base);

 private:
  void measure_items(std::uint32_t api);
  void exchange_operands(std::uint32_t api);
  void leave_out_overwritten(std::uint32_t api, std::string_view operation);
  void leave_out_unmasked(std::uint32_t api);
  void add_to_module(std::uint32_t api, ModuleErrors& module);

  /// The same where one side has it times the scale of the loss, or through it.
  std::optional<Measure> without_scale(std::uint32_t item) const;
  /// From tensors; nothing where a pair has none, which then is measured by its statistics.
  std::optional<Measure> from_tensors(std::uint32_t item) const;

  const measuring::MeasuredRank& rank_;
  const StatisticsPrecision& precision_;
  MeasureEntry measure_entry_;
  std::vector<std::uint32_t> row_of_;  // by item under test: its first row, or kNone
  TextIndex names_;
  std::unordered_map<std::string_view, ModuleErrors> modules_;
  std::vector<ModuleErrors*> module_of_;  // by entry under test; null: it counts for none
  std::vector<bool> measured_;            // by entry under test
};

}  // namespace msprobe::diagnosis

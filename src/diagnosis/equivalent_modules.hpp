// SPDX-License-Identifier: Apache-2.0
// Calls of modules that hand on the same tensors on both sides, forward and backward, whatever they run
// inside: a difference inside them is another way to the same result, not an error.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnosis/item_errors.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

class EquivalentModules {
 public:
  EquivalentModules(const measuring::MeasuredRank& rank, ItemErrors& errors);

  /// The state of the run before an entry with evidence.
  struct Ahead {
    double error = 0;          // the largest error, which may be handed on
    bool other_calls = false;  // the sides run other operations there
    bool structure = false;    // the call of the entry differs in something other than a number
    bool wrong = false;        // rounding does not explain the error
  };

  /// The innermost module around an entry that hands on the same tensors on both sides: its path, or `the
  /// model` for the root; empty if no module does. `entry` is empty where golden alone has one. From then on,
  /// is_inside() is true for the entries in that module.
  std::string around(std::string_view entry, std::string_view golden_entry, const Ahead& ahead);
  /// Looks at the calls that take the output of the innermost module around an entry, or of the entry itself
  /// outside of modules. If all of them are in modules that hand on the same tensors, as where positions or
  /// rotations are counted from another number, it gives the path of the first; empty otherwise.
  std::string takers(std::string_view entry, std::string_view golden_entry, const Ahead& ahead);
  /// Whether the whole step hands on the same tensors: the gradients of all parameters and the outputs of all
  /// modules.
  bool is_step_equal(const Ahead& ahead);
  /// Whether the gradients of all parameters are equal and at least one is recorded.
  bool are_gradients_equal(const Ahead& ahead);
  /// Whether a call after the first backward, outside of modules, belongs to a way on which gradients get to
  /// the optimizers of both sides as the same. `order` is that of a finding.
  bool is_on_way_of_same_gradients(std::string_view entry, std::string_view golden_entry, std::uint64_t order,
                                   const Ahead& ahead);

  /// Whether the entry under test is inside a module that around() found.
  bool is_inside(std::string_view entry) const;

 private:
  struct Gradients {
    std::string_view path;  // of the module
    std::uint32_t api = 0;
  };

  bool is_equal(std::uint32_t item, const Ahead& ahead, double scale = 1) const;
  bool hands_on_the_same(std::uint32_t module, const Ahead& ahead);
  bool is_same_module(std::uint32_t module, const Ahead& ahead);
  std::string same_module_around(bool of_target, std::uint32_t api, const Ahead& ahead);
  bool modules_are_equal(const Ahead& ahead);
  bool puts_out_the_same(std::uint32_t module, const Ahead& ahead, bool& trained);
  bool gradients_are_equal(std::string_view path, const Ahead& ahead, bool& any);
  bool takes_same_gradients(const Ahead& ahead);
  void collect_gradients();
  static void drop_used_without_module(const dump::Side& side, const dump::Side& other,
                                       std::vector<Gradients>& alone);

  /// The forward calls that take a content, as (key, call), by key.
  using Taken = std::vector<std::pair<std::uint64_t, std::uint32_t>>;
  const Taken& taken_of(bool of_target);

  const measuring::MeasuredRank& rank_;
  ItemErrors& errors_;
  const dump::ConstructTable* construct_;  // may be null
  bool collected_ = false;
  /// From the first backward on, up to the optimizer.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> gradient_orders_;
  std::array<std::optional<Taken>, 2> takers_;  // of the target, of golden
  std::optional<double> taken_;                 // difference of the gradients that the optimizers take
  std::vector<Gradients> gradients_;            // of the target's parameters that have a partner
  std::vector<Gradients> alone_;
  std::vector<Gradients> golden_alone_;
  std::map<std::tuple<std::uint32_t, double, bool, bool>, bool>
      known_;                              // by the forward entry of a module and the state before it
  std::unordered_set<std::string> found_;  // module and call
};

}  // namespace msprobe::diagnosis

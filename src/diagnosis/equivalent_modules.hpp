// SPDX-License-Identifier: Apache-2.0
// Calls of modules that hand on the same on both sides, forward and backward, whatever they run inside: what
// differs in there is another way to the same, and no error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "diagnosis/item_errors.hpp"
#include "support/text_pool.hpp"

namespace msprobe::diagnosis {

class EquivalentModules {
 public:
  EquivalentModules(const measuring::MeasuredRank& rank, ItemErrors& errors);

  /// What is ahead of an entry with evidence.
  struct Ahead {
    double error = 0;          // the largest, which may be handed on
    bool other_calls = false;  // the sides run other operations there
    bool structure = false;    // what differs is how it is called, and no number among the arguments
    bool wrong = false;        // the error is no rounding
  };

  /// What hands on the same around an entry: the path of the innermost module that does, `the model` for the
  /// root; empty if none does. `entry` is empty where golden alone has one. What is inside counts as such
  /// from now on.
  std::string around(std::string_view entry, std::string_view golden_entry, const Ahead& ahead);
  /// Is what the step hands on the same, the gradients of all parameters, and what its modules put out?
  bool is_step_equal(const Ahead& ahead);
  /// Are the gradients of all parameters equal, of which there is one at least?
  bool are_gradients_equal(const Ahead& ahead);

  /// Is the entry under test inside of what was found?
  bool is_inside(std::string_view entry) const;

 private:
  struct Gradients {
    std::string_view path;  // of the module
    std::uint32_t api = 0;
  };

  bool is_equal(std::uint32_t item, const Ahead& ahead, double scale = 1) const;
  bool hands_on_the_same(std::uint32_t module, const Ahead& ahead);
  bool modules_are_equal(const Ahead& ahead);
  bool puts_out_the_same(std::uint32_t module, const Ahead& ahead, bool& trained);
  bool gradients_are_equal(std::string_view path, const Ahead& ahead, bool& any);
  void collect_gradients();
  std::uint32_t golden_named(std::string_view name);

  const measuring::MeasuredRank& rank_;
  ItemErrors& errors_;
  const dump::ConstructTable* construct_;  // may be null
  TextIndex golden_names_;
  bool golden_indexed_ = false;
  bool collected_ = false;
  std::vector<Gradients> gradients_;  // of parameters under test, with a partner
  std::vector<Gradients> alone_;
  std::vector<Gradients> golden_alone_;
  std::map<std::tuple<std::uint32_t, double, bool, bool>, bool>
      known_;                              // by forward entry of a module, and what is ahead
  std::unordered_set<std::string> found_;  // module and call
};

}  // namespace msprobe::diagnosis

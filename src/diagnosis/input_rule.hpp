// SPDX-License-Identifier: Apache-2.0
// Source: inputs that are wrong before an entry computes, and where they come from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "diagnosis/buffer_rule.hpp"
#include "diagnosis/one_sided_runs.hpp"
#include "diagnosis/parameter_rule.hpp"
#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class InputRule : WalkRule {
 public:
  InputRule(Walk& walk, OneSidedRuns& runs, ParameterRule& parameters, BufferRule& buffers)
      : WalkRule(walk), runs_(runs), parameters_(parameters), buffers_(buffers) {}

  void follow(EntryPair& entry);
  void examine(EntryPair& entry);
  void examine_module_outputs(EntryPair& entry);

 private:
  void judge(EntryPair& entry, std::uint32_t item);
  void prefer_partners(std::uint32_t item, std::uint32_t& from, std::uint32_t& golden_from) const;
  double type_of_users(std::uint32_t index);
  double of_parts(const EntryPair& entry) const;
  void judge_unknown(EntryPair& entry, std::uint32_t item, bool updates);
  std::string other_order(const EntryPair& entry, std::uint32_t from, std::uint32_t golden_from) const;
  void judge_passed_on(EntryPair& entry, std::uint32_t item, std::uint32_t from, std::uint32_t golden_from);
  /// Whether an earlier entry in the module was given a wrong input.
  bool is_wrong_in(std::string_view module) const;
  void offer_code(EntryPair& entry, std::uint32_t index, std::string text, std::string next);
  void offer(EntryPair& entry, std::uint32_t item, Finding found);
  std::uint64_t data_place(const EntryPair& entry, std::uint32_t item) const;
  void know_data(const EntryPair& entry, std::uint32_t item);
  std::optional<double> data_error(const EntryPair& entry, std::uint32_t item) const;
  bool is_judged_gradient(std::uint32_t index, std::uint32_t partner) const;
  bool may_be_data(const EntryPair& entry, std::uint32_t item);
  double share_of_largest(const EntryPair& entry, std::uint32_t item);
  bool is_tainted(const EntryPair& entry, std::uint32_t item) const;
  bool are_same_elements(std::uint32_t item) const;
  std::string last_call_before(const EntryPair& entry) const;
  std::string_view rearranged_from(const EntryPair& entry, std::uint32_t index) const;
  std::string module_that_makes(const EntryPair& entry, std::uint32_t item);

  OneSidedRuns& runs_;
  ParameterRule& parameters_;
  BufferRule& buffers_;
  /// The largest root mean square of golden's inputs, by operation and argument of the optimizer's calls.
  std::optional<std::map<std::string, double>> largest_taken_;
  std::optional<std::unordered_map<std::uint64_t, double>> types_of_users_;  // see types_of_users()
  bool data_differs_ = false;  // data differ, and that is evidence
};

}  // namespace msprobe::diagnosis

// SPDX-License-Identifier: Apache-2.0
// Decides which events are recorded: scope, list and risk level. (data_mode, which needs no names, is in
// Config.) A filter belongs to one session; the caller serializes calls from different threads.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/config.hpp"

namespace msprobe::collector {

/// Names are those of entries of dump.json. The order of calls decides, as events open and close windows:
/// forward: open_module, check (the input), check (output and parameters), close_module;
/// backward: open_module, check (all of it), close_module; APIs the same without open and close;
/// parameter gradients: check.
class Filter {
 public:
  /// Levels of operations, by the last part of their names.
  using Risks = std::map<std::string, RiskLevel, std::less<>>;

  explicit Filter(const Config& config, Risks own_risks = {});

  /// How likely a deviation in an API is to matter; `name` is an entry's, "Torch.matmul.0.forward" or
  /// "Torch.matmul".
  RiskLevel risk_of(std::string_view name) const;  // `all` for those of low risk
  /// Takes precedence over the table of operations.
  void set_risk(const std::string& operation, RiskLevel risk) {
    own_risks_.insert_or_assign(operation, risk);
  }

  void open_module(std::string_view entry);
  bool check(std::string_view entry);
  void close_module(std::string_view entry);
  /// Closes all windows.
  void next_step();

  /// Names of `scope`, `list` and `tensor_list` that no event had so far.
  std::vector<std::string> unmatched() const;
  /// Names of entries that came while there were such names; not all if there are very many.
  const std::set<std::string, std::less<>>& passed() const { return passed_; }

 private:
  bool listed(std::string_view entry) const;
  void close_scope(std::string_view entry);
  bool of_ended_module(std::string_view entry);
  void look_for_names(std::string_view entry);

  bool mix_ = false;
  bool by_risk_ = false;  // neither scope nor list
  RiskLevel risk_level_;
  Risks own_risks_;
  std::vector<std::string> scope_;
  std::vector<std::string> list_;
  std::vector<std::string> missing_scope_;  // that no event had so far
  std::vector<std::string> missing_list_;   // and of `tensor_list`
  std::set<std::string, std::less<>> passed_;
  bool in_scope_ = false;
  std::string ended_module_;                    // "Module.layers.0.": scope ended with its backward
  std::set<std::string, std::less<>> windows_;  // module calls named by `list` that have begun and not ended
};

}  // namespace msprobe::collector

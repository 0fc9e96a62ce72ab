// SPDX-License-Identifier: Apache-2.0
// The entries of both sides as the HTML report knows them: their names, what lies in what, who takes whose
// output, and which micro steps they are of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compare/imports.hpp"
#include "dump/construct_json.hpp"
#include "support/json_writer.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

inline constexpr std::uint32_t kNoEntry = UINT32_MAX;

/// Entries of both sides by one number for each name; those of the target keep their numbers.
class ReportEntries {
 public:
  explicit ReportEntries(const RankResult& result);

  std::uint32_t of_golden(std::uint32_t api);
  /// Where the target has what the reference calls otherwise; entries of the reference alone are themselves.
  std::uint32_t of_partner(std::uint32_t golden_api);
  /// kNoEntry if no entry has that name.
  std::uint32_t find(std::string_view name) const;

  /// Enclosing modules, as far as the files name them, which become entries too; micro steps and dataflow.
  void place(const dump::ConstructTable& construct, const dump::ConstructTable& golden);

  void add_to(JsonWriter& json) const;

 private:
  std::uint32_t number(std::string_view name);
  void find_parents(const dump::ConstructTable& construct, const dump::ConstructTable& golden);
  void find_micro_steps(const dump::ConstructTable& construct);
  void find_golden_flow(const dump::ConstructTable& golden);
  void add_flow(JsonWriter& json) const;
  void add_stacks(JsonWriter& json) const;

  const RankResult& result_;
  std::vector<std::string_view> names_;  // in the pools of the sides, or in the construct table
  std::unordered_map<std::string_view, std::uint32_t> index_;
  std::vector<std::uint32_t> golden_;
  std::vector<std::uint32_t> parents_;      // empty: no construct.json
  std::vector<std::uint32_t> micro_steps_;  // empty: one
  struct Edge {
    std::uint32_t consumer = 0;
    std::uint32_t producer = 0;
  };
  std::vector<Edge> flow_;         // of the target, by consumer
  std::vector<Edge> golden_flow_;  // with an entry of the reference alone on one end at least
  std::size_t of_rows_ = 0;
  std::size_t golden_only_ = 0;  // how many entries of the reference alone follow
};

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
// The entries of both sides in the HTML report: their names, the modules that contain them, the dataflow
// between them, and their micro steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dump/construct_json.hpp"
#include "support/json_writer.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

inline constexpr std::uint32_t kNoEntry = UINT32_MAX;

/// Entries of both sides, with one number for each name; those of the target keep their numbers.
class ReportEntries {
 public:
  explicit ReportEntries(const verdict::RankResult& result);

  std::uint32_t of_golden(std::uint32_t api);
  /// The entry of the target that golden names differently; an entry that golden alone has is itself.
  std::uint32_t of_partner(std::uint32_t golden_api);
  /// Returns kNoEntry if no entry has that name.
  std::uint32_t find(std::string_view name) const;

  /// Adds enclosing modules, which become entries too if the files name them; micro steps and dataflow.
  void place(const dump::ConstructTable& construct, const dump::ConstructTable& golden);

  void add_to(JsonWriter& json) const;

 private:
  std::uint32_t number(std::string_view name);
  void find_parents(const dump::ConstructTable& construct, const dump::ConstructTable& golden);
  void find_micro_steps(const dump::ConstructTable& construct);
  void find_golden_flow(const dump::ConstructTable& golden);
  void add_flow(JsonWriter& json) const;
  void add_stacks(JsonWriter& json) const;

  const verdict::RankResult& result_;
  std::vector<std::string_view> names_;  // views into the pools of the sides, or into the construct table
  std::unordered_map<std::string_view, std::uint32_t> index_;
  std::vector<std::uint32_t> golden_;
  std::vector<std::uint32_t> parents_;      // empty: no construct.json
  std::vector<std::uint32_t> micro_steps_;  // empty: there is only one
  struct Edge {
    std::uint32_t consumer = 0;
    std::uint32_t producer = 0;
  };
  std::vector<Edge> flow_;         // of the target, by consumer
  std::vector<Edge> golden_flow_;  // with an entry that golden alone has on at least one end
  std::size_t of_rows_ = 0;
  std::size_t golden_only_ = 0;  // how many entries that golden alone has follow
};

}  // namespace msprobe::compare

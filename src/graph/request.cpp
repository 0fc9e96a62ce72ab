// SPDX-License-Identifier: Apache-2.0
#include "graph/request.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "pairing/request.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// Reads `parallel_merge`: how the model of each side was split.
class MergeRequest {
 public:
  MergeRequest(const nlohmann::json& json, const std::string& file) : json_(json), file_(file) {
    if (!json.is_object()) refuse("must be an object with the sizes of npu, and of bench");
  }

  ParallelPlan plan(const std::string& side) const {
    const auto found = json_.find(side);
    if (found == json_.end() || !found->is_object())
      refuse(fmt::format("has no object {}, with rank_size, tp and pp", side));
    ParallelPlan plan;
    plan.rank_size = size(*found, side, "rank_size");
    plan.tp = size(*found, side, "tp");
    plan.pp = size(*found, side, "pp");
    if (has(*found, "vpp")) plan.vpp = size(*found, side, "vpp");
    if (!has(*found, "order")) return plan;
    const nlohmann::json& order = (*found)["order"];
    if (!order.is_string()) refuse(fmt::format("{}.order must be text", side));
    plan.order = order.get<std::string>();
    return plan;
  }

 private:
  static bool has(const nlohmann::json& side, const char* key) {
    const auto found = side.find(key);
    return found != side.end() && !found->is_null();
  }

  int size(const nlohmann::json& side, const std::string& name, const char* key) const {
    constexpr std::int64_t kMost = 1'000'000'000;
    if (!has(side, key)) refuse(fmt::format("{}.{} is missing", name, key));
    const nlohmann::json& value = side[key];
    // The JSON library reads a number beyond the signed range as a negative one.
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > kMost)
      refuse(fmt::format("{}.{} is not a valid size", name, key));
    return value.get<int>();
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw FormatError(display(file_), fmt::format("parallel_merge {}", why));
  }

  const nlohmann::json& json_;
  const std::string& file_;
};

}  // namespace

GraphRequest read_graph_request(const std::string& path) {
  const pairing::RequestFile request(path);
  // A null means the same as a missing key.
  const auto path_at = [&](const char* key) {
    const auto found = request.json().find(key);
    return found != request.json().end() && found->is_null() ? std::string() : request.text(key, false);
  };
  GraphRequest result;
  result.target = path_at("npu_path");
  if (result.target.empty()) throw FormatError(display(path), "Missing npu_path");
  result.golden = path_at("bench_path");
  result.print_rows = request.flag("is_print_compare_log", result.print_rows);
  if (const auto merge = request.json().find("parallel_merge");
      merge != request.json().end() && !merge->is_null()) {
    const MergeRequest sides(*merge, path);
    result.plans.push_back(sides.plan("npu"));
    if (!result.golden.empty()) result.plans.push_back(sides.plan("bench"));
  }
  return result;
}

}  // namespace msprobe::graph

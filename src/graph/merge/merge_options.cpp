// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/merge_options.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

int size_of(std::string_view option, const std::string& text) {
  const auto value = whole_number<int>(text);
  if (!value)
    throw UsageError(fmt::format("{} {}: no number that a model can be split by", option, display(text)));
  return *value;
}

/// The value of each side; nothing for no value at all.
std::vector<int> sizes_of(std::string_view option, const std::vector<std::string>& texts, std::size_t sides) {
  if (!texts.empty() && texts.size() != sides) {
    throw UsageError(fmt::format(
        "{} needs {}", option, sides == 1 ? "one value" : "two values, of the target and of the reference"));
  }
  std::vector<int> sizes;
  for (const std::string& text : texts) sizes.push_back(size_of(option, text));
  return sizes;
}

}  // namespace

void MergeOptions::declare(OptionList& options) {
  constexpr const char* kHeading = "Ranks of one model merged into one graph";
  options.add("--rank_size", rank_size_, "How many ranks -tp holds; merges them (a second value: -gp)")
      .argument("N")
      .values(1, 2)
      .group(kHeading);
  options.add("--tp", tp_, "Size of tensor parallelism").argument("N").values(1, 2).group(kHeading);
  options.add("--pp", pp_, "Stages of the pipeline").argument("N").values(1, 2).group(kHeading);
  options.add("--vpp", vpp_, "Parts of the model that a stage holds")
      .argument("N")
      .values(1, 2)
      .default_text("1")
      .group(kHeading);
  options.add("--order", order_, "Dimensions of the split, the one of neighbouring ranks first")
      .argument("NAMES")
      .values(1, 2)
      .default_text(ParallelPlan().order)
      .group(kHeading);
  options
      .add("--file_type", file_type_,
           "db; json: the merged model as a dump of its own; vis: the files of releases 8.x")
      .one_of({"db", "json", "vis"})
      .show_default()
      .group(kHeading);
}

std::vector<ParallelPlan> MergeOptions::sides(std::size_t count) const {
  for (const auto& [name, texts] : {std::pair("--rank_size", &rank_size_), {"--tp", &tp_}, {"--pp", &pp_}}) {
    if (texts->empty())
      throw UsageError(fmt::format("{} is missing: ranks are merged by --rank_size, --tp and --pp", name));
  }
  const std::vector<int> rank_sizes = sizes_of("--rank_size", rank_size_, count);
  const std::vector<int> tps = sizes_of("--tp", tp_, count);
  const std::vector<int> pps = sizes_of("--pp", pp_, count);
  const std::vector<int> vpps = sizes_of("--vpp", vpp_, count);
  if (!order_.empty() && order_.size() != count) throw UsageError("--order needs a value for each side");
  std::vector<ParallelPlan> plans;
  for (std::size_t i = 0; i < count; ++i) {
    ParallelPlan& plan = plans.emplace_back();
    plan.rank_size = rank_sizes[i];
    plan.tp = tps[i];
    plan.pp = pps[i];
    if (!vpps.empty()) plan.vpp = vpps[i];
    if (!order_.empty()) plan.order = order_[i];
  }
  return plans;
}

}  // namespace msprobe::graph

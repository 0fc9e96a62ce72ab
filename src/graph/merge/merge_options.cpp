// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/merge_options.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

int size_of(std::string_view option, const std::string& text) {
  const auto value = whole_number<int>(text);
  if (!value) throw UsageError(fmt::format("{} {}: not a valid size", option, display(text)));
  return *value;
}

/// The value for each side; empty if the option has no value.
std::vector<int> sizes_of(std::string_view option, const std::vector<std::string>& texts, std::size_t sides) {
  if (!texts.empty() && texts.size() != sides) {
    throw UsageError(
        fmt::format("{} needs {}", option,
                    sides == 1 ? "one value" : "two values, for the target and for the golden dump"));
  }
  std::vector<int> sizes;
  for (const std::string& text : texts) sizes.push_back(size_of(option, text));
  return sizes;
}

}  // namespace

void RankMergeOptions::declare(OptionList& options) {
  const auto grouped = [](Option option) { option.group("Ranks of one model merged into one graph"); };
  grouped(
      options.add("--rank_size=N", rank_size_, "Merge this number of ranks in -tp (second value: in -gp)")
          .details("With --tp and --pp the ranks are merged into one model.\n"
                   "The folder must contain only <rank0>, <rank1> and so on (or <step> folders of such).\n"
                   "With -gp every option here but the last takes two values, for -tp and -gp; the merged "
                   "models are compared, however each was split.")
          .values(1, 2));
  grouped(options.add("--tp=N", tp_, "Size of tensor parallelism").values(1, 2));
  grouped(options.add("--pp=N", pp_, "Number of pipeline stages").values(1, 2));
  grouped(options.add("--vpp=N", vpp_, "Number of model chunks per stage").values(1, 2).default_text("1"));
  grouped(
      options
          .add("--order=NAMES", order_, "Order of the parallel dimensions, that of neighbouring ranks first")
          .details("It defines the groups where the communication in the dump does not.")
          .values(1, 2)
          .default_text(ParallelPlan().order));
  grouped(options
              .add("--file_type", file_type_,
                   "db; json: the merged model as a dump; vis: the files of releases 8.x")
              .details("<json> is for a single run and goes to <stepN/rankN> of the output folder.")
              .one_of({"db", "json", "vis"}));
}

std::vector<ParallelPlan> RankMergeOptions::sides(std::size_t count) const {
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

// SPDX-License-Identifier: Apache-2.0
#include "compare/dump_tree/rank.hpp"

#include <fmt/format.h>

#include "compare/pairing.hpp"
#include "compare/result/tensor_rows.hpp"
#include "compare/result/verdict.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

Mode choose_mode(const Side& target, const Side& golden) {
  const auto check = [](const Side& side, std::string_view name) {
    if (side.header.task.empty())
      throw FormatError(display(side.json), fmt::format("'task' of the {} side is missing or empty", name));
    if (!side.header.has_data)
      throw FormatError(display(side.json), fmt::format("'data' of the {} side is missing", name));
  };
  check(target, "target");
  check(golden, "golden");
  const std::string& task = target.header.task;
  if (task != golden.header.task) {
    throw FormatError(fmt::format("the dump tasks differ: {} has '{}', {} has '{}'", display(target.json),
                                  display(task), display(golden.json), display(golden.header.task)));
  }
  if (task == "tensor") return Mode::tensor;
  if (task != "statistics" && task != "structure") {
    throw FormatError(
        display(target.json),
        fmt::format("task '{}' cannot be compared: only tensor and statistics can", display(task)));
  }
  if (target.has_md5 != golden.has_md5) {
    throw FormatError(
        fmt::format("only {} has checksums: both sides must be dumped with statistics, or both with md5",
                    display(target.has_md5 ? target.json : golden.json)));
  }
  return target.has_md5 ? Mode::md5 : Mode::statistics;
}

}  // namespace

RankResult compare_ranks(const RankPair& pair, const RankOptions& options, const RankTraits& traits,
                         const Rules& rules, Progress* progress) {
  if (dump::is_debug_json(pair.target.json) != dump::is_debug_json(pair.golden.json)) {
    throw FormatError(fmt::format("a debug.json is compared with a debug.json only: {}, {}",
                                  display(pair.target.json), display(pair.golden.json)));
  }
  RankResult result;
  result.step = pair.step;
  result.rank = pair.target.label;
  result.traits = traits;
  LoadOptions target_options{.stacks = options.stacks, .stack_json = options.stack_json};
  if (options.first_difference) target_options.communication = &rules.communication;
  const LoadOptions golden_options{.stacks = false, .stack_json = {}};
  parallel_for(2, [&](std::size_t side) {
    if (side == 0) result.target = load_side(pair.target, target_options);
    if (side == 1) result.golden = load_side(pair.golden, golden_options);
  });
  result.target_construct = std::make_shared<dump::ConstructBeside>(pair.target.json);
  result.golden_construct = std::make_shared<dump::ConstructBeside>(pair.golden.json);
  result.mode = choose_mode(result.target, result.golden);
  if (options.first_difference && result.mode == Mode::tensor) result.mode = Mode::statistics;
  if (options.backend) {
    pair_consistent_rows(result, *options.backend, traits.pairing);
  } else {
    pair_rows(result, options.match, traits.pairing, rules);
  }
  if (result.mode == Mode::tensor) compare_tensor_rows(result, options.print_rows, progress);
  if (!options.first_difference) judge(result, rules);
  return result;
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
// Ranks merged to one model: tensor and pipeline parallel, virtual stages, data-parallel copies, alone or
// beside another run, as a data base and as JSON. The choices are the sizes of all of them, and the rules.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "fuzz_checkpoint.hpp"
#include "fuzz_database.hpp"
#include "fuzz_facts.hpp"
#include "fuzz_graph_ranks.hpp"
#include "fuzz_target.hpp"
#include "graph/build.hpp"
#include "support/error.hpp"

namespace msprobe {
namespace {

constexpr std::size_t kSplitChoices = 7;
constexpr std::size_t kSplitFacts = 2048;

graph::ParallelPlan plan_of(const ModelSplit& split) {
  return {.rank_size = static_cast<int>(split.ranks()),
          .tp = static_cast<int>(split.tp),
          .pp = static_cast<int>(split.pp),
          .vpp = static_cast<int>(split.vpp)};
}

}  // namespace

FUZZ_TARGET(graph_merge)(const std::uint8_t* data, std::size_t size) {
  namespace fs = std::filesystem;
  static const FuzzFolder place;
  Facts facts(data, size, kSplitChoices, kSplitFacts);
  ModelSplit split;
  split.tp = 1 + facts.choose(2);
  split.pp = 1 + facts.choose(3);
  const std::size_t copies = 1 + facts.choose(2);
  const std::size_t chunks = 1 + facts.choose(2);
  split.dp = split.tp * split.pp > 2 ? 1 : copies;
  split.vpp = split.pp > 1 ? chunks : 1;
  split.layers = 1 + facts.choose(2);
  split.backward = facts.choose(2) == 1;
  const std::size_t how = facts.choose(16);
  const bool as_json = (how & 2) != 0;
  graph::GraphOptions options;
  options.target = place.path() + "/target";
  options.output = place.path() + "/out";
  options.overflow_check = true;
  write_ranks(facts, split, options.target);
  std::vector<graph::ParallelPlan> plans = {plan_of(split)};
  if (!as_json && (how & 4) != 0) {
    options.golden = place.path() + "/golden";
    ModelSplit whole = split;
    if ((how & 8) != 0) whole.tp = 1;
    write_ranks(facts, whole, options.golden);
    plans.push_back(plan_of(whole));
  }
  if ((how & 1) != 0) take_python_rules(options);
  bool made = false;
  try {
    const graph::GraphResult result = graph::build_merged(options, plans, as_json);
    made = true;
    if (!fs::exists(result.file)) __builtin_trap();
    if (!as_json) WrittenDatabase(result.file).check_graphs();
  } catch (const FormatError&) {
  } catch (const IoError&) {
  } catch (const UsageError&) {  // checksums, models that do not go together
  }
  if (!made && facts.all_right()) __builtin_trap();
  // Nothing half written.
  if (!made && fs::exists(options.output)) {
    for (const auto& file : fs::recursive_directory_iterator(options.output)) {
      if (file.is_regular_file()) __builtin_trap();
    }
  }
  for (const char* folder : {"/target", "/golden", "/out"}) fs::remove_all(place.path() + folder);
}

}  // namespace msprobe

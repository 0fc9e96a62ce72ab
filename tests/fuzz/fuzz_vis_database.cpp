// SPDX-License-Identifier: Apache-2.0
// Ranks one by one in a data base for the viewer, or in the files of releases 8.x, alone or beside another
// run.
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "fuzz_checkpoint.hpp"
#include "fuzz_database.hpp"
#include "fuzz_facts.hpp"
#include "fuzz_graph_ranks.hpp"
#include "fuzz_target.hpp"
#include "graph/build.hpp"
#include "support/error.hpp"

namespace msprobe {
namespace {

constexpr std::size_t kDatabaseChoices = 4;
constexpr std::size_t kDatabaseFacts = 1024;

}  // namespace

FUZZ_TARGET(vis_database)(const std::uint8_t* data, std::size_t size) {
  namespace fs = std::filesystem;
  static const FuzzFolder place;
  Facts facts(data, size, kDatabaseChoices, kDatabaseFacts);
  ModelSplit split;
  split.tp = 1 + facts.choose(2);
  split.calls = 1 + facts.choose(2);
  split.backward = facts.choose(2) == 1;
  const std::size_t how = facts.choose(16);
  graph::GraphOptions options;
  options.target = place.path() + "/target";
  options.output = place.path() + "/out";
  options.overflow_check = (how & 1) != 0;
  options.as_vis = (how & 2) != 0;
  write_ranks(facts, split, options.target + "/step0");
  if ((how & 4) != 0) {
    options.golden = place.path() + "/golden";
    write_ranks(facts, split, options.golden + "/step0");
  }
  if ((how & 8) != 0) take_python_rules(options);
  bool made = false;
  try {
    const graph::GraphResult result = graph::build_graph(options);
    made = result.ranks == split.ranks();
    if (result.ranks + result.problems.size() < split.ranks()) __builtin_trap();
    if (result.ranks > 0 && !options.as_vis) WrittenDatabase(result.file).check_graphs();
  } catch (const FormatError&) {
  } catch (const IoError&) {
  } catch (const UsageError&) {
  }
  if (!made && facts.all_right()) __builtin_trap();
  for (const char* folder : {"/target", "/golden", "/out"}) fs::remove_all(place.path() + folder);
}

}  // namespace msprobe

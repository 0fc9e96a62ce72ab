// SPDX-License-Identifier: Apache-2.0
// Ranks as a graph, from their files to the data base: an input is construct.json, dump.json and stack.json
// of each rank, with a mark between files, behind a byte that says by whose rules, and whether the ranks are
// merged (2: as shards, 4: as stages of a pipeline; 8: the last of them is the reference).
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_checkpoint.hpp"
#include "fuzz_graph_ranks.hpp"
#include "fuzz_target.hpp"
#include "graph/build.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"

namespace {

void build(const msprobe::graph::GraphOptions& options, std::size_t ranks) {
  try {
    const msprobe::graph::GraphResult result = msprobe::graph::build_graph(options);
    if (result.ranks + result.problems.size() != ranks) __builtin_trap();
    if (result.ranks > 0 && !std::filesystem::exists(result.file)) __builtin_trap();
  } catch (const msprobe::FormatError&) {
  } catch (const msprobe::IoError&) {  // a rank without dump.json
  }
}

/// Ranks as one model, alone or beside the last of them.
void merge(msprobe::graph::GraphOptions options, std::size_t ranks, std::uint8_t how) {
  namespace fs = std::filesystem;
  const auto plan = [&](std::size_t count) {
    const auto size = static_cast<int>(count);
    const bool stages = (how & 4) != 0;
    return msprobe::graph::ParallelPlan{.rank_size = size, .tp = stages ? 1 : size, .pp = stages ? size : 1};
  };
  std::vector<msprobe::graph::ParallelPlan> plans = {plan(ranks)};
  if ((how & 8) != 0 && ranks > 1) {
    options.golden = options.target + "_whole";
    fs::create_directories(options.golden);
    fs::rename(options.target + "/rank" + std::to_string(ranks - 1), options.golden + "/rank0");
    plans = {plan(ranks - 1), plan(1)};
  }
  try {
    const msprobe::graph::GraphResult result = msprobe::graph::build_merged(options, plans, false);
    if (!fs::exists(result.file)) __builtin_trap();
  } catch (const msprobe::FormatError&) {
  } catch (const msprobe::IoError&) {
  } catch (const msprobe::UsageError&) {  // checksums, models that do not go together
  }
  fs::remove_all(options.target + "_whole");
}

}  // namespace

FUZZ_TARGET(graph)(const std::uint8_t* data, std::size_t size) {
  namespace fs = std::filesystem;
  static const msprobe::FuzzFolder folder;
  constexpr std::size_t kFiles = 3;
  constexpr const char* kNames[kFiles] = {"construct.json", "dump.json", "stack.json"};
  if (size == 0) return;
  const std::vector<std::string_view> files = msprobe::files_of(data + 1, size - 1);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string rank = folder.path() + "/dump/rank" + std::to_string(i / kFiles);
    fs::create_directories(rank);
    msprobe::OutputFile file(rank + "/" + kNames[i % kFiles]);
    file.write(files[i]);
    file.commit();
  }
  msprobe::graph::GraphOptions options;
  options.target = folder.path() + "/dump";
  options.output = folder.path() + "/out";
  options.overflow_check = true;
  if ((data[0] & 1) != 0) msprobe::take_python_rules(options);
  const std::size_t ranks = (files.size() + kFiles - 1) / kFiles;
  if ((data[0] & 6) != 0) {
    merge(options, ranks, data[0]);
  } else {
    build(options, ranks);
  }
  fs::remove_all(options.target);
  fs::remove_all(options.output);
}

// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/gather.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "unit/support/scratch_directory.hpp"

namespace msprobe::monitor_gather_test {

using namespace msprobe::monitor;
using test::ScratchDirectory;

namespace {

/// A run of one tensor that has these statistics, all of them 1.
std::string run_with(const ScratchDirectory& scratch, const std::string& name, const std::string& quantity,
                     const std::vector<std::string>& statistics) {
  std::string head = "vpp_stage,name,step";
  std::string row = "0,w,0";
  for (const std::string& statistic : statistics) {
    head += "," + statistic;
    row += ",1";
  }
  const std::string folder = scratch / name + "/rank_0";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + quantity + "_0-0.csv") << head << '\n' << row << '\n';
  return scratch / name;
}

std::vector<std::string> shown(const std::string& first, const std::string& second) {
  ReportOptions options;
  options.first = first;
  options.second = second;
  std::vector<std::string> names;
  for (const QuantityRows& block : gather(options, nullptr).blocks) {
    for (const PackedStatistic& statistic : block.statistics)
      names.push_back(block.quantity + " " + statistic.name);
  }
  return names;
}

}  // namespace

TEST_CASE("a report shows the statistics of both runs, whichever has more") {
  const ScratchDirectory scratch;
  const std::string few = run_with(scratch, "few", "actv", {"norm", "min"});
  const std::string others = run_with(scratch, "others", "actv", {"max", "norm", "nans"});
  CHECK(shown(few, others) == std::vector<std::string>{"actv norm", "actv min", "actv max", "actv nans"});
  CHECK(shown(others, few) == std::vector<std::string>{"actv max", "actv norm", "actv nans", "actv min"});
}

TEST_CASE("a report shows a quantity that the second run alone has") {
  const ScratchDirectory scratch;
  const std::string a = run_with(scratch, "a", "actv", {"norm"});
  const std::string b = run_with(scratch, "b", "grad_reduced", {"min", "norm"});
  CHECK(shown(a, b) == std::vector<std::string>{"actv norm", "grad_reduced min", "grad_reduced norm"});
}

}  // namespace msprobe::monitor_gather_test

// SPDX-License-Identifier: Apache-2.0
#include "dump/tree.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "support/error.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::dump_tree_test {

namespace fs = std::filesystem;
using namespace msprobe;

namespace {

class Scratch : public test::ScratchDirectory {
 public:
  void dump(const std::string& folder) const { put(folder + "/dump.json", "{}"); }
};

std::vector<std::string> labels(const dump::StepDump& step) {
  std::vector<std::string> names;
  for (const auto& rank : step.ranks) names.push_back(rank.label);
  return names;
}

}  // namespace

TEST_CASE("rank folders by number, others left aside") {
  Scratch scratch;
  for (const char* name : {"s/rank10", "s/rank2", "s/rank0", "s/rank01", "s/junk", "s/proc77", "s/rank"})
    scratch.dump(name);
  const dump::Tree tree = dump::discover(scratch / "s/");
  CHECK(tree.kind == dump::TreeKind::step);
  CHECK(labels(tree.steps[0]) == std::vector<std::string>{"rank", "rank0", "rank2", "rank10"});
  CHECK(tree.steps[0].ranks[3].number == 10);
}

TEST_CASE("a dump root lists its steps by number") {
  Scratch scratch;
  for (const char* name : {"d/step10/rank0", "d/step2/proc123", "d/other/rank0"}) scratch.dump(name);
  fs::create_directories(scratch / "d/step3");
  const dump::Tree tree = dump::discover(scratch / "d");
  CHECK(tree.kind == dump::TreeKind::root);
  REQUIRE(tree.steps.size() == 2);
  CHECK(tree.steps[0].label == "step2");
  CHECK(labels(tree.steps[0]) == std::vector<std::string>{"rank0"});
  CHECK(tree.steps[1].label == "step10");
}

TEST_CASE("a rank folder and a file") {
  Scratch scratch;
  scratch.dump("rank3");
  CHECK(dump::discover(scratch / "rank3").kind == dump::TreeKind::rank);
  CHECK(dump::discover(scratch / "rank3").steps[0].ranks[0].label == "rank3");
  const dump::Tree file = dump::discover(scratch / "rank3/dump.json");
  CHECK(file.kind == dump::TreeKind::file);
  CHECK(file.steps[0].ranks[0].directory == scratch / "rank3");
}

TEST_CASE("what is no dump is said so") {
  Scratch scratch;
  CHECK_THROWS_WITH_AS(dump::discover(scratch / "nowhere"), doctest::Contains("nowhere: "), IoError);
  fs::create_directories(scratch / "empty");
  CHECK_THROWS_WITH_AS(dump::discover(scratch / "empty"), doctest::Contains("no dump here"), FormatError);
  scratch.dump("two/proc1");
  scratch.dump("two/proc2");
  CHECK_THROWS_WITH_AS(dump::discover(scratch / "two"), doctest::Contains("several proc folders"),
                       FormatError);
}

}  // namespace msprobe::dump_tree_test

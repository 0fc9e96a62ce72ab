// SPDX-License-Identifier: Apache-2.0
#include "dump/look.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "unit/support/scratch_directory.hpp"

namespace msprobe::dump_look_test {

using namespace msprobe;
using dump::Layout;

namespace {

void put(const test::ScratchDirectory& scratch, const std::string& file, const std::string& text = "{}") {
  const std::string path = scratch / file;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  test::put_file(path, text);
}

}  // namespace

TEST_CASE("look: a dump, whatever part of it is named") {
  test::ScratchDirectory scratch;
  put(scratch, "d/step0/rank0/dump.json");
  for (const char* path : {"d", "d/step0", "d/step0/rank0", "d/step0/rank0/dump.json"}) {
    CAPTURE(path);
    const dump::Look look = dump::look_at(scratch / path);
    CHECK(look.layout == Layout::tree);
    REQUIRE(look.tree.tree);
    CHECK(look.tree.tree->steps[0].ranks[0].json == scratch / "d/step0/rank0/dump.json");
  }
}

TEST_CASE("look: arrays that were saved one by one, with step, rank, micro step and id") {
  test::ScratchDirectory scratch;
  for (const char* file : {"step0/rank1/x.npy", "step0/rank1/x_7.npy", "step2/rank0/micro_step3/x.5.npy",
                           "step2/rank0/micro_step3/x_5.npy", "step2/rank0/micro_stepx/y.npy",
                           "stepx/rank0/y.npy", "step0/y.npy", "step0/rank1/y.txt"}) {
    put(scratch, "data/tag/" + std::string(file));
  }
  const dump::Look look = dump::look_at(scratch.path());
  CHECK(look.layout == Layout::saved_arrays);
  REQUIRE(look.saved.tags.size() == 1);
  std::vector<dump::SavedKey> keys;
  for (const auto& [key, file] : look.saved.tags.at("tag")) keys.push_back(key);
  CHECK(keys == std::vector<dump::SavedKey>{{0, 1, 0, 0}, {0, 1, 0, 7}, {2, 0, 3, 0}, {2, 0, 3, 5}});
  CHECK(dump::look_at(scratch / "data").layout == Layout::none);
}

TEST_CASE("look: a static-graph dump, and links in a circle") {
  test::ScratchDirectory scratch;
  put(scratch, "g/rank_1/Net/0/2/statistic.csv");
  put(scratch, "g/rank_0/Net/0/1/Add.op.0.0.1.output.0.F.npy");
  put(scratch, "g/rank_0/Net/0/notes/readme.txt");
  const dump::Look look = dump::look_at(scratch / "g/");
  CHECK(look.layout == Layout::static_graph);
  REQUIRE(look.graph.folders.size() == 2);
  CHECK(look.graph.folders.at({0, 1}) == std::vector<std::string>{scratch / "g/rank_0/Net/0/1"});
  CHECK(look.graph.folders.at({1, 2}) == std::vector<std::string>{scratch / "g/rank_1/Net/0/2"});
  std::filesystem::create_directory_symlink(scratch.path(), scratch / "g/circle");
  const dump::Look circle = dump::look_at(scratch / "g");
  CHECK(circle.layout == Layout::none);
  CHECK(circle.graph.problem.find("nested deeper than") != std::string::npos);
}

TEST_CASE("look: nothing that is known, with the reason") {
  test::ScratchDirectory scratch;
  const dump::Look nowhere = dump::look_at(scratch / "nowhere");
  CHECK(nowhere.layout == Layout::none);
  CHECK(nowhere.tree.unreadable);
  CHECK(nowhere.tree.problem.find("nowhere: ") != std::string::npos);
  put(scratch, "two/proc1/dump.json");
  put(scratch, "two/proc2/dump.json");
  const dump::Look two = dump::look_at(scratch / "two");
  CHECK(two.layout == Layout::none);
  CHECK_FALSE(two.tree.unreadable);
  CHECK(two.tree.problem.find("several proc folders") != std::string::npos);
  put(scratch, "data/tag/readme.txt");
  CHECK(dump::look_at(scratch.path()).layout == Layout::none);
}

}  // namespace msprobe::dump_look_test

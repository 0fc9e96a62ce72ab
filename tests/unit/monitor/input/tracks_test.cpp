// SPDX-License-Identifier: Apache-2.0
#include "monitor/input/tracks.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>

#include "support/error.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::monitor_tracks_test {

using namespace msprobe;
using namespace msprobe::monitor;

namespace {

class Trees {
 public:
  void put(const std::string& folder, const std::string& name, const std::string& text, int age_s = 0) const {
    std::filesystem::create_directories(scratch_ / folder);
    const std::string path = scratch_ / (folder + "/" + name);
    test::put_file(path, text);
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(age_s));
  }
  std::string path() const { return scratch_.path(); }

 private:
  test::ScratchDirectory scratch_;
};

constexpr const char* kHead = "vpp_stage,name,step,norm,min\n";

TEST_CASE("ranks of both layouts are found, the newest folder of a rank is taken") {
  const Trees trees;
  trees.put("Jan02_00-00-00-rank0-00000000", "actv_0-0.csv", kHead, 500);
  trees.put("Jan01_00-00-00-rank0-00000000", "actv_10-19.csv", kHead, 10);
  trees.put("Jan01_00-00-00-rank0-00000000", "actv_2-9.csv", kHead, 10);
  trees.put("Jan01_00-00-00-rank0-00000000", "stack_info.csv", "x\n", 10);
  trees.put("Jan01_00-00-00-rank12-00000000", "grad_reduced_0-0.csv", kHead);
  trees.put("rank_3", "module_step0-99.csv", kHead);
  trees.put("not_a_rank", "actv_0-0.csv", kHead);
  const MonitorTree tree = find_tree(trees.path());
  REQUIRE(tree.ranks.size() == 3);
  CHECK(tree.ranks[0].time == "Jan01_00-00-00");
  REQUIRE(tree.ranks[0].files.size() == 2);
  CHECK(tree.ranks[0].files[0].begin == 2);
  CHECK(tree.ranks[0].files[1].begin == 10);
  CHECK(tree.ranks[1].rank == 3);
  CHECK(tree.ranks[1].files[0].prefix == "module");
  CHECK(tree.ranks[2].rank == 12);
  REQUIRE(tree.warnings.size() == 1);
  CHECK(tree.warnings[0].find("rank 0 has 2 folders") == 0);

  const MonitorTree late = find_tree(trees.path(), {"Jan02_00-00-00", ""});
  REQUIRE(late.ranks.size() == 1);
  CHECK(late.ranks[0].time == "Jan02_00-00-00");
  CHECK(find_tree(tree.ranks[2].path).ranks.size() == 1);
  CHECK(test::complaint_about(trees.path() + "/not_a_rank", [&] {
          find_tree(trees.path() + "/not_a_rank");
        }).find("has no output") != std::string::npos);
  CHECK_THROWS_AS(find_tree(trees.path(), {"2024-01-01", ""}), UsageError);
  CHECK_THROWS_AS(find_tree(trees.path(), {"Jan02_00-00-00", "Jan01_00-00-00"}), UsageError);
}

TEST_CASE("times of folders' names") {
  CHECK(folder_time("Jan01_00-00-00") == 0);
  CHECK(folder_time("feb01_01-02-03") == ((31 * 24 + 1) * 60 + 2) * 60 + 3);
  for (const char* wrong : {"", "Jan01", "Jan32_00-00-00", "Foo01_00-00-00", "Jan01_24-00-00",
                            "Jan01-00-00-00", "Jan01_00-00-000", "Jan 1_00-00-00"}) {
    CAPTURE(wrong);
    CHECK_FALSE(folder_time(wrong).has_value());
  }
}

TEST_CASE("tracks join files, order steps, and keep the last of what came twice") {
  const Trees trees;
  trees.put("rank_0", "grad_reduced_0-1.csv",
            std::string(kHead) + "0,a,1,1.0,2.0\n0,b,1,3.0,4.0\n0,a,0,5.0,6.0\n");
  trees.put("rank_0", "grad_reduced_2-3.csv",
            "vpp_stage,name,step,max,norm\n0,a,2,7.0,8.0\n0,a,1,9.0,10.0\n0,c,2,0.5,0.25\n");
  trees.put("rank_0", "grad_reduced_4-5.csv", "no table\n");
  const MonitorTree tree = find_tree(trees.path());
  const Tracks tracks = read_tracks(tree.ranks.at(0), "grad_reduced");
  CHECK(tracks.statistics == std::vector<std::string>{"norm", "min", "max"});
  REQUIRE(tracks.tracks.size() == 3);
  const Track& a = tracks.tracks[0];
  CHECK(a.name == "a");
  CHECK(a.steps == std::vector<std::int64_t>{0, 1, 2});
  CHECK(a.values[0] == std::vector<double>{5, 10, 8});
  CHECK(a.values[1][0] == 6);
  CHECK(std::isnan(a.values[1][1]));
  CHECK(std::isnan(a.values[1][2]));
  CHECK(std::isnan(a.values[2][0]));
  CHECK(a.values[2][1] == 9);
  CHECK(tracks.tracks[2].values[2] == std::vector<double>{0.5});
  REQUIRE(tracks.warnings.size() == 1);
  CHECK(tracks.warnings[0] == "1 row has a repeated step: the last one is used");
  REQUIRE(tracks.problems.size() == 1);
  CHECK(tracks.problems[0].find("is not a table of a training monitor") != std::string::npos);

  const Tracks norms =
      read_tracks(tree.ranks.at(0), "grad_reduced", [](std::string_view name) { return name == "norm"; });
  CHECK(norms.statistics == std::vector<std::string>{"norm"});
  CHECK(norms.tracks[0].values == std::vector<std::vector<double>>{{5, 10, 8}});
}

TEST_CASE("a row without a tensor makes a track without steps") {
  const Trees trees;
  trees.put("rank_0", "actv_grad_0-9.csv",
            "vpp_stage,name,step,micro_step,norm,shape,dtype\n0,.input,0,0,nan,nan,nan\n0,a,0,0,nan,[1],"
            "torch.float32\n");
  const Tracks tracks = read_tracks(find_tree(trees.path()).ranks.at(0), "actv_grad");
  REQUIRE(tracks.tracks.size() == 2);
  CHECK(tracks.tracks[0].steps.empty());
  CHECK(tracks.tracks[1].steps.size() == 1);
}

}  // namespace
}  // namespace msprobe::monitor_tracks_test

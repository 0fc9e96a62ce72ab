// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "compare/dump_tree/dump_tree.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_plan_test {

using namespace msprobe;
using namespace msprobe::compare;
using Lines = std::vector<std::string>;

namespace {

/// Dumps under `t` and `g` of a new folder.
class Dumps {
 public:
  Dumps(const Lines& target, const Lines& golden) {
    set_log_level(LogLevel::quiet);
    for (const std::string& name : target) put("t/" + name);
    for (const std::string& name : golden) put("g/" + name);
  }
  ~Dumps() { set_log_level(LogLevel::normal); }

  RankPairs plan(const std::string& target = "t", const std::string& golden = "g") const {
    return pair_ranks(dump::discover(scratch_ / target), dump::discover(scratch_ / golden));
  }

  /// "step0 rank1 = rank3" for each pair, without the roots.
  Lines pairs() const {
    Lines out;
    for (const RankPair& pair : plan().pairs) {
      out.push_back((pair.step.empty() ? "" : pair.step + " ") + pair.target.label + " = " +
                    pair.golden.label);
    }
    return out;
  }
  Lines one_sided() const { return plan().one_sided; }

 private:
  void put(const std::string& folder) {
    std::filesystem::create_directories(scratch_ / folder);
    test::put_file(scratch_ / (folder + "/dump.json"), "{}");
  }
  test::ScratchDirectory scratch_;
};

}  // namespace

TEST_CASE("a folder without a dump.json has its debug.json; with both on both sides there are two results") {
  test::ScratchDirectory scratch;
  const auto put = [&](const std::string& file) {
    std::filesystem::create_directories(std::filesystem::path(scratch / file).parent_path());
    test::put_file(scratch / file, "{}");
  };
  put("t/rank0/debug.json");
  put("g/rank0/debug.json");
  put("t/rank1/debug.json");
  put("t/rank1/dump.json");
  put("g/rank1/debug.json");
  put("g/rank1/dump.json");
  put("t/rank2/debug.json");
  put("t/rank2/dump.json");
  put("g/rank2/dump.json");
  Lines files;
  const RankPairs plan = pair_ranks(dump::discover(scratch / "t"), dump::discover(scratch / "g"));
  for (const RankPair& pair : plan.pairs) {
    CHECK(pair.target.json.substr(pair.target.json.rfind('/')) ==
          pair.golden.json.substr(pair.golden.json.rfind('/')));
    files.push_back(pair.target.label + pair.target.json.substr(pair.target.json.rfind('/')));
  }
  CHECK(files == Lines{"rank0/debug.json", "rank1/dump.json", "rank2/dump.json", "rank1/debug.json"});
}

TEST_CASE("ranks pair by number") {
  const Dumps dumps({"rank0", "rank2", "rank10"}, {"rank10", "rank0", "rank3"});
  CHECK(dumps.pairs() == Lines{"rank0 = rank0", "rank10 = rank10"});
  CHECK(dumps.one_sided() == Lines{"rank2: only in target", "rank3: only in golden"});
}

TEST_CASE("ranks pair by position where no number is common") {
  const Dumps none({"rank0", "rank2", "rank10"}, {"rank1", "rank3", "rank4"});
  CHECK(none.pairs() == Lines{"rank0 = rank1", "rank2 = rank3", "rank10 = rank4"});
  CHECK(none.one_sided().empty());
  const Dumps some({"rank0", "rank1"}, {"rank1", "rank2"});
  CHECK(some.pairs() == Lines{"rank1 = rank1"});
}

TEST_CASE("surplus ranks are named, whichever side has them") {
  const Dumps more({"rank0", "rank2"}, {"rank1"});
  CHECK(more.pairs() == Lines{"rank0 = rank1"});
  CHECK(more.one_sided() == Lines{"rank2: only in target"});
  const Dumps less({"rank0"}, {"rank1", "rank2"});
  CHECK(less.one_sided() == Lines{"rank2: only in golden"});
}

TEST_CASE("folders of processes are rank 0 and pair with each other") {
  const Dumps dumps({"proc11"}, {"proc4711"});
  CHECK(dumps.pairs() == Lines{"rank0 = rank0"});
  const Dumps mixed({"proc11"}, {"rank0"});
  CHECK(mixed.pairs() == Lines{"rank0 = rank0"});
}

TEST_CASE("a rank folder without a number is a separate rank") {
  const Dumps dumps({"rank", "rank0"}, {"rank0", "rank"});
  CHECK(dumps.pairs() == Lines{"rank = rank", "rank0 = rank0"});
}

TEST_CASE("dump roots pair the steps that both have") {
  const Dumps dumps({"step0/rank0", "step2/rank0", "step2/rank1", "step10/rank0"},
                    {"step2/rank0", "step10/rank0", "step11/rank0"});
  CHECK(dumps.pairs() == Lines{"step2 rank0 = rank0", "step10 rank0 = rank0"});
  CHECK(dumps.one_sided() ==
        Lines{"step0: only in target", "step2/rank1: only in target", "step11: only in golden"});
}

TEST_CASE("dump roots without a common step are refused") {
  const Dumps dumps({"step0/rank0"}, {"step1/rank0"});
  CHECK_THROWS_AS(dumps.plan(), FormatError);
}

TEST_CASE("files and folders of ranks may be mixed, other kinds must agree") {
  const Dumps dumps({"step0/rank0"}, {"step0/rank7"});
  const RankPairs plan = dumps.plan("t/step0/rank0", "g/step0/rank7/dump.json");
  REQUIRE(plan.pairs.size() == 1);
  CHECK(plan.pairs[0].target.label == "rank0");
  CHECK(plan.pairs[0].golden.label.empty());
  CHECK(plan.pairs[0].golden.directory.ends_with("g/step0/rank7"));
  CHECK(plan.pairs[0].step.empty());
  CHECK_THROWS_AS(dumps.plan("t/step0", "g"), UsageError);
  CHECK_THROWS_AS(dumps.plan("t/step0/rank0", "g/step0"), UsageError);
  CHECK_THROWS_AS(dumps.plan("t", "missing"), IoError);
}

}  // namespace msprobe::compare_plan_test

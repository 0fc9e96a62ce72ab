// SPDX-License-Identifier: Apache-2.0
#include "monitor/alerts/replay.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "support/error.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::monitor_replay_test {

using namespace msprobe;
using namespace msprobe::monitor;

namespace {

Replay replay(const std::string& rows, const std::vector<std::string>& rules,
              const std::string& output = {}) {
  const test::ScratchDirectory scratch;
  std::filesystem::create_directories(scratch / "rank_0");
  test::put_file(scratch / "rank_0/grad_reduced_0-99.csv",
                 "vpp_stage,name,step,norm,max,shape,dtype\n" + rows);
  ReplayOptions options;
  options.input = scratch.path();
  options.rules = parse_rules(rules);
  options.output = output.empty() ? "" : scratch / output;
  return replay_alerts(options, nullptr);
}

TEST_CASE("the message about a norm that jumps has the mean before it; extremes may jump") {
  const Replay result = replay(
      "0,w,0,1.0,1.0,[1],torch.float32\n0,w,1,-1.5,9.0,[1],torch.float32\n0,w,2,1.6,1.0,[1],torch.float32\n",
      {"AnomalyTurbulence:0.5"});
  CHECK(result.all == 1);
  REQUIRE(result.first.size() == 1);
  // The mean of 1 and 1.5 is 0.99 + 0.015.
  CHECK(result.first[0].message ==
        "Rule AnomalyTurbulence reports anomaly signal in ('0:w/rank0/post_grad', 'norm') at step 2, current "
        "value 1.6, "
        "history mean 1.005.");
}

TEST_CASE("a NaN is an alert and leaves the mean as it was; a row without a tensor is no alert") {
  const Replay result = replay(
      "0,w,0,1.0,1.0,[1],torch.float32\n0,w,1,nan,nan,[1],torch.float32\n0,w,2,2.0,inf,[1],torch.float32\n"
      "0,v,0,nan,nan,nan,nan\n",
      {"AnomalyNan", "AnomalyTurbulence:0.5"});
  CHECK(result.all == 3);
  REQUIRE(result.first.size() == 3);
  CHECK(result.first[0].step == 1);
  CHECK(result.first[2].message.find("AnomalyTurbulence") != std::string::npos);
  CHECK(replay("0,w,0,1.0,inf,[1],torch.float32\n", {"AnomalyNan"}).all == 0);
  CHECK(replay("0,w,0,1.0,inf,[1],torch.float32\n", {"AnomalyNan:1000"}).all == 1);
}

TEST_CASE("a series is judged where a rule speaks of each step without a finite number") {
  const std::string one = "0,w,0,1.0,1.0,[1],torch.float32\n";
  const auto is_judged = [&](const std::string& second, const std::string& rule) {
    const Replay result = replay(one + "0,w,1," + second + ",[1],torch.float32\n", {rule});
    CHECK(result.all == 0);
    CHECK(result.coverage.asked() == 1);
    return result.coverage.is_complete();
  };
  CHECK(is_judged("1.0,1.0", "AnomalyNan"));
  CHECK(is_judged("inf,1.0", "AnomalyNan"));
  CHECK_FALSE(is_judged("inf,inf", "AnomalyNan"));
  CHECK_FALSE(is_judged(",", "AnomalyNan"));
  CHECK_FALSE(is_judged("x,x", "AnomalyNan:10"));
  CHECK(is_judged("1.0,nan", "AnomalyTurbulence:0.5"));
  CHECK_FALSE(is_judged("nan,nan", "AnomalyTurbulence:0.5"));
  CHECK_FALSE(replay(one, {"AnomalyTurbulence:0.5"}).coverage.is_complete());
  CHECK_FALSE(replay(one + "0,w,1\n", {"AnomalyNan"}).coverage.is_complete());  // a row that is cut off
}

TEST_CASE("rules of the command line") {
  for (const char* wrong : {"", "AnomalyTurbulence", "AnomalyTurbulence:", "AnomalyNan:x", "AnomalyNan:-1",
                            "Other:1", "AnomalyNan:nan"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_rules({wrong}), UsageError);
  }
  CHECK(parse_rules({"AnomalyNan", "AnomalyTurbulence:0"}).size() == 2);
}

TEST_CASE("rules of a configuration file") {
  const test::ScratchDirectory scratch;
  const std::string path = scratch / "config.json";
  std::vector<std::string> warnings;
  test::put_file(path, R"({"alert": {"rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}},
                                               {"rule_name": "AnomalyTurbulence"}]}})");
  CHECK(read_rules_file(path, warnings).size() == 1);
  CHECK(warnings.size() == 1);
  const std::string deep = "{\"alert\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  for (const std::string& wrong :
       {std::string("{"), std::string("[]"), std::string("{}"), std::string(R"({"alert": {}})"),
        std::string(R"({"alert": {"rules": [{"rule_name": "X"}]}})"), deep}) {
    test::put_file(path, wrong);
    CHECK_THROWS_AS(read_rules_file(path, warnings), FormatError);
  }
}

}  // namespace
}  // namespace msprobe::monitor_replay_test

// SPDX-License-Identifier: Apache-2.0
#include "monitor/analyze/ranking.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "monitor/analyze/analyze.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::monitor_ranking_test {

using namespace msprobe;
using namespace msprobe::monitor;

namespace {

Alert alert(const std::string& tag, std::int64_t pp = 0, std::int64_t call = 0, std::int64_t step = 0) {
  Alert made;
  made.tag = tag;
  made.pp_stage = pp;
  made.call_id = call;
  made.step = step;
  return made;
}

std::vector<std::string> ranked(std::vector<Alert> alerts) {
  rank_alerts(alerts);
  std::vector<std::string> tags;
  for (const Alert& each : alerts) tags.push_back(each.tag + "@" + std::to_string(each.pp_stage));
  return tags;
}

using Tags = std::vector<std::string>;

TEST_CASE("alerts are ranked as a step goes") {
  CHECK(ranked({alert("0:w/rank0/param_updated"), alert("0:w/rank0/post_grad"),
                alert("all_reduce/rank0/post_0", 0, -1), alert("0:w/rank0/pre_grad", 0, 1),
                alert("0:b.input:1/rank0/actv_grad"), alert("0:b.input:1/rank0/actv"),
                alert("0:a.input:0/rank0/actv_grad"), alert("0:a.input:0/rank0/actv"),
                alert("0:w/rank0/exp_avg")}) ==
        Tags{"0:w/rank0/exp_avg@0", "0:a.input:0/rank0/actv@0", "0:a.input:0/rank0/actv_grad@0",
             "0:b.input:1/rank0/actv@0", "0:b.input:1/rank0/actv_grad@0", "0:w/rank0/pre_grad@0",
             "all_reduce/rank0/post_0@0", "0:w/rank0/post_grad@0", "0:w/rank0/param_updated@0"});
}

TEST_CASE("forward passes go up the stages of a pipeline, backward ones down") {
  CHECK(ranked({alert("0:x/rank1/actv", 1), alert("0:x/rank0/actv", 0)}) ==
        Tags{"0:x/rank0/actv@0", "0:x/rank1/actv@1"});
  CHECK(ranked({alert("0:x/rank0/actv_grad", 0), alert("0:x/rank1/actv_grad", 1)}) ==
        Tags{"0:x/rank1/actv_grad@1", "0:x/rank0/actv_grad@0"});
}

TEST_CASE("steps come before everything, numbers at the ends of their range do no harm") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  CHECK(
      ranked({alert("0:x/rank0/actv", 0, 0, 5), alert("0:x/rank0/param_updated", kLeast, kLeast, kLeast)}) ==
      Tags{"0:x/rank0/param_updated@" + std::to_string(kLeast), "0:x/rank0/actv@0"});
}

TEST_CASE("lists of steps") {
  CHECK(parse_steps("[1, 3]") == std::set<std::int64_t>{1, 3});
  CHECK(parse_steps("7") == std::set<std::int64_t>{7});
  CHECK(parse_steps("[]") == std::set<std::int64_t>{});
  for (const char* wrong : {"[2", "x", "1;2", "[1 2]", "1,,2", "99999999999999999999"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_steps(wrong).has_value());
  }
}

TEST_CASE("warnings name members of anomaly.json that are not alerts; broken files are refused") {
  const auto read = [](const std::string& text, std::vector<std::string>& warnings) {
    std::vector<Alert> alerts;
    read_alerts(*memory_source(text, "anomaly.json"), alerts, warnings);
    return alerts;
  };
  std::vector<std::string> warnings;
  const std::string text =
      R"({"a": {"rank": 1, "tag_name": "0:x:1/rank1/actv", "group_mates": [0, 1]}, "b": 3, "c": {"step": "1"},
          "d": {"value": 1.5, "step": 2}})";
  const std::vector<Alert> alerts = read(text, warnings);
  REQUIRE(alerts.size() == 2);
  CHECK(alerts[0].task() == "actv");
  CHECK(alerts[0].group_mates == std::vector<std::int64_t>{0, 1});
  CHECK(alerts[1].step == 2);
  CHECK(warnings.size() == 2);
  CHECK(warnings[0] == "anomaly.json: 'b' is not an object, and was skipped");
  for (const std::string& broken :
       {text.substr(0, text.size() / 2), std::string("[]"), std::string("{\"a\": {}} x")}) {
    CAPTURE(broken);
    CHECK_FALSE(test::complaint_about("anomaly.json", [&] { read(broken, warnings); }).empty());
  }
}

}  // namespace
}  // namespace msprobe::monitor_ranking_test

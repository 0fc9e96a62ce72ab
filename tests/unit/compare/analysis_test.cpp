// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "compare/first_difference.hpp"
#include "dumps.hpp"

namespace msprobe::compare_analysis_test {

using namespace msprobe;
using namespace msprobe::compare;
using measuring::Mode;
using pairing::default_rules;

namespace {

/// An entry with one input and one output.
std::string entry(std::string_view name, std::string_view output, const std::string& keywords = "") {
  return "\"" + std::string(name) + R"(": {"input_args": [)" + tensor_json("1.0") +
         R"(], "input_kwargs": {)" + keywords + R"(}, "output": [)" + tensor_json(output) + "]}";
}
std::string group(std::string_view ranks) {
  return R"("group": {"type": "torch.ProcessGroup", "group_ranks": )" + std::string(ranks) + "}";
}
std::string rank_argument(std::string_view name, int value) {
  return "\"" + std::string(name) + R"(": {"type": "int", "value": )" + std::to_string(value) + "}";
}
std::string transfer(std::string_view name, std::string_view output, std::string_view keyword, int peer) {
  return entry(name, output, rank_argument(keyword, peer));
}
std::string all_reduce(int call, std::string_view output, std::string_view ranks) {
  return entry("Distributed.all_reduce." + std::to_string(call) + ".forward", output, group(ranks));
}

std::string joined(const std::vector<std::string>& entries) {
  std::string out;
  for (const std::string& each : entries) out += (out.empty() ? "" : ", ") + each;
  return out;
}

struct Two {
  std::vector<std::string> target;
  std::vector<std::string> golden;
};

RankDifferences rank_of(std::int64_t number, const Two& sides, std::string* json = nullptr,
                        Mode mode = Mode::statistics) {
  verdict::RankResult result = matched(joined(sides.target), joined(sides.golden), mode, false);
  result.rank = "rank" + std::to_string(number);
  const pairing::Rules rules = default_rules();
  const auto source = memory_source(R"({"task": "statistics", "data": {)" + joined(sides.target) + "}}");
  result.target.calls = dump::load_side(*source, &rules.communication).calls;
  return find_differences(result, number, rules, [&](std::string_view part) {
    if (json != nullptr) *json += part;
  });
}

/// The rank's dump, and the same with each output 1.0.
Two against_ones(const std::vector<std::string>& target) {
  Two two{target, target};
  for (std::string& each : two.golden) {
    const std::size_t output = each.find("\"output\"");
    for (std::size_t at = output; (at = each.find(": 9.0", at)) != std::string::npos;)
      each.replace(at, 5, ": 1.0");
  }
  return two;
}

std::string told(const std::vector<RankDifferences>& ranks, const FirstDifference& first) {
  std::string out;
  for (const auto& place : first.places)
    out += (out.empty() ? "" : "; ") + std::to_string(ranks[place.rank].number) + " " + place.entry->name;
  return out;
}
std::string found(const std::vector<RankDifferences>& ranks) {
  return told(ranks, search_first_difference(ranks, default_rules()));
}

}  // namespace

TEST_CASE("an entry differs by its outputs, beyond the threshold of a metric") {
  const auto differing = [](std::string_view target, std::string_view golden) {
    return rank_of(0, {{entry("Torch.a.0.forward", target)}, {entry("Torch.a.0.forward", golden)}})
               .differing == 1;
  };
  CHECK(differing("1.6", "1.0"));
  CHECK_FALSE(differing("1.4", "1.0"));
  CHECK_FALSE(differing("1.0", "1.0"));
  CHECK_FALSE(differing("NaN", "NaN"));
  // There is no percentage.
  for (const auto& [target, golden] :
       {std::pair("5.0", "0.0"), {"NaN", "1.0"}, {"1.0", "NaN"}, {"Infinity", "1.0"}, {"1.0", "-Infinity"}}) {
    CHECK(differing(target, golden));
  }
  // One side did not record it.
  CHECK_FALSE(differing("null", "1.0"));
}

TEST_CASE("a mean or norm that recorders round otherwise does not differ while the elements are known") {
  const auto differing = [](const std::string& target, const std::string& golden) {
    const auto of = [](const std::string& statistics) {
      return forward_json(
          "Torch.a.0.forward", "",
          R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [64, 64], )" + statistics + "}");
    };
    const RankDifferences found = rank_of(0, {{of(target)}, {of(golden)}});
    return found.differing == 0 ? std::string() : found.first_in.front()->what;
  };
  // finfo.min as a mask: the sums overflow in one recorder.
  const std::string mask = R"("Max": 2.0, "Min": -3.4028234663852886e+38, )";
  const std::string overflown = mask + R"("Mean": -Infinity, "Norm": Infinity)";
  const std::string summed = mask + R"("Mean": -1.6e+38, "Norm": 1.5e+40)";
  CHECK(differing(overflown, summed).empty());
  CHECK(differing(summed, overflown).empty());
  CHECK_FALSE(
      differing(summed, overflown.substr(0, 8) + "5" + overflown.substr(9)).empty());  // another maximum
  // A mean that cancels is noise; one that one side lacks is unknown.
  const std::string extremes = R"("Max": 1.0, "Min": -1.0, "Norm": 64.0, "Mean": )";
  CHECK(differing(extremes + "1e-9", extremes + "-2e-9").empty());
  CHECK(differing(extremes + "null", extremes + "0.01").empty());
  CHECK_FALSE(differing(extremes + "0.04", extremes + "0.02").empty());
  // The message names the statistic that counts.
  CHECK(differing(R"("Max": 9.0, "Min": -1.0, "Norm": Infinity, "Mean": 0.5)",
                  R"("Max": 1.0, "Min": -1.0, "Norm": 64.0, "Mean": 0.5)") ==
        "output.0: max 9.0, not 1.0 (MaxRelativeErr 800%)");
}

TEST_CASE("inputs, unmatched rows, ignored outputs and short names do not make a difference") {
  const std::string name = "NPU.npu_fusion_attention.0.forward";
  const auto attention = [&](std::string_view fourth, std::string_view fifth) {
    std::string outputs;
    for (const std::string_view value : {std::string_view("1.0"), std::string_view("1.0"),
                                         std::string_view("1.0"), std::string_view("1.0"), fourth, fifth}) {
      outputs += (outputs.empty() ? "" : ", ") + tensor_json(value);
    }
    return forward_json(name, tensor_json("1.0"), outputs);
  };
  CHECK(rank_of(0, {{attention("7.0", "8.0")}, {attention("1.0", "1.0")}}).differing == 0);
  CHECK(rank_of(0, {{entry("Torch.a.0.forward", "3.0")}, {entry("Torch.b.0.forward", "1.0")}}).differing ==
        0);
  const std::string input = forward_json("Torch.a.0.forward", tensor_json("5.0"), tensor_json("1.0"));
  CHECK(rank_of(0, {{input}, {entry("Torch.a.0.forward", "1.0")}}).differing == 0);
  CHECK(rank_of(0, {{entry("a.0.forward", "5.0")}, {entry("a.0.forward", "1.0")}}).entries == 0);
}

TEST_CASE("checksums: text against text; what has none does not differ") {
  const auto with = [](std::string_view md5) {
    return forward_json("Torch.a.0.forward", "", tensor_json("1.0", "torch.float32", "[2]", md5));
  };
  const auto differing = [&](std::string_view target, std::string_view golden) {
    return rank_of(0, {{with(target)}, {with(golden)}}, nullptr, Mode::md5).differing;
  };
  CHECK(differing(R"(, "md5": "aaaaaaaa")", R"(, "md5": "bbbbbbbb")") == 1);
  CHECK(differing(R"(, "md5": "aaaaaaaa")", R"(, "md5": "aaaaaaaa")") == 0);
  CHECK(differing(R"(, "md5": "aaaaaaaa")", "") == 0);
}

TEST_CASE("the file of a rank is JSON with the Python tool's keys, whatever the names hold") {
  std::string json;
  const std::string hostile = R"(Torch.\"<b>\u0000\u001b.0.forward)";
  const std::string operation =
      R"({"class_type": "torch.distributed.P2POp", "op": "isend", "peer": 3, "tensor": )" +
      tensor_json("1.0") + "}";
  const std::string batch =
      forward_json("Distributed.batch_isend_irecv.0.forward", "[" + operation + "]", "");
  rank_of(0, {{entry(hostile, "Infinity"), batch}, {entry(hostile, "1.0"), batch}}, &json);
  // This reader knows no bare Infinity.
  std::string rest = json;
  for (std::size_t at = 0; (at = rest.find(" Infinity", at)) != std::string::npos;)
    rest.replace(at, 9, " 1e9");
  const auto parsed = nlohmann::ordered_json::parse(rest);
  REQUIRE(parsed.size() == 2);
  const auto& items = parsed.begin().value();
  CHECK(items["is_same"] == false);
  REQUIRE(items["op_items"].size() == 2);
  CHECK(items["op_items"][1]["state"] == "output");
  CHECK(items["op_items"][1]["NPU P2POp peer"] == "None");
  CHECK(items["op_items"][1]["MaxRelativeErr"] == "inf");
  const auto& p2p = parsed["Distributed.batch_isend_irecv.0.forward"]["op_items"][0];
  CHECK(p2p["NPU P2POp op"] == "isend");
  CHECK(p2p["Bench P2POp peer"] == 3);
}

TEST_CASE("ahead of communication the first difference of every rank is named") {
  const std::vector<RankDifferences> ranks = {
      rank_of(0, against_ones({entry("Torch.a.0.forward", "9.0"), entry("Torch.b.0.forward", "9.0")})),
      rank_of(1, against_ones({entry("Torch.empty.0.forward", "9.0"), entry("Torch.b.0.forward", "9.0"),
                               all_reduce(0, "9.0", "[0, 1]")})),
      rank_of(2, against_ones({entry("Torch.a.0.forward", "1.0")}))};
  CHECK(found(ranks) == "0 Torch.a.0.forward; 1 Torch.b.0.forward");
  CHECK(search_first_difference(ranks, default_rules()).phase == DifferencePhase::before);
}

TEST_CASE("between calls the earliest point of the whole step wins, and computing comes before the call") {
  const std::vector<RankDifferences> sides{
      rank_of(0, against_ones({all_reduce(0, "1.0", "[0, 1]"), entry("Torch.a.0.forward", "1.0"),
                               all_reduce(1, "1.0", "[0, 1]"), entry("Torch.b.0.forward", "9.0"),
                               all_reduce(2, "9.0", "[0, 1]")})),
      rank_of(1, against_ones({all_reduce(0, "1.0", "[0, 1]"), all_reduce(1, "1.0", "[0, 1]"),
                               all_reduce(2, "9.0", "[0, 1]"), entry("Torch.c.0.forward", "9.0")}))};
  CHECK(found(sides) == "0 Torch.b.0.forward");
}

TEST_CASE("transfers: rank 0 is a partner like any other") {
  // Rank 0 sends a bad value that it computed after its first call; rank 1 receives it as its first.
  const std::vector<RankDifferences> sides{
      rank_of(0, against_ones({all_reduce(0, "1.0", "[0, 2]"), entry("Torch.a.0.forward", "9.0"),
                               transfer("Distributed.send.0.forward", "9.0", "dst", 1)})),
      rank_of(1, against_ones({transfer("Distributed.recv.0.forward", "9.0", "src", 0)})),
      rank_of(2, against_ones({all_reduce(0, "1.0", "[0, 2]")}))};
  CHECK(found(sides) == "0 Torch.a.0.forward");
}

TEST_CASE("after the last communication") {
  const std::vector<RankDifferences> ranks = {
      rank_of(0, against_ones({all_reduce(0, "1.0", "[0, 1]"), entry("Torch.a.0.forward", "9.0")})),
      rank_of(1, against_ones({all_reduce(0, "1.0", "[0, 1]"), entry("Torch.a.0.forward", "1.0")}))};
  CHECK(found(ranks) == "0 Torch.a.0.forward");
  CHECK(search_first_difference(ranks, default_rules()).phase == DifferencePhase::after);
  CHECK(found({ranks[1], ranks[1]}).empty());
}

TEST_CASE("groups of absent, huge and repeated ranks, and calls that contradict each other, end") {
  std::string many = "[";
  for (int i = 0; i < 20'000; ++i) many += std::to_string(i * 1'000'003LL) + ", ";
  many += "0, 1, 9223372036854775807]";
  std::vector<RankDifferences> ranks;
  for (const int number : {0, 1, 2'000'000'000}) {
    std::vector<std::string> entries;
    for (int call = 0; call < 8; ++call)
      entries.push_back(all_reduce(call, call == 7 ? "9.0" : "1.0", call % 2 == 0 ? many : "[1, 1, 0, -5]"));
    // Each waits for the other to send first.
    entries.push_back(transfer("Distributed.recv.0.forward", "1.0", "src", 1 - number));
    entries.push_back(transfer("Distributed.send.0.forward", "1.0", "dst", 1 - number));
    ranks.push_back(rank_of(number, against_ones(entries)));
  }
  CHECK(found(ranks).find("Distributed.all_reduce.7.forward") != std::string::npos);
}

TEST_CASE("many similar calls are joined in linear time") {
  std::vector<RankDifferences> ranks;
  constexpr std::uint32_t kCalls = 20'000;
  for (std::int64_t r = 0; r < 4; ++r) {
    RankDifferences& rank = ranks.emplace_back();
    rank.number = r;
    rank.first_in.resize(kCalls + 1);
    for (std::uint32_t i = 0; i < kCalls; ++i) {
      ComparedCommunication& node = rank.comms.emplace_back();
      node.name = "Distributed.all_reduce." + std::to_string(i) + ".forward";
      node.operation = "all_reduce";
    }
    rank.comms.back().found = FoundEntry{rank.comms.back().name, 0, "{}", "", ""};
  }
  CHECK(search_first_difference(ranks, default_rules()).places.size() == 4);
}

TEST_CASE("the result as JSON and in words") {
  AnalyzedStep step;
  step.ranks.resize(2);
  step.ranks[0].failure = "rank0/dump.json: broken";
  step.ranks[0].differences.label = "rank0";
  step.ranks[1].differences = rank_of(1, against_ones({entry("Torch.a.0.forward", "9.0")}));
  step.searched = {1};
  step.first.phase = DifferencePhase::before;
  step.first.places = {{0, &*step.ranks[1].differences.first_in[0], false}};
  const auto json = nlohmann::json::parse(difference_json(step));
  REQUIRE(json.contains("rank_1"));
  CHECK(json["rank_1"][0]["op_name"] == "Torch.a.0.forward");
  CHECK(json["rank_1"][0]["stack_info"].is_null());
  CHECK(json["rank_1"][0]["data_info"]["output"]["Torch.a.0.forward.output.0"]["NPU max"] == 9.0);
  const std::string words = render_differences({{step}, {}}, false);
  CHECK(words.find("rank1: Torch.a.0.forward, before any communication") != std::string::npos);
  CHECK(words.find("output.0: norm 9.0, not 1.0 (NormRelativeErr 800%)") != std::string::npos);
  CHECK(words.find("failed: rank0/dump.json: broken") != std::string::npos);
}

}  // namespace msprobe::compare_analysis_test

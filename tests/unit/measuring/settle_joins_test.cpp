// SPDX-License-Identifier: Apache-2.0
// Values that ranks hold in parts: what they are taken for, and what is made of them.
#include "measuring/settle_joins.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pairing/join_sides.hpp"
#include "unit/compare/dumps.hpp"

namespace msprobe::compare_settle_joins_test {

using namespace compare;  // helpers of tests

using namespace msprobe;
using namespace msprobe::measuring;
using pairing::Share;
using verdict::RankResult;

namespace {

struct Numbers {
  double max, min, mean, norm;
};

std::string tensor(const Numbers& numbers, std::string_view shape, std::string_view more = {}) {
  return fmt::format(
      R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": {}, "Max": {}, "Min": {}, "Mean": {}, "Norm": {}{}}})",
      shape, numbers.max, numbers.min, numbers.mean, numbers.norm, more);
}

std::string call(std::string_view input, std::string_view output) {
  return forward_json("Torch.f.0.forward", input, output);
}

/// One entry, of several ranks and of the whole.
RankResult settled(const std::vector<std::string>& ranks, const std::string& whole,
                   const char* recorder_of_whole = "") {
  RankResult result;
  std::vector<pairing::RankSide> sides;
  for (const std::string& rank : ranks)
    sides.push_back({static_cast<std::int64_t>(sides.size()), side_of(rank)});
  pairing::JoinedSides target = pairing::join_sides(std::move(sides));
  result.target = std::move(target.side);
  result.target_joins = std::move(target.joins);
  result.golden = side_of(whole);
  result.golden.header.recorder = recorder_of_whole;
  const pairing::Matching matching = match_by_name(result.target, result.golden);
  result.rows = matching.pairs;
  settle_joins(result);
  result.judgement = verdict::judge(result, pairing::default_rules());
  return result;
}

std::string told(const RankResult& result, std::size_t item) {
  const dump::Item& joined = result.target.items[item];
  std::string text(result.target.text(joined.shape));
  for (std::size_t which = 0; which < dump::kStatistics; ++which)
    text += " " + dump::to_text(joined.statistics[which], result.target.pool);
  return text;
}

bool is_marked(const RankResult& result, std::size_t row) {
  return result.rows[row].copies_differ || result.rows[row].not_joined;
}

Share share(const RankResult& result, std::size_t item) {
  return result.target_joins->decision(item).share;
}

constexpr Numbers kFirst = {2, -1, 0.5, 3};
constexpr Numbers kSecond = {4, -3, 1.5, 4};
constexpr Numbers kJoined = {4, -3, 1, 5};
const std::string kNothing = "null";

}  // namespace

TEST_CASE("settle_joins: shards by the axis that makes both shapes agree") {
  const RankResult result =
      settled({call(tensor(kFirst, "[2, 3, 4]"), kNothing), call(tensor(kSecond, "[2, 3, 4]"), kNothing)},
              call(tensor(kJoined, "[2, 6, 4]"), kNothing));
  CHECK(share(result, 0) == Share::shards);
  CHECK(result.target_joins->decision(0).axis == 1);
  CHECK(told(result, 0) == "[2, 6, 4] 4 -3 1 5");
  CHECK_FALSE(is_marked(result, 0));
}

TEST_CASE("settle_joins: shards of different lengths weigh by their elements") {
  const RankResult result =
      settled({call(tensor(kFirst, "[1, 4]"), kNothing), call(tensor(kSecond, "[3, 4]"), kNothing)},
              call(tensor(kJoined, "[4, 4]"), kNothing));
  CHECK(share(result, 0) == Share::shards);
  CHECK(told(result, 0) == "[4, 4] 4 -3 1.25 5");
}

TEST_CASE("settle_joins: shards that are equal are shards still") {
  const RankResult result =
      settled({call(tensor({1, 1, 1, 2}, "[4]"), kNothing), call(tensor({1, 1, 1, 2}, "[4]"), kNothing)},
              call(tensor({1, 1, 1, 2.8284271247461903}, "[8]"), kNothing));
  CHECK(share(result, 0) == Share::shards);
  CHECK(told(result, 0) == "[8] 1 1 1 2.8284271247461903");
}

TEST_CASE("settle_joins: sums are what the other recorder told, within what the ranks' rounded") {
  // Eight tensors of bfloat16 tell that the ranks' norms are bfloat16.
  const auto eight = [](const Numbers& numbers, std::string_view shape) {
    std::string one = tensor(numbers, shape);
    one.replace(one.find("float32"), 7, "bfloat16");
    std::string all = one;
    for (int i = 1; i < 8; ++i) all += ", " + one;
    return call(all, kNothing);
  };
  const std::vector<std::string> ranks = {eight({2, -1, 0.5, 3.5}, "[2, 4]"),
                                          eight({4, -3, 1.5, 4.5}, "[2, 4]")};
  const auto against = [&](double norm) {
    return told(settled(ranks, eight({4, -3, 1.003, norm}, "[4, 4]"), "msprobe 1"), 7);
  };
  CHECK(against(5.72) == "[4, 4] 4 -3 1.003 5.72");
  CHECK(against(5.9) == "[4, 4] 4 -3 1.003 5.70087712549569");
}

TEST_CASE("settle_joins: neighbours that have the same shard") {
  const std::string first = call(tensor(kFirst, "[2, 1, 4]"), kNothing);
  const std::string second = call(tensor(kSecond, "[2, 1, 4]"), kNothing);
  const std::string whole = call(tensor(kJoined, "[2, 2, 4]"), kNothing);
  RankResult result = settled({first, first, second, second}, whole);
  CHECK(result.target_joins->decision(0).block == 2);
  CHECK(told(result, 0) == "[2, 2, 4] 4 -3 1 5");
  CHECK_FALSE(is_marked(result, 0));
  result = settled({first, second, second, second}, whole);
  CHECK(result.rows[0].copies_differ);
}

TEST_CASE("settle_joins: outputs that differ behind shards are terms of a sum") {
  const RankResult result = settled({call(tensor(kFirst, "[2, 4]"), tensor({1, 0, 0.25, 2}, "[2, 2]")),
                                     call(tensor(kSecond, "[2, 4]"), tensor({3, 0, 0.5, 2}, "[2, 2]"))},
                                    call(tensor(kJoined, "[2, 8]"), tensor({3, 0, 0.75, 3}, "[2, 2]")));
  CHECK(share(result, 1) == Share::sums);
  CHECK(told(result, 1) == "[2, 2] N/A N/A 0.75 N/A");
  CHECK(result.difference(result.rows[1], dump::kNorm).kind == DifferenceKind::missing);
  CHECK_FALSE(is_marked(result, 1));
}

TEST_CASE("settle_joins: placements tell more than numbers") {
  const auto with = [](std::string_view placement, const Numbers& one, const Numbers& other) {
    const std::string more = R"(, "placements": [)" + std::string(placement) + "]";
    return settled(
        {call(tensor(one, "[2, 2]", more), kNothing), call(tensor(other, "[2, 2]", more), kNothing)},
        call(tensor(kJoined, "[2, 2]"), kNothing));
  };
  RankResult result = with(R"({"Partial": {"reduce_op": "sum"}})", kFirst, kFirst);
  CHECK(share(result, 0) == Share::sums);
  CHECK(told(result, 0) == "[2, 2] N/A N/A 1 N/A");
  result = with(R"({"_MaskPartial": {}})", kFirst, kSecond);
  CHECK(share(result, 0) == Share::sums);
  CHECK(told(result, 0) == "[2, 2] N/A N/A N/A N/A");
  result = with(R"({"Replicate": {}})", kFirst, kSecond);
  CHECK(share(result, 0) == Share::copies);
  CHECK(result.rows[0].copies_differ);
  CHECK(verdict::messages_of(result, 0).front() ==
        "error: Ranks 0 and 1 should hold equal values, but do not: norms 3 and 4.");
  result = with(R"({"Shard": {"dim": 1}})", kFirst, kSecond);
  CHECK(result.rows[0].not_joined);
}

TEST_CASE("settle_joins: a copy that is not one") {
  const RankResult result =
      settled({call(tensor(kJoined, "[8]"), kNothing), call(tensor(kJoined, "[8]"), kNothing),
               call(tensor(kSecond, "[8]"), kNothing)},
              call(tensor(kJoined, "[8]"), kNothing));
  CHECK(share(result, 0) == Share::copies);
  CHECK(result.verdict(0) == verdict::Verdict::error);
}

TEST_CASE("settle_joins: a warning names shapes that cannot be merged") {
  const RankResult result =
      settled({call(tensor(kFirst, "[3]"), kNothing), call(tensor(kSecond, "[3]"), kNothing)},
              call(tensor(kJoined, "[7]"), kNothing));
  CHECK(share(result, 0) == Share::undecided);
  CHECK(verdict::messages_of(result, 0).front() ==
        "warning: The shapes cannot be merged to match: NPU [3], [3] of 2 ranks, Bench [7].");
}

TEST_CASE("settle_joins: sizes beyond all bounds, and values that are not shapes") {
  const std::string huge = "[9223372036854775807, 2]";
  for (const std::string& shape :
       {huge, std::string("[-4]"), std::string("[]"), std::string("\"x\""), std::string("null")}) {
    const RankResult result =
        settled({call(tensor(kFirst, shape), kNothing), call(tensor(kSecond, shape), kNothing)},
                call(tensor(kJoined, "[18446744073709551614, 2]"), kNothing));
    CHECK(share(result, 0) == Share::undecided);
  }
}

TEST_CASE("join_sides: entries that only other ranks have follow") {
  const std::string other = forward_json("Torch.g.0.forward", tensor(kSecond, "[3]"), kNothing);
  std::vector<pairing::RankSide> ranks;
  ranks.push_back({0, side_of(call(tensor(kFirst, "[3]"), kNothing))});
  ranks.push_back({1, side_of(call(tensor(kSecond, "[3]"), kNothing) + ", " + other)});
  const pairing::JoinedSides joined = pairing::join_sides(std::move(ranks));
  REQUIRE(joined.side.apis.size() == 2);
  CHECK(joined.side.text(joined.side.apis[1].name) == "Torch.g.0.forward");
  const dump::Api& added = joined.side.apis[1];
  CHECK(joined.side.name(joined.side.items[added.first]) == "Torch.g.0.forward.input.0");
  CHECK(joined.side.items[added.first].api == 1);
  CHECK(joined.joins->items() == joined.side.items.size());
  CHECK(joined.joins->numbers(0) == std::vector<std::int64_t>{0, 1});
  CHECK(joined.joins->numbers(added.first) == std::vector<std::int64_t>{1});
}

}  // namespace msprobe::compare_settle_joins_test

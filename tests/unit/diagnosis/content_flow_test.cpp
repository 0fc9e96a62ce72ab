// SPDX-License-Identifier: Apache-2.0
// A run as a graph of contents: what unrecorded code, ranks and micro batches make of tensors, which
// parameters are the same, and which gradients differ.
#include "diagnosis/content_flow.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/gradient_meetings.hpp"
#include "diagnosis/meeting_points.hpp"
#include "diagnosis/parameter_map.hpp"
#include "diagnosis/stretch.hpp"
#include "pairing/join_sides.hpp"
#include "unit/diagnosis/dumps.hpp"

namespace msprobe::diagnosis::content_flow_test {
namespace {

using pairing::kNone;
using testing::DumpText;
using testing::named;
using testing::Texts;

struct Numbers {
  double max = 0;
  double min = 0;
  double mean = 0;
  double norm = 0;
};

std::string content(const Numbers& numbers, std::string_view shape,
                    std::string_view dtype = "torch.float32") {
  return fmt::format(
      R"({{"type": "torch.Tensor", "dtype": "{}", "shape": {}, "Max": {}, "Min": {}, "Mean": {}, "Norm": {}}})",
      dtype, shape, numbers.max, numbers.min, numbers.mean, numbers.norm);
}

ContentFlow flow_of(const dump::Side& side, const pairing::Joins* joins = nullptr) {
  return forward_flow(side, joins, nullptr);
}

std::uint32_t with_max(const ContentFlow& flow, double max) {
  for (std::uint32_t i = 0; i < flow.contents().size(); ++i) {
    if (flow.contents()[i].max == max) return i;
  }
  return kNone;
}

/// Names of the calls that lead to a content, back to the first.
std::vector<std::string> way_to(const ContentFlow& flow, std::uint32_t place) {
  std::vector<std::string> names;
  for (std::uint32_t call = flow.contents()[place].maker; call != kNone;) {
    names.insert(names.begin(), flow.is_recorded(call) ? flow.name(call) : "unrecorded");
    const auto taken = flow.taken(call);
    call = taken.empty() ? kNone : flow.contents()[taken.front()].maker;
  }
  return names;
}

TEST_CASE("a content is known again through views, and through unrecorded code") {
  DumpText dump;
  const Numbers whole = {4, -3, 0.1, 20};
  const Numbers part = {3.5, -3, 0.2, 11};
  const Numbers turned = {3.25, -2, 0.1, 11};
  dump.forward("Functional.linear.0.forward", {content({1, -1, 0, 8}, "[8, 64]")},
               {content(whole, "[8, 192]")});
  dump.forward("Tensor.transpose.0.forward", {content(whole, "[8, 192]")}, {content(whole, "[192, 8]")});
  dump.forward("Tensor.mul.0.forward", {content(part, "[8, 64]")}, {content(turned, "[8, 64]")});
  dump.forward("Functional.relu.0.forward", {content({4, -2, 0.1, 16}, "[8, 128]")},
               {content({4, 0, 0.7, 14}, "[8, 128]")});
  const dump::Side side = dump.side();
  const ContentFlow flow = flow_of(side);
  CHECK(flow.takers(with_max(flow, 4)).size() == 2);  // the transpose, and what takes a part of it
  CHECK(way_to(flow, with_max(flow, 3.5)) ==
        std::vector<std::string>{"Functional.linear.0.forward", "unrecorded"});
  CHECK(way_to(flow, with_max(flow, 3.25)) ==
        std::vector<std::string>{"Functional.linear.0.forward", "unrecorded", "Tensor.mul.0.forward"});
}

TEST_CASE("what is put together from two is known by their extremes") {
  DumpText dump;
  dump.forward("Functional.conv2d.0.forward", {}, {content({5, -1, 0.1, 9}, "[4, 16]")});
  for (int i = 0; i < 100; ++i)
    dump.forward(fmt::format("Tensor.add.{}.forward", i), {},
                 {content({0.1 + i * 0.01, -0.5, 0, 3}, "[2, 8]")});
  dump.forward("Functional.conv2d.1.forward", {}, {content({2, -6, 0.1, 9}, "[4, 16]")});
  dump.forward("Functional.group_norm.0.forward", {content({5, -6, 0.1, 12.7}, "[4, 32]")},
               {content({2.5, -2.4, 0, 11}, "[4, 32]")});
  const dump::Side side = dump.side();
  const ContentFlow flow = flow_of(side);
  const std::uint32_t both = flow.taken(static_cast<std::uint32_t>(flow.calls().size() - 1)).front();
  const std::uint32_t unrecorded = flow.contents()[both].maker;
  REQUIRE(unrecorded != kNone);
  CHECK_FALSE(flow.is_recorded(unrecorded));
  std::vector<std::string> makers;
  for (const std::uint32_t taken : flow.taken(unrecorded))
    makers.push_back(flow.name(flow.contents()[taken].maker));
  CHECK(makers == std::vector<std::string>{"Functional.conv2d.0.forward", "Functional.conv2d.1.forward"});
}

TEST_CASE("complex numbers have no statistics, and are followed") {
  DumpText dump;
  const std::string complex =
      R"({"type": "torch.Tensor", "dtype": "torch.complex64", "shape": [4, 8], "Max": null,)"
      R"( "Min": null, "Mean": null, "Norm": null})";
  dump.forward("Functional.linear.0.forward", {}, {content({2, -1, 0, 5}, "[4, 16]")});
  dump.forward("Tensor.mul.0.forward", {complex, complex}, {complex});
  dump.forward("Functional.relu.0.forward", {content({1.9, -1.2, 0, 5}, "[4, 16]")},
               {content({1.9, 0, 0.3, 4}, "[4, 16]")});
  const dump::Side side = dump.side();
  const ContentFlow flow = flow_of(side);
  const std::uint32_t unrecorded =
      flow.contents()[flow.taken(static_cast<std::uint32_t>(flow.calls().size() - 1)).front()].maker;
  REQUIRE(unrecorded != kNone);
  std::vector<std::string> makers;
  for (const std::uint32_t taken : flow.taken(unrecorded))
    makers.push_back(flow.name(flow.contents()[taken].maker));
  CHECK(makers == std::vector<std::string>{"Functional.linear.0.forward", "Tensor.mul.0.forward"});
}

// Two halves of a tensor, and the whole.
constexpr Numbers kLeft = {3, -2, 0.1, 6};
constexpr Numbers kRight = {2, -4, 0.3, 8};
constexpr Numbers kWhole = {3, -4, 0.2, 10};

Meetings met(const ContentFlow& flow, const ContentFlow& golden) {
  return meet(flow, golden, map_parameters(flow, golden, kSameContent), {1e-5, 1e-5});
}

TEST_CASE("parts that ranks hold meet where the whole does") {
  std::vector<pairing::RankSide> ranks;
  for (const Numbers& numbers : {kLeft, kRight}) {
    DumpText dump;
    dump.forward("Functional.linear.0.forward", {content({1, -1, 0, 8}, "[4, 64]")},
                 {content(numbers, "[4, 32]")});
    ranks.push_back({static_cast<std::int64_t>(ranks.size()), dump.side()});
  }
  const pairing::JoinedSides joined = pairing::join_sides(std::move(ranks));
  DumpText whole;
  whole.forward("Torch.matmul.0.forward", {content({1, -1, 0, 8}, "[4, 64]")}, {content(kWhole, "[4, 64]")});
  const dump::Side golden = whole.side();
  const ContentFlow flow = flow_of(joined.side, joined.joins.get());
  const ContentFlow golden_flow = flow_of(golden);
  REQUIRE(flow.joints().size() == 2);
  const Meetings meetings = met(flow, golden_flow);
  const std::uint32_t partner = with_max(golden_flow, 3);
  CHECK(meetings.golden_of[with_max(flow, 2)] == partner);
  CHECK(meetings.golden_of[with_max(flow, 3)] == partner);
  CHECK(meetings.golden_meets[partner]);
}

TEST_CASE("parts of a batch meet where the whole does") {
  DumpText dump;
  for (int i = 0; i < 2; ++i) {
    dump.forward(fmt::format("Functional.linear.{}.forward", i), {},
                 {content(i == 0 ? kLeft : kRight, "[4, 32]")});
    dump.forward(fmt::format("Module.up.Linear.forward.{}", i), {},
                 {content(i == 0 ? kLeft : kRight, "[4, 32]")});
  }
  DumpText whole;
  whole.forward("Torch.matmul.0.forward", {}, {content(kWhole, "[8, 32]")});
  const dump::Side side = dump.side();
  const dump::Side golden = whole.side();
  const ContentFlow flow = flow_of(side);
  const ContentFlow golden_flow = flow_of(golden);
  CHECK(flow.micro_batches() == 2);
  const Meetings meetings = met(flow, golden_flow);
  CHECK(meetings.golden_of[with_max(flow, 2)] == 0);
  CHECK(meetings.golden_meets[0]);
}

TEST_CASE("parameters by content: transposed, joined, padded, and those without partner") {
  const auto parameter = [](double size, std::string_view shape) {
    return content({size, -size / 2, 0.01 * size, 4 * size}, shape);
  };
  const auto module = [](DumpText& dump, std::string_view name, const std::string& weight) {
    dump.forward(fmt::format("Functional.linear.{}.forward", name), {testing::tensor(90), weight},
                 {testing::tensor(91 + static_cast<double>(name.size()))});
    dump.forward(fmt::format("Module.{}.Linear.forward.0", name), {}, {testing::tensor(91)}, {},
                 {named("weight", weight)});
  };
  DumpText ours;
  DumpText theirs;
  const double q = 1;
  const double k = 2;
  const double v = 3;
  module(theirs, "q", parameter(q, "[64, 64]"));
  module(theirs, "k", parameter(k, "[64, 64]"));
  module(theirs, "v", parameter(v, "[64, 64]"));
  module(theirs, "up", parameter(5, "[256, 64]"));
  module(theirs, "down", parameter(6, "[64, 256]"));
  module(theirs, "extra", parameter(7, "[64, 64]"));
  module(ours, "qkv", content({3, -1.5, 0.02, 4 * std::sqrt(1.0 + 4.0 + 9.0)}, "[192, 64]"));
  module(ours, "fc1", parameter(5, "[64, 256]"));
  module(ours, "fc2", content({6, -3, 0.03, 24}, "[64, 512]"));  // half of it zeros
  module(ours, "other", parameter(8, "[64, 64]"));
  const dump::Side target = ours.side();
  const dump::Side golden = theirs.side();
  const ContentFlow flow = flow_of(target);
  const ContentFlow golden_flow = flow_of(golden);
  const ParameterMap map = map_parameters(flow, golden_flow, kSameContent);
  std::vector<std::string> told;
  for (const ParameterGroup& group : map.groups) {
    std::string text;
    for (const std::uint32_t each : group.ours) text += parameter_name(flow, each) + " ";
    text += "=";
    for (const std::uint32_t each : group.theirs) text += " " + parameter_name(golden_flow, each);
    told.push_back(text);
  }
  std::sort(told.begin(), told.end());
  CHECK(told == std::vector<std::string>{"fc1.weight = up.weight", "fc2.weight = down.weight",
                                         "qkv.weight = q.weight k.weight v.weight"});
  REQUIRE(map.ours_alone.size() == 1);
  CHECK(parameter_name(flow, map.ours_alone[0]) == "other.weight");
  REQUIRE(map.theirs_alone.size() == 1);
  CHECK(parameter_name(golden_flow, map.theirs_alone[0]) == "extra.weight");
}

TEST_CASE("a gradient that differs is that of a call between two whose gradients do not") {
  DumpText ours;
  DumpText theirs;
  const auto call = [](DumpText& dump, std::string_view name, double from, double to) {
    dump.forward(fmt::format("{}.forward", name), {testing::tensor(from)}, {testing::tensor(to)});
  };
  for (DumpText* dump : {&ours, &theirs}) {
    const char* const suffix = dump == &ours ? "" : "x";
    call(*dump, fmt::format("Functional.linear{}.0", suffix), 1, 2);
    call(*dump, fmt::format("Tensor.mul{}.0", suffix), 2, 3);
    call(*dump, fmt::format("Functional.linear{}.1", suffix), 3, 4);
    // From behind: the last is right, the one ahead of the product is not.
    const double wrong = dump == &ours ? 1.5 : 1;
    dump->backward(fmt::format("Functional.linear{}.1.backward", suffix), {testing::tensor(10)},
                   {testing::tensor(20)});
    dump->backward(fmt::format("Tensor.mul{}.0.backward", suffix), {testing::tensor(20)},
                   {testing::tensor(30 * wrong)});
    dump->backward(fmt::format("Functional.linear{}.0.backward", suffix), {testing::tensor(30 * wrong)},
                   {testing::tensor(40 * wrong)});
  }
  const dump::Side target = ours.side();
  const dump::Side golden = theirs.side();
  const ContentFlow flow = flow_of(target);
  const ContentFlow golden_flow = flow_of(golden);
  const GradientMeetings found = meet_gradients(flow, golden_flow, {}, met(flow, golden_flow), 0);
  CHECK(found.equal == 2);
  CHECK(found.error == doctest::Approx(0.5));
  REQUIRE(found.calls.size() == 1);
  CHECK(flow.name(found.calls[0]) == "Tensor.mul.0.forward");
}

TEST_CASE("functions that compute gradients run after the first backward and are not forward calls") {
  DumpText dump;
  dump.forward("Functional.linear.0.forward", {}, {testing::tensor(1)});
  dump.backward("Functional.linear.0.backward", {testing::tensor(5)}, {testing::tensor(6)});
  dump.forward("Tensor.matmul.0.forward", {}, {testing::tensor(7)});
  dump.forward("Module.up.Linear.forward.1", {}, {testing::tensor(8)});  // the next micro batch
  const dump::Side side = dump.side();
  const ContentFlow flow = flow_of(side);
  REQUIRE(flow.calls().size() == 2);
  CHECK(flow.name(1) == "Module.up.Linear.forward.1");
}

}  // namespace
}  // namespace msprobe::diagnosis::content_flow_test

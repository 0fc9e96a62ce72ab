// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/advice.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "compare/dump_tree/dump_tree.hpp"
#include "compare/sinks/data_mapping.hpp"
#include "pairing/mapping_file.hpp"
#include "support/byte_source.hpp"
#include "unit/compare/dumps.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_advice_test {

using namespace msprobe;
using namespace msprobe::compare;
using pairing::MatchOptions;
using verdict::RankResult;

namespace {

using Cause = Advice::Cause;

std::string entry(std::string_view name, std::string_view shape = "[2, 3]",
                  std::string_view dtype = "torch.float32") {
  return forward_json(name, tensor_json("1", dtype, shape), "");
}

struct Dump {
  std::string members;
  std::string framework = "pytorch";
  std::string level = "L1";
};

RankResult paired(const Dump& target, const Dump& golden, const MatchOptions& asked = {}) {
  MatchOptions options = asked;
  if (!options.mapping) pairing::load_mapping(options);
  RankResult result;
  result.target = side_of(target.members, target.framework);
  result.golden = side_of(golden.members, golden.framework);
  result.target.header.level = target.level;
  result.golden.header.level = golden.level;
  options.by_name = true;  // as where the dumps cannot be aligned
  pair_rows(result, options, pairing::default_rules());
  return result;
}

/// Rows without partner, cause and option.
using Told = std::tuple<std::size_t, Advice::Cause, std::string_view>;

std::optional<Told> advice(const Dump& target, const Dump& golden, const MatchOptions& options = {}) {
  const auto found = find_advice(paired(target, golden, options), options);
  return found ? std::optional(Told{found->unmatched, found->cause, found->option}) : std::nullopt;
}

std::size_t matched_rows(const RankResult& result) {
  return static_cast<std::size_t>(std::count_if(result.rows.begin(), result.rows.end(),
                                                [](const pairing::Pair& row) { return row.matched(); }));
}

/// Pairs the dumps again, with the suggestion for their first pairing.
RankResult paired_as_suggested(const Dump& target, const Dump& golden) {
  const test::ScratchDirectory scratch;
  const std::string file = scratch / "rows.yaml";
  REQUIRE(write_suggestion({suggest_pairs(paired(target, golden))}, file, Existing::refuse));
  MatchOptions options;
  options.method = pairing::Method::data;
  options.mapping_file = file;
  pairing::load_mapping(options);
  return paired(target, golden, options);
}

}  // namespace

TEST_CASE("few rows without partner need no advice") {
  std::string many;
  for (int i = 0; i < 20; ++i) many += entry("Torch.a." + std::to_string(i) + ".forward") + ",";
  CHECK_FALSE(advice({many + entry("Torch.b.0.forward")}, {many + entry("Torch.c.0.forward")}));
  CHECK_FALSE(advice({entry("Torch.a.0.forward")}, {entry("Torch.a.0.forward")}));
}

TEST_CASE("the likeliest reason, and the option that helps") {
  const std::string operations = entry("Torch.a.0.forward") + "," + entry("Torch.b.0.forward");
  const std::string modules =
      entry("Module.net.fc.Linear.forward.0") + "," + entry("Module.net.act.ReLU.forward.0");
  CHECK(advice({operations}, {modules, "pytorch", "L0"}) == Told{2, Cause::levels, ""});
  CHECK(advice({entry("Mint.a.0.forward") + "," + entry("Mint.b.0.forward"), "mindspore"}, {operations}) ==
        Told{2, Cause::operations, "-am"});
  CHECK(advice({entry("Cell.fc.Dense.forward.0") + "," + entry("Cell.x.Dense.forward.0"), "mindspore", "L0"},
               {modules, "pytorch", "L0"}) == Told{2, Cause::modules, "-cm"});
  CHECK(advice({entry("Mint.a.0.forward") + "," + entry("Cell.x.Dense.forward.0"), "mindspore", "mix"},
               {operations + "," + modules, "pytorch", "mix"}) == Told{2, Cause::operations, "-lm"});
  CHECK(advice({entry("Torch.a.3.forward") + "," + entry("Torch.b.4.forward")}, {operations}) ==
        Told{2, Cause::call_numbers, "-fm"});
  CHECK(advice({entry("Torch.x.0.forward") + "," + entry("Torch.y.0.forward")}, {operations}) ==
        Told{2, Cause::names, "--suggest-mapping"});
  CHECK(advice({operations + "," + entry("Torch.x.0.forward") + "," + entry("Torch.y.0.forward")},
               {operations}) == Told{2, Cause::nothing_left, ""});
  const RankResult under_root = paired(
      {entry("Module.module.net.fc.Linear.forward.0") + "," + entry("Module.module.net.act.ReLU.forward.0"),
       "pytorch", "L0"},
      {modules, "pytorch", "L0"});
  const auto root = find_advice(under_root, {});
  REQUIRE(root);
  CHECK(root->cause == Cause::root);
  CHECK(root->option == "--suggest-mapping");
  CHECK(root->target == "module.");
  CHECK(root->golden.empty());
  CHECK(root->rows == 2);
  const std::string words = advise(under_root, {});
  for (const char* part : {"2 of 2 rows", "'module.'", "nothing", "--suggest-mapping FILE", "-dm"})
    CHECK(words.find(part) != std::string::npos);
  CHECK(advise(paired({operations}, {operations}), {}).empty());
}

TEST_CASE("advice is not what was asked for already") {
  const Dump target{entry("Torch.a.3.forward") + "," + entry("Torch.a.4.forward") + "," +
                    entry("Torch.a.5.forward")};
  const Dump golden{entry("Torch.a.0.forward")};
  MatchOptions fuzzy;
  fuzzy.fuzzy = true;
  CHECK(advice(target, golden) == Told{3, Cause::call_numbers, "-fm"});
  CHECK(advice(target, golden, fuzzy) == Told{2, Cause::nothing_left, ""});
}

TEST_CASE("a suggestion that is read back pairs more rows: a renamed root and class") {
  const Dump target{entry("Module.module.net.fc.Dense.forward.0", "[4, 4]") + "," +
                    entry("Module.module.net.act.ReLU.forward.0") + "," + entry("Torch.same.0.forward")};
  const Dump golden{entry("Module.net.fc.Linear.forward.0", "[4, 4]") + "," +
                    entry("Module.net.act.ReLU.forward.0") + "," + entry("Torch.same.0.forward")};
  CHECK(matched_rows(paired(target, golden)) == 1);
  const RankResult result = paired_as_suggested(target, golden);
  REQUIRE(matched_rows(result) == 3);
  CHECK(result.golden.name(result.golden_item(result.rows[0])) == "Module.net.fc.Linear.forward.0.input.0");
  CHECK(result.golden.name(result.golden_item(result.rows[1])) == "Module.net.act.ReLU.forward.0.input.0");
}

TEST_CASE("names count for more than order, order for more than nothing") {
  const Dump target{entry("Torch.x.0.forward") + "," + entry("Torch.y.0.forward") + "," +
                    entry("Torch.z.7.forward")};
  const Dump golden{entry("Torch.z.0.forward") + "," + entry("Torch.v.0.forward") + "," +
                    entry("Torch.w.0.forward")};
  const NamePairs pairs = suggest_pairs(paired(target, golden));
  CHECK(pairs == NamePairs{{"Torch.x.0.forward.input.0", "Torch.v.0.forward.input.0"},
                           {"Torch.y.0.forward.input.0", "Torch.w.0.forward.input.0"},
                           {"Torch.z.7.forward.input.0", "Torch.z.0.forward.input.0"}});
}

TEST_CASE("entries of other shape, kind of dtype, direction or number of rows are not proposed") {
  const auto proposals = [](const std::string& target, const std::string& golden) {
    return suggest_pairs(paired({target}, {golden})).size();
  };
  CHECK(proposals(entry("Torch.a.0.forward"), entry("Torch.b.0.forward")) == 1);
  CHECK(proposals(entry("Torch.a.0.forward"), entry("Torch.b.0.forward", "[2, 3]", "torch.float64")) == 1);
  CHECK(proposals(entry("Torch.a.0.forward"), entry("Torch.b.0.forward", "[3, 2]")) == 0);
  CHECK(proposals(entry("Torch.a.0.forward"), entry("Torch.b.0.forward", "[2, 3]", "torch.int32")) == 0);
  CHECK(proposals(entry("Torch.a.0.forward"), entry("Torch.b.0.backward")) == 0);
  CHECK(proposals(entry("Torch.a.0.forward"),
                  forward_json("Torch.b.0.forward", tensor_json("1"), tensor_json("2"))) == 0);
}

TEST_CASE("a suggestion holds the pairs that are there, once, and is no file without any") {
  const test::ScratchDirectory scratch;
  const std::string file = scratch / "rows.yaml";
  CHECK_FALSE(write_suggestion({{}, {}}, file, Existing::replace));
  CHECK(scratch.names().empty());
  const std::string odd = "odd: \"name\" # \\ \n\x7f\xc3\xa9\xf0\x9f\x98\x80 ";
  const std::string endless(3000, 'k');
  REQUIRE(write_suggestion(
      {{{"a.b", "c.d"}, {odd, endless}}, {{"a.b", "other.name"}, {endless, odd}, {"true", "1"}}}, file,
      Existing::replace));
  const pairing::NameMapping mapping = pairing::read_name_mapping(*open_file(file));
  CHECK(mapping.entries().size() == 4);
  CHECK(*mapping.find("a.b") == "c.d");
  CHECK(*mapping.find(odd) == endless);
  CHECK(*mapping.find(endless) == odd);
  CHECK(*mapping.find("true") == "1");
}

}  // namespace msprobe::compare_advice_test

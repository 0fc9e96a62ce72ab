// SPDX-License-Identifier: Apache-2.0
#include "config_check/checks.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "config_check/compare_packs.hpp"
#include "dump/member_stream.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::config_check::checks_test {
namespace {

using Members = std::map<std::string, std::string>;

pack::Pack pack_of(const Members& members, const std::string& name) {
  std::vector<archive::Piece> pieces;
  for (const auto& [member, text] : members) pieces.push_back({.name = member, .payload = text});
  return pack::Pack(memory_source(archive::build_zip(pieces), name));
}

/// Rows as texts, a vertical bar between cells.
std::vector<std::string> rows_of(const report::Table& table) {
  std::vector<std::string> out;
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    table.row(i, cells, scratch);
    std::string line;
    for (const report::Cell& cell : cells) {
      if (!line.empty()) line += '|';
      if (const auto* text = std::get_if<report::Text>(&cell)) line += text->value;
      if (const auto* number = std::get_if<double>(&cell)) line += std::to_string(*number);
      if (const auto* number = std::get_if<std::int64_t>(&cell)) line += std::to_string(*number);
      if (const auto* yes = std::get_if<bool>(&cell)) line += *yes ? "True" : "False";
    }
    out.push_back(line);
  }
  return out;
}

std::vector<std::string> parameters(const std::string& bench, const std::string& cmp) {
  const auto value = [](const std::string& json) {
    return pack::from_entry(dump::read_json(json, "t"), 0, "t");
  };
  RowTable rows(hyper_parameter_columns());
  compare_hyper_parameters("f", value(bench), value(cmp), default_tables(), rows);
  return rows_of(rows);
}

using Rows = std::vector<std::string>;

}  // namespace

TEST_CASE("frames are the same by file, function and most of their text") {
  const std::string frame = "File /a/x.py, line 1, in main, torch.rand(3)";
  CHECK(frames_match(frame, "File /b/c/x.py, line 77, in main, torch.rand(3)"));
  CHECK(frames_match("File /with blanks, line 2/x.py, line 1, in main, f()",
                     "File /b/x.py, line 9, in main, f()"));
  CHECK_FALSE(frames_match(frame, "File /a/y.py, line 1, in main, torch.rand(3)"));
  CHECK_FALSE(frames_match(frame, "File /a/x.py, line 1, in other, torch.rand(3)"));
  // 4 of 10 characters: (1 + 1 + 0.4) / 3 is just below 0.8 in double precision; 5 of 10 are enough.
  CHECK_FALSE(frames_match("File /x.py, line 1, in f, abcdefghij", "File /x.py, line 1, in f, abcdWXYZQR"));
  CHECK(frames_match("File /x.py, line 1, in f, abcdefghij", "File /x.py, line 1, in f, abcdeWXYZQ"));
  CHECK_FALSE(frames_match("nothing", "nothing"));
  CHECK(frames_match("File /x.py, line 1, in f, ", "File /x.py, line 2, in f, "));
}

TEST_CASE("frames inside of msprobe's package do not count") {
  // seed_all() as two recorders have it: another way to torch.manual_seed, taken twice by the first.
  const auto call = [&](int count, const std::vector<std::string>& frames) {
    std::string stack;
    for (const std::string& frame : frames) stack += (stack.empty() ? "\"File " : ", \"File ") + frame + "\"";
    return "{\"count\": " + std::to_string(count) + ", \"stack\": [" + stack + "]}";
  };
  const auto random = [](const std::string& calls) {
    return pack_of({{"random/rank0.json", "{\"torch.manual_seed\": [" + calls + "]}"}}, "p");
  };
  const std::string user = "/u/train.py, line 5, in <module>, seed_all(7)";
  const std::string theirs = "/p/msprobe/pytorch/common/utils.py, line 9, in seed_all, a()";
  const std::string deeper = "/p/msprobe/pytorch/common/utils.py, line 3, in a, manual_seed(s)";
  const pack::Pack bench = random(call(1, {user, theirs}) + ", " + call(1, {user, theirs, deeper}));
  const pack::Pack cmp = random(call(2, {user, "/q/msprobe/core/seeds.py, line 1, in seed_all, seed(s)"}));
  const SheetSection section = check_random({bench, cmp});
  CHECK(section.status == SectionStatus::pass);
  CHECK(section.table->rows() == 1);
  CHECK(check_random({bench, bench}).status == SectionStatus::pass);
  // A folder of that name alone is not the package.
  const pack::Pack a = random(call(1, {"/u/msprobe/a.py, line 1, in f, rand(1)"}));
  const pack::Pack b = random(call(1, {"/u/msprobe/b.py, line 1, in f, rand(1)"}));
  CHECK(check_random({a, b}).status == SectionStatus::error);
}

TEST_CASE("names are matched one to one: whole, then reduced, then aliases, then similar ones") {
  CHECK(parameters("{\"a.lr\": 1, \"b.lr\": 2}", "{\"b.lr\": 2, \"a.lr\": 1}") == Rows{});
  CHECK(parameters("{\"a.lr\": 1}", "{\"lr\": 2}") == Rows{"f|a.lr|lr|1|2|pure name|error"});
  CHECK(parameters("{\"lr\": 1, \"eta.lr\": 3}", "{\"learning-rate\": 1, \"lr\": 3}") ==
        Rows{"f|eta.lr|learning-rate|3|1|mapping|error", "f|lr|lr|1|3|pure name|error"});
  CHECK(parameters("{\"adam-beta1\": 0.9}", "{\"adam-beta2\": 0.9}") ==
        Rows{"f|adam-beta1|adam-beta2|0.9|0.9|similarity:0.9|warning"});
  // The exact partner is not taken away by a similar name that comes first.
  CHECK(parameters("{\"micro-batch-siz\": 1, \"micro-batch-size\": 2}", "{\"micro-batch-size\": 2}") ==
        Rows{"f|micro-batch-siz|Only in benchmark|1|||warning"});
}

TEST_CASE("values that mean one number are equal") {
  CHECK(parameters("{\"a\": 1e-5, \"b\": 1, \"c\": \"1.0\", \"d\": [1, {\"x\": \"2\"}]}",
                   "{\"a\": \"0.00001\", \"b\": 1.0, \"c\": 1, \"d\": [\"1.0\", {\"x\": 2}]}") == Rows{});
  CHECK(parameters("{\"a\": true}", "{\"a\": 1}") == Rows{"f|a|a|True|1|pure name|error"});
  CHECK(parameters("{\"a\": null}", "{\"a\": 0}") == Rows{"f|a|a||0|pure name|error"});
  CHECK(parameters("{\"a\": [1, 2]}", "{\"a\": [2, 1]}") == Rows{"f|a|a|[1, 2]|[2, 1]|pure name|error"});
  CHECK(parameters("{\"a\": {\"x\": 1, \"y\": 2}}", "{\"a\": {\"y\": 2, \"x\": 1}}") == Rows{});
  CHECK(parameters("{\"a\": NaN}", "{\"a\": NaN}") == Rows{});
}

TEST_CASE("very many names without a partner are not compared with each other") {
  std::string bench = "{";
  std::string cmp = "{";
  for (int i = 0; i < 6000; ++i) {
    bench += (i == 0 ? "\"b" : ", \"b") + std::to_string(i) + "\": 1";
    cmp += (i == 0 ? "\"c" : ", \"c") + std::to_string(i) + "\": 1";
  }
  CHECK(parameters(bench + "}", cmp + "}").size() == 12'000);
}

TEST_CASE("differences are measured against the magnitude of the reference") {
  const auto weights = [](const std::string& text) {
    return Members{{"weights/step0/rank0/weight.json", text}};
  };
  const pack::Pack bench =
      pack_of(weights("{\"w\": {\"max\": -2, \"min\": 0, \"mean\": NaN, \"norm\": 4}}"), "b");
  const pack::Pack cmp =
      pack_of(weights("{\"w\": {\"max\": -1, \"min\": 1, \"mean\": NaN, \"norm\": 5}}"), "c");
  const SheetSection section = check_weights({bench, cmp});
  CHECK(rows_of(*section.table) == Rows{"0|0|w|False|0.500000|||0.250000"});
  CHECK(section.status == SectionStatus::error);
  CHECK(check_weights({bench, bench}).status == SectionStatus::pass);  // NaN is NaN
}

TEST_CASE("one broken file of many spoils its own rows only") {
  Members bench = {{"dataset/step0/rank0/dataset.json",
                    "{\"args\": {\"0\": {\"max\": 1, \"min\": 1, \"mean\": 1, \"norm\": 1}}}"},
                   {"dataset/step1/rank0/dataset.json", "{\"args\": "}};
  Members cmp = bench;
  const pack::Pack left = pack_of(bench, "b.zip");
  const pack::Pack right = pack_of(cmp, "c.zip");
  const SheetSection section = check_dataset({left, right});
  CHECK(rows_of(*section.table) ==
        Rows{"0|0|args.0|True|0.000000|0.000000|0.000000|0.000000", "1|0|dataset.json|False||||"});
  REQUIRE(section.reasons.size() == 1);
  CHECK(section.reasons[0].starts_with("b.zip: dataset/step1/rank0/dataset.json: "));
}

TEST_CASE("a tree as deep as Python allows") {
  std::string text = "{\"max\": 1, \"min\": 1, \"mean\": 1, \"norm\": 1}";
  for (int i = 0; i < 399; ++i) text = "{\"k\": " + text + "}";
  const Members members = {{"dataset/step0/rank0/dataset.json", "{\"args\": " + text + "}"}};
  const pack::Pack one = pack_of(members, "b.zip");
  const SheetSection section = check_dataset({one, one});
  CHECK(section.reasons.empty());
  REQUIRE(section.table->rows() == 1);
  CHECK(section.status == SectionStatus::pass);
}

TEST_CASE("a comparison touches no file before it is done") {
  const test::ScratchDirectory scratch;
  std::string damaged =
      archive::build_zip({{.name = "env", .payload = "{}"}, {.name = "pip", .payload = "a=1"}});
  damaged[damaged.find("a=1")] = 'b';
  test::put_file(scratch / "bench.zip", archive::build_zip({{.name = "env", .payload = "{}"}}));
  test::put_file(scratch / "cmp.zip", damaged);
  ComparePacksOptions options;
  options.bench = scratch / "bench.zip";
  options.cmp = scratch / "cmp.zip";
  options.output = scratch / "out";
  CHECK_THROWS(compare_packs(options, default_tables()));
  CHECK(scratch.names() == std::vector<std::string>{"bench.zip", "cmp.zip"});
}

}  // namespace msprobe::config_check::checks_test

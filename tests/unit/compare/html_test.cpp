// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/html_page.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/sinks/summary.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "report/page.hpp"
#include "unit/compare/dumps.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_html_test {

using namespace msprobe;
using namespace msprobe::compare;
using measuring::Mode;
using verdict::RankResult;

namespace {

/// Raw deflate, read with zlib itself.
std::string inflated(const std::string& bytes) {
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, -MAX_WBITS) == Z_OK);
  std::string in = bytes;
  std::string out(std::size_t{1} << 22, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

std::string from_base64(const std::string& text) {
  static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size() && text[i] != '='; ++i) {
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(text[i]));
    if (i % 4 != 0) out += static_cast<char>(bits >> (6 - 2 * (i % 4)) & 0xFF);
  }
  return out;
}

std::optional<std::size_t> first_bad_of(const TaskSummary& summary) {
  return summary.first_bad ? std::optional(summary.first_bad->index) : std::nullopt;
}

void give_diagnosis(RankResult& result) {
  pairing::align_entries(result, false);
  diagnosis::RankHistory past;
  result.diagnosis =
      std::make_shared<const diagnosis::RankDiagnosis>(diagnosis::diagnose(result, {}, {}, past));
}

std::string page(const RankResult& result) {
  CompareReport report;
  report.tasks.push_back(summarize(RankRows::of(result)));
  std::vector<PackedRank> ranks;
  ranks.push_back(pack_rank(RankRows::of(result), first_bad_of(report.tasks[0])));
  std::string out;
  write_html(report, ranks, [&](std::string_view bytes) { out += bytes; });
  return out;
}

RankResult two_entries(std::string_view name) {
  const std::string dump = forward_json(name, tensor_json("1"), tensor_json("2")) + "," +
                           forward_json("Torch.b.0.forward", tensor_json("NaN"), tensor_json("Infinity"));
  return judged(dump, dump, Mode::statistics, false);
}

/// A tensor with an error of its maximum alone.
std::string off_by(double error) {
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [64], "Max": )" +
         std::to_string(2 * (1 + error)) + R"(, "Min": -2, "Mean": 0.5, "Norm": 8})";
}

/// Golden has an entry at its beginning, one between the two others and one after them.
RankResult with_golden_only(bool diagnosed) {
  const auto entry = [](const std::string& name, double in, double out) {
    return forward_json("Torch." + name + ".0.forward", off_by(in), off_by(out));
  };
  const std::string target = entry("linear", 0, 0) + "," + entry("gelu", 0, 0.5);
  const std::string golden = entry("relu", 0, 0) + "," + entry("linear", 0, 0) + "," + entry("tanh", 0, 0) +
                             "," + entry("gelu", 0, 0) + "," + entry("sigmoid", 0, 0);
  RankResult result = judged(target, golden, Mode::statistics, false);
  if (diagnosed) give_diagnosis(result);
  return result;
}

std::string not_finite() {
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [64], "Max": NaN, "Min": -2, "Mean": 0.5, "Norm": 8})";
}

/// A hundred entries of two rows; the output of one is wrong.
RankResult long_rank(std::size_t wrong) {
  std::string target;
  std::string golden;
  for (std::size_t i = 0; i < 100; ++i) {
    const std::string name = "Torch.op." + std::to_string(i) + ".forward";
    const char* const comma = i == 0 ? "" : ",";
    target += comma + forward_json(name, off_by(0), i == wrong ? not_finite() : off_by(0));
    golden += comma + forward_json(name, off_by(0), off_by(0));
  }
  return judged(target, golden, Mode::statistics, false);
}

template <typename T>
std::vector<T> values_at(const std::string& bytes, std::size_t& at, std::size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), bytes.data() + at, count * sizeof(T));
  at += (count * sizeof(T) + 7) / 8 * 8;
  return values;
}

/// The text before the columns.
struct PackedRows {
  std::vector<std::uint8_t> verdicts;
  std::vector<std::uint32_t> targets;
  std::vector<std::uint32_t> goldens;
  std::vector<std::uint16_t> explained;

  explicit PackedRows(const PackedRank::Chunk& chunk, bool diagnosed) {
    const std::string bytes = inflated(chunk.columns);
    std::size_t at = 0;
    verdicts = values_at<std::uint8_t>(bytes, at, chunk.rows);
    targets = values_at<std::uint32_t>(bytes, at, chunk.rows);
    goldens = values_at<std::uint32_t>(bytes, at, chunk.rows);
    if (diagnosed) explained = values_at<std::uint16_t>(bytes, at, chunk.rows);
  }
};

}  // namespace

TEST_CASE("the page is whole, and the same every time") {
  const std::string first = page(two_entries("Torch.a.0.forward"));
  CHECK(first.starts_with("<!doctype html>"));
  CHECK(first.ends_with("</html>\n"));
  CHECK(first.find("{{") == std::string::npos);
  CHECK(first == page(two_entries("Torch.a.0.forward")));
}

TEST_CASE("a name adds no tags to the page") {
  const std::string hostile = page(two_entries("Torch.</script><b>.0.forward"));
  CHECK(hostile.find("<b>") == std::string::npos);
  const std::string harmless = page(two_entries("Torch.a.0.forward"));
  const auto tags = [](const std::string& text) { return std::count(text.begin(), text.end(), '<'); };
  CHECK(tags(hostile) == tags(harmless));
}

TEST_CASE("names and texts of a packed rank") {
  const RankResult result = two_entries("Torch.a.0.forward");
  const PackedRank packed = pack_rank(RankRows::of(result));
  const nlohmann::json names = nlohmann::json::parse(inflated(packed.names));
  CHECK(names["entries"] == nlohmann::json({"Torch.a.0.forward", "Torch.b.0.forward"}));
  CHECK(names["directions"] == nlohmann::json({0, 0}));
  CHECK(names["parents"].empty());
  CHECK(names["columns"][0]["texts"] == nlohmann::json({"", ".input.0", ".output.0"}));
  REQUIRE(packed.chunks.size() == 1);
  CHECK(packed.chunks[0].rows == 4);
  CHECK(inflated(packed.chunks[0].columns).size() % 8 == 0);
}

TEST_CASE("a rank without rows has no chunks") {
  const RankResult result = judged("", "", Mode::statistics, false);
  const PackedRank packed = pack_rank(RankRows::of(result));
  CHECK(packed.chunks.empty());
}

TEST_CASE("a deflate stream of nothing is one, too") {
  CHECK(inflated(report::deflate_all("")).empty());
  const std::string long_text(2'500'000, 'x');
  CHECK(inflated(report::deflate_all(long_text)) == long_text);
}

TEST_CASE("entries of golden alone come after the partner of the one before them") {
  const RankResult result = with_golden_only(true);
  const PackedRank packed = pack_rank(RankRows::of(result));
  const nlohmann::json names = nlohmann::json::parse(inflated(packed.names));
  CHECK(names["goldenOnly"] == nlohmann::json({2, 3}));
  REQUIRE(packed.chunks.size() == 1);
  REQUIRE(packed.chunks[0].rows == 10);
  const PackedRows rows(packed.chunks[0], true);
  std::vector<std::string> order;
  for (std::size_t i = 0; i < 10; i += 2) {
    const bool alone = rows.targets[i] == UINT32_MAX;
    CHECK((rows.verdicts[i] == 3) == alone);
    CHECK(rows.verdicts[i] == rows.verdicts[i + 1]);
    order.push_back((alone ? "golden " : "") +
                    names["entries"][alone ? rows.goldens[i] : rows.targets[i]].get<std::string>());
  }
  CHECK(order == std::vector<std::string>{"golden Torch.relu.0.forward", "Torch.linear.0.forward",
                                          "golden Torch.tanh.0.forward", "Torch.gelu.0.forward",
                                          "golden Torch.sigmoid.0.forward"});
}

TEST_CASE("rows that golden alone has of a common entry come after the others") {
  const auto entry = [](const std::string& name, const std::string& inputs) {
    return forward_json("Torch." + name + ".forward", inputs, off_by(0));
  };
  const std::string two = off_by(0) + "," + off_by(0);
  RankResult result = judged(entry("linear.0", off_by(0)) + "," + entry("relu.0", off_by(0)),
                             entry("linear.1", two) + "," + entry("relu.0", two), Mode::statistics, false);
  // As the alignment pairs them: linear.0 is golden's linear.1.
  result.rows[0].golden = 0;
  result.rows[1].golden = 2;
  give_diagnosis(result);
  const PackedRank packed = pack_rank(RankRows::of(result));
  const nlohmann::json names = nlohmann::json::parse(inflated(packed.names));
  CHECK(names["entries"] ==
        nlohmann::json({"Torch.linear.0.forward", "Torch.relu.0.forward", "Torch.linear.1.forward"}));
  CHECK(names["goldenOnly"][1] == 0);
  REQUIRE(packed.chunks.size() == 1);
  const PackedRows rows(packed.chunks[0], true);
  REQUIRE(rows.verdicts.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK((rows.verdicts[i] == 3) == (i % 3 == 2));
  constexpr std::uint32_t kWhole = std::uint32_t{1} << 31;  // the cell has the whole name
  CHECK(rows.targets == std::vector<std::uint32_t>{0, 0, UINT32_MAX, 1, 1, UINT32_MAX});
  CHECK(rows.goldens[2] == (0 | kWhole));
  CHECK(rows.goldens[5] == (1 | kWhole));
  const std::vector<std::string> texts = names["columns"][1]["texts"];
  CHECK(std::count(texts.begin(), texts.end(), "Torch.linear.1.forward.input.1") == 1);
  CHECK(std::count(texts.begin(), texts.end(), "Torch.relu.0.forward.input.1") == 1);
}

TEST_CASE("without a diagnosis the page has the rows of the tables") {
  const PackedRank packed = pack_rank(RankRows::of(with_golden_only(false)));
  REQUIRE(packed.chunks.size() == 1);
  CHECK(packed.chunks[0].rows == 4);
  const nlohmann::json names = nlohmann::json::parse(inflated(packed.names));
  CHECK(names["goldenOnly"][1] == 0);
  CHECK(names["explained"] == false);
}

TEST_CASE("an entry of golden alone is not the target's of the same name") {
  const auto entry = [](const std::string& name) {
    return forward_json("Torch." + name + ".forward", off_by(0), off_by(0));
  };
  RankResult result =
      judged(entry("linear.0") + "," + entry("gelu.0"),
             entry("gelu.0") + "," + entry("linear.0") + "," + entry("gelu.1"), Mode::statistics, false);
  // The pairs follow what the calls do: gelu.0 of the target is gelu.1 of golden.
  const auto alignment = std::make_shared<pairing::Alignment>(pairing::align(result.target, result.golden));
  REQUIRE(alignment->golden_only.size() == 1);
  result.alignment = alignment;
  for (pairing::Pair& row : result.rows) row.golden = alignment->golden_item_of[row.target];
  give_diagnosis(result);
  const PackedRank packed = pack_rank(RankRows::of(result));
  const nlohmann::json names = nlohmann::json::parse(inflated(packed.names));
  const PackedRows rows(packed.chunks[0], true);
  CHECK(rows.goldens[0] == 2);
  CHECK(names["entries"][2] == "Torch.gelu.0.forward");
  CHECK(names["entries"][1] == "Torch.gelu.0.forward");
}

TEST_CASE("what is explained is packed in two bytes a row") {
  const RankResult result = with_golden_only(true);
  const PackedRows rows(pack_rank(RankRows::of(result)).chunks[0], true);
  const auto value = [&](std::size_t row) {
    return std::bit_cast<float>(std::uint32_t{rows.explained[row]} << 16);
  };
  CHECK(std::isnan(value(0)));  // of golden alone
  CHECK(std::isnan(value(2)));  // an input
  const std::uint32_t item = result.rows[3].target;
  CHECK(value(7) == doctest::Approx(result.diagnosis->explained[item]).epsilon(1.0 / 256));
  CHECK(result.diagnosis->explained[item] < result.diagnosis->error[item]);
}

TEST_CASE("a page without room for all rows has those around the first bad one, and says how many it lacks") {
  const RankResult result = long_rank(60);
  const RankRows rows = RankRows::of(result);
  const TaskSummary summary = summarize(rows);
  REQUIRE(summary.first_bad);
  REQUIRE(summary.rows == 200);
  const PackedRank packed = pack_rank(rows, first_bad_of(summary), 50);
  REQUIRE(packed.chunks.size() == 1);
  CHECK(packed.chunks[0].rows <= 50);
  CHECK(packed.chunks[0].rows > 40);
  CHECK(packed.left_out == 200 - packed.chunks[0].rows);
  const PackedRows here(packed.chunks[0], false);
  REQUIRE(packed.first_bad);
  CHECK(here.verdicts[*packed.first_bad] == 2);
  CHECK(std::count(here.verdicts.begin(), here.verdicts.end(), 2) == 1);
  // The four entries on both sides are there as a whole.
  for (std::uint32_t entry = 56; entry <= 64; ++entry)
    CHECK(std::count(here.targets.begin(), here.targets.end(), entry) == 2);
  CHECK(here.targets.front() < 20);
  CHECK(here.targets.back() > 80);
  const PackedRank whole = pack_rank(rows, first_bad_of(summary), 200);
  CHECK(whole.left_out == 0);
  CHECK(whole.chunks[0].columns == pack_rank(rows).chunks[0].columns);
}

TEST_CASE("where all is bad the first bad row is on the page all the same, and in its place") {
  std::string target;
  std::string golden;
  for (std::size_t i = 0; i < 100; ++i) {
    const char* const comma = i == 0 ? "" : ",";
    const std::string entry = "Torch.op." + std::to_string(i) + ".forward";
    target += comma + forward_json(entry, off_by(0), i < 7 ? off_by(0) : not_finite());
    golden += comma + forward_json(entry, off_by(0), off_by(0));
  }
  const RankResult result = judged(target, golden, Mode::statistics, false);
  const RankRows rows = RankRows::of(result);
  const TaskSummary summary = summarize(rows);
  REQUIRE(first_bad_of(summary) == 15);
  for (const std::size_t room : {2, 7, 40}) {
    const PackedRank packed = pack_rank(rows, 15, room);
    REQUIRE(packed.first_bad);
    const PackedRows here(packed.chunks.at(0), false);
    CHECK(here.targets[*packed.first_bad] == 7);
    CHECK(here.verdicts[*packed.first_bad] == 2);
    CHECK(packed.chunks[0].rows <= room);
  }
  CHECK_FALSE(pack_rank(rows, 15, 1).first_bad);  // no room for the entry
  CHECK(pack_rank(rows, 15).first_bad == 15);
}

TEST_CASE("an entry that the diagnosis speaks of is on every page") {
  RankResult result = long_rank(60);
  give_diagnosis(result);
  REQUIRE(result.diagnosis->findings.size() == 1);
  const PackedRank packed = pack_rank(RankRows::of(result), std::nullopt, 4);
  REQUIRE(packed.chunks.size() == 1);
  const PackedRows here(packed.chunks[0], true);
  CHECK(std::count(here.targets.begin(), here.targets.end(), result.diagnosis->findings[0].target_api) == 2);
}

TEST_CASE("tasks that have no room together are sampled, whichever comes first") {
  const auto made = [](std::size_t room, const std::vector<std::size_t>& order) {
    const auto few = std::make_shared<RankResult>(long_rank(3));
    const auto many = std::make_shared<RankResult>(long_rank(60));
    few->rows.resize(20);
    TaskPlan plan;
    plan.entries = true;
    plan.tasks.resize(2);
    const test::ScratchDirectory folder;
    const std::string path = folder / "page.html";
    const std::unique_ptr<Sink> sink = html_sink(path, Existing::refuse, nullptr, room);
    sink->begin(plan);
    CompareReport report;
    for (const auto& one : {few, many}) report.tasks.push_back(summarize(RankRows(one)));
    for (const std::size_t task : order)
      sink->take(task, std::make_shared<RankRows>(task == 0 ? few : many), report.tasks[task]);
    sink->end(report);
    return std::pair(report.rows_not_in_html, test::read_file(path));
  };
  CHECK(made(220, {0, 1}).first == 0);
  const auto [left_out, page] = made(219, {0, 1});
  CHECK(left_out >= 200 - 219 / 2);  // half of the room is for each
  CHECK(left_out <= 200 - 219 / 2 + 2);
  CHECK(made(219, {1, 0}).second == page);
  CHECK(made(220, {1, 0}).second == made(220, {0, 1}).second);
}

TEST_CASE("the page knows who takes what from whom") {
  // gelu takes the output of linear; on the golden side tanh, which golden alone has, comes between them.
  const auto entry = [](const std::string& name, double in, double out) {
    return forward_json("Torch." + name + ".0.forward", off_by(in), off_by(out));
  };
  RankResult result =
      judged(entry("linear", 0.1, 0.2) + "," + entry("gelu", 0.2, 0.5) + "," + entry("add", 0.2, 0.7),
             entry("linear", 0.1, 0.2) + "," + entry("tanh", 0.2, 0.3) + "," + entry("gelu", 0.3, 0.5) + "," +
                 entry("add", 0.2, 0.7),
             Mode::statistics, false);
  const auto names_of = [](const RankResult& one) {
    return nlohmann::json::parse(inflated(pack_rank(RankRows::of(one)).names));
  };
  // Entries that others take nothing from are skipped: one, then one giver, one ahead, and so on.
  CHECK(names_of(result)["flow"] == nlohmann::json({1, 1, 1, 0, 1, 2}));
  CHECK(names_of(result)["goldenFlow"].empty());
  CHECK_FALSE(names_of(result).contains("microSteps"));
  give_diagnosis(result);
  const nlohmann::json names = names_of(result);
  REQUIRE(names["entries"][3] == "Torch.tanh.0.forward");
  CHECK(names["goldenFlow"] == nlohmann::json({3, 0, 1, 3}));
}

TEST_CASE("calls of different ranks belong together, step by step") {
  PackedRank rank;
  const auto call = [](const std::string& operation) {
    dump::Communication one;
    one.operation = operation;
    return one;
  };
  rank.calls = {call("all_reduce"), call("all_gather"), call("all_reduce")};
  rank.call_entries = {4, 7, 9};
  PackedRank other = rank;
  other.number = 1;
  other.call_entries = {5, 8, 2};
  const nlohmann::json together =
      nlohmann::json::parse(exchanges_json({rank, other, rank, PackedRank()}, {"a", "a", "b", "b"}));
  CHECK(together == nlohmann::json({{0, 4, 1, 5}, {0, 7, 1, 8}, {0, 9, 1, 2}}));
}

TEST_CASE("the page knows steps, ranks and the answer") {
  CompareReport report;
  TaskSummary& task = report.tasks.emplace_back();
  task.label = "step3/rank1";
  task.step = "step3";
  task.rank = "rank1";
  diagnosis::Diagnosis& diagnosis = report.diagnosis.emplace();
  diagnosis::Finding finding;
  finding.entry = "Torch.gelu.0.forward";
  finding.text = "the text";
  finding.confidence = diagnosis::Confidence::certain;
  diagnosis.findings = {finding, finding};
  diagnosis.independent = 2;
  std::string out;
  write_html(report, {PackedRank()}, [&](std::string_view bytes) { out += bytes; });
  const std::string_view mark = "id=\"overview\">";
  const std::size_t from = out.find(mark) + mark.size();
  const nlohmann::json overview =
      nlohmann::json::parse(inflated(from_base64(out.substr(from, out.find('<', from) - from))));
  CHECK(overview["ranks"][0]["step"] == "step3");
  CHECK(overview["ranks"][0]["rank"] == "rank1");
  CHECK(overview["diagnosis"]["independent"] == 2);
  CHECK(overview["diagnosis"]["answer"][0] ==
        nlohmann::json({true, "culprit", "Torch.gelu.0.forward   certain"}));
  CHECK(overview["diagnosis"]["answer"][2][1] == "also");
}

}  // namespace msprobe::compare_html_test

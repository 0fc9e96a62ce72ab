// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/html_page.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <string>

#include "compare/sinks/summary.hpp"
#include "unit/compare/dumps.hpp"

using namespace msprobe;
using namespace msprobe::compare;

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

std::string page(const RankResult& result) {
  CompareReport report;
  report.tasks.push_back(summarize(RankRows::of(result)));
  std::vector<PackedRank> ranks;
  ranks.push_back(pack_rank(RankRows::of(result)));
  std::string out;
  write_html(report, ranks, [&](std::string_view bytes) { out += bytes; });
  return out;
}

RankResult two_entries(std::string_view name) {
  const std::string dump = forward_json(name, tensor_json("1"), tensor_json("2")) + "," +
                           forward_json("Torch.b.0.forward", tensor_json("NaN"), tensor_json("Infinity"));
  return judged(dump, dump, Mode::statistics, false);
}

}  // namespace

TEST_CASE("the page is whole, and the same every time") {
  const std::string first = page(two_entries("Torch.a.0.forward"));
  CHECK(first.starts_with("<!doctype html>"));
  CHECK(first.ends_with("</html>\n"));
  CHECK(first.find("{{") == std::string::npos);
  CHECK(first == page(two_entries("Torch.a.0.forward")));
}

TEST_CASE("nothing of a name stands in the page as it is") {
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
  CHECK(inflated(deflate_all("")).empty());
  const std::string long_text(2'500'000, 'x');
  CHECK(inflated(deflate_all(long_text)) == long_text);
}

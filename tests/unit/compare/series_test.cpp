// SPDX-License-Identifier: Apache-2.0
#include "compare/series.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace msprobe::compare_series_test {

using namespace msprobe;
using namespace msprobe::compare;

namespace {

SeriesRun culprit_of(std::string run, std::size_t since) {
  SeriesRun row;
  row.run = std::move(run);
  row.answer = "culprit";
  row.entry = "Functional.scaled_dot_product_attention.16.forward";
  row.text = "blocks.2.attn > " + row.entry + ", step 0, rank 3";
  row.confidence = "likely";
  row.file = "/srv/train/models/decoder.py";
  row.line = "44";
  row.propagated = 1234;
  row.since = since;
  row.results = "out/run";
  return row;
}

SeriesRun other(std::string answer, std::string text, bool judged) {
  SeriesRun row;
  row.run = "nightly/2026-01-0" + std::to_string(text.size() % 10);
  row.answer = std::move(answer);
  row.text = std::move(text);
  row.judged = judged;
  return row;
}

}  // namespace

TEST_CASE("a series keeps to the width of a terminal, and tells each culprit once") {
  const std::vector<SeriesRun> series = {
      other("no culprit", "all 210 rows that could be compared are equal", true),
      culprit_of("nightly/2026-01-03", 2),
      culprit_of("nightly/2026-01-04", 2),
      other("no culprit", "nothing could be compared", false),
  };
  Outputs to_folder;
  to_folder.directory = "out";
  const std::string text = render_series(series, to_folder, {.width = 80, .color = false, .links = false});
  CHECK(text ==
        "#  Run                 Answer            Rows  Since\n"
        "1  nightly/2026-01-05  no culprit\n"
        "2  nightly/2026-01-03  culprit, likely  1,234  run 2\n"
        "3  nightly/2026-01-04  culprit, likely  1,234  run 2\n"
        "4  nightly/2026-01-05  no culprit\n"
        "from run 2: blocks.2.attn > Functional.scaled_dot_product_attention.16.forward,\n"
        "step 0, rank 3, at /srv/train/models/decoder.py:44\n"
        "run 4: nothing could be compared\n"
        "the first run with a culprit: 2, nightly/2026-01-03\n"
        "written: out, a folder for each run\n");
}

TEST_CASE("a series: names cannot drive the terminal") {
  SeriesRun row = culprit_of("a\x1b[31m\nb", 1);
  row.file = "x\x1b]0;y\x07.py";
  const std::string text = render_series({row}, {}, {});
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\x07') == std::string::npos);
  CHECK(text.find("a\x1b") == std::string::npos);
}

}  // namespace msprobe::compare_series_test

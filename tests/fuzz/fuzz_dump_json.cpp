// SPDX-License-Identifier: Apache-2.0
// A hostile dump.json: read, flattened, paired with itself, judged and turned into cells.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "measuring/sum_precision.hpp"
#include "pairing/match.hpp"
#include "verdict/result.hpp"

namespace msprobe {
namespace {

void compare_with_itself(const ByteSource& json) {
  static const pairing::Rules rules = pairing::default_rules();
  verdict::RankResult result;
  result.target = dump::load_side(json);
  result.golden = dump::load_side(json);
  result.mode = result.target.has_md5 ? measuring::Mode::md5 : measuring::Mode::statistics;
  const pairing::Matching matching = pairing::match(result.target, result.golden, {.by_name = true}, rules);
  if (matching.pairs.size() < result.target.items.size()) throw std::logic_error("an item without a row");
  result.rows = matching.pairs;
  measuring::learn_precision(result);
  result.judgement = verdict::judge(result, rules);
  const compare::RankRows table(std::make_shared<const verdict::RankResult>(std::move(result)));
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    table.row(i, cells, scratch);
    if (cells.size() != table.columns().size()) throw std::logic_error("a row with missing cells");
  }
}

}  // namespace

FUZZ_READER(dump_json)(const std::uint8_t* data, std::size_t size) {
  const auto json = fuzz_input(data, size);
  dump::read_dump_json(*json, [](std::string_view, const dump::Entry& entry) { entry.python_str(0); });
  compare_with_itself(*json);
}

}  // namespace msprobe

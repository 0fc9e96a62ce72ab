// SPDX-License-Identifier: Apache-2.0
#include "compare/pairing.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

/// What is left of the Python tool's fuzzy match: with statistics all rows lose their partners if all had one
/// (else it ends in a traceback), with checksums they lose those.
void imitate_python_fuzzy(RankResult& result) {
  const bool all =
      std::all_of(result.rows.begin(), result.rows.end(), [](const Row& row) { return row.matched(); });
  if (result.mode == Mode::statistics && all) {
    for (Row& row : result.rows)
      row.pair = {row.pair.target, kUnmatched, Unmatched::entry_missing, kUnmatched};
    result.golden_only = result.golden.items.size();
  }
  if (result.mode == Mode::md5) result.checksums_lost = true;
}

}  // namespace

void pair_rows(RankResult& result, const MatchOptions& options, const PairingTraits& asked,
               const Rules& rules) {
  PairingTraits traits = asked;
  if (result.mode == Mode::statistics) traits.fuzzy_drops_surplus = false;
  const Constructs constructs = {result.target_construct.get(), result.golden_construct.get()};
  const Matching matching = match(result.target, result.golden, options, traits, rules, constructs);
  result.golden_only = matching.golden_only;
  result.rows.resize(matching.pairs.size());
  for (std::size_t i = 0; i < matching.pairs.size(); ++i) result.rows[i].pair = matching.pairs[i];
  if (!options.fuzzy && !matching.aligned) return;
  if (matching.aligned) {
    for (Row& row : result.rows) {
      if (!row.matched()) continue;
      const auto entry = [](const Side& side, const Item& item) {
        return side.text(side.apis[item.api].name);
      };
      if (entry(result.target, result.target_item(row)) != entry(result.golden, result.golden_item(row)))
        row.findings.add(Rule::aligned_pair);
    }
    return;
  }
  if (traits.fuzzy_loses_partners) {
    imitate_python_fuzzy(result);
    return;
  }
  for (Row& row : result.rows) {
    if (row.matched() &&
        result.target.name(result.target_item(row)) != result.golden.name(result.golden_item(row)))
      row.findings.add(Rule::fuzzy_pair);
  }
}

void pair_consistent_rows(RankResult& result, Backend backend, const PairingTraits& traits) {
  if (result.mode == Mode::md5) {
    throw FormatError(
        display(result.target.json),
        "--consistent_check compares tensors or statistics; parts of a tensor have other checksums");
  }
  result.consistent = backend;
  const ConsistentMatching matching = match_consistent(result.target, result.golden, backend, traits);
  if (matching.conflict) {
    log_warning(
        "training and inference ran modules in different orders: rows stand in the order of training");
  }
  result.golden_only = matching.golden_only;
  result.rows.resize(matching.pairs.size());
  for (std::size_t i = 0; i < matching.pairs.size(); ++i) result.rows[i].pair = matching.pairs[i];
}

}  // namespace msprobe::compare

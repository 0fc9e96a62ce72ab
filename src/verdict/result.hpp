// SPDX-License-Identifier: Apache-2.0
// What comparing one pair of ranks yields, before anyone writes it down: rows that were measured, the
// verdicts on them, and where errors come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/rank_diagnosis.hpp"
#include "measuring/measured_rank.hpp"
#include "pairing/rules.hpp"
#include "support/coverage.hpp"
#include "verdict/finding.hpp"
#include "verdict/imports.hpp"

namespace msprobe::verdict {

/// The verdicts on a rank's rows.
struct Judgement {
  Thresholds thresholds;           // that the findings speak of
  bool by_xor = false;             // checksums are words, not CRC-32
  std::vector<Findings> findings;  // one a row
  // Outputs whose difference is known as a number, and those of them that the limits speak of: others have
  // inputs that differ already.
  std::uint64_t outputs_known = 0;
  std::uint64_t outputs_judged = 0;
};

struct RankResult : MeasuredRank {
  std::vector<std::string> framework_frames;  // see dump::user_frame(); what is not one is the user's
  Judgement judgement;
  std::shared_ptr<const diagnosis::RankDiagnosis> diagnosis;  // null: it was not asked for
  Coverage coverage;  // how many tensors the rows compare, as `compare` counts them

  const Findings& findings(std::size_t row) const { return judgement.findings[row]; }
  Verdict verdict(std::size_t row) const { return findings(row).verdict(); }
};

/// What pairing and measuring noted of the rows, for a comparison without verdicts (-da).
Judgement marks_of(const MeasuredRank& rank);
/// The verdict on every row (docs/rules.md, "Verdicts").
Judgement judge(const MeasuredRank& rank, const Rules& rules);

/// One for each finding, those of a warning or error with that word in front.
std::vector<std::string> messages_of(const RankResult& result, std::size_t row);
/// What made the row's verdict: the first finding of that level. Nothing for a row that passes.
std::optional<Rule> decisive_rule(const Findings& findings);
/// The words of a finding, without its level.
std::string words_of(Rule rule, const RankResult& result, std::size_t row);

}  // namespace msprobe::verdict

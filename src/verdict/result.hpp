// SPDX-License-Identifier: Apache-2.0
// The result of comparing one pair of ranks before it is written: measured rows, the verdicts on them, and
// the origins of errors.
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

namespace msprobe::verdict {

/// The verdicts on a rank's rows.
struct Judgement {
  pairing::Thresholds thresholds;  // used by the findings
  bool by_xor = false;             // checksums are words, not CRC-32
  std::vector<Findings> findings;  // one a row
  // Outputs whose difference is a known number, and those of them that the limits can judge: the inputs of
  // the others differ already.
  std::uint64_t outputs_known = 0;
  std::uint64_t outputs_judged = 0;
};

struct RankResult : measuring::MeasuredRank {
  std::vector<std::string> framework_frames;  // see dump::user_frame(); all other frames are the user's
  Judgement judgement;
  std::shared_ptr<const diagnosis::RankDiagnosis> diagnosis;  // null: not requested
  Coverage coverage;  // the tensors that the rows compare, as `compare` counts them

  const Findings& findings(std::size_t row) const { return judgement.findings[row]; }
  Verdict verdict(std::size_t row) const { return findings(row).verdict(); }
  /// Whether the diagnosis compared the two items of a row. It compares others where a mapping pairs rows, or
  /// where operands are exchanged, and a row that dtypes keep apart has one item only.
  bool is_diagnosed(const pairing::Pair& row) const {
    return diagnosis && row.matched() && diagnosis->golden_item[row.target] == row.golden;
  }
  diagnosis::Origin origin(const pairing::Pair& row) const {
    return is_diagnosed(row) ? diagnosis->origin[row.target] : diagnosis::Origin::not_compared;
  }
};

/// The findings that pairing and measuring noted in the rows, for a comparison without verdicts (-da).
Judgement marks_of(const measuring::MeasuredRank& rank);
/// Judges every row (docs/rules.md, "Verdicts").
Judgement judge(const measuring::MeasuredRank& rank, const pairing::Rules& rules);

/// One message for each finding; that of a warning or error begins with that word.
std::vector<std::string> messages_of(const RankResult& result, std::size_t row);
/// The first finding of the row's level, which decides its verdict. Nothing for a row that passes.
std::optional<RowRule> decisive_rule(const Findings& findings);
/// The words of a finding without its level.
std::string words_of(RowRule rule, const RankResult& result, std::size_t row);

}  // namespace msprobe::verdict

// SPDX-License-Identifier: Apache-2.0
// From options to the origin of bad values.
#pragma once

#include <string>
#include <vector>

#include "anomaly/details.hpp"
#include "anomaly/levels.hpp"
#include "anomaly/search.hpp"
#include "support/coverage.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::anomaly {

enum class AnalysisFormat : std::uint8_t { json, jsonl, text };

struct AnalyzeOptions {
  std::string input;
  bool local = false;               // on the own disks of several machines
  std::string output = "./output";  // a folder, or - for standard output
  AnalysisFormat format = AnalysisFormat::json;
  bool all = false;
  AnomalyListing listing = AnomalyListing::none;
  std::string rules_file;
};

/// The findings in one step: the last one looked at, the first with an anomaly.
struct Analysis {
  std::string step;              // "step3"; empty unless the input is a dump root
  std::size_t steps_before = 0;  // steps looked at before, all without an anomaly
  std::vector<RankInput> ranks;
  std::vector<AnomalyRoot> roots;
  std::vector<RootDetails> details;     // of each root
  std::vector<EntryFindings> findings;  // of each rank, where a listing was asked for
  bool with_path = false;               // the result shows how bad values spread
  bool failed = false;                  // a rank of this step or one before could not be read
  Coverage coverage;                    // of the entries of these steps
  std::vector<std::string> not_judged;  // ranks of these steps of which nothing could be: a line each

  bool anomaly() const;  // is there anything to report?
  bool fault() const;    // is any of it more than perhaps a mask?
};

/// Reads and searches. Ranks that cannot be read are in the result, unless none could.
Analysis analyze(const AnalyzeOptions& options, const AnomalyRules& rules, Progress* progress,
                 const Tell& tell);

}  // namespace msprobe::anomaly

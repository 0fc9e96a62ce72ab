// SPDX-License-Identifier: Apache-2.0
// `msprobe compare --against`: several runs, each compared with one golden, as of a sweep or of nightly
// tests; and a table of what came of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compare/compare.hpp"
#include "compare/sinks/answer_text.hpp"
#include "support/gate.hpp"

namespace msprobe::compare {

/// What came of one run.
struct SeriesRun {
  std::string run;         // as it was named
  std::string answer;      // culprit, no culprit, not clear, not judged, failed
  std::string text;        // where the culprit is, or why there is none
  std::string confidence;  // these of a culprit only
  std::string kind;
  std::string entry;
  std::string module;
  std::string step;
  std::string rank;
  std::string file;  // of the line of code, if it is known
  std::string line;
  std::string place;                  // in the entry
  bool judged = false;                // there is no culprit, and all was judged
  std::uint64_t propagated = 0;       // rows that carry its error
  std::size_t since = 0;              // the number of the run, from 1, since which all have this culprit
  std::vector<std::string> failures;  // of all of it, or of a rank; with its name
  std::string not_judged;             // what the gate tells, a line
  std::string results;                // folder; empty: none were asked for
  Outcome outcome = Outcome::clean;

  bool has_culprit() const { return !entry.empty(); }
};

/// Compares each of `runs` with options.inputs.golden; one that fails does not stop the others. Results go to
/// a folder for each run below that of `options`, or nowhere if it names one file, which is for the table.
std::vector<SeriesRun> compare_series(const std::vector<std::string>& runs, const CompareOptions& options,
                                      const Gate& gate, bool strict, Progress* progress);

/// For people: a line a run, what is to be said of it, with which one the culprits begin, and where the table
/// or the results are.
std::string render_series(const std::vector<SeriesRun>& series, const Outputs& outputs, const Screen& screen);

/// Writes the table to the file of `outputs`, "-" is standard output, in its one format. UsageError for a
/// format that is none of a table.
void check_series_format(const Outputs& outputs);
void write_series(const std::vector<SeriesRun>& series, const Outputs& outputs);

}  // namespace msprobe::compare

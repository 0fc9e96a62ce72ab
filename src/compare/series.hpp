// SPDX-License-Identifier: Apache-2.0
// `msprobe compare --against`: compares several runs with one golden, such as those of a sweep or of nightly
// tests, and makes a table of the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compare/compare.hpp"
#include "compare/sinks/answer_text.hpp"
#include "support/gate.hpp"

namespace msprobe::compare {

/// The result of one run.
struct SeriesRun {
  std::string run;         // as it was named
  std::string answer;      // culprit, no culprit, not clear, not judged, failed
  std::string text;        // where the culprit is, or why none is named
  std::string confidence;  // from here on: of a culprit only
  std::string kind;
  std::string entry;
  std::string module;
  std::string step;
  std::string rank;
  std::string file;  // of the line of code, if known
  std::string line;
  std::string place;                  // in the entry
  bool judged = false;                // there is no culprit, and all was judged
  std::uint64_t propagated = 0;       // rows that carry its error
  std::size_t since = 0;              // the number of the run, from 1, since which all have this culprit
  std::vector<std::string> failures;  // of all of it, or of a rank; with its name
  std::string not_judged;             // what the gate reports, a line
  std::string results;                // folder; empty: none were asked for
  Outcome outcome = Outcome::clean;

  bool has_culprit() const { return !entry.empty(); }
};

/// Compares each of `runs` with options.inputs.golden. A run that fails does not stop the others. The results
/// of each run go to a folder below that of `options`, or nowhere if `options` names one file, which is for
/// the table.
std::vector<SeriesRun> compare_series(const std::vector<std::string>& runs, const CompareOptions& options,
                                      const Gate& gate, bool strict, Progress* progress);

/// The text for people: a line for each run, remarks on it, the run with which each culprit begins, and where
/// the table or the results are.
std::string render_series(const std::vector<SeriesRun>& series, const Outputs& outputs, const Screen& screen);

/// Throws UsageError if the one format of `outputs` is not a format of tables. write_series() writes the
/// table in that format to the file of `outputs`; "-" is standard output.
void check_series_format(const Outputs& outputs);
void write_series(const std::vector<SeriesRun>& series, const Outputs& outputs);

}  // namespace msprobe::compare

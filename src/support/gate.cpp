// SPDX-License-Identifier: Apache-2.0
#include "support/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

/// The first lines of many say enough.
constexpr std::size_t kMostTold = 8;

}  // namespace

Option Gate::declare(OptionList& options, std::string_view unit, const std::vector<std::string>& levels,
                     const std::string& help) {
  unit_ = unit;
  Option fail_on = options.add("--fail-on", level_, help).one_of(levels);
  allowance_ =
      options
          .add("--allow-uncompared=N", allowed_,
               fmt::format("With --fail-on: accept that up to N percent of the {} are not compared", unit))
          .check([](const std::string& text) {
            const std::optional<double> number = parse_number(text);
            return number && *number >= 0 && *number < 100
                       ? std::string()
                       : fmt::format("'{}' is not a number from 0 to less than 100", display(text));
          })
          .needs(fail_on)
          .details(
              "Without it status 0 says that everything was compared, or is explained by what was (see "
              "\"What status 0 "
              "means\" in docs/status-0.md). The output repeats what was not compared.\n"
              "Where nothing was compared at all, the status is 2 whatever N is.");
  return fail_on;
}

bool Gate::is_enough(const Coverage& coverage) const {
  return coverage.compared > 0 && (1 - coverage.share()) * 100 <= allowed_;
}

void Gate::report_not_judged(const std::vector<std::string>& not_judged) const {
  const auto report = is_set() ? log_error : log_warning;
  const std::size_t told = std::min(not_judged.size(), kMostTold);
  for (std::size_t i = 0; i < told; ++i) report("not judged: " + not_judged[i]);
  if (told < not_judged.size()) report("not judged: " + human_count(not_judged.size() - told) + " more");
}

void Gate::report_gaps(const Coverage& coverage) const {
  if (!is_set() || coverage.is_complete()) return;  // without a gate the result says it
  if (is_enough(coverage))
    return log_warning("not judged: " + coverage.text(unit_) + "; --allow-uncompared accepts it");
  std::string line = "not judged: " + coverage.text(unit_);
  if (const double needed = std::ceil((1 - coverage.share()) * 1000) / 10; needed < 100)
    line += fmt::format(" (--allow-uncompared {} accepts it)", needed);
  log_error(line);
}

Outcome Gate::outcome(bool findings, const Coverage& coverage,
                      const std::vector<std::string>& not_judged) const {
  if (!is_set()) return Outcome::clean;
  if (findings) return Outcome::findings;
  return not_judged.empty() && is_enough(coverage) ? Outcome::clean : Outcome::failure;
}

Outcome Gate::end(bool findings, const Coverage& coverage, const std::vector<std::string>& not_judged) const {
  report_not_judged(not_judged);
  if (!findings) report_gaps(coverage);
  return outcome(findings, coverage, not_judged);
}

}  // namespace msprobe

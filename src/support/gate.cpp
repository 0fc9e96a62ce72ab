// SPDX-License-Identifier: Apache-2.0
#include "support/gate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

constexpr std::size_t kMostTold = 3;      // reasons in one line
constexpr std::size_t kMostWarnings = 8;  // the first of many are enough
constexpr std::string_view kPage = "status-0";

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

std::string Gate::not_judged_line(bool findings, const Coverage& coverage,
                                  const std::vector<std::string>& not_judged) const {
  std::vector<std::string> parts;
  // With findings, the result itself reports what was not compared.
  if (!findings && !coverage.is_complete()) parts.push_back(coverage.text(unit_));
  const std::size_t told = std::min(not_judged.size(), kMostTold);
  parts.insert(parts.end(), not_judged.begin(), not_judged.begin() + static_cast<std::ptrdiff_t>(told));
  if (parts.empty()) return {};
  std::string line = fmt::format("{}", fmt::join(parts, "; "));
  if (told < not_judged.size()) line += fmt::format("; and {} more", human_count(not_judged.size() - told));
  if (findings) return line;
  const double needed = std::ceil((1 - coverage.share()) * 1000) / 10;
  if (!not_judged.empty() || needed >= 100)
    return line + fmt::format(" ('msprobe docs {}' says what to do)", kPage);
  return line + (is_enough(coverage) ? "; --allow-uncompared accepts it"
                                     : fmt::format(" (--allow-uncompared {} accepts it)", needed));
}

Outcome Gate::outcome(bool findings, const Coverage& coverage,
                      const std::vector<std::string>& not_judged) const {
  if (!is_set()) return Outcome::clean;
  if (findings) return Outcome::findings;
  return not_judged.empty() && is_enough(coverage) ? Outcome::clean : Outcome::failure;
}

Outcome Gate::end(bool findings, const Coverage& coverage, const std::vector<std::string>& not_judged) const {
  const Outcome result = outcome(findings, coverage, not_judged);
  if (!is_set()) {
    // Without a gate, the result itself reports what was not compared.
    for (std::size_t i = 0; i < std::min(not_judged.size(), kMostWarnings); ++i)
      log_warning("not judged: " + not_judged[i]);
    if (not_judged.size() > kMostWarnings)
      log_warning("not judged: " + human_count(not_judged.size() - kMostWarnings) + " more");
    return result;
  }
  if (const std::string line = not_judged_line(findings, coverage, not_judged); !line.empty())
    (result == Outcome::clean ? log_warning : log_error)("not judged: " + line);
  return result;
}

}  // namespace msprobe

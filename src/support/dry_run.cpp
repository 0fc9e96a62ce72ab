// SPDX-License-Identifier: Apache-2.0
#include "support/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "support/text.hpp"
#include "support/units.hpp"

namespace msprobe {
namespace {

constexpr std::size_t kLargestShown = 10;  // the number of large units that are listed

template <typename T>
std::string range_of(const std::vector<T>& values, std::string (*text)(std::uint64_t)) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least == *most ? text(*least) : text(*least) + " to " + text(*most);
}

}  // namespace

void DryRun::share(const SharedWork& work) {
  if (work.bytes.empty()) return;
  DryRunPart& part = parts_.emplace_back();
  part.units = work.units;
  part.bytes = work.bytes;
  for (const std::size_t unit : largest_first(work.bytes)) {
    if (part.largest.size() == kLargestShown) break;
    part.largest.push_back(
        fmt::format("{:>10}  {}", human_bytes(work.bytes[unit]), display(work.name(unit))));
  }
}

/// A later part begins only when all earlier parts are done.
std::string DryRun::plan() const {
  std::vector<std::uint64_t> bytes(processes_);
  std::vector<std::size_t> units(processes_);
  double last = 0;
  double sum = 0;
  std::string out;
  for (const DryRunPart& part : parts_) {
    const std::uint64_t all = std::accumulate(part.bytes.begin(), part.bytes.end(), std::uint64_t{0});
    out += fmt::format("{}{} {}, {}; the largest:\n", out.empty() ? "" : "then ",
                       human_count(part.bytes.size()), part.units, human_bytes(all));
    for (const std::string& line : part.largest) out += line + "\n";
    const Balance balance = balance_of(part.bytes, processes_);
    for (std::size_t i = 0; i < processes_; ++i) {
      bytes[i] += balance.bytes[i];
      units[i] += balance.units[i];
    }
    last += static_cast<double>(*std::ranges::max_element(balance.bytes));
    sum += static_cast<double>(all);
  }
  if (out.empty()) return "nothing to do\n";
  out += fmt::format("{} process{}: {} and {} units each; {:.1f} % of their time is idle\n",
                     human_count(processes_), processes_ == 1 ? "" : "es", range_of(bytes, human_bytes),
                     range_of(units, human_count), 100 * idle_share(last, sum, processes_));
  return out;
}

}  // namespace msprobe

// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/cells.hpp"

#include <algorithm>
#include <cmath>

#include "monitor/parting/fluctuation.hpp"
#include "report/page.hpp"

namespace msprobe::monitor {
namespace {

constexpr double kMostCodes = 65'000;
constexpr double kPartsOfFluctuation = 24;
constexpr double kCoarsest = 0.004;  // relative
constexpr double kBelowMedian =
    1024;  // numbers so much smaller than the usual ones are shown as next to zero

double usual_size(std::span<const double> a, std::span<const double> b) {
  std::vector<double> sizes;
  for (const auto& side : {a, b}) {
    for (const double value : side) {
      if (std::isfinite(value) && value != 0) sizes.push_back(std::fabs(value));
    }
  }
  return sizes.empty() ? 1 : median(sizes);
}

}  // namespace

CellScale scale_of(std::span<const double> a, std::span<const double> b) {
  CellScale scale;
  scale.unit = std::max(usual_size(a, b) / kBelowMedian, 1e-300);
  double low = INFINITY;
  double high = -INFINITY;
  for (const auto& side : {a, b}) {
    std::vector<double> bent;
    for (const double value : side) {
      if (!std::isfinite(value)) continue;
      bent.push_back(std::asinh(value / scale.unit));
      low = std::min(low, bent.back());
      high = std::max(high, bent.back());
    }
    const double fluctuation = scatter_of_changes(bent);
    scale.fluctuation = scale.fluctuation == 0 ? fluctuation : std::min(scale.fluctuation, fluctuation);
    if (b.empty()) break;
  }
  if (!(low <= high)) return scale;
  scale.from = low;
  const double least = (high - low) / kMostCodes;
  scale.quantum = std::max({std::min(scale.fluctuation / kPartsOfFluctuation, kCoarsest), least, 1e-12});
  return scale;
}

std::uint16_t cell_code(const CellScale& scale, double value) {
  if (std::isnan(value)) return CellScale::kNan;
  if (std::isinf(value)) return value > 0 ? CellScale::kInfinity : CellScale::kMinusInfinity;
  const double steps = std::nearbyint((std::asinh(value / scale.unit) - scale.from) / scale.quantum);
  return static_cast<std::uint16_t>(CellScale::kFirstNumber + std::clamp(steps, 0.0, kMostCodes));
}

std::string pack_codes(const std::vector<std::uint16_t>& codes, std::size_t columns) {
  std::string planes(codes.size() * 2, '\0');
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint16_t before = i % columns == 0 ? 0 : codes[i - 1];
    const auto change = static_cast<std::uint16_t>(codes[i] - before);
    planes[i] = static_cast<char>(change & 0xff);
    planes[codes.size() + i] = static_cast<char>(change >> 8);
  }
  return report::deflate_all(planes);
}

}  // namespace msprobe::monitor

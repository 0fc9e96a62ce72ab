// SPDX-License-Identifier: Apache-2.0
#include "compare/analysis/file_statistics.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "dump/side.hpp"
#include "formats/element_values.hpp"
#include "measuring/tensor_metrics.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::compare {
namespace {

using dump::RecordedValue;
using dump::StatisticValues;
using pairing::Pair;

/// Statistics as recorders write them: a NaN hides all other values.
std::optional<StatisticValues> statistics_in(const dump::Side& side, const dump::Item& item) {
  const formats::StoredTensor tensor = measuring::open_data(side, item);
  if (tensor::info(tensor.dtype).kind != tensor::DTypeKind::floating) return std::nullopt;
  const tensor::Statistics found = formats::statistics_of(tensor);
  if (found.count == 0) return std::nullopt;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  StatisticValues values;
  values.set(dump::kMax, RecordedValue::of(found.nan > 0 ? nan : found.max));
  values.set(dump::kMin, RecordedValue::of(found.nan > 0 ? nan : found.min));
  values.set(dump::kMean, RecordedValue::of(found.mean()));
  values.set(dump::kNorm, RecordedValue::of(found.norm()));
  return values;
}

struct Read {
  std::optional<StatisticValues> target;
  std::optional<StatisticValues> golden;
  std::string failure;
};

bool differs(const verdict::RankResult& result, const Pair& row) {
  for (std::size_t i = 0; i < dump::kStatistics; ++i) {
    if (result.difference(row, i).kind != measuring::DifferenceKind::zero) return true;
  }
  return false;
}

}  // namespace

void take_file_statistics(verdict::RankResult& result) {
  std::vector<const Pair*> rows;
  for (const Pair& row : result.rows) {
    if (row.matched() && result.target_item(row).data_name != 0 && result.golden_item(row).data_name != 0 &&
        differs(result, row))
      rows.push_back(&row);
  }
  std::vector<Read> read(rows.size());
  parallel_for(rows.size(), [&](std::size_t i) {
    try {
      read[i].target = statistics_in(result.target, result.target_item(*rows[i]));
      if (read[i].target) read[i].golden = statistics_in(result.golden, result.golden_item(*rows[i]));
    } catch (const Error& error) {
      read[i] = {std::nullopt, std::nullopt, error.what()};
    }
  });
  std::size_t failed = 0;
  std::string first;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (read[i].target && read[i].golden) {
      result.target.items[rows[i]->target].statistics = *read[i].target;
      result.golden.items[rows[i]->golden].statistics = *read[i].golden;
    } else if (!read[i].failure.empty() && failed++ == 0) {
      first = read[i].failure;
    }
  }
  if (failed == 0) return;
  log_warning(fmt::format("{}using the recorded statistics of {} tensor{} whose files cannot be read: {}{}",
                          result.rank.empty() ? "" : display(result.rank) + ": ", failed,
                          failed == 1 ? "" : "s", first, failed == 1 ? "" : ", …"));
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include "measuring/joined_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/joined_tensor.hpp"
#include "formats/tensor_file.hpp"
#include "measuring/tensor_metrics.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::measuring {

using pairing::Joins;
using pairing::RankPart;
using pairing::Share;

formats::StoredTensor open_part(const Joins& joins, const RankPart& part) {
  const Joins::JoinedRank& rank = joins.ranks[part.rank];
  if (part.data_name == 0) throw FormatError(fmt::format("rank {} does not have a data file", rank.number));
  return formats::open_tensor(
      open_file_beneath(rank.tensor_directory, std::string(joins.pool.at(part.data_name))));
}

formats::StoredTensor open_joined(const Joins& joins, std::size_t item, std::size_t chunks) {
  const std::span<const RankPart> parts = joins.parts(item);
  const pairing::Decision& decision = joins.decision(item);
  if (parts.size() == 1 || decision.share == Share::copies) return open_part(joins, parts.front());
  if (decision.share == Share::undecided) throw FormatError("the parts of the ranks cannot be merged");
  std::vector<formats::StoredTensor> terms;
  for (std::size_t i = 0; i < parts.size(); i += decision.block) terms.push_back(open_part(joins, parts[i]));
  if (decision.share == Share::sums) return formats::add_tensors(terms);
  // Scalars that the ranks have for themselves are a list.
  return terms.front().shape.empty() ? formats::join_tensors(terms, 0)
                                     : formats::concatenate(terms, decision.axis, chunks);
}

bool copies_agree(const Joins& joins, std::size_t item) {
  const std::span<const RankPart> parts = joins.parts(item);
  const pairing::Decision& decision = joins.decision(item);
  const std::size_t block = decision.share == Share::copies ? parts.size() : decision.block;
  const double tolerance = tolerance_of_copies(joins.pool.at(parts.front().dtype));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t first = i / block * block;
    if (i == first) continue;
    const TensorMetrics metrics =
        compare_tensors(open_part(joins, parts[i]), open_part(joins, parts[first]), {});
    if (metrics.failed || metrics.measure.e > tolerance) return false;
  }
  return true;
}

double tolerance_of_copies(std::string_view dtype) {
  const std::optional<pairing::Precision> precision = pairing::precision_of(dtype);
  constexpr double kOfSums = 1e-5;  // in another order
  return precision && precision->digits != 0 ? std::max(kOfSums, std::ldexp(4, -precision->digits)) : 0;
}

}  // namespace msprobe::measuring

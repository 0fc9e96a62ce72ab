// SPDX-License-Identifier: Apache-2.0
// Joins the dumps of several ranks into the dump of one model, by the names of their entries.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pairing/joins.hpp"
#include "pairing/side.hpp"

namespace msprobe::pairing {

struct RankSide {
  std::int64_t number = 0;
  Side side;
};

/// The first rank's side, followed by the entries that only other ranks have, in the order of the ranks; and
/// what each rank holds of each item. `ranks`: at least one.
struct JoinedSides {
  Side side;
  std::shared_ptr<Joins> joins;
};
JoinedSides join_sides(std::vector<RankSide>&& ranks);

}  // namespace msprobe::pairing

// SPDX-License-Identifier: Apache-2.0
// Carries the chosen cells of a rank's result from process to process.
#pragma once

#include "merge_result/rank_values.hpp"
#include "support/packet.hpp"

namespace msprobe::merge_result {

void pack_rank(const RankValues& rank, PacketWriter& packet);
RankValues unpack_rank(PacketReader& packet);

}  // namespace msprobe::merge_result

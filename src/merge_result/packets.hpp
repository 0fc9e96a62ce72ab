// SPDX-License-Identifier: Apache-2.0
// What is taken out of a rank's result, on its way between processes.
#pragma once

#include "merge_result/rank_values.hpp"
#include "support/packet.hpp"

namespace msprobe::merge_result {

void pack_rank(const RankValues& rank, PacketWriter& packet);
RankValues unpack_rank(PacketReader& packet);

}  // namespace msprobe::merge_result

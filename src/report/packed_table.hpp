// SPDX-License-Identifier: Apache-2.0
// A table as bytes, which another process writes into a file as if it had made the rows itself.
#pragma once

#include <memory>

#include "report/table.hpp"
#include "support/packet.hpp"

namespace msprobe::report {

/// Null travels, too.
void pack_table(const Table* table, PacketWriter& packet);
std::shared_ptr<const Table> unpack_table(PacketReader& packet);

}  // namespace msprobe::report

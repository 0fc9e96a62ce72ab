// SPDX-License-Identifier: Apache-2.0
// Calls of communication on their way between processes.
#pragma once

#include "dump/communication.hpp"
#include "support/packet.hpp"

namespace msprobe::dump {

void carry(auto& packet, Carried<Transfer> auto& transfer) {
  packet(transfer.sends, transfer.peer, transfer.tag);
}

void carry(auto& packet, Carried<CommCall> auto& call) {
  packet(call.keywords, call.integers, call.group_ranks, call.named_group, call.group_id, call.transfers,
         call.tag);
}

void carry(auto& packet, Carried<Communication> auto& communication) {
  packet(communication.operation, communication.backward, communication.call);
}

}  // namespace msprobe::dump

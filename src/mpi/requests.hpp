// SPDX-License-Identifier: Apache-2.0
// The messages between the processes of a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mpi/failure.hpp"
#include "support/packet.hpp"

namespace msprobe::mpi {

/// A message to the root.
struct RootRequest {
  enum class RequestKind : std::uint8_t {
    ask,     // asks for units
    tell,    // has a text for all processes
    result,  // the result of a unit
    fail,    // the work cannot continue
    leave,   // this process sends no more messages
  };
  RequestKind kind = RequestKind::ask;
  std::uint64_t phase = 0;  // how many times work was shared before
  std::uint64_t lane = 0;   // the thread that asks
  std::uint64_t unit = 0;
  std::uint64_t plan = 0;  // only with `ask`
  Failure failure;         // with `fail`, and with `leave` if it is the reason
  std::string host;
  std::string packet;       // a result, or the text for all
  std::size_t process = 0;  // the sender; not transmitted
};

void carry(auto& packet, Carried<RootRequest> auto& request) {
  packet(request.kind, request.phase, request.lane, request.unit, request.plan, request.failure, request.host,
         request.packet);
}

/// The answer to a thread that asked.
struct Reply {
  enum class ReplyKind : std::uint8_t { units, over, dismissed };
  ReplyKind kind = ReplyKind::over;
  std::vector<std::uint64_t> units;
  std::vector<std::string> briefs;  // one per unit, or none; after `tell` the texts of all processes
};

void carry(auto& packet, Carried<Reply> auto& reply) {
  packet(reply.kind, reply.units, reply.briefs);
}

}  // namespace msprobe::mpi

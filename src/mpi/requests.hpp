// SPDX-License-Identifier: Apache-2.0
// What processes of a job say to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mpi/failure.hpp"
#include "support/packet.hpp"

namespace msprobe::mpi {

/// To the root.
struct Request {
  enum class Kind : std::uint8_t {
    ask,     // for units
    tell,    // for all to know
    result,  // of a unit
    fail,    // the work cannot go on
    leave,   // there will be no more from this process
  };
  Kind kind = Kind::ask;
  std::uint64_t phase = 0;  // how many times work was shared before
  std::uint64_t lane = 0;   // the thread that asks
  std::uint64_t unit = 0;
  std::uint64_t plan = 0;  // of one who asks
  Failure failure;         // also of one who leaves, if that is why
  std::string host;
  std::string packet;       // of a result, or what is told
  std::size_t process = 0;  // whose it is; does not travel
};

void carry(auto& packet, Carried<Request> auto& request) {
  packet(request.kind, request.phase, request.lane, request.unit, request.plan, request.failure, request.host,
         request.packet);
}

/// To a thread that asked.
struct Reply {
  enum class Kind : std::uint8_t { units, over, dismissed };
  Kind kind = Kind::over;
  std::vector<std::uint64_t> units;
  std::vector<std::string> briefs;  // of each, or none; what all told to one who did
};

void carry(auto& packet, Carried<Reply> auto& reply) {
  packet(reply.kind, reply.units, reply.briefs);
}

}  // namespace msprobe::mpi

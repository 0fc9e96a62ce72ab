// SPDX-License-Identifier: Apache-2.0
// What went wrong in one process, told in another.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "support/packet.hpp"

namespace msprobe::mpi {

struct Failure {
  enum class Kind : std::uint8_t { none, usage, other };
  Kind kind = Kind::none;
  std::string message;
  std::string hint;
};

/// Of an exception that is being handled. Interrupted is none of these.
Failure failure_of(const std::exception& error);

/// As it was thrown, so far as somebody looks at that.
[[noreturn]] void throw_again(const Failure& failure);

void carry(auto& packet, Carried<Failure> auto& failure) {
  packet(failure.kind, failure.message, failure.hint);
}

}  // namespace msprobe::mpi

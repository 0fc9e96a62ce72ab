// SPDX-License-Identifier: Apache-2.0
// Carries an error of one process to another.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "support/packet.hpp"

namespace msprobe::mpi {

struct Failure {
  enum class FailureKind : std::uint8_t { none, usage, other };
  FailureKind kind = FailureKind::none;
  std::string message;
  std::string hint;
};

/// Describes an exception that is being handled. Interrupted is not a Failure.
Failure failure_of(const std::exception& error);

/// Throws the exception again, with the class that callers distinguish.
[[noreturn]] void throw_again(const Failure& failure);

void carry(auto& packet, Carried<Failure> auto& failure) {
  packet(failure.kind, failure.message, failure.hint);
}

}  // namespace msprobe::mpi

// SPDX-License-Identifier: Apache-2.0
#include "mpi/failure.hpp"

#include <new>

#include "support/error.hpp"

namespace msprobe::mpi {

Failure failure_of(const std::exception& error) {
  if (const auto* usage = dynamic_cast<const UsageError*>(&error))
    return {Failure::FailureKind::usage, usage->what(), usage->hint()};
  if (const auto* known = dynamic_cast<const Error*>(&error))
    return {Failure::FailureKind::other, known->what(), known->hint()};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {Failure::FailureKind::other, "not enough memory", {}};
  return {Failure::FailureKind::other, error.what(), {}};
}

void throw_again(const Failure& failure) {
  if (failure.kind == Failure::FailureKind::usage) throw UsageError(failure.message, failure.hint);
  throw Error(failure.message, failure.hint);
}

}  // namespace msprobe::mpi

// SPDX-License-Identifier: Apache-2.0
// The root's part in shared work: it distributes units, collects results, and computes units itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "mpi/mpi_team.hpp"
#include "support/units.hpp"

namespace msprobe::mpi {

class Root {
 public:
  Root(MpiTeam& team, const SharedWork& work, std::uint64_t phase);
  void run();

 private:
  void compute_here();
  void compute_in_lane();
  void serve();
  void check_stuck();
  bool is_done();
  void take(RootRequest request);
  void take_ask(const RootRequest& ask);
  void close();
  std::vector<std::size_t> units_for(std::size_t process);

  MpiTeam& team_;
  const SharedWork& work_;
  std::uint64_t phase_;
  /// The processes that have sent their plan: all must see the same files, even if there is nothing left to
  /// do.
  std::vector<bool> heard_;
  std::mutex mutex_;  // protects the members below
  UnitQueue queue_;
  std::vector<std::size_t> busy_;  // units in progress, by process
  bool computed_ = false;          // the root itself has no more units
  std::exception_ptr failure_;     // of the root's own units
};

}  // namespace msprobe::mpi

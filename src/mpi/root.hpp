// SPDX-License-Identifier: Apache-2.0
// The root's part in work that is shared: it hands out, takes results in, and computes itself meanwhile.
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
  void take(Request request);
  void take_ask(const Request& ask);
  void close();
  std::vector<std::size_t> units_for(std::size_t process);

  MpiTeam& team_;
  const SharedWork& work_;
  std::uint64_t phase_;
  /// Who has told what it sees: nobody may see other files, also where nothing is left to do.
  std::vector<bool> heard_;
  std::mutex mutex_;  // of what follows
  UnitQueue queue_;
  std::vector<std::size_t> busy_;  // units in hand, by process
  bool computed_ = false;          // there are no more units for the root itself
  std::exception_ptr failure_;     // of those
};

}  // namespace msprobe::mpi

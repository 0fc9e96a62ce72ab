// SPDX-License-Identifier: Apache-2.0
// The processes of an MPI job as one team. The root hands out units and computes some itself; each thread of
// the others asks for its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpi/messages.hpp"
#include "mpi/requests.hpp"
#include "support/team.hpp"

namespace msprobe::mpi {

/// Leaves a command in a process that is not needed any more, as the root has ended. No std::exception:
/// nobody between is to take it for a failure of the work.
struct Dismissed {};

class MpiTeam final : public Team {
 public:
  explicit MpiTeam(Messages& messages);

  void share(const SharedWork& work) override;
  bool is_root() const override { return messages_.process() == 0; }
  std::size_t processes() const override { return messages_.processes(); }
  std::vector<std::string> gather(const std::string& own) override;
  std::string host() const override { return messages_.host(); }
  std::time_t begun() const override { return begun_; }

  // Of the root:
  std::optional<Request> next_request();
  void answer(const Request& ask, const Reply& reply);
  /// Of one who asks for work that is shared later, or not at all: who is not taken from there is dismissed
  /// in the end.
  void park(Request ask) { parked_.push_back(std::move(ask)); }
  std::size_t parked() const { return parked_.size(); }
  /// The one that has waited longest.
  Request take_parked();
  const std::vector<bool>& gone() const { return gone_; }
  /// Tells the user if it could have helped otherwise.
  void take_leave(const Request& request, bool tell);
  /// Dismisses all others. False if some do not come for a while, as they are busy. `done`: the work is, so
  /// none is.
  bool dismiss(bool done);

  /// Of the others: tells the root that this process has done what it can.
  void leave(const Failure& failure);

 private:
  std::vector<std::string> gather_here(const std::string& own, std::uint64_t phase);
  bool all_gone() const;
  void help(const SharedWork& work, std::uint64_t phase);
  void work_in_lane(const SharedWork& work, std::uint64_t phase, std::uint64_t lane);
  void send_unit(const SharedWork& work, std::uint64_t phase, std::uint64_t unit, const std::string& brief);
  void send(const Request& request);

  Messages& messages_;
  std::time_t begun_;
  std::uint64_t phase_ = 0;
  std::vector<Request> parked_;
  std::vector<bool> gone_;  // processes that have left
};

}  // namespace msprobe::mpi

// SPDX-License-Identifier: Apache-2.0
// The processes of an MPI job as one team. The root distributes units and computes some itself; each thread
// of the other processes asks for its own units.
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

/// Thrown to leave a command in a process that is no longer needed, because the root has ended. It is not a
/// std::exception, so that no code on the way takes it for a failure of the work.
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

  // These members are for the root.
  std::optional<RootRequest> next_request();
  void answer(const RootRequest& ask, const Reply& reply);
  /// Keeps the request of a process that asks for work which is shared later, or never. A request that
  /// remains is dismissed at the end.
  void park(RootRequest ask) { parked_.push_back(std::move(ask)); }
  std::size_t parked() const { return parked_.size(); }
  /// The request that has waited longest.
  RootRequest take_parked();
  const std::vector<bool>& gone() const { return gone_; }
  /// Records that a process has left. With `tell`, warns the user if the process could have helped.
  void take_leave(const RootRequest& request, bool tell);
  /// Dismisses all other processes. False if some of them do not respond for a while because they are busy.
  /// `done`: the work is complete, so none can be busy.
  bool dismiss(bool done);

  /// For all processes except the root: reports to the root that this one has finished its part.
  void leave(const Failure& failure);

 private:
  std::vector<std::string> gather_here(const std::string& own, std::uint64_t phase);
  bool all_gone() const;
  void help(const SharedWork& work, std::uint64_t phase);
  void work_in_lane(const SharedWork& work, std::uint64_t phase, std::uint64_t lane);
  void send_unit(const SharedWork& work, std::uint64_t phase, std::uint64_t unit, const std::string& brief);
  void send(const RootRequest& request);

  Messages& messages_;
  std::time_t begun_;
  std::uint64_t phase_ = 0;
  std::vector<RootRequest> parked_;
  std::vector<bool> gone_;  // the processes that have left
};

}  // namespace msprobe::mpi

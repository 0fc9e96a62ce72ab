// SPDX-License-Identifier: Apache-2.0
#include "mpi/root.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::mpi {

Root::Root(MpiTeam& team, const SharedWork& work, std::uint64_t phase)
    : team_(team),
      work_(work),
      phase_(phase),
      heard_(team.gone()),
      queue_(work.bytes, team.processes(), work.processes),
      busy_(team.processes()) {
  heard_[0] = true;
}

void Root::run() {
  std::thread computing([this] { compute_here(); });
  try {
    serve();
  } catch (...) {
    close();
    computing.join();
    throw;
  }
  close();
  computing.join();
  if (failure_) std::rethrow_exception(failure_);
}

/// After a failure no further units are started.
void Root::close() {
  const std::lock_guard lock(mutex_);
  queue_.close();
}

void Root::compute_here() {
  std::exception_ptr failure;
  try {
    if (work_.one_at_a_time) {
      compute_in_lane();
    } else {
      parallel_for(most_threads(), [this](std::size_t) { compute_in_lane(); });
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  computed_ = true;
}

void Root::compute_in_lane() {
  for (std::vector<std::size_t> units = units_for(0); !units.empty(); units = units_for(0)) {
    for (const std::size_t unit : units) {
      work_.compute(unit);
      const std::lock_guard lock(mutex_);
      --busy_[0];
    }
  }
}

std::vector<std::size_t> Root::units_for(std::size_t process) {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> units = queue_.take(process, busy_[process]);
  busy_[process] += units.size();
  return units;
}

/// Fails if a unit cannot be computed any more: only processes that have left could read its files.
void Root::check_stuck() {
  const std::lock_guard lock(mutex_);
  if (const std::optional<std::size_t> unit = queue_.stuck_without(team_.gone()))
    throw Error(fmt::format("{}: the processes that see it take no part", work_.name(*unit)));
}

void Root::serve() {
  check_stuck();
  for (std::size_t left = team_.parked(); left > 0; --left) take(team_.take_parked());
  for (Patience patience; !is_done();) {
    if (std::optional<RootRequest> request = team_.next_request()) {
      take(*std::move(request));
      patience.reset();
    } else {
      patience.wait();
    }
  }
}

bool Root::is_done() {
  const std::lock_guard lock(mutex_);
  if (failure_) return true;
  return computed_ && queue_.left() == 0 && std::ranges::count(heard_, false) == 0 &&
         std::ranges::all_of(busy_, [](std::size_t units) { return units == 0; });
}

void Root::take(RootRequest request) {
  if (request.kind == RootRequest::RequestKind::leave) {
    team_.take_leave(request, true);
    heard_[request.process] = true;
    {
      const std::lock_guard lock(mutex_);
      if (busy_[request.process] > 0) throw_again(request.failure);  // its units are lost
    }
    return check_stuck();
  }
  if (request.phase > phase_) return team_.park(std::move(request));
  if (request.kind == RootRequest::RequestKind::ask) return take_ask(request);
  if (request.phase < phase_) return;  // belongs to work that was abandoned
  if (request.kind == RootRequest::RequestKind::fail) throw_again(request.failure);
  PacketReader packet(request.packet);
  const auto unit = static_cast<std::size_t>(request.unit);
  if (unit >= work_.bytes.size()) refuse_packet();
  work_.unpack(unit, packet);
  if (work_.progress != nullptr) work_.progress->advance(work_.bytes[unit]);
  const std::lock_guard lock(mutex_);
  --busy_[request.process];
}

void Root::take_ask(const RootRequest& ask) {
  Reply reply;
  if (ask.phase == phase_ && ask.plan != work_.plan) {
    team_.park(ask);
    throw Error(fmt::format("process {} on {} sees different files than process 0 on {}", ask.process,
                            display(ask.host), display(team_.host())),
                "use --local for dumps on each machine's own disk");
  }
  if (ask.phase == phase_) {
    heard_[ask.process] = true;
    const std::vector<std::size_t> units = units_for(ask.process);
    reply.units.assign(units.begin(), units.end());
    for (const std::size_t unit : units) {
      if (!work_.brief) break;
      PacketWriter brief;
      work_.brief(unit, brief);
      reply.briefs.push_back(brief.take());
    }
  }
  if (!reply.units.empty()) reply.kind = Reply::ReplyKind::units;
  team_.answer(ask, reply);
}

}  // namespace msprobe::mpi

// SPDX-License-Identifier: Apache-2.0
#include "mpi/mpi_team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "mpi/root.hpp"
#include "support/log.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::mpi {
namespace {

// Tags of messages.
constexpr int kToRoot = 0;
constexpr int kFirstLane = 1;  // for replies to lane 0, and so on

constexpr std::chrono::seconds kForBusyOnes{5};

/// Shows warnings of units; for messages about the whole job, only the root prints.
class Unmuted {
 public:
  Unmuted() { mute_log(false); }
  ~Unmuted() { mute_log(true); }
  Unmuted(const Unmuted&) = delete;
  Unmuted& operator=(const Unmuted&) = delete;
};

}  // namespace

MpiTeam::MpiTeam(Messages& messages)
    : messages_(messages),
      begun_(static_cast<std::time_t>(messages.same_for_all(std::time(nullptr)))),
      gone_(messages.processes()) {
  if (!is_root()) mute_log(true);
}

void MpiTeam::share(const SharedWork& work) {
  const std::uint64_t phase = phase_++;
  if (processes() == 1) {
    do_alone(work);
  } else if (is_root()) {
    Root(*this, work, phase).run();
  } else {
    help(work, phase);
  }
}

std::vector<std::string> MpiTeam::gather(const std::string& own) {
  const std::uint64_t phase = phase_++;
  if (is_root()) return gather_here(own, phase);
  RootRequest tell;
  tell.kind = RootRequest::RequestKind::tell;
  tell.phase = phase;
  tell.packet = own;
  send(tell);
  const Messages::Message message = messages_.receive(kFirstLane);
  Reply reply;
  PacketReader packet(message.bytes);
  packet(reply);
  if (reply.kind == Reply::ReplyKind::dismissed) throw Dismissed();
  return reply.briefs;
}

/// Waits for the text of every process except those that have left.
std::vector<std::string> MpiTeam::gather_here(const std::string& own, std::uint64_t phase) {
  Reply all;
  all.briefs.resize(processes());
  all.briefs[0] = own;
  std::vector<RootRequest> told;
  std::vector<bool> heard = gone_;
  heard[0] = true;
  const auto take = [&](RootRequest&& request) {
    if (request.kind == RootRequest::RequestKind::leave) {
      take_leave(request, true);
      heard[request.process] = true;
    } else if (request.kind == RootRequest::RequestKind::tell && request.phase == phase) {
      all.briefs[request.process] = request.packet;
      heard[request.process] = true;
      told.push_back(std::move(request));
    } else if (request.kind == RootRequest::RequestKind::ask && request.phase < phase) {
      answer(request, {});
    } else if (request.phase > phase) {
      park(std::move(request));
    }
  };
  for (std::size_t left = parked(); left > 0; --left) take(take_parked());
  for (Patience patience; std::find(heard.begin(), heard.end(), false) != heard.end();) {
    if (std::optional<RootRequest> request = next_request()) {
      take(*std::move(request));
      patience.reset();
    } else {
      patience.wait();
    }
  }
  for (const RootRequest& request : told) answer(request, all);
  return all.briefs;
}

bool MpiTeam::all_gone() const {
  return std::find(gone_.begin() + 1, gone_.end(), false) == gone_.end();
}

void MpiTeam::help(const SharedWork& work, std::uint64_t phase) {
  const Unmuted unmuted;
  if (work.one_at_a_time) {
    work_in_lane(work, phase, 0);
  } else {
    parallel_for(most_threads(), [&](std::size_t lane) { work_in_lane(work, phase, lane); });
  }
}

void MpiTeam::work_in_lane(const SharedWork& work, std::uint64_t phase, std::uint64_t lane) {
  for (;;) {
    RootRequest ask;
    ask.phase = phase;
    ask.lane = lane;
    ask.plan = work.plan;
    ask.host = messages_.host();
    send(ask);
    const Messages::Message message = messages_.receive(kFirstLane + static_cast<int>(lane));
    Reply reply;
    PacketReader packet(message.bytes);
    packet(reply);
    if (reply.kind == Reply::ReplyKind::dismissed) throw Dismissed();
    if (reply.kind == Reply::ReplyKind::over) return;
    if (work.learn && reply.briefs.size() != reply.units.size()) refuse_packet();
    for (std::size_t i = 0; i < reply.units.size(); ++i)
      send_unit(work, phase, reply.units[i], work.learn ? reply.briefs[i] : std::string());
  }
}

void MpiTeam::send_unit(const SharedWork& work, std::uint64_t phase, std::uint64_t unit,
                        const std::string& brief) {
  RootRequest result;
  result.kind = RootRequest::RequestKind::result;
  result.phase = phase;
  result.unit = unit;
  try {
    PacketReader learned(brief);
    if (work.learn) work.learn(static_cast<std::size_t>(unit), learned);
    work.compute(static_cast<std::size_t>(unit));
    PacketWriter packet;
    work.pack(static_cast<std::size_t>(unit), packet);
    result.packet = packet.take();
  } catch (const std::exception& error) {
    result.kind = RootRequest::RequestKind::fail;
    result.failure = failure_of(error);
  }
  send(result);
  if (result.kind == RootRequest::RequestKind::fail) throw Dismissed();
}

void MpiTeam::send(const RootRequest& request) {
  PacketWriter packet;
  packet(request);
  messages_.send(0, kToRoot, packet.bytes());
}

void MpiTeam::leave(const Failure& failure) {
  RootRequest request;
  request.kind = RootRequest::RequestKind::leave;
  request.failure = failure;
  request.host = messages_.host();
  send(request);
}

RootRequest MpiTeam::take_parked() {
  RootRequest longest = std::move(parked_.front());
  parked_.erase(parked_.begin());
  return longest;
}

std::optional<RootRequest> MpiTeam::next_request() {
  const std::optional<Messages::Message> message = messages_.look(kToRoot);
  if (!message) return std::nullopt;
  RootRequest request;
  PacketReader packet(message->bytes);
  packet(request);
  request.process = message->from;
  return request;
}

void MpiTeam::answer(const RootRequest& ask, const Reply& reply) {
  PacketWriter packet;
  packet(reply);
  messages_.send(ask.process, kFirstLane + static_cast<int>(ask.lane), packet.bytes());
}

void MpiTeam::take_leave(const RootRequest& request, bool tell) {
  gone_[request.process] = true;
  if (!tell || request.failure.kind == Failure::FailureKind::none) return;
  log_warning(fmt::format("process {} on {} takes no part: {}", request.process, display(request.host),
                          request.failure.message));
}

bool MpiTeam::dismiss(bool done) {
  const auto until = std::chrono::steady_clock::now() + kForBusyOnes;
  const Reply dismissed = {Reply::ReplyKind::dismissed, {}, {}};
  while (parked() > 0) answer(take_parked(), dismissed);
  for (Patience patience; !all_gone();) {
    const std::optional<RootRequest> request = next_request();
    if (!request) {
      if (!done && std::chrono::steady_clock::now() > until) return false;
      patience.wait();
      continue;
    }
    patience.reset();
    if (request->kind == RootRequest::RequestKind::ask || request->kind == RootRequest::RequestKind::tell)
      answer(*request, dismissed);
    if (request->kind == RootRequest::RequestKind::leave) take_leave(*request, done);
  }
  return true;
}

}  // namespace msprobe::mpi

// SPDX-License-Identifier: Apache-2.0
// Distributes the work of a command to the threads of this process, or to all processes of a job, each of
// which runs the same command. Outside of units, all processes do the same. Only the root has all results,
// finishes outputs and informs the user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/packet.hpp"

namespace msprobe {

class Progress;

/// A loop over independent units.
struct SharedWork {
  std::string_view units;  // the kind of units, in words: "rank pairs"
  std::function<std::string(std::size_t unit)> name;
  /// A fingerprint of the names of all units, so that processes that see other files do not mix up units.
  std::uint64_t plan = 0;
  /// The approximate bytes that each unit reads: the largest begin first. Used only if units are handed out.
  std::vector<std::uint64_t> bytes;
  /// The processes that can compute each unit, by number; empty: all can. Used like `bytes`.
  std::vector<std::vector<std::uint32_t>> processes;
  Progress* progress = nullptr;  // receives the bytes of units that others compute; may be null
  bool one_at_a_time = false;    // a unit is parallel in itself and uses much memory
  /// Data that another process needs before it computes a unit, if any. The process that hands it out sends
  /// it.
  std::function<void(std::size_t unit, PacketWriter& packet)> brief;
  std::function<void(std::size_t unit, PacketReader& packet)> learn;
  /// Fills the slots of a unit, in any thread. An exception ends the work.
  std::function<void(std::size_t unit)> compute;
  /// Carries the slots to the root, if another process computed them.
  std::function<void(std::size_t unit, PacketWriter& packet)> pack;
  std::function<void(std::size_t unit, PacketReader& packet)> unpack;
};

/// A number for a sequence of texts; other texts rarely have the same number.
std::uint64_t fingerprint(std::uint64_t before, std::string_view text);

class Team {
 public:
  virtual ~Team() = default;
  /// When it returns, the root has all slots; other processes have those that they computed.
  virtual void share(const SharedWork& work) = 0;
  virtual bool is_root() const = 0;
  /// True if units are handed out here, so that their sizes matter.
  virtual bool hands_out() const { return is_root(); }
  /// True if units are really computed here. False if a plan is only shown.
  virtual bool computes() const { return true; }
  virtual std::size_t processes() const = 0;
  /// The texts of all processes, in their order; every process receives all.
  virtual std::vector<std::string> gather(const std::string& own) = 0;
  /// The name of the machine.
  virtual std::string host() const = 0;
  /// The time for names of files, the same for all processes.
  virtual std::time_t begun() const = 0;
};

/// The current team. The default is this process alone.
Team& team();
/// `team` must outlive its use; null: this process alone.
void set_team(Team* team);

/// Runs the work on the threads of this process.
void do_alone(const SharedWork& work);

}  // namespace msprobe

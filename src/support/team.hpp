// SPDX-License-Identifier: Apache-2.0
// Who does the work of a command: the threads of this process, or those of all processes of a job, each of
// which runs the same command. Between units all of them do the same, but the root alone, which has the
// results of all, ends outputs and speaks to the user.
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
  std::string_view units;  // what the units are, in words: "rank pairs"
  std::function<std::string(std::size_t unit)> name;
  /// Of the names of all units: processes that see other files must not take them for the same.
  std::uint64_t plan = 0;
  /// What each unit reads, roughly: the largest begin first. Looked at where units are handed out alone.
  std::vector<std::uint64_t> bytes;
  /// The processes that can compute each unit, by number; empty: all can. As bytes.
  std::vector<std::vector<std::uint32_t>> processes;
  Progress* progress = nullptr;  // told of the bytes of units that others compute; null: nobody is
  bool one_at_a_time = false;    // a unit is parallel in itself and keeps much
  /// What another process has to know of a unit beforehand, if anything: told by who hands it out.
  std::function<void(std::size_t unit, PacketWriter& packet)> brief;
  std::function<void(std::size_t unit, PacketReader& packet)> learn;
  /// Fills the slots of a unit, in any thread. What it throws ends the work.
  std::function<void(std::size_t unit)> compute;
  /// The slots on their way to the root, where another process computed them.
  std::function<void(std::size_t unit, PacketWriter& packet)> pack;
  std::function<void(std::size_t unit, PacketReader& packet)> unpack;
};

/// A number for a sequence of texts, which other texts hardly have.
std::uint64_t fingerprint(std::uint64_t before, std::string_view text);

class Team {
 public:
  virtual ~Team() = default;
  /// The root has all slots filled when it comes back; others have those that they computed.
  virtual void share(const SharedWork& work) = 0;
  virtual bool is_root() const = 0;
  /// Are units handed out here, so that what they read matters?
  virtual bool hands_out() const { return is_root(); }
  /// Does anything come of units here? Not of a plan that is only to be shown.
  virtual bool computes() const { return true; }
  virtual std::size_t processes() const = 0;
  /// The texts of all processes, in their order, in each of them.
  virtual std::vector<std::string> gather(const std::string& own) = 0;
  /// The machine, by name.
  virtual std::string host() const = 0;
  /// For names of files, the same for all.
  virtual std::time_t begun() const = 0;
};

/// This process alone unless somebody said otherwise.
Team& team();
/// `team` must outlive its use; null: this process alone.
void set_team(Team* team);

/// Here, by the threads of this process.
void do_alone(const SharedWork& work);

}  // namespace msprobe

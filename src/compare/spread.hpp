// SPDX-License-Identifier: Apache-2.0
// The tasks of a plan as units of work: chains of tasks, and, before these, parts of tasks that are too large
// for one of many processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "compare/sinks/sink.hpp"
#include "compare/task.hpp"
#include "support/team.hpp"

namespace msprobe::compare {

class Spread {
 public:
  /// The arguments must outlive the object. The report has room for all tasks. `progress` may be null.
  Spread(const TaskPlan& plan, const Sinks& sinks, CompareReport& report, Progress* progress);

  /// Runs all tasks and gives each to all sinks. The root then has all that the sinks keep.
  void run();

 private:
  struct Unit {
    std::size_t chain = 0;
    std::size_t task = 0;  // and, for a part:
    std::size_t part = 0;
    std::size_t parts = 0;  // 0: the whole chain
  };
  friend void carry(auto& packet, Carried<Unit> auto& unit) {
    packet(unit.chain, unit.task, unit.part, unit.parts);
  }

  std::size_t parts_of(const CompareTask& task) const;
  std::uint64_t bytes_of(const Unit& unit) const;
  std::vector<std::uint32_t> processes_of(const Unit& unit) const;
  std::string name_of(const Unit& unit) const;
  void share(const std::vector<Unit>& units);
  void run_task(std::size_t index);
  void compute(std::size_t number);
  void brief(const Unit& unit, PacketWriter& packet) const;
  void learn(std::size_t number, PacketReader& packet);
  template <typename Packet, typename Travel>
  void carry_results(std::size_t number, Packet& packet, Travel travel);
  Unit unit(std::size_t number);

  const TaskPlan& plan_;
  const Sinks& sinks_;
  CompareReport& report_;
  Progress* progress_;
  std::vector<std::vector<std::size_t>> chains_;
  std::uint64_t bytes_ = 0;                      // of all tasks
  std::vector<std::vector<std::string>> parts_;  // for each task, the results of its parts
  std::mutex mutex_;                             // guards:
  std::map<std::size_t, Unit> units_;            // that are shared now, as far as this process knows
};

}  // namespace msprobe::compare

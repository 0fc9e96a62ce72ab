// SPDX-License-Identifier: Apache-2.0
#include "compare/spread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/sinks/packets.hpp"
#include "support/error.hpp"
#include "support/stage.hpp"
#include "support/team.hpp"
#include "support/text.hpp"
#include "support/units.hpp"

namespace msprobe::compare {
namespace {

// A task is cut into parts if it has more to read than half of what each process has to read on average. Each
// process gets this many parts, so that all end together. Smaller parts would cost more than they gain,
// because each part reads its dump.json again.
constexpr std::uint64_t kPartsForEach = 8;
constexpr std::uint64_t kSmallestPart = std::uint64_t{64} << 20;

std::vector<std::vector<std::size_t>> chains_of(const TaskPlan& plan) {
  std::vector<std::vector<std::size_t>> chains;
  std::map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const std::optional<std::string>& chain = plan.tasks[i].chain;
    const std::size_t place = chain ? known.try_emplace(*chain, chains.size()).first->second : chains.size();
    if (place == chains.size()) chains.emplace_back();
    chains[place].push_back(i);
  }
  return chains;
}

class Spread {
 public:
  Spread(const TaskPlan& plan, const Sinks& sinks, CompareReport& report, Progress* progress)
      : plan_(plan),
        sinks_(sinks),
        report_(report),
        progress_(progress),
        chains_(chains_of(plan)),
        parts_(plan.tasks.size()) {
    for (const CompareTask& task : plan.tasks) bytes_ += task.bytes;
  }

  /// Computes tasks that are too large for one process in parts, together with all other chains; then runs
  /// them.
  void run() {
    std::vector<Unit> first;
    std::vector<Unit> behind;
    for (std::size_t chain = 0; chain < chains_.size() && team().hands_out(); ++chain) {
      const std::size_t before = first.size();
      for (const std::size_t task : chains_[chain]) {
        const std::size_t parts = parts_of(plan_.tasks[task]);
        parts_[task].resize(parts);
        for (std::size_t part = 0; part < parts; ++part) first.push_back({chain, task, part, parts});
      }
      (first.size() == before ? first : behind).push_back({chain, 0, 0, 0});
    }
    share(first);
    share(behind);
  }

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

  std::size_t parts_of(const CompareTask& task) const {
    const std::uint64_t processes = team().processes();
    if (processes == 1 || !task.compute_part || task.parted_bytes < bytes_ / (2 * processes)) return 0;
    const std::uint64_t each = std::max(bytes_ / (kPartsForEach * processes), kSmallestPart);
    const std::uint64_t parts = (task.parted_bytes + each - 1) / each;
    return parts < 2 ? 0 : static_cast<std::size_t>(parts);
  }

  std::uint64_t bytes_of(const Unit& unit) const {
    if (unit.parts > 0) {
      const CompareTask& task = plan_.tasks[unit.task];
      return task.parted_bytes / unit.parts + (task.bytes - task.parted_bytes);
    }
    std::uint64_t bytes = 0;
    for (const std::size_t i : chains_[unit.chain])
      bytes += plan_.tasks[i].bytes - (parts_[i].empty() ? 0 : plan_.tasks[i].parted_bytes);
    return bytes;
  }

  /// The processes that see all steps of the chain. If no process does, each task of the chain says so.
  std::vector<std::uint32_t> processes_of(const Unit& unit) const {
    std::optional<std::vector<std::uint32_t>> common;
    for (const std::size_t i : chains_[unit.chain]) {
      const std::vector<std::uint32_t>& of_task = plan_.tasks[i].processes;
      if (of_task.empty()) continue;
      common = common ? processes_in_both(*common, of_task) : of_task;
    }
    return common.value_or(std::vector<std::uint32_t>());
  }

  std::string name_of(const Unit& unit) const {
    const std::vector<std::size_t>& chain = chains_[unit.chain];
    const CompareTask& task = plan_.tasks[unit.parts > 0 ? unit.task : chain.front()];
    const std::string name = display(task.label.empty() ? task.target : task.label);
    if (unit.parts > 0)
      return fmt::format("{}, part {} of {} of its tensors", name, unit.part + 1, unit.parts);
    return chain.size() == 1 ? name : fmt::format("{}, and its {} later steps", name, chain.size() - 1);
  }

  /// Carries the results of a unit to the root: out of this process or into it, as the packet and the sinks'
  /// function decide.
  template <typename Packet, typename Travel>
  void carry_results(std::size_t number, Packet& packet, Travel travel) {
    const Unit done = unit(number);
    if (done.parts > 0) {
      const std::lock_guard lock(mutex_);
      return packet(parts_[done.task][done.part]);
    }
    for (const std::size_t i : chains_[done.chain]) {
      packet(report_.tasks[i]);
      for (const std::unique_ptr<Sink>& sink : sinks_) ((*sink).*travel)(i, packet);
    }
  }

  void share(const std::vector<Unit>& units) {
    units_.clear();
    SharedWork work;
    for (const CompareTask& task : plan_.tasks)
      work.plan = fingerprint(fingerprint(fingerprint(work.plan, task.label), task.target), task.golden);
    work.units = "units";
    work.name = [&](std::size_t number) { return name_of(units[number]); };
    work.progress = progress_;
    work.one_at_a_time = plan_.one_at_a_time;
    for (const Unit& each : units) {
      units_.emplace(work.bytes.size(), each);
      work.bytes.push_back(bytes_of(each));
      work.processes.push_back(processes_of(each));
    }
    work.brief = [&](std::size_t number, PacketWriter& packet) { brief(units[number], packet); };
    work.learn = [this](std::size_t number, PacketReader& packet) { learn(number, packet); };
    work.compute = [this](std::size_t number) { compute(number); };
    work.pack = [this](std::size_t number, PacketWriter& packet) {
      carry_results(number, packet, &Sink::pack);
    };
    work.unpack = [this](std::size_t number, PacketReader& packet) {
      carry_results(number, packet, &Sink::unpack);
    };
    team().share(work);
  }

  Unit unit(std::size_t number) {
    const std::lock_guard lock(mutex_);
    return units_.at(number);
  }

  /// Sends the unit and, for a chain that was computed in parts, the results of the parts.
  void brief(const Unit& unit, PacketWriter& packet) const {
    packet(unit);
    if (unit.parts > 0) return;
    for (const std::size_t i : chains_[unit.chain]) packet(parts_[i]);
  }

  void learn(std::size_t number, PacketReader& packet) {
    Unit learned;
    packet(learned);
    if (learned.chain >= chains_.size() || learned.task >= parts_.size() ||
        (learned.parts > 0 && learned.part >= learned.parts))
      refuse_packet();
    if (learned.parts == 0) {
      for (const std::size_t i : chains_[learned.chain]) packet(parts_[i]);
    }
    const std::lock_guard lock(mutex_);
    units_[number] = learned;
  }

  void compute(std::size_t number) {
    const Unit now = unit(number);
    if (now.parts > 0) {
      std::string computed = plan_.tasks[now.task].compute_part(now.part, now.parts);
      const std::lock_guard lock(mutex_);
      parts_[now.task].resize(now.parts);
      parts_[now.task][now.part] = std::move(computed);
      return;
    }
    for (const std::size_t i : chains_[now.chain]) run_task(i);
  }

  void run_task(std::size_t index) {
    const CompareTask& task = plan_.tasks[index];
    TaskSummary& summary = report_.tasks[index];
    for (std::string& part : parts_[index]) task.take_part(std::move(part));
    try {
      if (!task.unreachable.empty()) throw IoError(task.unreachable);
      const std::shared_ptr<const Rows> rows = task.run();
      summary.left_out = rows == nullptr;
      if (rows != nullptr) {
        const Stage stage(task.label.empty() ? "results made" : task.label + " results made");
        for (const std::unique_ptr<Sink>& sink : sinks_) sink->take(index, rows, summary);
      }
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      // With a single task there is nothing else to continue with.
      if (plan_.tasks.size() == 1) throw;
      summary = {};
      summary.failure = error.what();
    }
    summary.label = task.label;
    summary.step = task.step;
    summary.rank = task.rank;
    summary.target = task.target;
    summary.golden = task.golden;
  }

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

}  // namespace

void run_tasks(const TaskPlan& plan, const Sinks& sinks, CompareReport& report, Progress* progress) {
  Spread(plan, sinks, report, progress).run();
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include "monitor/trend/micro_steps.hpp"

#include <algorithm>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/names.hpp"

namespace msprobe::monitor {
namespace {

using dump::Direction;

bool is_optimizer(std::string_view entry) {
  return entry.starts_with("optimizer");
}

/// `Module.a.forward.1` of `Module.a.backward.1` and of `Module.a.parameters_grad.1`.
std::string forward_name(std::string_view entry) {
  const auto name = dump::parse_entry_name(entry);
  if (!name || name->direction == Direction::forward) return std::string(entry);
  std::string forward(name->base);
  if (name->call_first && !name->call.empty()) forward += "." + std::string(name->call);
  forward += ".forward";
  if (!name->call_first && !name->call.empty()) forward += "." + std::string(name->call);
  return forward;
}

/// The entries of a construct.json in their order.
struct OrderedConstruct {
  std::vector<std::string> entries;
  dump::ConstructTable table;
};

OrderedConstruct read_construct(const ByteSource& file) {
  OrderedConstruct construct;
  dump::read_construct_members(file, [&](std::string_view name, const dump::Entry& value) {
    construct.entries.emplace_back(name);
    construct.table.add(name, dump::construct_parent(value));
    if (const std::uint32_t step = dump::construct_micro_step(value); step > 0)
      construct.table.add_micro_step(name, step);
  });
  return construct;
}

/// The micro steps of the modules that no other one encloses, and of the optimizer.
class Roots {
 public:
  explicit Roots(const OrderedConstruct& construct) {
    for (const std::string& entry : construct.entries) {
      if (!construct.table.parent(entry).empty() || steps_.contains(entry)) continue;
      const auto name = dump::parse_entry_name(entry);
      const bool module = name && name->is_module && name->direction == Direction::forward;
      if (!module && !is_optimizer(entry)) continue;
      if (module) {
        if (count_ == 0) leader_ = name->base;
        if (name->base == leader_) ++count_;
        steps_[entry] = std::max<std::int64_t>(count_ - 1, 0);
      } else {
        optimizers_.push_back(entry);
      }
    }
    for (const std::string& entry : optimizers_) steps_[entry] = std::max<std::int64_t>(count_ - 1, 0);
  }

  std::int64_t of(const std::string& root) const {
    const auto found = steps_.find(root);
    return found == steps_.end() ? kNoMicroStep : found->second;
  }
  std::int64_t count() const { return std::max<std::int64_t>(count_, 1); }

 private:
  std::unordered_map<std::string, std::int64_t> steps_;
  std::string leader_;
  std::vector<std::string> optimizers_;
  std::int64_t count_ = 0;
};

/// An entry outside of all modules belongs to the micro step of the next entry within one, else to the last.
void fill_gaps(std::vector<std::int64_t>& steps) {
  std::int64_t next = kNoMicroStep;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (*step == kNoMicroStep) *step = next;
    next = *step;
  }
  std::int64_t last = 0;
  for (std::int64_t& step : steps) {
    if (step == kNoMicroStep) step = last;
    last = step;
  }
}

}  // namespace

MicroSteps::MicroSteps(const ByteSource& file) {
  const OrderedConstruct construct = read_construct(file);
  const bool numbered = construct.table.numbers_micro_steps();
  const Roots roots(construct);
  std::vector<std::int64_t> steps;
  steps.reserve(construct.entries.size());
  count_ = roots.count();
  for (const std::string& entry : construct.entries) {
    const std::string forward = forward_name(entry);
    if (numbered) {
      steps.push_back(construct.table.micro_step(forward));
      count_ = std::max(count_, steps.back() + 1);
    } else {
      const std::vector<std::string> chain = construct.table.chain(forward);
      steps.push_back(roots.of(chain.front()));
    }
  }
  fill_gaps(steps);
  std::unordered_map<std::string, std::int64_t> calls;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string& entry = construct.entries[i];
    const auto name = dump::parse_entry_name(entry);
    if (!name || name->direction != Direction::forward || places_.contains(entry)) continue;
    const std::int64_t call = calls[std::to_string(steps[i]) + " " + std::string(name->base)]++;
    places_[entry] = {steps[i], call};
  }
}

CallPlace MicroSteps::place(std::string_view entry) const {
  const auto found = places_.find(forward_name(entry));
  return found != places_.end() ? found->second : CallPlace{};
}

}  // namespace msprobe::monitor

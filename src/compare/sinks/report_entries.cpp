// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/report_entries.hpp"

#include <string>
#include <unordered_set>

#include "diagnosis/flow.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "dump/stack_json.hpp"

namespace msprobe::compare {
namespace {

using dump::Api;

constexpr std::size_t kDeepestModule = 256;

/// Marks modules that contain anything. Without construct.json, all modules count if operations are recorded
/// as well.
std::vector<bool> compound_modules(const dump::Side& side, const dump::ConstructTable& construct) {
  std::unordered_set<std::string_view> around;
  bool operations = false;
  for (const Api& api : side.apis) {
    const std::string_view name = side.text(api.name);
    if (const std::string_view parent = construct.parent(name); !parent.empty()) around.insert(parent);
    operations = operations || !(name.starts_with("Module.") || name.starts_with("Cell."));
  }
  std::vector<bool> compound;
  for (const Api& api : side.apis) {
    const std::string_view name = side.text(api.name);
    const bool is_module = name.starts_with("Module.") || name.starts_with("Cell.");
    compound.push_back(is_module && (construct.size() > 0 ? around.contains(name) : operations));
  }
  return compound;
}

}  // namespace

ReportEntries::ReportEntries(const verdict::RankResult& result)
    : result_(result), golden_(result.golden.apis.size(), kNoEntry) {
  for (const Api& api : result.target.apis) number(result.target.text(api.name));
  of_rows_ = names_.size();
  if (!result.diagnosis || !result.alignment) return;
  // Another entry of the target may have this name.
  for (const pairing::GoldenOnly& one : result.alignment->golden_only) {
    golden_[one.golden] = static_cast<std::uint32_t>(names_.size());
    names_.push_back(result.golden.text(result.golden.apis[one.golden].name));
  }
  golden_only_ = names_.size() - of_rows_;
}

std::uint32_t ReportEntries::number(std::string_view name) {
  const auto [place, inserted] = index_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (inserted) names_.push_back(name);
  return place->second;
}

std::uint32_t ReportEntries::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? kNoEntry : found->second;
}

std::uint32_t ReportEntries::of_golden(std::uint32_t api) {
  std::uint32_t& known = golden_[api];
  if (known == kNoEntry) known = number(result_.golden.text(result_.golden.apis[api].name));
  return known;
}

std::uint32_t ReportEntries::of_partner(std::uint32_t golden_api) {
  const std::uint32_t target = result_.alignment->target_of[golden_api];
  return target == pairing::kNone ? of_golden(golden_api)
                                  : number(result_.target.text(result_.target.apis[target].name));
}

void ReportEntries::place(const dump::ConstructTable& construct, const dump::ConstructTable& golden) {
  if (construct.size() > 0) find_parents(construct, golden);
  find_micro_steps(construct);
  const auto edges =
      diagnosis::flow_edges({result_.target, true}, compound_modules(result_.target, construct));
  for (const diagnosis::FlowEdge& edge : edges) {
    flow_.push_back({index_.at(result_.target.text(result_.target.apis[edge.consumer].name)),
                     index_.at(result_.target.text(result_.target.apis[edge.producer].name))});
  }
  if (golden_only_ > 0) find_golden_flow(golden);
}

void ReportEntries::find_parents(const dump::ConstructTable& construct, const dump::ConstructTable& golden) {
  std::unordered_map<std::string_view, std::uint32_t> golden_apis;
  for (std::uint32_t i = 0; golden_only_ > 0 && i < result_.golden.apis.size(); ++i)
    golden_apis.emplace(result_.golden.text(result_.golden.apis[i].name), i);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const bool only_golden = i >= of_rows_ && i < of_rows_ + golden_only_;
    const std::string_view parent = (only_golden ? golden : construct).parent(names_[i]);
    const auto around = only_golden ? golden_apis.find(parent) : golden_apis.end();
    parents_.push_back(parent.empty()                ? kNoEntry
                       : around == golden_apis.end() ? number(parent)
                                                     : of_partner(around->second));
  }
  // A chain of parents that is circular, or deeper than any model, is cut.
  for (std::size_t i = 0; i < names_.size(); ++i) {
    std::size_t depth = 0;
    for (auto at = static_cast<std::uint32_t>(i); parents_[at] != kNoEntry; at = parents_[at]) {
      if (++depth == kDeepestModule) {
        parents_[at] = kNoEntry;
        break;
      }
    }
  }
}

/// Uses the file's numbers if it has any. Otherwise each new forward run of the first outermost module begins
/// a micro step, if anything but forward runs came before it.
void ReportEntries::find_micro_steps(const dump::ConstructTable& construct) {
  if (construct.numbers_micro_steps()) {
    for (const std::string_view name : names_) micro_steps_.push_back(construct.micro_step(name));
    return;
  }
  if (parents_.empty()) return;
  std::string_view first;  // the base of its name
  bool turned = false;
  std::uint32_t step = 0;
  std::uint32_t last_top = kNoEntry;
  std::vector<std::uint32_t> steps(names_.size(), 0);
  for (std::size_t i = 0; i < of_rows_; ++i) {
    auto top = static_cast<std::uint32_t>(i);
    while (parents_[top] != kNoEntry) top = parents_[top];
    if (top != last_top) {
      last_top = top;
      const auto name = dump::parse_entry_name(names_[top]);
      if (name && name->is_module && name->direction == dump::Direction::forward) {
        if (first.empty()) first = name->base;
        if (turned && name->base == first) ++step;
        if (name->base == first) turned = false;
      } else if (name && name->is_module) {
        turned = !first.empty();
      }
    }
    steps[i] = step;
  }
  if (step == 0) return;
  // An entry that golden alone has belongs to the micro step of the module that contains it.
  for (std::size_t i = of_rows_; i < names_.size(); ++i) {
    if (parents_[i] != kNoEntry && parents_[i] < of_rows_) steps[i] = steps[parents_[i]];
  }
  micro_steps_ = std::move(steps);
}

void ReportEntries::find_golden_flow(const dump::ConstructTable& golden) {
  const auto is_alone = [&](std::uint32_t entry) {
    return entry >= of_rows_ && entry < of_rows_ + golden_only_;
  };
  const auto known = [&](std::uint32_t api) {
    const std::uint32_t target = result_.alignment->target_of[api];
    return target == pairing::kNone ? golden_[api]
                                    : find(result_.target.text(result_.target.apis[target].name));
  };
  for (const diagnosis::FlowEdge& edge :
       diagnosis::flow_edges({result_.golden, true}, compound_modules(result_.golden, golden))) {
    const std::uint32_t consumer = known(edge.consumer);
    const std::uint32_t producer = known(edge.producer);
    if (consumer == kNoEntry || producer == kNoEntry) continue;
    if (is_alone(consumer) || is_alone(producer)) golden_flow_.push_back({consumer, producer});
  }
}

void ReportEntries::add_to(JsonWriter& json) const {
  json.member("entries", names_);
  std::vector<int> directions;
  for (const std::string_view one : names_) {
    const auto name = dump::parse_entry_name(one);
    directions.push_back(name ? static_cast<int>(name->direction) : 0);
  }
  json.member("directions", directions);
  json.key("goldenOnly");
  json.list(of_rows_, golden_only_);
  std::vector<std::int64_t> parents;
  for (const std::uint32_t parent : parents_)
    parents.push_back(parent == kNoEntry ? -1 : std::int64_t{parent});
  json.member("parents", parents);
  if (!micro_steps_.empty()) json.member("microSteps", micro_steps_);
  add_flow(json);
  add_stacks(json);
}

/// For each entry with inputs from other entries: how many entries without such inputs came before it, how
/// many entries made its inputs, and how far before it each of these is. Equal layers have the same numbers,
/// which deflate to almost nothing.
void ReportEntries::add_flow(JsonWriter& json) const {
  std::vector<std::int64_t> numbers;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < flow_.size();) {
    const std::uint32_t consumer = flow_[i].consumer;
    std::size_t end = i;
    while (end < flow_.size() && flow_[end].consumer == consumer) ++end;
    numbers.push_back(consumer - next);
    numbers.push_back(static_cast<std::int64_t>(end - i));
    for (; i < end; ++i) numbers.push_back(std::int64_t{consumer} - flow_[i].producer);
    next = std::int64_t{consumer} + 1;
  }
  json.member("flow", numbers);
  numbers.clear();
  for (const Edge& edge : golden_flow_) {
    numbers.push_back(edge.consumer);
    numbers.push_back(edge.producer);
  }
  json.member("goldenFlow", numbers);
}

void ReportEntries::add_stacks(JsonWriter& json) const {
  std::vector<const dump::StackTable::Frames*> stacks;
  std::unordered_map<const void*, std::size_t> known;
  const std::size_t count = result_.target.stacks ? of_rows_ : 0;
  json.open_list("stackOf");
  for (std::size_t i = 0; i < count; ++i) {
    const auto* frames = result_.target.stacks->find(names_[i]);
    if (frames == nullptr) {
      json.value(-1);
      continue;
    }
    const auto [place, inserted] = known.try_emplace(frames, stacks.size());
    if (inserted) stacks.push_back(frames);
    json.value(place->second);
  }
  json.close();
  json.open_list("stacks");
  for (const dump::StackTable::Frames* stack : stacks) {
    json.open_list();
    for (const std::string& frame : *stack) {
      json.list(dump::is_framework_frame(frame, result_.framework_frames) ? 0 : 1, frame);
    }
    json.close();
  }
  json.close();
}

}  // namespace msprobe::compare

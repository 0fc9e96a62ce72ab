// SPDX-License-Identifier: Apache-2.0
#include "comparison/culprit/rank_diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnosis/replay/replay.hpp"
#include "diagnosis/updates.hpp"
#include "dump/member_stream.hpp"
#include "dump/stack_json.hpp"
#include "dump/tree.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/parallel.hpp"

namespace msprobe::compare {
namespace {

constexpr std::uint32_t kNoRow = UINT32_MAX;

/// By a mapping: entries belong together if rows of theirs do; of several partners the first counts. Entries
/// without rows go by name.
diagnosis::Alignment alignment_of_rows(const RankResult& result) {
  diagnosis::Alignment alignment;
  alignment.golden_of.assign(result.target.apis.size(), diagnosis::kNone);
  alignment.target_of.assign(result.golden.apis.size(), diagnosis::kNone);
  const auto pair = [&](std::uint32_t ours, std::uint32_t theirs) {
    if (alignment.golden_of[ours] != diagnosis::kNone || alignment.target_of[theirs] != diagnosis::kNone)
      return;
    alignment.golden_of[ours] = theirs;
    alignment.target_of[theirs] = ours;
  };
  for (const Row& row : result.rows) {
    if (row.matched()) pair(result.target_item(row).api, result.golden_item(row).api);
  }
  std::unordered_map<std::string_view, std::uint32_t> empty;
  for (std::uint32_t i = 0; i < result.golden.apis.size(); ++i) {
    if (result.golden.apis[i].count == 0) empty.emplace(result.golden.text(result.golden.apis[i].name), i);
  }
  for (std::uint32_t i = 0; i < result.target.apis.size(); ++i) {
    if (result.target.apis[i].count != 0) continue;
    if (const auto found = empty.find(result.target.text(result.target.apis[i].name)); found != empty.end())
      pair(i, found->second);
  }
  alignment.golden_only = diagnosis::golden_only_of(alignment.target_of);
  return alignment;
}

/// What could not be read again for evidence. Rows were measured from the first reading: nobody else tells.
class SecondReading {
 public:
  void failed(std::string_view name, const std::string& reason) {
    if (first_.empty()) first_ = std::string(name) + ": " + reason;
    names_.emplace(name);
  }
  void tell(diagnosis::RankFindings& findings) const {
    findings.broken_off = names_.size();
    findings.first_broken_off = first_;
  }

 private:
  std::set<std::string, std::less<>> names_;
  std::string first_;
};

/// The lines that called entries of the reference: its stack.json is read when the first is asked for.
class GoldenLines {
 public:
  GoldenLines(std::string_view json, const std::vector<std::string>& framework_frames)
      : path_((std::filesystem::path(json).parent_path() / "stack.json").string()),
        frames_(framework_frames) {}
  std::string of(std::string_view entry) const {
    if (!stacks_) stacks_.emplace(read());
    const auto* frames = stacks_->find(entry);
    return frames == nullptr ? std::string() : dump::user_frame(*frames, frames_);
  }

 private:
  dump::StackTable read() const {
    try {
      return dump::read_stacks_if_any(path_).value_or(dump::StackTable());
    } catch (const Error&) {
      return {};  // there is no line to tell
    }
  }

  std::string path_;
  const std::vector<std::string>& frames_;
  mutable std::optional<dump::StackTable> stacks_;
};

/// The number in the folder of its step; nothing if there is no such folder.
std::optional<std::int64_t> step_of(const std::string& json) {
  for (const std::filesystem::path& part : std::filesystem::path(json)) {
    if (const auto number = dump::number_after(part.string(), "step")) return number;
  }
  return std::nullopt;
}

bool is_computed(const diagnosis::replay::ReplayedOutput& output) {
  return output.status == diagnosis::replay::Status::computed;
}

/// The first row of each item under test.
std::vector<std::uint32_t> rows_of_items(const RankResult& result) {
  std::vector<std::uint32_t> rows(result.target.items.size(), kNoRow);
  for (std::size_t i = result.rows.size(); i-- > 0;) {
    if (result.rows[i].has_target()) rows[result.rows[i].pair.target] = static_cast<std::uint32_t>(i);
  }
  return rows;
}

diagnosis::replay::ReplayResult replay_entry_of(const Side& side, std::uint32_t api) {
  const Api& place = side.apis[api];
  const std::string_view name = side.text(place.name);
  dump::Entry entry;
  dump::read_entry_at(*open_file(side.json), place.offset, place.size, entry, name);
  return diagnosis::replay::replay_entry(name, entry, side.tensor_directory);
}

/// What both sides' outputs are apart from what their inputs give.
std::vector<diagnosis::Replayed> replay_pair(const RankResult& result, std::uint32_t target_api,
                                             std::uint32_t golden_api, SecondReading& reading) {
  std::vector<diagnosis::Replayed> out;
  diagnosis::replay::ReplayResult ours;
  diagnosis::replay::ReplayResult theirs;
  parallel_for(2, [&](std::size_t side) {
    if (side == 0) ours = replay_entry_of(result.target, target_api);
    if (side == 1) theirs = replay_entry_of(result.golden, golden_api);
  });
  const Api& api = result.target.apis[target_api];
  for (const diagnosis::replay::ReplayResult* outputs : {&ours, &theirs}) {
    for (const diagnosis::replay::ReplayedOutput& output : *outputs) {
      if (output.status == diagnosis::replay::Status::broken_off)
        reading.failed(result.target.text(api.name), output.reason);
    }
  }
  for (std::uint32_t item = api.first; item < api.first + api.count; ++item) {
    if (result.target.items[item].state != dump::State::output) continue;
    std::string_view place = diagnosis::place_of(result.target, result.target.items[item]).rest;
    if (place.starts_with('.')) place.remove_prefix(1);
    const auto of_place = [&](const diagnosis::replay::ReplayResult& outputs) {
      return std::find_if(outputs.begin(), outputs.end(),
                          [&](const auto& one) { return one.place == place && is_computed(one); });
    };
    const auto target = of_place(ours);
    const auto golden = of_place(theirs);
    if (target == ours.end() || golden == theirs.end()) continue;
    // What was not looked at as a whole may be convicted, but not acquitted.
    const bool whole = target->covered == 1 && golden->covered == 1;
    if (!whole && target->r <= target->tolerance && golden->r <= golden->tolerance) continue;
    out.push_back({item, target->r, golden->r, std::max(target->tolerance, golden->tolerance)});
  }
  return out;
}

/// What a step did to parameters, from the tensors of this step and of the one before.
class StepUpdates {
 public:
  StepUpdates(const RankResult& before, const RankResult& now, SecondReading& reading)
      : now_(now), reading_(reading), target_(before.target), golden_(before.golden) {}

  std::optional<diagnosis::Update> operator()(std::uint32_t target_item, std::uint32_t golden_item) const {
    const Item* const target = target_.find(now_.target, target_item);
    const Item* const golden = golden_.find(now_.golden, golden_item);
    if (target == nullptr || golden == nullptr) return std::nullopt;
    try {
      return diagnosis::update_between(
          {open_data(target_.side(), *target), open_data(now_.target, now_.target.items[target_item])},
          {open_data(golden_.side(), *golden), open_data(now_.golden, now_.golden.items[golden_item])});
    } catch (const Error& error) {
      reading_.failed(now_.target.name(now_.target.items[target_item]), error.what());
      return std::nullopt;
    }
  }

 private:
  /// Items of the step before, by name.
  class Before {
   public:
    explicit Before(const Side& side) : side_(side) {
      for (std::uint32_t i = 0; i < side.items.size(); ++i) {
        if (side.items[i].data_name != 0) items_.emplace(side.name(side.items[i]), i);
      }
    }
    const Item* find(const Side& now, std::uint32_t item) const {
      const auto found = items_.find(now.name(now.items[item]));
      return found == items_.end() || now.items[item].data_name == 0 ? nullptr : &side_.items[found->second];
    }
    const Side& side() const { return side_; }

   private:
    const Side& side_;
    std::unordered_map<std::string_view, std::uint32_t> items_;
  };

  const RankResult& now_;
  SecondReading& reading_;
  Before target_;
  Before golden_;
};

}  // namespace

void diagnose(RankResult& result, TensorRows* tensors, const DiagnosisOptions& options, const Rules& rules,
              bool mapped, RankHistory& past, const NoiseFloor* noise) {
  diagnosis::RankPair pair;
  pair.target = &result.target;
  pair.golden = &result.golden;
  if (!result.alignment) {
    result.alignment = std::make_shared<const diagnosis::Alignment>(
        mapped ? alignment_of_rows(result) : diagnosis::align(result.target, result.golden));
  }
  pair.alignment = result.alignment.get();
  pair.precision = result.precision;
  pair.step = result.step;
  pair.rank = result.rank;
  pair.number = result.number;
  const std::optional<std::int64_t> step = step_of(result.target.json);
  const std::optional<std::int64_t> golden_step = step_of(result.golden.json);
  pair.late = step.value_or(0) != 0 && golden_step.value_or(0) != 0;
  if (step && golden_step && *step != *golden_step)
    pair.unlike = fmt::format("this run was recorded at step {}, golden at step {}", *step, *golden_step);
  pair.replay_mode =
      options.without.contains(diagnosis::Rule::replay) ? diagnosis::ReplayMode::never : options.replay;
  pair.without = options.without;
  pair.stop_at_certain = options.first;
  pair.framework_frames = rules.framework_frames;
  if (result.target_construct) pair.target_construct = &result.target_construct->table();
  pair.golden_parent = [&](std::string_view entry) {
    return result.golden_construct ? result.golden_construct->table().parent(entry) : std::string_view();
  };
  const GoldenLines lines(result.golden.json, rules.framework_frames);
  pair.golden_where = [&](std::string_view entry) { return lines.of(entry); };
  SecondReading reading;
  std::vector<std::uint32_t> rows;
  if (tensors != nullptr) {
    rows = rows_of_items(result);
    pair.tensors = [&](std::uint32_t item, std::uint32_t golden) -> std::optional<diagnosis::Measure> {
      tensors->measure_entry(result.target.items[item].api);
      const std::uint32_t row = rows[item];
      if (row == kNoRow || result.rows[row].pair.golden != golden) return std::nullopt;
      const TensorMetrics& metrics = result.metrics[row];
      return metrics.measure.known ? std::optional(metrics.measure) : std::nullopt;
    };
  }
  if (result.mode == Mode::tensor && options.replay != diagnosis::ReplayMode::never) {
    pair.replay = [&](std::uint32_t target_api, std::uint32_t golden_api) {
      return replay_pair(result, target_api, golden_api, reading);
    };
  }
  std::optional<StepUpdates> updates;
  if (past.before) {
    updates.emplace(*past.before, result, reading);
    pair.update = [&](std::uint32_t item, std::uint32_t golden) { return (*updates)(item, golden); };
  }
  if (noise != nullptr) {
    pair.noise = [&](std::uint32_t golden) {
      try {
        return (*noise)(golden);
      } catch (const Error& error) {
        reading.failed(result.golden.name(result.golden.items[golden]), error.what());
        return diagnosis::Noise();  // what cannot be read explains nothing
      }
    };
  }
  diagnosis::RankDiagnosis found = diagnosis::diagnose_rank(pair, past.history);
  reading.tell(found);
  // Who may stop early has had them read on the way.
  found.unread = static_cast<std::uint64_t>(
      std::count_if(result.metrics.begin(), result.metrics.end(), [](const TensorMetrics& metrics) {
        return metrics.failed && metrics.status == MetricStatus::unsupported;
      }));
  result.diagnosis = std::make_shared<const diagnosis::RankDiagnosis>(std::move(found));
}

}  // namespace msprobe::compare

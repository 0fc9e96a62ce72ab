// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/rank_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnosis/recorders.hpp"
#include "dump/side.hpp"
#include "measuring/choose_mode.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using pairing::kNone;

/// The number of entries after the last one that has a partner. Unless `all`: 0 if one of them calls an
/// operation, since calls of operations are reported as a hint.
std::size_t entries_behind(const dump::Side& side, const std::vector<std::uint32_t>& partners, bool all) {
  std::size_t behind = 0;
  for (std::size_t i = side.apis.size(); i > 0 && partners[i - 1] == kNone; --i) {
    const dump::EntryName parsed = side.parsed_name(i - 1);
    if (!all && !parsed.is_module && parsed.direction == dump::Direction::forward) return 0;
    ++behind;
  }
  return behind;
}

/// Settings of the framework that both sides recorded with different values; empty if no setting differs.
std::string other_flags(const Walk& walk) {
  constexpr std::size_t kShown = 6;
  const auto& theirs = walk.golden.header.training.flags;
  std::string text;
  std::size_t count = 0;
  for (const auto& [name, value] : walk.target.header.training.flags) {
    const auto found = theirs.find(name);
    if (found == theirs.end() || found->second == value || ++count > kShown) continue;
    text += fmt::format("{}{} is {}, {} in golden", count == 1 ? "" : "; ", display(name), display(value),
                        display(found->second));
  }
  if (count > kShown) text += fmt::format("; and {} more settings", count - kShown);
  return text;
}

/// The first entry whose output has NaN, or kNone. A view computes nothing: its memory may not be
/// written yet.
std::uint32_t first_nan(const dump::Side& side) {
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    const dump::EntryName name = side.parsed_name(api);
    if (pairing::is_view(name.operation()) || name.direction == dump::Direction::parameters_grad) continue;
    for (const std::uint32_t i : side.apis[api].items()) {
      const dump::Item& item = side.items[i];
      if (item.state != dump::State::output || !item.is_tensor) continue;
      for (const dump::Statistic which : {dump::kMax, dump::kMin}) {
        if (dump::is_recorded(item.statistics[which]) && std::isnan(measuring::number_of(side, item, which)))
          return api;
      }
    }
  }
  return kNone;
}

/// Some modules run more often than in golden and others less often, as where a recomputation runs one block
/// twice and another never; empty unless both kinds exist.
std::string other_counts(const Walk& walk) {
  constexpr std::size_t kShown = 4;
  std::map<std::string_view, std::pair<std::size_t, std::size_t>> calls;
  const auto count = [&](const dump::Side& side, std::size_t std::pair<std::size_t, std::size_t>::*times) {
    for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
      const dump::EntryName name = side.parsed_name(api);
      if (name.is_module && name.direction == dump::Direction::forward) ++(calls[name.base].*times);
    }
  };
  count(walk.target, &std::pair<std::size_t, std::size_t>::first);
  count(walk.golden, &std::pair<std::size_t, std::size_t>::second);
  std::erase_if(calls, [](const auto& each) {
    const auto [ours, theirs] = each.second;
    return ours == theirs || ours == 0 || theirs == 0;
  });
  const auto parent = [](std::string_view path) { return path.substr(0, path.rfind('.')); };
  std::unordered_set<std::string_view> paths;
  for (const auto& [module, times] : calls) paths.insert(parent(module));  // the rest is its class
  // Modules inside a listed one run as often as it does.
  const auto is_inside = [&](std::string_view path) {
    while (path.find('.') != std::string_view::npos) {
      path = parent(path);
      if (paths.contains(path)) return true;
    }
    return false;
  };
  std::string text;
  std::size_t shown = 0;
  bool more = false;
  bool less = false;
  for (const auto& [module, times] : calls) {
    const auto [ours, theirs] = times;
    if (is_inside(parent(module))) continue;
    more = more || ours > theirs;
    less = less || ours < theirs;
    if (++shown <= kShown)
      text += fmt::format("{}{} {}, {} in golden", text.empty() ? "" : "; ", module, ours, theirs);
  }
  if (!more || !less) return {};
  return shown > kShown ? fmt::format("{}; and {} more", text, shown - kShown) : text;
}

/// NaN that one run has and the other has not is what a user sees: the first finding says it, or a note.
void tell_nan(Walk& walk) {
  if (walk.history.evidence) return;
  const std::uint32_t ours = first_nan(walk.target);
  const std::uint32_t theirs = first_nan(walk.golden);
  if ((ours == kNone) == (theirs == kNone)) return;
  const std::string text =
      fmt::format("{} has NaN from {} on, {} none", ours == kNone ? "golden" : "this run",
                  ours == kNone ? walk.golden_name(theirs) : walk.target_name(ours),
                  ours == kNone ? "this run" : "golden");
  if (walk.out.findings.empty() || !walk.out.findings.front().is_evidence()) {
    walk.out.notes.push_back(text);
  } else if (walk.out.findings.front().text.find("NaN") == std::string::npos) {
    walk.out.findings.front().text += "; " + text;
  }
}

/// `, before its backward, after Tensor.__add__.3.forward` of a side that did not finish the step; else
/// empty.
std::string end_of(const dump::Side& side, const dump::Side& other) {
  const std::string_view before = ends_before(side, other);
  for (std::size_t i = side.apis.size(); i > 0 && !before.empty(); --i) {
    const std::string_view last = side.text(side.apis[i - 1].name);
    if (!side.parsed_name(i - 1).is_module || i == 1) return fmt::format(",{}, after {}", before, last);
  }
  return {};
}

}  // namespace

void take_notes(Walk& walk) {
  tell_nan(walk);
  if (std::string data = measuring::other_data(walk.target, walk.golden); !data.empty())
    walk.out.notes.push_back(std::move(data));
  if (const std::string counts = walk.split_batch ? "" : other_counts(walk); !counts.empty())
    walk.out.notes.push_back(
        "some modules run more often than in golden and others less often in this step: " + counts);
  if (walk.step && walk.golden_step && *walk.step != *walk.golden_step) {
    walk.out.notes.push_back(
        fmt::format("this run was recorded at step {}, golden at step {}", *walk.step, *walk.golden_step));
  }
  if (std::string flags = other_flags(walk); !flags.empty()) walk.out.notes.push_back(std::move(flags));
  if (const auto& setting = walk.dtype_setting; setting && setting->by_parameters) {
    walk.out.notes.push_back(fmt::format(
        "parameters are {} in this run, {} in golden ({} of {}): they are compared by the rounding of the "
        "coarser "
        "type, which may lose small updates",
        setting->target, setting->golden, human_count(setting->tensors), human_count(setting->floating)));
  } else if (setting) {
    walk.out.notes.push_back(
        fmt::format("this run computes {}in {}, golden in {} ({} of {} pairs of {}): differences are judged "
                    "by the rounding of the coarser type",
                    setting->by_products ? "products of matrices " : "", setting->target, setting->golden,
                    human_count(setting->tensors), human_count(setting->floating),
                    setting->by_products ? "their outputs" : "floating tensors"));
  }
  if (const auto& split = walk.split_batch) {
    walk.out.notes.push_back(
        fmt::format("a step's batch is computed in {} {} in this run, in {} in golden: of calls that one run "
                    "makes more often, only parameters are compared",
                    split->target, split->target == 1 ? "part" : "parts", split->golden));
  }
  if (const auto& parts = walk.part_updates) {
    const bool ours = *parts == PartUpdates::target;
    walk.out.notes.push_back(fmt::format(
        "two parallel layouts: the optimizer of {} updates parts of parameters, that of {} the whole; their "
        "calls are not compared, and parameters where they are used. --merge-ranks compares the ranks as one "
        "model",
        ours ? "this run" : "golden", ours ? "golden" : "this run"));
  }
  if (const auto& scale = walk.errors.loss_scale) {
    const std::string scales =
        scale->target > 0 && scale->golden > 0
            ? fmt::format("the loss is scaled by {:g}, in golden by {:g}", scale->target, scale->golden)
            : std::string("the loss is scaled differently than in golden");
    walk.out.notes.push_back(
        fmt::format("{}: gradients are compared with that factor, {:.6g}, taken out", scales, scale->factor));
  }
  const auto alone = [](const std::vector<bool>& calls) {
    return std::find(calls.begin(), calls.end(), true) != calls.end();
  };
  if (alone(walk.alignment.target_update_alone) || alone(walk.alignment.golden_update_alone))
    walk.out.notes.emplace_back(
        "calls of an optimizer without a known counterpart are not compared: one run may update other "
        "parameters");
  if (walk.others_parameters > 0) {
    walk.out.notes.push_back(fmt::format(
        "{} of another name than the call of golden that it is paired with, and its other inputs differ, "
        "too: "
        "not compared",
        walk.others_parameters == 1 ? "1 call uses a parameter"
                                    : human_count(walk.others_parameters) + " calls use a parameter each"));
  }
  if (walk.rewritten > 0) {
    walk.out.notes.push_back(fmt::format(
        "both runs make the same result of {}, in another way: not compared, the first is at {}",
        walk.rewritten == 1 ? "1 value that differs" : human_count(walk.rewritten) + " values that differ",
        walk.first_rewritten));
  }
  if (!walk.tensors) {
    for (std::string& limit : walk.history.precision->limits()) walk.out.notes.push_back(std::move(limit));
  }
  const auto note = [&](const OneRecorder& calls, const char* whose, const char* others) {
    if (calls.calls() == 0) return;
    const auto are = [&](std::string_view noun) {
      return calls.calls() == 1 ? fmt::format("1 {} is", noun)
                                : fmt::format("{} {}s are", human_count(calls.calls()), noun);
    };
    if (calls.by_level()) {
      walk.out.notes.push_back(fmt::format(
          "{} recorded in {} only, because the dumps have different levels: modules are compared as a whole",
          are("operation"), whose));
      return;
    }
    if (calls.by_compiler()) {
      walk.out.notes.push_back(fmt::format(
          "{} recorded in {} only: the other run records no operations inside their modules, as in "
          "compiled code, and these modules are compared as a whole",
          are("operation"), whose));
      return;
    }
    if (calls.by_filter()) {
      walk.out.notes.push_back(fmt::format(
          "{} recorded in {} only: the other recording was asked for some calls alone ({}), so they do "
          "not count as a difference",
          are("call"), whose, calls.filter()));
      return;
    }
    const std::string why = calls.by_recorder()
                                ? std::string(others) + " recorder does not record such operations"
                                : "such operations make, shape or convert tensors";
    walk.out.notes.push_back(
        fmt::format("{} of {} {} recorded in {} only: {}, so they do not count as a difference",
                    calls.calls() == 1 ? "1 call" : human_count(calls.calls()) + " calls", calls.names(),
                    calls.calls() == 1 ? "is" : "are", whose, why));
  };
  note(walk.target_only, "this run", "golden's");
  note(walk.golden_only, "golden", "this run's");
  const auto ends = [&](const dump::Side& side, const dump::Side& other,
                        const std::vector<std::uint32_t>& partners, const char* shorter, const char* longer) {
    // Some recorders leave a few gradients out.
    constexpr std::size_t kFewest = 8;
    constexpr std::size_t kPart = 20;
    const std::string where = end_of(side, other);
    const std::size_t behind = entries_behind(other, partners, !where.empty());
    if (behind < std::max(kFewest, other.apis.size() / kPart) && (where.empty() || behind == 0)) return;
    const EarlyEnd end{
        shorter, fmt::format("in {}{}: {}{} continues for {} more entries, which are not compared",
                             walk.out.step.empty() ? "the step" : walk.out.step, where,
                             where.empty() ? "" : "the run failed, or its recording was stopped there; ",
                             longer, human_count(behind))};
    walk.out.notes.insert(where.empty() ? walk.out.notes.end() : walk.out.notes.begin(), end.text());
    if (!where.empty()) walk.out.early_end = end;
  };
  ends(walk.target, walk.golden, walk.alignment.target_of, "this run", "golden");
  ends(walk.golden, walk.target, walk.alignment.golden_of, "golden", "this run");
  const auto partly = std::count(walk.errors.partial.begin(), walk.errors.partial.end(), 1);
  if (partly > 0) {
    walk.out.notes.push_back(fmt::format("{} {} a statistic on one side only: it is not compared",
                                         human_count(static_cast<std::uint64_t>(partly)),
                                         partly == 1 ? "tensor has" : "tensors have"));
  }
  const auto other_uses = std::count(walk.errors.other_uses.begin(), walk.errors.other_uses.end(), 1);
  if (other_uses > 0) {
    walk.out.notes.push_back(fmt::format(
        "{} with other uses of the tensor in one recording, and not compared (gradient_of)",
        other_uses == 1 ? "a gradient is"
                        : human_count(static_cast<std::uint64_t>(other_uses)) + " gradients are"));
  }
  const auto unmasked = std::count(walk.errors.unmasked.begin(), walk.errors.unmasked.end(), 1);
  if (unmasked > 0) {
    walk.out.notes.push_back(fmt::format(
        "{} of in-place activations {} recorded before them by one recorder, and not compared",
        unmasked == 1 ? "a gradient" : human_count(static_cast<std::uint64_t>(unmasked)) + " gradients",
        unmasked == 1 ? "is" : "are"));
  }
}

}  // namespace msprobe::diagnosis

// SPDX-License-Identifier: Apache-2.0
#include "monitor/compare/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/terminal.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

constexpr int kDigits = 6;
constexpr std::size_t kListed = 12;  // the most listed of what was not compared

std::string number(double value) {
  return short_number(value, kDigits);
}

std::string times_of(double times) {
  constexpr double kMost = 1e6;
  if (times >= kMost) return "more than " + human_count(static_cast<std::uint64_t>(kMost));
  return times >= 1000 ? human_count(static_cast<std::uint64_t>(times)) : short_number(times, 3);
}

std::string steps_of(const MonitorComparison& comparison) {
  return comparison.from == comparison.to ? fmt::format("step {}", comparison.from)
                                          : fmt::format("steps {} to {}", comparison.from, comparison.to);
}

std::string counted(std::size_t count, std::string_view noun) {
  return human_count(count) + ' ' + std::string(noun) + (count == 1 || noun == "series" ? "" : "s");
}

std::string how_far(const SeriesResult& result) {
  switch (result.course.parting) {
    case Parting::number:
      return "";
    case Parting::jump:
      return fmt::format(", a jump of {} times its own fluctuation", times_of(result.course.times));
    case Parting::shift:
      return fmt::format(", and stays {} times its own fluctuation apart", times_of(result.course.times));
    case Parting::drift:
      return fmt::format(", which has drifted {} times as far as it moves by itself",
                         times_of(result.course.times));
    case Parting::onset:
      return fmt::format(", equal before; the difference is {} times what the step changes",
                         times_of(result.course.times));
    case Parting::none:
      break;
  }
  return "";
}

bool recorded(const MonitorComparison& comparison, std::string_view quantity) {
  return comparison.recorded.contains(std::string(quantity));
}

/// Is the series an input of the model?
bool is_model_input(const SeriesResult& result) {
  return result.moment.place == 0 && result.name.find(".input") != std::string::npos;
}

std::string forward_cause(const MonitorComparison& comparison, const SeriesResult& first) {
  if (is_model_input(first)) return "It is the input of the model: the runs have different data.";
  if (!recorded(comparison, "param_origin") && !recorded(comparison, "param_updated")) {
    return "Among what was recorded, forward parts first; whether the parameters had parted before is "
           "unknown (param_distribution records them).";
  }
  return "The parameters before this forward, and all modules before this one, had not parted: the cause is "
         "the forward of this module, or one of its inputs that was not recorded.";
}

std::string backward_cause(const MonitorComparison& comparison) {
  return recorded(comparison, "actv")
             ? "The forward of the step had not parted: the difference is introduced in the backward."
             : "Among what was recorded, backward parts first; forward was not recorded (xy_distribution "
               "records it).";
}

std::string communication_cause(const MonitorComparison& comparison) {
  const std::string between =
      comparison.ranks > 1
          ? "the reduction across ranks, a rank that was not recorded, or what else is done to "
            "gradients before the optimizer's step (clipping, scaling, hooks)"
          : "what is done to gradients before the optimizer's step (clipping, scaling, hooks, a "
            "reduction)";
  return recorded(comparison, "grad_unreduced")
             ? "The gradients as the backward gave them had not parted on the recorded ranks: the cause is " +
                   between + '.'
             : "The gradients as the backward gave them were not recorded: the cause is the backward, or " +
                   between + '.';
}

std::string after_cause(const MonitorComparison& comparison) {
  const bool gradients = recorded(comparison, "grad_reduced") || recorded(comparison, "grad_unreduced");
  return gradients ? "The gradients of the step had not parted: the difference comes from the optimizer "
                     "(learning rate, weight decay, clipping, its state)."
                   : "Gradients were not recorded (wg_distribution records them): the cause is the gradients "
                     "or the optimizer.";
}

std::string before_cause(const MonitorComparison& comparison, const SeriesResult& first) {
  if (first.quantity != "param_origin") {
    return "These are optimizer moments from the previous step: the cause is its gradient, or how the "
           "optimizer used it.";
  }
  if (first.moment.step == comparison.from) return "The runs begin with different parameters.";
  return recorded(comparison, "param_updated")
             ? "After the previous step they had not parted: something other than the optimizer changed the "
               "parameters."
             : "The previous step of the optimizer, or something between the two steps, changed the "
               "parameters.";
}

std::string quantity_table(const MonitorComparison& comparison, bool color) {
  std::vector<std::vector<std::string>> rows;
  for (const QuantitySummary& one : comparison.quantities) {
    rows.push_back({one.quantity, one.parted == 0 ? "-" : std::to_string(one.first_step),
                    fmt::format("{} of {}", human_count(one.parted), human_count(one.series))});
  }
  return report::render_columns({"quantity", "first step", "series that part"}, rows, {.color = color});
}

/// The words for equality of numbers that may have been rounded to some decimals.
std::string equal_words(const MonitorComparison& comparison) {
  if (!comparison.resolution) return "equal in every number";
  const auto decimals = std::lround(-std::log10(*comparison.resolution));
  std::string text = fmt::format("equal as far as {} decimal{} show{}", decimals, decimals == 1 ? "" : "s",
                                 decimals == 1 ? "s" : "");
  if (comparison.zeros > 0) text += fmt::format(" ({} of them all zero)", human_count(comparison.zeros));
  return text;
}

}  // namespace

std::string place_of(const SeriesResult& result, bool several_ranks) {
  std::string text = result.quantity + " of " + result.name;
  if (result.micro_step.value_or(0) > 0) text += fmt::format(", micro step {}", *result.micro_step);
  if (result.stage.value_or(0) > 0) text += fmt::format(", stage {}", *result.stage);
  if (several_ranks) text += fmt::format(", rank {}", result.rank);
  return display(text);
}

std::string headline(const MonitorComparison& comparison) {
  const auto all_of = [&](std::size_t series) {
    return fmt::format("{} over {}", counted(series, "series"), steps_of(comparison));
  };
  const std::string all = all_of(comparison.compared() - comparison.unknown);
  if (comparison.parted > 0) {
    const SeriesResult& first = comparison.series.front();
    return fmt::format("The runs part at step {}: {} is {} in the first run, {} in the second ({}{}{})",
                       first.moment.step, place_of(first, comparison.ranks > 1), number(first.a),
                       number(first.b), display(first.statistic), how_far(first),
                       first.course.lasts ? "" : "; too close to the end to see whether it lasts") +
           '.';
  }
  if (comparison.unknown > 0 && comparison.numbers == 0)
    return fmt::format("Nothing can be compared: {} are NaN or infinite in both runs.",
                       all_of(comparison.unknown));
  const std::string limit =
      comparison.coverage.is_complete()
          ? "Both runs"
          : fmt::format("The {} of both runs that could be compared", comparison.coverage.percent());
  if (comparison.passing > 0) {
    const SeriesResult& first = comparison.series.front();
    return fmt::format(
        "{} never part for good, but {} of {} differ beyond their fluctuation for some steps, first at "
        "step {}: {} ({}).",
        limit, human_count(comparison.passing), all, first.moment.step, place_of(first, comparison.ranks > 1),
        display(first.statistic));
  }
  if (comparison.unequal > 0) {
    return fmt::format("{} stay within their own fluctuation: {}, {} of them {}.", limit, all,
                       human_count(comparison.identical), equal_words(comparison));
  }
  return fmt::format("{} are identical: {} are {}.", limit, all, equal_words(comparison));
}

std::string cause(const MonitorComparison& comparison) {
  if (comparison.parted == 0) return "";
  const SeriesResult& first = comparison.series.front();
  switch (first.moment.phase) {
    case TrainingPhase::before:
      return before_cause(comparison, first);
    case TrainingPhase::forward:
      return forward_cause(comparison, first);
    case TrainingPhase::backward:
      return backward_cause(comparison);
    case TrainingPhase::communication:
      return communication_cause(comparison);
    case TrainingPhase::optimizer:
    case TrainingPhase::after:
      break;
  }
  return after_cause(comparison);
}

std::string message_of(const SeriesResult& result) {
  if (result.presence == SeriesResult::Presence::only_a) return "only in the first run";
  if (result.presence == SeriesResult::Presence::only_b) return "only in the second run";
  if (result.steps == 0) return result.blank > 0 ? "empty in both runs" : "no common step";
  std::string text;
  switch (result.course.parting) {
    case Parting::number:
      text = "NaN or infinite in one run only";
      break;
    case Parting::jump:
      text = "jumps beyond its own fluctuation";
      break;
    case Parting::shift:
      text = "stays apart by more than its own fluctuation";
      break;
    case Parting::drift:
      text = "drifts farther than it moves by itself";
      break;
    case Parting::onset:
      text = "is equal at first, then differs by a share of what the step changes";
      break;
    case Parting::none:
      break;
  }
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (result.noise) add("the gradients of this parameter are rounding alone");
  if (result.course.verdict == PartingVerdict::passing) add("but not for long");
  if (!result.course.lasts) add("too close to the end to see whether it lasts");
  if (result.course.not_finite > 0)
    add("NaN or infinite in both runs at " + counted(result.course.not_finite, "step"));
  if (result.blank > 0) add("empty in both runs at " + counted(result.blank, "step"));
  if (result.steps_a > 0) add(counted(result.steps_a, "step") + " only in the first run");
  if (result.steps_b > 0) add(counted(result.steps_b, "step") + " only in the second run");
  return text;
}

std::vector<std::string> not_compared(const MonitorComparison& comparison) {
  std::vector<std::string> told = comparison.alone;
  std::size_t only_a = 0;
  std::size_t only_b = 0;
  std::size_t blank = 0;
  for (const SeriesResult& result : comparison.series) {
    blank += !result.compared() && result.blank > 0;
    only_a += result.presence == SeriesResult::Presence::only_a;
    only_b += result.presence == SeriesResult::Presence::only_b;
  }
  const std::size_t without = comparison.not_compared - only_a - only_b - blank;
  if (only_a > 0) told.push_back(fmt::format("{} only in the first run", counted(only_a, "tensor")));
  if (only_b > 0) told.push_back(fmt::format("{} only in the second run", counted(only_b, "tensor")));
  if (blank > 0) told.push_back(fmt::format("{} empty in both runs", counted(blank, "series")));
  if (without > 0) told.push_back(fmt::format("{} without a common step", counted(without, "series")));
  if (comparison.cut_short > 0) {
    told.push_back(
        fmt::format("steps in one run only, for {} (the first run ends at step {}, the second at {})",
                    counted(comparison.cut_short, "series"), comparison.last_a, comparison.last_b));
  }
  return told;
}

std::string summary(const MonitorComparison& comparison, bool color) {
  const report::Color tone = comparison.parted > 0 ? report::Color::red
                             : comparison.passing > 0 || !comparison.coverage.is_complete()
                                 ? report::Color::yellow
                                 : report::Color::green;
  std::string text = report::paint(headline(comparison), tone, color) + '\n';
  if (comparison.parted > 0) text += cause(comparison) + "\n\n" + quantity_table(comparison, color);
  if (!comparison.noise.empty()) {
    text += fmt::format("not judged: {} whose gradients are rounding alone, the first {}\n",
                        counted(comparison.noise.size(), "parameter"), display(*comparison.noise.begin()));
  }
  if (comparison.not_finite > 0) {
    text += fmt::format("NaN or infinite in both runs at some step: {}\n",
                        counted(comparison.not_finite, "series"));
  }
  const std::vector<std::string> missing = not_compared(comparison);
  for (std::size_t i = 0; i < std::min(missing.size(), kListed); ++i)
    text += "not compared: " + display(missing[i]) + '\n';
  if (missing.size() > kListed) text += fmt::format("not compared: {} more\n", missing.size() - kListed);
  return text;
}

}  // namespace msprobe::monitor

// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/sentences.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "dump/construct_json.hpp"
#include "measuring/measures.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using measuring::elements_of;

constexpr std::size_t kShownRanks = 8;

bool is_number(std::string_view text) {
  return text.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// `in decoder.up2`. For a path that is only a number, the text says that it is a module.
std::string in_module(const std::string& module) {
  return (is_number(module) ? "in module " : "in ") + module;
}

/// `step 0` of `step0`; a label of another form as it is.
std::string spaced(std::string_view label, std::string_view word) {
  const std::string_view number = label.substr(std::min(word.size(), label.size()));
  if (!label.starts_with(word) || number.empty() || !is_number(number)) return std::string(label);
  return fmt::format("{} {}", word, number);
}

/// `, step 0, rank 1, 2 and 7 more`
std::string at_rank(const Finding& finding) {
  constexpr std::string_view kRank = "rank";
  std::string text;
  if (!finding.step.empty()) text += ", " + spaced(finding.step, "step");
  if (!finding.rank.empty()) text += ", " + spaced(finding.rank, kRank);
  for (std::size_t i = 0; i < finding.other_ranks.size() && i < kShownRanks; ++i) {
    const std::string other = spaced(finding.other_ranks[i], kRank);
    text += ", " + (other.starts_with("rank ") ? other.substr(kRank.size() + 1) : other);
  }
  if (finding.other_ranks.size() > kShownRanks)
    text += fmt::format(" and {} more", finding.other_ranks.size() - kShownRanks);
  return text;
}

/// Whether the entry's own name shows the module. A reader would take a number alone in the name of a call
/// for something else.
bool names_module(const Finding& finding) {
  const std::string module = "." + finding.module + ".";
  if (finding.entry.find(module) == std::string::npos) return false;
  const bool of_module = finding.entry.starts_with("Module.") || finding.entry.starts_with("Cell.");
  return of_module || !is_number(finding.module);
}

/// The end of a finding's sentence: how many more places show the same.
std::string repeated(const Finding& finding) {
  if (finding.repeated == 0) return {};
  const bool one = finding.repeated == 1;
  const char* const words = finding.kind == Kind::argument
                                ? one ? "call gets the same argument" : "calls get the same argument"
                            : one ? "place shows the same"
                                  : "places show the same";
  return fmt::format(" ({} more {})", human_count(finding.repeated), words);
}

void add_finding(std::vector<Line>& out, std::string_view title, const Finding& finding) {
  const auto add = [&](std::string_view label, const std::string& text) {
    if (!text.empty()) out.push_back({false, std::string(label), text, {}});
  };
  out.push_back({true, std::string(title), headline_of(finding),
                 finding.is_evidence() ? std::string(name_of(finding.confidence)) : std::string()});
  add(kWhy, sentence(finding));
  add(kWhy, finding.side);
  add(kWhere, finding.where);
  if (finding.golden_entry != finding.entry) add("golden", finding.golden_entry);
  add(kWhere, finding.golden_where.empty() ? std::string() : std::string(kInGolden) + finding.golden_where);
}

std::string number_of_rows(std::uint64_t count) {
  return human_count(count) + (count == 1 ? " row" : " rows");
}

std::string broken_off(const Diagnosis& diagnosis) {
  return fmt::format("could not reread {} for evidence: {}",
                     diagnosis.broken_off == 1 ? "1 place" : human_count(diagnosis.broken_off) + " places",
                     diagnosis.first_broken_off);
}

std::string unread(const Diagnosis& diagnosis) {
  return fmt::format("could not read the tensors of {} and used their statistics instead",
                     number_of_rows(diagnosis.unread));
}

/// `where`: the words that say which rows are meant, or nothing.
std::string unexplained_rows(const Diagnosis& diagnosis, std::string_view where) {
  const std::uint64_t rows = diagnosis.count(Origin::unexplained);
  return fmt::format("{}{} {} by more than rounding explains, and no rule could judge {}",
                     number_of_rows(rows), where, rows == 1 ? "differs" : "differ",
                     rows == 1 ? "it" : "them");
}

/// Whether the title says that one side did not finish a step.
bool is_cut_short(const Diagnosis& diagnosis) {
  return !diagnosis.has_culprit() && diagnosis.is_clear() && !diagnosis.early_end.whose.empty();
}

std::vector<std::string> reasons_in_rows(const Diagnosis& diagnosis) {
  if (!diagnosis.is_clear()) return {unexplained_rows(diagnosis, "")};
  const std::uint64_t rounding = diagnosis.count(Origin::rounding);
  const std::uint64_t equal = diagnosis.count(Origin::equal);
  const bool checksums = std::ranges::any_of(
      diagnosis.findings, [](const Finding& finding) { return finding.kind == Kind::checksum; });
  if (checksums) {
    std::vector<std::string> parts = {"checksums differ; they do not show by how much"};
    if (equal > 0) parts.push_back(number_of_rows(equal) + (equal == 1 ? " is equal" : " are equal"));
    return parts;
  }
  if (!diagnosis.agreements.empty() && diagnosis.findings.empty()) {
    const std::size_t more = diagnosis.agreements.size() - 1;
    return {diagnosis.agreements.front().text +
            (more == 0 ? "" : fmt::format(" (the first of {} comparisons)", more + 1))};
  }
  if (diagnosis.coverage.compared == 0) return {diagnosis.coverage.text(kTensors)};
  std::vector<std::string> parts;
  if (diagnosis.apart) {
    parts.emplace_back("the runs are too far apart before this step to determine what goes wrong in it");
  } else if (rounding == 0) {
    parts.push_back(equal == 1 ? "the one row that could be compared is equal"
                               : "all " + number_of_rows(equal) + " that could be compared are equal");
  } else {
    parts.push_back(number_of_rows(rounding) + (rounding == 1 ? " differs" : " differ") +
                    (diagnosis.drifted ? " by no more than the parameters already do" : " by rounding only"));
  }
  if (!diagnosis.coverage.gaps.empty()) parts.push_back(diagnosis.coverage.text(kTensors));
  if (diagnosis.unread > 0) parts.push_back(unread(diagnosis));
  if (diagnosis.broken_off > 0) parts.push_back(broken_off(diagnosis));
  if (diagnosis.largest_excess > 0 && !diagnosis.apart) {
    parts.push_back(
        fmt::format("closest to evidence: {}, {:.1f} times what is explained ({:.0f} would be evidence)",
                    diagnosis.largest_entry, diagnosis.largest_excess, diagnosis.threshold));
  }
  if (diagnosis.visible > 0 && diagnosis.visible < 1 && !diagnosis.apart) {
    std::string text =
        fmt::format("errors above {} would have been detected {}", error_text(diagnosis.visible),
                    diagnosis.coverage.is_complete() ? "everywhere" : "in what was compared");
    if (!diagnosis.visible_module.empty())
      text += " (smaller ones, too, outside " + diagnosis.visible_module + ")";
    parts.push_back(std::move(text));
  }
  return parts;
}

/// Why there is no culprit, and how much that says; the first says most.
std::vector<std::string> reasons(const Diagnosis& diagnosis) {
  std::vector<std::string> parts = reasons_in_rows(diagnosis);
  if (is_cut_short(diagnosis)) parts.insert(parts.begin(), diagnosis.early_end.where);
  return parts;
}

/// The title, with the share of the tensors that it applies to.
std::string no_culprit_title(const Diagnosis& diagnosis) {
  const Coverage& coverage = diagnosis.coverage;
  std::string title(diagnosis.is_clear() ? kNoCulprit : "not clear");
  if (is_cut_short(diagnosis)) {
    title += fmt::format(", but {} ends early", diagnosis.early_end.whose);
  } else if (!coverage.is_complete() && coverage.compared > 0) {
    title += fmt::format(" in the {} that could be compared", coverage.percent());
  }
  return title;
}

}  // namespace

std::string headline_of(const Finding& finding) {
  const std::string name = finding.entry + (finding.kind == Kind::removed ? " (golden)" : "");
  if (finding.module.empty() || names_module(finding)) return name + at_rank(finding);
  return (is_number(finding.module) ? "module " : "") + finding.module + " > " + name + at_rank(finding);
}

std::string sentence(const Finding& finding) {
  return finding.text.empty() ? finding.text : finding.text + repeated(finding);
}

NoCulprit no_culprit(const Diagnosis& diagnosis) {
  return {no_culprit_title(diagnosis), fmt::format("{}", fmt::join(reasons(diagnosis), "; "))};
}

std::string_view name_of(Kind kind) {
  static constexpr std::array<std::string_view, 22> kNames = {
      "added",         "removed",   "exchanged",   "argument", "dtype",      "shape",
      "requires_grad", "parameter", "optimizer",   "data",     "unrecorded", "feed",
      "gradient",      "replay",    "introduced",  "gain",     "random",     "decision",
      "communication", "checksum",  "unexplained", "stretch"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Confidence confidence) {
  static constexpr std::array<std::string_view, 3> kNames = {"hint", "likely", "certain"};
  return kNames[static_cast<std::size_t>(confidence)];
}

std::string_view name_of(Origin origin) {
  static constexpr std::array<std::string_view, kOrigins> kNames = {
      "equal", "rounding", "not compared", "unexplained", "propagated", "introduced"};
  return kNames[static_cast<std::size_t>(origin)];
}

std::string error_text(double error) {
  if (error == 0) return "0";
  if (!std::isfinite(error)) return "infinite";
  return fmt::format("{:.1e}", error);
}

std::string non_finite_text(const dump::Side& target, const dump::Item& ours, const dump::Side& golden,
                            const dump::Item& theirs) {
  const auto kind_of = [](const dump::Side& side, const dump::Item& item) -> std::string_view {
    bool infinite = false;
    for (const dump::Statistic which : {dump::kMax, dump::kMin, dump::kNorm}) {
      if (!dump::is_recorded(item.statistics[which])) continue;
      const double value = measuring::number_of(side, item, which);
      if (std::isnan(value)) return "NaN";
      infinite = infinite || std::isinf(value);
    }
    return infinite ? "infinities" : "";
  };
  const std::string_view here = kind_of(target, ours);
  const std::string_view there = kind_of(golden, theirs);
  if (here.empty() == there.empty()) return {};
  return here.empty() ? fmt::format("no {}, golden has", there) : fmt::format("{}, golden none", here);
}

std::string zero_text(const dump::Side& target, const dump::Item& ours, const dump::Side& golden,
                      const dump::Item& theirs) {
  const double here = measuring::number_of(target, ours, dump::kNorm);
  const double there = measuring::number_of(golden, theirs, dump::kNorm);
  if (!std::isfinite(here) || !std::isfinite(there) || (here == 0) == (there == 0)) return {};
  return here == 0 ? fmt::format("is exactly 0, golden has the norm {}", error_text(there))
                   : fmt::format("has the norm {}, golden is exactly 0", error_text(here));
}

std::string difference_text(const dump::Side& target, const dump::Item& ours, const dump::Side& golden,
                            const dump::Item& theirs, double error) {
  const std::string_view shape = target.text(ours.shape);
  const std::string_view other = golden.text(theirs.shape);
  if (std::isinf(error) && elements_of(shape) != elements_of(other))
    return fmt::format("has shape {}, golden {}", shape, other);
  if (const std::string text = non_finite_text(target, ours, golden, theirs);
      std::isinf(error) && !text.empty())
    return "has " + text;
  if (std::string zero = zero_text(target, ours, golden, theirs); !zero.empty()) return zero;
  return fmt::format("differs by {}", error_text(error));
}

std::string advice(const Finding& finding, bool tensors) {
  const std::string module = finding.module.empty() ? "there" : in_module(finding.module);
  switch (finding.kind) {
    case Kind::argument:
      return fmt::format(
          "set {} {} to golden's value; or record only that part with task tensor and compare again",
          finding.place, module);
    case Kind::added:
    case Kind::removed:
    case Kind::exchanged:
    case Kind::dtype:
    case Kind::shape:
    case Kind::requires_grad:
      return fmt::format("compare the code {} on both sides{}", module,
                         finding.where.empty() ? "" : ", starting at the line of the call");
    case Kind::parameter:
      return finding.concerned > 1
                 ? "compare the checkpoints that both runs started from (msprobe ckpt_compare), and the seeds"
                 : "compare the checkpoints (msprobe ckpt_compare), and how this parameter is initialized";
    case Kind::optimizer:
      return "compare the optimizer's settings (learning rate, betas, decay, clipping) and its state";
    case Kind::data:
      return "compare what makes it before the recorded code: data loader, seed, or a computation such as a "
             "schedule";
    case Kind::feed:
      return fmt::format("compare which tensor the code passes {} on both sides", module);
    case Kind::unrecorded:
      return "record with risk_level ALL, or the enclosing module with \"list\", to see what happens in "
             "between";
    case Kind::replay:
      return "run the operation alone with the saved inputs on both devices";
    case Kind::stretch:
      return "compare the code of both sides in that stretch";
    case Kind::random:
      return "give both runs the same seed (seed_all), or remove the random operation";
    case Kind::communication:
      return "compare the dumps of all ranks of the group; then check the exchange and the unrecorded code "
             "before it";
    case Kind::decision:
      return "check how close the candidates are; a flip within rounding is not a fault";
    case Kind::checksum:
      return "dump again with statistics or tensors";
    case Kind::unexplained:
      return fmt::format("record {} with risk_level ALL or \"list\", and compare its code on both sides",
                         finding.module.empty() ? "it" : finding.module);
    case Kind::gradient:
    case Kind::introduced:
    case Kind::gain:
      break;
  }
  if (!tensors) return "dump again with task tensor and a scope from two entries before to two after it";
  if (finding.u > 1e-6)
    return "add a third dump, of golden with other kernels (--noise-floor); run the operation alone in "
           "float32";
  return "run the operation alone with the saved inputs on both devices, or in float64";
}

std::string made_unrecorded(std::string_view module, bool trained) {
  std::string text = "produced by unrecorded code: record ";
  text += module.empty() || dump::is_of_optimizer(module) ? "it" : std::string(module);
  text +=
      " with risk_level ALL (adds cat, stack, chunk, transpose) or \"list\"; indexing is never recorded: "
      "compare it in the code";
  if (trained) text += "; if it is itself a parameter, compare the checkpoints (msprobe ckpt_compare)";
  return text;
}

std::vector<Line> answer(const Diagnosis& diagnosis) {
  std::vector<Line> out;
  const auto add = [&](std::string_view name, std::string text) {
    out.push_back({false, std::string(name), std::move(text), {}});
  };
  const auto add_notes = [&] {
    for (const std::string& note : diagnosis.notes) {
      if (!is_cut_short(diagnosis) || note != diagnosis.early_end.text())
        out.push_back({true, "note", note, {}});
    }
  };
  if (!diagnosis.has_culprit()) {
    for (std::string& part : reasons(diagnosis)) {
      const bool heads = out.empty();
      out.push_back({heads, heads ? no_culprit_title(diagnosis) : std::string(kWhy), std::move(part), {}});
    }
    if (!diagnosis.findings.empty())
      add_finding(out, diagnosis.is_clear() ? "hint" : "first", diagnosis.findings.front());
    add_notes();
    return out;
  }
  const Finding& culprit = diagnosis.culprit();
  add_finding(out, "culprit", culprit);
  const auto agreement = std::ranges::find_if(diagnosis.agreements, [&](const Diagnosis::Agreement& each) {
    return each.step == culprit.step && each.rank == culprit.rank;
  });
  if (agreement != diagnosis.agreements.end()) add("before", agreement->text);
  if (diagnosis.agreeing > 0) {
    const bool one = diagnosis.agreeing == 1;
    std::string text = human_count(diagnosis.agreeing);
    if (diagnosis.rounded == 0) {
      text += one ? " entry is equal" : " entries are equal";
    } else {
      text += fmt::format(
          " {} within rounding (errors at most {:.1f} times what is explained; {:.0f} would be evidence)",
          one ? "entry agrees" : "entries agree", diagnosis.largest_before, diagnosis.threshold);
    }
    add("before", std::move(text));
  }
  if (!diagnosis.is_clear()) {
    const auto first = std::ranges::find_if(diagnosis.findings, &Finding::is_unexplained);
    add("unclear", unexplained_rows(diagnosis, " before it") +
                       (first == diagnosis.findings.end() ? "" : ": first " + first->entry));
  }
  if (culprit.propagated > 0) {
    std::string text =
        fmt::format("{} of {} {} the error", human_count(culprit.propagated),
                    number_of_rows(diagnosis.rows()), culprit.propagated == 1 ? "carries" : "carry");
    if (!culprit.propagated_entry.empty())
      text += std::isinf(culprit.propagated_largest)
                  ? fmt::format(", which no number measures at {}: another shape, zeros, NaN or infinities",
                                culprit.propagated_entry)
                  : fmt::format(", the largest {} at {}", error_text(culprit.propagated_largest),
                                culprit.propagated_entry);
    add("after", std::move(text));
  }
  if (diagnosis.left_out > 0) {
    add("left out",
        fmt::format("{} {} after certain evidence, because of --first", human_count(diagnosis.left_out),
                    diagnosis.left_out == 1 ? "entry" : "entries"));
  }
  if (!culprit.next.empty()) add("next", culprit.next);
  if (const Finding* second = diagnosis.second()) {
    add_finding(out, "also", *second);
    if (diagnosis.independent > 2)
      add("and", fmt::format("{} more with no recorded path from these", diagnosis.independent - 2));
  }
  if (!diagnosis.coverage.gaps.empty()) add("unknown", diagnosis.coverage.text(kTensors));
  if (diagnosis.unread > 0) add("unread", unread(diagnosis));
  if (diagnosis.broken_off > 0) add("unread", broken_off(diagnosis));
  if (!diagnosis.doubt.empty()) add("doubt", diagnosis.doubt);
  add_notes();
  return out;
}

std::string evidence_cell(const Finding* finding) {
  if (finding == nullptr) return {};
  const bool known = finding->kind != Kind::checksum && std::isfinite(finding->excess);
  return (known ? fmt::format("{:.1f} times what is explained: ", finding->excess) : "") + finding->text;
}

std::string to_json(const Finding& finding) {
  JsonWriter json;
  json.open_object();
  json.member("kind", name_of(finding.kind));
  json.member("entry", finding.entry);
  json.member("golden_entry", finding.golden_entry);
  json.member("place", finding.place);
  json.member("step", finding.step);
  json.member("rank", finding.rank);
  json.member("other_ranks", finding.other_ranks);
  json.member("module", finding.module);
  json.key("excess");
  if (std::isfinite(finding.excess)) {
    json.value(finding.excess);
  } else {
    json.null();
  }
  json.member("confidence", name_of(finding.confidence));
  json.member("side", finding.side);
  json.member("text", finding.text);
  json.member("where", finding.where);
  json.member("next", finding.next);
  json.member("concerned", finding.concerned);
  json.member("propagated", finding.propagated);
  if (finding.kind == Kind::stretch) {
    json.member("golden_where", finding.golden_where);
    json.member("operations", finding.operations);
    json.member("golden_operations", finding.golden_operations);
  }
  json.close();
  return json.take();
}

std::vector<std::string> to_json(const Diagnosis& diagnosis) {
  std::vector<std::string> objects;
  if (!diagnosis.has_culprit()) {
    JsonWriter json;
    json.open_object();
    json.member("kind", diagnosis.is_clear() ? "no_culprit" : "not_clear");
    json.member("text", no_culprit(diagnosis).sentence());
    json.member("entry", diagnosis.largest_entry);
    json.member("excess", diagnosis.largest_excess);
    json.member("threshold", diagnosis.threshold);
    json.member("visible", diagnosis.visible);
    json.close();
    objects.push_back(json.take());
  }
  for (const Finding& finding : diagnosis.findings) objects.push_back(to_json(finding));
  for (const Diagnosis::Agreement& agreement : diagnosis.agreements) {
    JsonWriter json;
    json.open_object();
    json.member("kind", "meeting_points");
    json.member("step", agreement.step);
    json.member("rank", agreement.rank);
    json.member("text", agreement.text);
    json.open_list("points");
    for (const MeetingPoint& point : agreement.points) {
      json.open_object();
      json.member("entry", point.entry);
      json.member("golden_entry", point.golden_entry);
      json.member("error", point.error);
      json.close();
    }
    json.close();
    json.close();
    objects.push_back(json.take());
  }
  for (const std::string& note : diagnosis.notes) {
    JsonWriter json;
    json.open_object();
    json.member("kind", "note");
    json.member("text", note);
    json.close();
    objects.push_back(json.take());
  }
  return objects;
}

}  // namespace msprobe::diagnosis

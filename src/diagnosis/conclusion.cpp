// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/conclusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>

#include "diagnosis/limits.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/communication_graph.hpp"

namespace msprobe::diagnosis {
namespace {

constexpr std::size_t kMostNotes = 8;

/// The time of an event, as far as ranks have a common one: step, layer of communication, whether a call of
/// that layer brought it, number of entries since the call before.
using Moment = std::tuple<std::size_t, std::uint32_t, bool, std::uint64_t>;

struct Placed {
  Finding finding;
  Moment moment;
  std::size_t rank = 0;  // index among all
};

/// The ranks of one step.
class StepRanks {
 public:
  StepRanks(const std::vector<RankFindings>& all, std::vector<std::size_t> which, std::size_t step,
            const std::set<std::string, std::less<>>& names_source)
      : all_(all), which_(std::move(which)), step_(step) {
    std::vector<dump::RankCommunication> communication;
    for (const std::size_t index : which_) {
      dump::RankCommunication& one = communication.emplace_back();
      one.number = all_[index].number;
      for (const CommPlace& place : all_[index].communication) one.calls.push_back(&place.call);
    }
    graph_.emplace(communication, names_source);
  }

  const dump::CommGraph& graph() const { return *graph_; }

  void place_findings(std::vector<Placed>& out) const {
    for (std::size_t r = 0; r < which_.size(); ++r) {
      const RankFindings& rank = all_[which_[r]];
      for (const Finding& finding : rank.findings)
        out.push_back({finding, moment(r, finding.order), which_[r]});
    }
  }

  /// Reports communication calls whose result has a larger error than every contribution.
  void judge_exchanges(std::vector<Placed>& out) const {
    std::vector<double> explained(graph_->nodes());
    std::vector<bool> known(graph_->nodes());
    for (const dump::Exchange& exchange : graph_->exchanges()) {
      double brought = 0;
      bool others = false;
      for (const std::size_t sender : exchange.senders) brought = std::max(brought, place(sender).e_in);
      for (const std::size_t receiver : exchange.receivers) {
        for (const std::size_t sender : exchange.senders)
          others = others || graph_->rank(sender) != graph_->rank(receiver);
        explained[receiver] = std::max(explained[receiver], brought);
        if (others) known[receiver] = true;
      }
    }
    for (std::size_t node = 0; node < graph_->nodes(); ++node) {
      const CommPlace& call = place(node);
      const std::size_t index = which_[graph_->rank(node)];
      const RankFindings& rank = all_[index];
      if (!call.arrived) continue;
      const double ahead = std::max(call.e_in, explained[node]);
      const double excess = call.e_out / (ahead + call.u);
      if (!(excess >= rank.threshold)) continue;
      Finding found;
      found.kind = Kind::communication;
      found.rule = Rule::introduced;
      found.confidence = Confidence::likely;
      found.excess = excess;
      found.u = call.u;
      found.order = 2 * std::uint64_t{call.api} + 1;
      found.target_api = call.api;
      found.downstream = call.follows;
      found.entry = call.entry;
      found.golden_entry = call.golden_entry;
      found.module = call.module;
      found.where = call.where;
      found.step = rank.step;
      found.rank = rank.rank;
      found.text = known[node]
                       ? fmt::format("the result has error {}, the contributions of all ranks at most {}",
                                     error_text(call.e_out), error_text(ahead))
                       : fmt::format(
                             "data from other ranks has error {}, this rank's own contribution {}; the "
                             "other ranks' dumps are missing",
                             error_text(call.e_out), error_text(call.e_in));
      found.side = known[node] ? "the exchange itself, or unrecorded data that it was given" : "";
      found.next = advice(found, rank.tensors);
      const Moment when{step_, graph_->done_layer(node), true, 0};
      out.push_back({std::move(found), when, index});
    }
  }

 private:
  const CommPlace& place(std::size_t node) const {
    const std::size_t rank = graph_->rank(node);
    return all_[which_[rank]].communication[node - graph_->first(rank)];
  }

  Moment moment(std::size_t rank, std::uint64_t order) const {
    const std::vector<CommPlace>& calls = all_[which_[rank]].communication;
    const auto next = std::partition_point(calls.begin(), calls.end(), [&](const CommPlace& call) {
      return 2 * std::uint64_t{call.api} + 1 < order;
    });
    const std::uint64_t since =
        next == calls.begin() ? order : order - (2 * std::uint64_t{(next - 1)->api} + 1);
    const std::size_t number = static_cast<std::size_t>(next - calls.begin());
    const std::uint32_t layer =
        next == calls.end() ? UINT32_MAX : graph_->giving_layer(graph_->first(rank) + number);
    return {step_, layer, false, since};
  }

  const std::vector<RankFindings>& all_;
  std::vector<std::size_t> which_;
  std::size_t step_;
  std::optional<dump::CommGraph> graph_;
};

/// Whether two findings say the same about different ranks.
bool same_fault(const Finding& a, const Finding& b) {
  return a.kind == b.kind && a.entry == b.entry && a.place == b.place && a.step == b.step;
}

/// Whether two findings are changes of the same module, which are reported in one line.
bool same_change(const Finding& a, const Finding& b) {
  return a.rule == Rule::structure && b.rule == Rule::structure && a.step == b.step && a.rank == b.rank &&
         !a.module.empty() && a.module == b.module;
}

/// `Module.layers.3.mlp.forward.0` as `Module.layers..mlp.forward.`, which is the same for all layers of one
/// form and all calls of one operation.
std::string without_numbers(std::string_view name) {
  std::string text;
  std::copy_if(name.begin(), name.end(), std::back_inserter(text), [](char c) { return c < '0' || c > '9'; });
  return text;
}

/// One cause in several layers, or in several calls of one line, whose errors different rules may have seen.
bool same_cause(const Finding& a, const Finding& b) {
  if (a.step != b.step || a.rank != b.rank || without_numbers(a.entry) != without_numbers(b.entry))
    return false;
  const bool by_values = a.rule >= Rule::introduced && b.rule >= Rule::introduced;
  if (by_values && !a.where.empty() && a.where == b.where) return true;
  if (a.kind != b.kind || a.rule != b.rule || a.place != b.place) return false;
  return a.where.empty() ? !a.module.empty() && a.module != b.module &&
                               without_numbers(a.module) == without_numbers(b.module)
                         : a.where == b.where;
}

/// Whether all ranks' optimizers take the same gradients (1), or each rank takes different ones (-1), for
/// nearly all parameters; 0 where that is not clear.
int agreement(const std::vector<const RankFindings*>& ranks, double std::pair<double, double>::*side) {
  double same = 0;
  double other = 0;
  double all = 0;
  for (std::size_t i = 0; i < ranks.front()->changed_gradients.size(); ++i) {
    const std::string& name = ranks.front()->changed_gradients[i].first;
    std::vector<double> norms;
    for (const RankFindings* rank : ranks) {
      if (i >= rank->changed_gradients.size() || rank->changed_gradients[i].first != name) return 0;
      norms.push_back(rank->changed_gradients[i].second.*side);
    }
    std::sort(norms.begin(), norms.end());
    const bool apart = std::adjacent_find(norms.begin(), norms.end(), [](double one, double next) {
                         return next <= one * (1 + kAlike);
                       }) == norms.end();
    ++all;
    same += norms.back() <= norms.front() * (1 + kSameNorm) ? 1 : 0;
    other += apart ? 1 : 0;
  }
  return all == 0 ? 0 : same >= kNearlyAll * all ? 1 : other >= kNearlyAll * all ? -1 : 0;
}

class Conclusion {
 public:
  Conclusion(const std::vector<RankFindings>& ranks, const std::set<std::string, std::less<>>& names_source)
      : ranks_(ranks), names_source_(names_source) {}

  Diagnosis run() {
    collect();
    std::stable_sort(placed_.begin(), placed_.end(), [](const Placed& a, const Placed& b) {
      return std::make_tuple(!a.finding.is_evidence(), !a.finding.is_unexplained(), a.moment,
                             a.finding.rule) <
             std::make_tuple(!b.finding.is_evidence(), !b.finding.is_unexplained(), b.moment, b.finding.rule);
    });
    std::vector<Finding> later;
    for (Placed& placed : placed_) {
      if (out_.findings.size() + later.size() >= kMostFindings) break;
      if (!placed.finding.is_evidence() || is_consequence(placed)) {
        later.push_back(std::move(placed.finding));
      } else if (!joins(placed.finding)) {
        firsts_.push_back({placed.moment, placed.rank});
        out_.findings.push_back(std::move(placed.finding));
      }
    }
    out_.independent = out_.findings.size();
    put_in_order();
    if (out_.has_culprit()) describe_culprit();
    std::move(later.begin(), later.end(), std::back_inserter(out_.findings));
    return std::move(out_);
  }

 private:
  void collect() {
    std::vector<std::vector<std::size_t>> steps;
    std::map<std::string_view, std::size_t> known;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const RankFindings& rank = ranks_[i];
      const auto [step, added] = known.try_emplace(rank.step, steps.size());
      if (added) steps.emplace_back();
      steps[step->second].push_back(i);
      for (std::size_t origin = 0; origin < kOrigins; ++origin) out_.counts[origin] += rank.counts[origin];
      out_.coverage.add(rank.coverage);
      out_.unread += rank.unread;
      out_.broken_off += rank.broken_off;
      if (out_.first_broken_off.empty()) out_.first_broken_off = rank.first_broken_off;
      out_.left_out += rank.left_out;
      out_.drifted = out_.drifted || rank.drifted;
      out_.apart = out_.apart || rank.apart;
      for (const std::string& note : rank.notes) {
        const bool noted = std::find(out_.notes.begin(), out_.notes.end(), note) != out_.notes.end();
        if (!noted && out_.notes.size() < kMostNotes) out_.notes.push_back(note);
      }
      if (out_.early_end.whose.empty()) out_.early_end = rank.early_end;
      if (!rank.agreement.empty())
        out_.agreements.push_back({rank.step, rank.rank, rank.agreement, rank.meeting_points});
      out_.tensors = out_.tensors || rank.tensors;
      out_.threshold = std::max(out_.threshold, rank.threshold);
      if (rank.largest_excess > out_.largest_excess) {
        out_.largest_excess = rank.largest_excess;
        out_.largest_entry = rank.largest_entry;
      }
      if (rank.visible > out_.visible) {
        out_.visible = rank.visible;
        out_.visible_module = rank.visible_module;
      }
    }
    bool stopped = false;  // a rank, in an earlier step: later ones lack its calls
    for (std::size_t step = 0; step < steps.size(); ++step) {
      const bool stops = std::any_of(steps[step].begin(), steps[step].end(),
                                     [&](std::size_t rank) { return ranks_[rank].stopped; });
      std::vector<const RankFindings*> findings;
      for (const std::size_t rank : steps[step]) findings.push_back(&ranks_[rank]);
      const StepRanks ranks(ranks_, std::move(steps[step]), step, names_source_);
      const std::size_t before = placed_.size();
      ranks.place_findings(placed_);
      note_reduction(findings, before);
      if (stopped) continue;
      stopped = stops;
      ranks.judge_exchanges(placed_);
      if (out_.doubt.empty()) {
        out_.doubt = ranks.graph().contradictory()
                         ? "the communication calls of the ranks contradict each other; "
                           "entries are ordered by their position within each rank"
                         : ranks.graph().uneven();
      }
    }
  }

  /// Adds a missing reduction to findings about gradients: data-parallel ranks take the same gradient in one
  /// run only.
  void note_reduction(const std::vector<const RankFindings*>& ranks, std::size_t from) {
    if (ranks.size() < 2) return;
    const int ours = agreement(ranks, &std::pair<double, double>::first);
    const int theirs = agreement(ranks, &std::pair<double, double>::second);
    if (ours * theirs != -1) return;
    // Each rank may also change what was reduced: then it changes gradients by different factors.
    const bool none = std::all_of(ranks.begin(), ranks.end(), [&](const RankFindings* rank) {
      return ours < 0 ? rank->one_factor.first : rank->one_factor.second;
    });
    if (!none) return;
    const std::string text = fmt::format(
        "; the ranks of {} take the same, those of {} each their own: nothing reduces them there after the "
        "last backward",
        ours > 0 ? "this run" : "golden", ours > 0 ? "golden" : "this run");
    for (std::size_t i = from; i < placed_.size(); ++i) {
      Finding& finding = placed_[i].finding;
      if (finding.kind == Kind::optimizer && finding.place == kGradients) finding.text += text;
    }
  }

  /// Whether evidence follows from earlier evidence: on the same rank, or on another rank from which a step
  /// or communication leads to it.
  bool is_consequence(const Placed& placed) const {
    if (firsts_.empty()) return false;
    // A rank may show the culprit of another one beside its consequences.
    const bool same = std::any_of(out_.findings.begin(), out_.findings.end(), [&](const Finding& first) {
      return first.rank != placed.finding.rank && same_fault(first, placed.finding);
    });
    if ((placed.finding.downstream && !same) || placed.finding.joined) return true;
    const auto& [step, layer, by_call, since] = placed.moment;
    for (const auto& [moment, rank] : firsts_) {
      if (std::get<0>(moment) < step) return true;
      if (rank != placed.rank &&
          std::tie(layer, by_call) > std::tie(std::get<1>(moment), std::get<2>(moment)))
        return true;
    }
    return false;
  }

  bool joins(const Finding& finding) {
    const auto lists = [&](const Finding& first) {
      return std::find(first.other_ranks.begin(), first.other_ranks.end(), finding.rank) !=
             first.other_ranks.end();
    };
    const auto same = std::find_if(out_.findings.begin(), out_.findings.end(), [&](const Finding& first) {
      return first.rank != finding.rank && same_fault(first, finding) && !lists(first);
    });
    if (same != out_.findings.end()) {
      same->other_ranks.push_back(finding.rank);
      return true;
    }
    for (Finding& first : out_.findings) {
      if (same_cause(first, finding)) {
        first.repeated += 1 + finding.repeated;
        return true;
      }
      if (same_change(first, finding) ||
          (lists(first) && first.rule == finding.rule && first.module == finding.module)) {
        first.concerned += first.rank == finding.rank ? finding.concerned : 0;
        return true;
      }
    }
    return false;
  }

  /// The order of time is that of dataflow; a finding that no earlier one can reach comes before those that
  /// are less sure, or as sure and smaller.
  void put_in_order() {
    for (std::size_t i = 1; i < out_.findings.size(); ++i) {
      for (std::size_t at = i; at > 0; --at) {
        Finding& found = out_.findings[at];
        Finding& before = out_.findings[at - 1];
        const bool apart = found.apart && found.step == before.step && found.rank == before.rank;
        if (!apart || std::tie(found.confidence, found.excess) <= std::tie(before.confidence, before.excess))
          break;
        std::swap(found, before);
      }
    }
  }

  void describe_culprit() {
    Finding& culprit = out_.findings.front();
    culprit.propagated = out_.count(Origin::propagated);
    for (const RankFindings& rank : ranks_) {
      if (rank.rank == culprit.rank && rank.step == culprit.step) {
        out_.agreeing = rank.agreeing;
        out_.rounded = rank.rounded;
        out_.largest_before = rank.largest_before;
      }
      if (!(rank.propagated_largest > culprit.propagated_largest)) continue;
      culprit.propagated_largest = rank.propagated_largest;
      culprit.propagated_entry = rank.propagated_entry;
    }
  }

  const std::vector<RankFindings>& ranks_;
  const std::set<std::string, std::less<>>& names_source_;
  std::vector<Placed> placed_;
  std::vector<std::pair<Moment, std::size_t>> firsts_;
  Diagnosis out_;
};

}  // namespace

Diagnosis conclude(const std::vector<RankFindings>& ranks,
                   const std::set<std::string, std::less<>>& names_source) {
  return Conclusion(ranks, names_source).run();
}

}  // namespace msprobe::diagnosis

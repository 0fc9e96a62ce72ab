// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/sides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::array<CallDirection, 2> kDirections = {CallDirection::forward, CallDirection::backward};
constexpr std::size_t kA = 0;
constexpr std::size_t kB = 1;

std::string_view direction_word(CallDirection direction) {
  return direction == CallDirection::forward ? "forward" : "backward";
}

/// The place of an operation in the common order: the entry of A that it follows, and its number among those
/// that follow it.
using PlaceInOrder = std::pair<std::uint32_t, std::uint32_t>;

/// The entries of one dump by their names.
class EntryNames {
 public:
  explicit EntryNames(const dump::Side& side) {
    for (std::uint32_t i = 0; i < side.apis.size(); ++i) known_.emplace(side.text(side.apis[i].name), i);
  }
  std::uint32_t find(const std::string& operation, CallDirection direction) const {
    const auto found = known_.find(operation + '.' + std::string(direction_word(direction)));
    return found == known_.end() ? pairing::kNone : found->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> known_;
};

WrongSide wrong_of(bool a, bool b) {
  return a && b ? WrongSide::both : a ? WrongSide::a : b ? WrongSide::b : WrongSide::neither;
}

class SidesBuilder {
 public:
  SidesBuilder(const dump::Side& a, const dump::Side& b, const pairing::Alignment& alignment)
      : b_(b), alignment_(alignment), names_{EntryNames(a), EntryNames(b)} {
    places_of_b_.resize(b.apis.size());
    std::uint32_t number = 0;
    for (const pairing::GoldenOnly& alone : alignment.golden_only)
      places_of_b_[alone.golden] = {alone.after == pairing::kNone ? 0 : alone.after + 1, ++number};
    for (std::uint32_t i = 0; i < b.apis.size(); ++i) {
      if (alignment.target_of[i] != pairing::kNone) places_of_b_[i] = {alignment.target_of[i] + 1, 0};
    }
  }

  SidesResult run(std::array<std::vector<SideOperation>, 2> operations) {
    std::unordered_map<std::string, std::size_t> left_of_b;
    for (std::size_t i = 0; i < operations[kB].size(); ++i) left_of_b.emplace(operations[kB][i].name, i);
    for (SideOperation& operation : operations[kA]) {
      SidesRow row;
      if (const auto partner = left_of_b.find(partner_of(operation.name)); partner != left_of_b.end()) {
        row.sides[kB] = std::move(operations[kB][partner->second]);
        left_of_b.erase(partner);
      }
      row.sides[kA] = std::move(operation);
      add(std::move(row));
    }
    for (SideOperation& operation : operations[kB]) {
      if (!left_of_b.contains(operation.name)) continue;
      SidesRow row;
      row.sides[kB] = std::move(operation);
      add(std::move(row));
    }
    std::ranges::stable_sort(
        rows_, [](const RowInOrder& x, const RowInOrder& y) { return x.places[0] < y.places[0]; });
    return finish();
  }

 private:
  struct RowInOrder {
    SidesRow row;
    std::array<PlaceInOrder, 2> places;  // of the directions
  };

  std::string partner_of(const std::string& operation) const {
    const std::uint32_t entry = names_[kA].find(operation, CallDirection::forward);
    const std::uint32_t partner = entry == pairing::kNone ? entry : alignment_.golden_of[entry];
    if (partner == pairing::kNone) return {};
    const std::string_view name = b_.text(b_.apis[partner].name);
    return std::string(name.substr(0, name.rfind('.')));
  }

  PlaceInOrder place_of(const SidesRow& row, CallDirection direction) const {
    PlaceInOrder place = {pairing::kNone, 0};
    if (const std::uint32_t b = names_[kB].find(row.sides[kB].name, direction); b != pairing::kNone)
      place = places_of_b_[b];
    if (const std::uint32_t a = names_[kA].find(row.sides[kA].name, direction); a != pairing::kNone)
      place = std::min(place, PlaceInOrder{a + 1, 0});
    return place;
  }

  void add(SidesRow row) {
    RowInOrder placed;
    for (const CallDirection direction : kDirections) {
      std::array<bool, 2> there = {};
      for (const std::size_t side : {kA, kB})
        there[side] = !row.sides[side].name.empty() &&
                      names_[side].find(row.sides[side].name, direction) != pairing::kNone;
      for (const std::size_t side : {kA, kB}) {
        SideDirection& one = row.sides[side][direction];
        one.missing = !there[side] && there[1 - side];
        // If an operation could not be called at all, the reason is in its forward result.
        if (there[side] && one.verdict == PrecheckVerdict::none) {
          one.verdict = PrecheckVerdict::skip;
          one.reason = row.sides[side][CallDirection::forward].reason;
        }
        row.missing = row.missing || one.missing;
      }
      placed.places[static_cast<std::size_t>(direction)] = place_of(row, direction);
    }
    judge_row(row);
    placed.row = std::move(row);
    rows_.push_back(std::move(placed));
  }

  static void judge_row(SidesRow& row) {
    for (const PrecheckVerdict bad : {PrecheckVerdict::error, PrecheckVerdict::warning}) {
      const auto has = [&](std::size_t side) {
        return row.sides[side][CallDirection::forward].verdict == bad ||
               row.sides[side][CallDirection::backward].verdict == bad;
      };
      row.wrong = wrong_of(has(kA), has(kB));
      row.verdict = bad;
      if (row.wrong != WrongSide::neither) return;
    }
    bool skipped = row.missing;
    for (const SideOperation& side : row.sides) {
      for (const SideDirection& one : side.directions)
        skipped = skipped || one.verdict == PrecheckVerdict::skip;
    }
    row.wrong = skipped ? WrongSide::open : WrongSide::neither;
    row.verdict = skipped ? PrecheckVerdict::skip : PrecheckVerdict::pass;
  }

  void count(const SidesRow& row, SidesResult& result) const {
    for (const std::size_t side : {kA, kB}) {
      const SideOperation& operation = row.sides[side];
      SideCounts& counts = result.counts[side];
      counts.missing += operation.directions[0].missing || operation.directions[1].missing;
      if (operation.name.empty()) continue;
      ++counts.operations;
      const PrecheckVerdict worst =
          std::max(operation.directions[0].verdict, operation.directions[1].verdict);
      counts.errors += worst == PrecheckVerdict::error;
      counts.warnings += worst == PrecheckVerdict::warning;
      counts.open += worst == PrecheckVerdict::skip;
      counts.follow += worst == PrecheckVerdict::pass;
    }
    const bool both = !row.sides[kA].name.empty() && !row.sides[kB].name.empty();
    result.renamed = result.renamed || (both && row.sides[kA].name != row.sides[kB].name);
  }

  SidesResult finish() {
    SidesResult result;
    for (const PrecheckVerdict bad : {PrecheckVerdict::error, PrecheckVerdict::warning}) {
      if (!result.first) result.first = first_of(bad);
    }
    result.rows.reserve(rows_.size());
    for (RowInOrder& placed : rows_) {
      count(placed.row, result);
      result.rows.push_back(std::move(placed.row));
    }
    return result;
  }

  std::optional<FirstWrong> first_of(PrecheckVerdict bad) const {
    std::optional<FirstWrong> first;
    PlaceInOrder earliest;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (const CallDirection direction : kDirections) {
        const auto& sides = rows_[i].row.sides;
        const WrongSide wrong =
            wrong_of(sides[kA][direction].verdict == bad, sides[kB][direction].verdict == bad);
        const PlaceInOrder place = rows_[i].places[static_cast<std::size_t>(direction)];
        if (wrong == WrongSide::neither || (first && earliest <= place)) continue;
        first = FirstWrong{i, direction, wrong, bad};
        earliest = place;
      }
    }
    return first;
  }

  const dump::Side& b_;
  const pairing::Alignment& alignment_;
  std::array<EntryNames, 2> names_;
  std::vector<PlaceInOrder> places_of_b_;
  std::vector<RowInOrder> rows_;
};

/// Describes the result of the side that is not wrong.
std::string_view other_side(const SideDirection& one) {
  if (one.missing) return "is missing";
  switch (one.verdict) {
    case PrecheckVerdict::pass:
      return "follows from its inputs";
    case PrecheckVerdict::warning:
      return "is near the limit";
    case PrecheckVerdict::error:
      return "does not follow from its inputs either";
    case PrecheckVerdict::skip:
    case PrecheckVerdict::none:
      break;
  }
  return "was not judged";
}

std::string_view name_of(const SidesRow& row, std::size_t side) {
  const std::string& name = row.sides[side].name;
  return name.empty() ? row.sides[1 - side].name : name;
}

std::string sentence_of(const SidesResult& result, const FirstWrong& first) {
  const SidesRow& row = result.rows[first.row];
  const bool both = first.wrong == WrongSide::both;
  const std::size_t side = first.wrong == WrongSide::b ? kB : kA;
  const SideDirection& one = row.sides[side][first.direction];
  const SideDirection& other = row.sides[1 - side][first.direction];
  std::string text = fmt::format(
      "the first result that {} is that of {}, {}, in {}: {}",
      first.verdict == PrecheckVerdict::error ? "does not follow from its inputs" : "is near the limit",
      name_of(row, side), direction_word(first.direction), both ? "A and B" : word(first.wrong), one.reason);
  if (!both) return text + fmt::format("; that in {} {}", side == kA ? "B" : "A", other_side(other));
  if (other.reason != one.reason) text += "; in B: " + other.reason;
  return text + "; both may share a fault, or compute something other than this reference";
}

class SidesTable final : public report::Table {
 public:
  explicit SidesTable(const SidesResult& result) : result_(result) {}

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return result_.rows.size(); }
  report::Severity severity(std::size_t index) const override {
    const SidesRow& row = result_.rows[index];
    if (row.verdict == PrecheckVerdict::error) return report::Severity::error;
    return row.verdict == PrecheckVerdict::warning || row.missing ? report::Severity::warning
                                                                  : report::Severity::none;
  }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    const SidesRow& row = result_.rows[index];
    cells.clear();
    scratch.clear();
    const auto text = [&](std::string_view value) { cells.emplace_back(report::Text{value}); };
    for (const SideOperation& side : row.sides) text(side.name);
    text(word(row.wrong));
    text(verdict_word(row.verdict));
    for (const SideOperation& side : row.sides) {
      for (const SideDirection& one : side.directions)
        text(one.missing ? std::string_view("missing") : verdict_word(one.verdict));
    }
    for (const SideOperation& side : row.sides) text(scratch.keep(reasons(side)));
  }

 private:
  static std::string reasons(const SideOperation& side) {
    const std::string& forward = side[CallDirection::forward].reason;
    const std::string& backward = side[CallDirection::backward].reason;
    if (backward.empty() || backward == forward) return forward;
    return forward.empty() ? "backward: " + backward : forward + "; backward: " + backward;
  }

  const SidesResult& result_;
  std::vector<std::string> columns_ = {"A Name",     "B Name",    "Wrong Side", "Verdict",  "A Forward",
                                       "A Backward", "B Forward", "B Backward", "A Reason", "B Reason"};
};

}  // namespace

SideOperation side_operation(const OperationReport& report) {
  SideOperation operation;
  operation.name = report.name;
  operation[CallDirection::forward].verdict = report.forward_verdict;
  operation[CallDirection::backward].verdict = report.backward_verdict;
  for (const CallDirection direction : kDirections) {
    SideDirection& one = operation[direction];
    const std::string front = report.name + '.' + std::string(direction_word(direction)) + '.';
    for (const OutputRow& row : report.rows) {
      if (!one.reason.empty()) break;
      if (row.name.starts_with(front) && row.verdict == one.verdict) one.reason = row.reason;
    }
  }
  return operation;
}

SidesResult lay_side_by_side(std::array<std::vector<SideOperation>, 2> operations, const dump::Side& a,
                             const dump::Side& b, const pairing::Alignment& alignment) {
  return SidesBuilder(a, b, alignment).run(std::move(operations));
}

std::string_view word(WrongSide wrong) {
  constexpr std::string_view kNames[] = {"neither", "not judged", "A", "B", "both"};
  return kNames[static_cast<std::size_t>(wrong)];
}

std::string sentence(const SidesResult& result) {
  if (result.first) return sentence_of(result, *result.first);
  const auto open = static_cast<std::size_t>(
      std::ranges::count_if(result.rows, [](const SidesRow& row) { return row.wrong == WrongSide::open; }));
  const std::size_t follow = result.rows.size() - open;
  if (follow == 0) return "no operation was judged on both sides";
  const std::string text =
      fmt::format("{}{} {} from {} inputs in both A and B{}", open == 0 && follow > 1 ? "all " : "",
                  fmt::format("{} {}", human_count(follow), follow == 1 ? "operation" : "operations"),
                  follow == 1 ? "follows" : "follow", follow == 1 ? "its" : "their",
                  open == 0 ? "" : fmt::format(", {} not judged or in one of them only", human_count(open)));
  return text + ": differences came in as data or parameters, or arise in what was not " +
         (open == 0 ? "recorded" : "recorded or judged");
}

std::unique_ptr<report::Table> sides_table(const SidesResult& result) {
  return std::make_unique<SidesTable>(result);
}

}  // namespace msprobe::precheck

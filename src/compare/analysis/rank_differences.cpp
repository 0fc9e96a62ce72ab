// SPDX-License-Identifier: Apache-2.0
#include "compare/analysis/rank_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "compare/dump_tree/rank_rows.hpp"
#include "dump/dump_json.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "measuring/statistics_difference.hpp"
#include "measuring/sum_precision.hpp"
#include "report/row_blocks.hpp"
#include "support/ascii.hpp"
#include "support/interrupt.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using dump::Item;
using dump::kStatistics;
using dump::P2PNames;
using dump::State;
using measuring::DifferenceKind;
using measuring::ValueDifference;
using pairing::Pair;
using pairing::Rules;
using report::RowRange;
using verdict::Field;
using verdict::RankResult;

constexpr std::array<std::string_view, kStatistics> kStatisticWords = {"max", "min", "mean", "norm"};
constexpr std::size_t kJsonBlock = std::size_t{1} << 20;

constexpr std::array<std::string_view, 4> kStateNames = {"input", "output", "parameters", "parameters_grad"};

void add_cell(JsonWriter& json, const report::Cell& cell) {
  struct Add {
    JsonWriter& json;
    void operator()(const report::Text& text) const { json.value(text.value); }
    void operator()(const report::Spelled& number) const { json.value(report::plain_text(number)); }
    void operator()(double number) const {
      if (std::isnan(number)) {
        json.value("Nan");
      } else {
        json.value(number);
      }
    }
    void operator()(std::int64_t number) const { json.value(number); }
    void operator()(bool value) const { json.value(value); }
  };
  std::visit(Add{json}, cell);
}

/// A field from the arguments of a transfer; `None` if the item is no transfer or has no such argument.
std::string_view transfer_text(const dump::Side& side, const Item* item, std::uint32_t P2PNames::*field) {
  const P2PNames* transfer = item == nullptr ? nullptr : side.transfer(*item);
  return transfer == nullptr || transfer->*field == 0 ? "None" : side.text(transfer->*field);
}

void add_peer(JsonWriter& json, std::string_view text) {
  if (const auto number = whole_number<std::int64_t>(text)) {
    json.value(*number);
  } else {
    json.value(text);
  }
}

/// The entries of a rank as JSON, in the Python tool's form.
class RankJson {
 public:
  explicit RankJson(const verdict::RankResult& result) : result_(result), rows_(RankRows::of(result)) {
    for (std::size_t i = 0; i < rows_.cells().columns().size(); ++i) {
      const Field field = rows_.cells().columns()[i].field;
      if (field == Field::target_statistic || field == Field::target_checksum) measures_.push_back(i);
    }
  }

  /// Writes `"name": {"is_same": …, "op_items": […]}` as a member of the file's object.
  void add_entry(JsonWriter& json, std::string_view name, RowRange rows, bool is_same) {
    json.open_object(name);
    json.member("is_same", is_same);
    json.open_list("op_items");
    for (std::size_t i = rows.first; i < rows.last; ++i) add_row(json, name, i);
    json.close();
    json.close();
  }

  /// The entry as an element of a rank's list in diff_analyze_*.json.
  std::string info(std::string_view name, RowRange rows) {
    constexpr int kLevel = 2;  // the depth of the object in the file
    JsonWriter json({.indent = kDifferenceIndent}, kLevel);
    json.open_object();
    json.member("op_name", name);
    json.open_object("data_info");
    for (const State state : {State::input, State::output}) {
      json.open_object(kStateNames[static_cast<std::size_t>(state)]);
      // If several rows have one name, the last counts, at the place of the first.
      std::vector<const Pair*> members;
      std::unordered_map<std::string_view, std::size_t> known;
      for (std::size_t i = rows.first; i < rows.last; ++i) {
        const Item& item = result_.target_item(result_.rows[i]);
        if (item.state != state) continue;
        const auto [place, inserted] = known.try_emplace(result_.target.name(item), members.size());
        if (inserted) members.push_back(nullptr);
        members[place->second] = &result_.rows[i];
      }
      for (const Pair* row : members) {
        const Item& item = result_.target_item(*row);
        rows_.row(static_cast<std::size_t>(row - result_.rows.data()), cells_, scratch_);
        json.open_object(result_.target.name(item));
        for (const std::size_t column : measures_) {
          json.key(rows_.columns()[column]);
          add_cell(json, cells_[column]);
        }
        json.key("NPU P2POp peer");
        add_peer(json, transfer_text(result_.target, &item, &P2PNames::peer));
        json.close();
      }
      json.close();
    }
    json.close();
    json.key("stack_info");
    const auto* frames = result_.target.stacks ? result_.target.stacks->find(name) : nullptr;
    if (frames == nullptr) {
      json.null();
    } else {
      json.value(*frames);
    }
    json.close();
    return json.take();
  }

 private:
  /// The stage that judges rows has not run; this gives the result that it would find.
  std::string_view result_text(const Item& item, const Item* golden) const {
    if (golden == nullptr) return "N/A";
    if (result_.mode != measuring::Mode::md5) return "";
    const bool same = result_.target.text(item.checksum) == result_.golden.text(golden->checksum);
    return same ? "pass" : "Different";
  }

  void add_message(JsonWriter& json, const Item& item, const Item* golden) const {
    const bool checksums = result_.mode == measuring::Mode::md5;
    const dump::RequiresGrad grad = golden == nullptr ? dump::RequiresGrad::unknown : golden->requires_grad;
    std::string text = golden == nullptr ? "No bench data matched." : "";
    if (!checksums && item.requires_grad != grad) text += "Requires_grad inconsistent. ";
    json.value(text);
  }

  void add_row(JsonWriter& json, std::string_view entry, std::size_t index) {
    const Pair& row = result_.rows[index];
    const Item& item = result_.target_item(row);
    const Item* golden = result_.find_golden(row);
    rows_.row(index, cells_, scratch_);
    json.open_object();
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const verdict::Column& column = rows_.cells().columns()[i];
      json.key(column.title);
      if (column.field == Field::verdict) {
        json.value(result_text(item, golden));
      } else if (column.field == Field::messages) {
        add_message(json, item, golden);
      } else if (column.field == Field::stack) {
        const Item* before = index == 0 ? nullptr : result_.find_target(result_.rows[index - 1]);
        const bool first = before == nullptr || before->api != item.api;
        if (const auto* frames = first ? result_.target.stacks->find(entry) : nullptr; frames != nullptr) {
          json.value(*frames);
        } else {
          json.value("N/A");
        }
      } else {
        add_cell(json, cells_[i]);
      }
    }
    json.member("state", kStateNames[static_cast<std::size_t>(item.state)]);
    json.member("api_origin_name", entry);
    json.member("NPU P2POp op", transfer_text(result_.target, &item, &P2PNames::operation));
    json.key("Bench P2POp op");
    json.value(transfer_text(result_.golden, golden, &P2PNames::operation));
    json.key("NPU P2POp peer");
    add_peer(json, transfer_text(result_.target, &item, &P2PNames::peer));
    json.key("Bench P2POp peer");
    add_peer(json, transfer_text(result_.golden, golden, &P2PNames::peer));
    json.close();
  }

  const verdict::RankResult& result_;
  RankRows rows_;
  std::vector<std::size_t> measures_;  // columns of the statistics under test, or of the checksum
  std::vector<report::Cell> cells_;
  report::Scratch scratch_;
};

bool holds_any(std::string_view text, const std::vector<std::string>& words) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return text.find(word) != std::string_view::npos; });
}

/// The n-th part from the end, counted from 1; empty if the name has fewer parts.
std::string_view part_from_end(std::string_view name, std::size_t number) {
  std::string_view last;
  for (std::size_t i = 0; i < number; ++i) {
    if (name.empty()) return {};
    std::tie(name, last) = dump::split_last(name);
  }
  return last;
}

class DifferenceFinder {
 public:
  DifferenceFinder(const RankResult& result, std::int64_t number, const Rules& rules, const JsonSink& sink)
      : result_(result), rules_(rules), sink_(sink), json_(result) {
    found_.label = result.rank;
    found_.number = number;
    found_.mapping_applies = result.mapping_applies;
    found_.coverage = result.coverage;
    found_.first_in.emplace_back();
  }

  RankDifferences run() {
    constexpr int kSpaces = 4;
    JsonWriter json({.indent = kSpaces});
    json.open_object();
    for (std::size_t first = 0; first < result_.rows.size();) {
      const std::uint32_t api = result_.target_item(result_.rows[first]).api;
      std::size_t last = first + 1;
      while (last < result_.rows.size() && result_.target_item(result_.rows[last]).api == api) ++last;
      const std::string_view name = result_.target.text(result_.target.apis[api].name);
      if (std::count(name.begin(), name.end(), '.') >= 3) {
        const std::optional<std::size_t> row = first_differing(name, {first, last});
        json_.add_entry(json, name, {first, last}, !row);
        entry(name, {first, last}, row);
      }
      first = last;
      if (json.text().size() < kJsonBlock) continue;
      check_interrupt();
      sink_(json.text());
      json.text().clear();
    }
    json.close();
    sink_(json.take());
    return std::move(found_);
  }

 private:
  void entry(std::string_view name, RowRange rows, std::optional<std::size_t> differing) {
    ++found_.entries;
    if (differing) ++found_.differing;
    if (rules_.communication.has(name)) {
      communication(name, rows, differing);
      return;
    }
    if (holds_any(name, rules_.never_first)) return;
    std::optional<FoundEntry>& slot = found_.first_in.back();
    if (differing && !slot) slot = found(name, rows, *differing);
    ++sub_layer_;
  }

  void communication(std::string_view name, RowRange rows, std::optional<std::size_t> differing) {
    ComparedCommunication node;
    node.name = name;
    node.sub_layer = sub_layer_;
    if (differing) node.found = found(name, rows, *differing);
    const auto parsed = dump::parse_entry_name(name);
    node.operation = parsed ? parsed->operation() : part_from_end(name, 3);
    node.backward = parsed && parsed->direction == dump::Direction::backward;
    const auto& calls = result_.target.calls;
    if (const auto call = calls.find(name); call != calls.end()) node.call = call->second;
    found_.comms.push_back(std::move(node));
    found_.first_in.emplace_back();
    sub_layer_ = 0;
  }

  FoundEntry found(std::string_view name, RowRange rows, std::size_t differing) {
    FoundEntry entry;
    entry.name = name;
    entry.sub_layer = sub_layer_;
    entry.info = json_.info(name, rows);
    entry.what = describe(name, differing);
    if (result_.target.stacks) {
      if (const auto* frames = result_.target.stacks->find(name))
        entry.at = dump::user_frame(*frames, rules_.framework_frames);
    }
    return entry;
  }

  ValueDifference difference_of(const Item& item, const Item& golden, std::size_t statistic) const {
    return measuring::difference(item.statistics[statistic], result_.target.pool,
                                 golden.statistics[statistic], result_.golden.pool, result_.python);
  }

  /// A statistic of a tensor counts if it is a number on both sides and its difference does not come from the
  /// recorders themselves.
  bool counts(const pairing::Pair& row, std::size_t statistic) const {
    const Item& item = result_.target_item(row);
    const Item& golden = result_.golden_item(row);
    const bool is_tensor = item.is_tensor && golden.is_tensor;
    const auto is_number = [&](const Item& each, const dump::Side& side) {
      return measuring::kind_of_number(each.statistics[statistic], side.pool) != measuring::NumberKind::none;
    };
    if (is_tensor && !(is_number(item, result_.target) && is_number(golden, result_.golden))) return false;
    return measuring::sum_difference(result_, row, statistic) == measuring::SumDifference::counts;
  }

  bool differs(const pairing::Pair& row) const {
    if (!row.matched()) return false;
    const Item& item = result_.target_item(row);
    const Item& golden = result_.golden_item(row);
    if (result_.mode == measuring::Mode::md5) {
      if (!item.has_checksum || !golden.has_checksum) return false;
      return result_.target.text(item.checksum) != result_.golden.text(golden.checksum);
    }
    for (std::size_t i = 0; i < kStatistics; ++i) {
      const auto threshold = rules_.differs_above.find(verdict::kRelativeNames[i]);
      if (threshold == rules_.differs_above.end() || !counts(row, i)) continue;
      const ValueDifference each = difference_of(item, golden, i);
      if (each.kind == DifferenceKind::number && !each.relative_infinite) {
        if (each.relative_percent / 100 > threshold->second) return true;
      } else if (each.kind != DifferenceKind::zero && each.kind != DifferenceKind::missing) {
        // There is no percentage: golden is 0, one side is NaN, or a value is not a number.
        return true;
      }
    }
    return false;
  }

  std::optional<std::size_t> first_differing(std::string_view name, RowRange rows) {
    const auto ignored = rules_.ignored_outputs.find(part_from_end(name, 3));
    std::size_t output = 0;
    for (std::size_t i = rows.first; i < rows.last; ++i) {
      if (result_.target_item(result_.rows[i]).state != dump::State::output) continue;
      const std::size_t number = output++;
      if (ignored != rules_.ignored_outputs.end() && ignored->second.contains(number)) continue;
      if (differs(result_.rows[i])) return i;
    }
    return std::nullopt;
  }

  /// `output.0: norm 9.0, not 3.0 (NormRelativeErr 200.0%)`, for the statistic that differs most.
  std::string describe(std::string_view name, std::size_t row) const {
    const Item& item = result_.target_item(result_.rows[row]);
    const Item& golden = result_.golden_item(result_.rows[row]);
    std::string_view place = result_.target.name(item);
    if (place.starts_with(name) && place.size() > name.size()) place.remove_prefix(name.size() + 1);
    if (result_.mode == measuring::Mode::md5)
      return fmt::format("{}: checksum {}, not {}", place, result_.target.text(item.checksum),
                         result_.golden.text(golden.checksum));
    std::size_t worst = 0;
    double most = -1;
    for (const std::size_t i : {dump::kNorm, dump::kMax, dump::kMin, dump::kMean}) {
      const ValueDifference each = difference_of(item, golden, i);
      if (each.kind == DifferenceKind::zero || each.kind == DifferenceKind::missing ||
          !counts(result_.rows[row], i))
        continue;
      double fraction = measuring::relative_fraction(each);
      if (std::isnan(fraction)) fraction = INFINITY;
      if (fraction <= most) continue;
      most = fraction;
      worst = i;
    }
    const ValueDifference each = difference_of(item, golden, worst);
    std::string out = fmt::format("{}: {} {}, not {}", place, kStatisticWords[worst],
                                  dump::to_text(item.statistics[worst], result_.target.pool),
                                  dump::to_text(golden.statistics[worst], result_.golden.pool));
    if (each.kind == DifferenceKind::number && !each.relative_infinite)
      out += fmt::format(" ({} {:.4g}%)", verdict::kRelativeNames[worst], each.relative_percent);
    return out;
  }

  const RankResult& result_;
  const Rules& rules_;
  const JsonSink& sink_;
  RankJson json_;
  RankDifferences found_;
  std::uint32_t sub_layer_ = 0;
};

}  // namespace

RankDifferences find_differences(const RankResult& result, std::int64_t number, const Rules& rules,
                                 const JsonSink& json) {
  return DifferenceFinder(result, number, rules, json).run();
}

}  // namespace msprobe::compare

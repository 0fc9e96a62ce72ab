// SPDX-License-Identifier: Apache-2.0
#include "compare/analysis/rank_json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "support/json_writer.hpp"

namespace msprobe::compare {
namespace {

constexpr std::array<std::string_view, 4> kStateNames = {"input", "output", "parameters", "parameters_grad"};
constexpr int kWide = 4;    // indent of compare_result_*.json
constexpr int kNarrow = 2;  // of diff_analyze_*.json

void append_text(std::string& out, std::string_view key, std::string_view text) {
  append_json_string(out, key);
  out += ": ";
  append_json_string(out, text);
}

void append_cell(std::string& out, const report::Cell& cell) {
  struct Append {
    std::string& out;
    void operator()(const report::Text& text) const { append_json_string(out, text.value); }
    void operator()(const report::Structured& text) const { append_json_string(out, text.value); }
    void operator()(const report::Spelled& number) const {
      append_json_string(out, report::plain_text(number));
    }
    void operator()(double number) const {
      if (std::isnan(number)) {
        out += "\"Nan\"";
      } else {
        append_json_real(out, number);
      }
    }
    void operator()(std::int64_t number) const { out += std::to_string(number); }
    void operator()(bool value) const { out += value ? "true" : "false"; }
  };
  std::visit(Append{out}, cell);
}

void append_list(std::string& out, const std::vector<std::string>& texts, int level, int indent) {
  if (texts.empty()) {
    out += "[]";
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i != 0) out += ',';
    append_json_line(out, level + 1, indent);
    append_json_string(out, texts[i]);
  }
  append_json_line(out, level, indent);
  out += ']';
}

}  // namespace

RankJson::RankJson(const RankResult& result, const SearchTraits& traits)
    : result_(result), traits_(traits), rows_(RankRows::of(result)) {
  const std::vector<Column>& columns = rows_.fields();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::string key;
    append_json_string(key, columns[i].title);
    keys_.push_back(key + ": ");
    const Field field = columns[i].field;
    if (field == Field::target_statistic || field == Field::target_checksum) measures_.push_back(i);
  }
}

std::string RankJson::peer(const Side& side, const Item* item) const {
  const P2PNames* transfer = item == nullptr ? nullptr : side.transfer(*item);
  if (transfer == nullptr || transfer->peer == 0) return "\"None\"";
  const std::string_view text = side.text(transfer->peer);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return std::to_string(number);
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string RankJson::operation(const Side& side, const Item* item) const {
  std::string out;
  const P2PNames* transfer = item == nullptr ? nullptr : side.transfer(*item);
  const bool known = transfer != nullptr && transfer->operation != 0;
  append_json_string(out, known ? side.text(transfer->operation) : "None");
  return out;
}

/// The stage that judges rows has not run; this is what it would find.
std::string_view RankJson::result_text(const Item& item, const Item* golden) const {
  if (golden == nullptr) return "\"N/A\"";
  if (result_.mode != Mode::md5) return "\"\"";
  const bool same = result_.target.text(item.checksum) == result_.golden.text(golden->checksum);
  return same ? "\"pass\"" : "\"Different\"";
}

std::string_view RankJson::message_text(const Item& item, const Item* golden) const {
  const bool checksums = result_.mode == Mode::md5;
  const RequiresGrad grad = golden == nullptr ? RequiresGrad::unknown : golden->requires_grad;
  const bool consistent = item.requires_grad == grad;
  if (golden == nullptr) {
    return consistent || checksums ? "\"No bench data matched.\""
                                   : "\"No bench data matched.Requires_grad inconsistent. \"";
  }
  // The Python tool leaves the column empty, which JSON readers other than its own refuse.
  if (checksums) return traits_.bare_nan ? "NaN" : "\"\"";
  return consistent ? "\"\"" : "\"Requires_grad inconsistent. \"";
}

void RankJson::append_row(std::string& out, std::string_view entry, std::size_t index) {
  const Row& row = result_.rows[index];
  const Item& item = result_.target_item(row);
  const Item* golden = row.matched() ? &result_.golden_item(row) : nullptr;
  rows_.row(index, cells_, scratch_);
  append_json_line(out, 3, kWide);
  out += '{';
  const auto next = [&] { append_json_line(out, 4, kWide); };
  const std::vector<std::string>& columns = rows_.columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    next();
    out += keys_[i];
    if (columns[i] == "Result") {
      out += result_text(item, golden);
    } else if (columns[i] == "Err_message") {
      out += message_text(item, golden);
    } else if (columns[i] == "NPU_Stack_Info") {
      const Item* before = index == 0 ? nullptr : result_.find_target(result_.rows[index - 1]);
      const bool first = before == nullptr || before->api != item.api;
      const auto* frames = first ? result_.target.stacks->find(entry) : nullptr;
      if (frames == nullptr) {
        out += "\"N/A\"";
      } else {
        append_list(out, *frames, 4, kWide);
      }
    } else {
      append_cell(out, cells_[i]);
    }
    out += ',';
  }
  next();
  append_text(out, "state", kStateNames[static_cast<std::size_t>(item.state)]);
  out += ',';
  next();
  append_text(out, "api_origin_name", entry);
  // The Python tool takes the reference's transfer from the row of the same number.
  if (traits_.transfers_by_index)
    golden = index < result_.golden.items.size() ? &result_.golden.items[index] : nullptr;
  const auto member = [&](std::string_view key, const std::string& value) {
    out += ',';
    next();
    append_json_string(out, key);
    out += ": " + value;
  };
  const std::string none = traits_.bare_nan && golden == nullptr ? "NaN" : "";
  member("NPU P2POp op", operation(result_.target, &item));
  member("Bench P2POp op", none.empty() ? operation(result_.golden, golden) : none);
  member("NPU P2POp peer", peer(result_.target, &item));
  member("Bench P2POp peer", none.empty() ? peer(result_.golden, golden) : none);
  append_json_line(out, 3, kWide);
  out += '}';
}

void RankJson::append_entry(std::string& out, std::string_view name, EntryRows rows, bool is_same) {
  append_json_line(out, 1, kWide);
  append_json_string(out, name);
  out += ": {";
  append_json_line(out, 2, kWide);
  out += is_same ? "\"is_same\": true," : "\"is_same\": false,";
  append_json_line(out, 2, kWide);
  out += "\"op_items\": [";
  for (std::size_t i = rows.first; i < rows.last; ++i) {
    if (i != rows.first) out += ',';
    append_row(out, name, i);
  }
  append_json_line(out, 2, kWide);
  out += ']';
  append_json_line(out, 1, kWide);
  out += '}';
}

void RankJson::append_measures(std::string& out, std::size_t index) {
  rows_.row(index, cells_, scratch_);
  out += '{';
  for (const std::size_t column : measures_) {
    append_json_line(out, 6, kNarrow);
    out += keys_[column];
    append_cell(out, cells_[column]);
    out += ',';
  }
  append_json_line(out, 6, kNarrow);
  out += "\"NPU P2POp peer\": " + peer(result_.target, &result_.target_item(result_.rows[index]));
  append_json_line(out, 5, kNarrow);
  out += '}';
}

std::string RankJson::info(std::string_view name, EntryRows rows) {
  std::string out = "{";
  append_json_line(out, 3, kNarrow);
  append_text(out, "op_name", name);
  out += ',';
  append_json_line(out, 3, kNarrow);
  out += "\"data_info\": {";
  for (const State state : {State::input, State::output}) {
    if (state == State::output) out += ',';
    append_json_line(out, 4, kNarrow);
    out += state == State::input ? "\"input\": {" : "\"output\": {";
    // Of rows with one name the last counts, at the place of the first.
    std::vector<std::size_t> members;
    std::unordered_map<std::string_view, std::size_t> known;
    for (std::size_t i = rows.first; i < rows.last; ++i) {
      const Item& item = result_.target_item(result_.rows[i]);
      if (item.state != state) continue;
      const auto [place, inserted] = known.try_emplace(result_.target.name(item), members.size());
      if (inserted) {
        members.push_back(i);
      } else {
        members[place->second] = i;
      }
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i != 0) out += ',';
      append_json_line(out, 5, kNarrow);
      append_json_string(out, result_.target.name(result_.target_item(result_.rows[members[i]])));
      out += ": ";
      append_measures(out, members[i]);
    }
    if (!members.empty()) append_json_line(out, 4, kNarrow);
    out += '}';
  }
  append_json_line(out, 3, kNarrow);
  out += "},";
  append_json_line(out, 3, kNarrow);
  out += "\"stack_info\": ";
  const auto* frames = result_.target.stacks ? result_.target.stacks->find(name) : nullptr;
  if (frames == nullptr) {
    out += "null";
  } else {
    append_list(out, *frames, 3, kNarrow);
  }
  append_json_line(out, 2, kNarrow);
  return out + "}";
}

}  // namespace msprobe::compare

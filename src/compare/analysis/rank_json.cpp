// SPDX-License-Identifier: Apache-2.0
#include "compare/analysis/rank_json.hpp"

#include <array>
#include <cmath>
#include <unordered_map>

#include "support/ascii.hpp"

namespace msprobe::compare {
namespace {

using dump::Item;
using dump::P2PNames;
using dump::State;
using pairing::Pair;
using verdict::Field;

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

}  // namespace

RankJson::RankJson(const verdict::RankResult& result) : result_(result), rows_(RankRows::of(result)) {
  for (std::size_t i = 0; i < rows_.fields().size(); ++i) {
    const Field field = rows_.fields()[i].field;
    if (field == Field::target_statistic || field == Field::target_checksum) measures_.push_back(i);
  }
}

/// The stage that judges rows has not run; this gives the result that it would find.
std::string_view RankJson::result_text(const Item& item, const Item* golden) const {
  if (golden == nullptr) return "N/A";
  if (result_.mode != measuring::Mode::md5) return "";
  const bool same = result_.target.text(item.checksum) == result_.golden.text(golden->checksum);
  return same ? "pass" : "Different";
}

void RankJson::add_message(JsonWriter& json, const Item& item, const Item* golden) const {
  const bool checksums = result_.mode == measuring::Mode::md5;
  const dump::RequiresGrad grad = golden == nullptr ? dump::RequiresGrad::unknown : golden->requires_grad;
  std::string text = golden == nullptr ? "No bench data matched." : "";
  if (!checksums && item.requires_grad != grad) text += "Requires_grad inconsistent. ";
  json.value(text);
}

void RankJson::add_row(JsonWriter& json, std::string_view entry, std::size_t index) {
  const Pair& row = result_.rows[index];
  const Item& item = result_.target_item(row);
  const Item* golden = result_.find_golden(row);
  rows_.row(index, cells_, scratch_);
  json.open_object();
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const verdict::Column& column = rows_.fields()[i];
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

void RankJson::add_entry(JsonWriter& json, std::string_view name, EntryRows rows, bool is_same) {
  json.open_object(name);
  json.member("is_same", is_same);
  json.open_list("op_items");
  for (std::size_t i = rows.first; i < rows.last; ++i) add_row(json, name, i);
  json.close();
  json.close();
}

std::string RankJson::info(std::string_view name, EntryRows rows) {
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

}  // namespace msprobe::compare

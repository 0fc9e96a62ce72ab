// SPDX-License-Identifier: Apache-2.0
#include "graph/data/item_texts.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "dump/names.hpp"
#include "dump/value.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"
#include "support/text_pool.hpp"

namespace msprobe::graph {
namespace {

using dump::Entry;
using dump::NodeKind;

constexpr std::string_view kNull = "null";

class ItemWriter {
 public:
  ItemWriter(const dump::EntryItems& items, const Entry& entry, std::string_view node,
             const DataOptions& options)
      : items_(items), entry_(entry), node_(node), options_(options) {}

  ItemText write(std::size_t number) {
    const dump::Item& item = items_.side.items[number];
    constexpr std::size_t kUsualMembers = 24;  // including those that a comparison adds
    out_.reserve(kUsualMembers);
    ItemText text;
    text.number = number;
    text.key = items_.side.name(item);
    text.output = is_output(item, text.key);
    if (options_.as_release8 && items_.side.transfer(item) != nullptr) text.key += ".tensor";
    text.closed = write_members(item, items_.places[number]);
    text.members = std::exchange(out_, {});
    return text;
  }

 private:
  bool is_output(const dump::Item& item, std::string_view name) const {
    if (!options_.python_values) return item.state == dump::State::output;
    return name.find(".output.") != std::string_view::npos && name.find(".input.") == std::string_view::npos;
  }

  /// True if nothing may be added.
  bool write_members(const dump::Item& item, Entry::Index place) {
    const bool transfer =
        entry_.find(place, "class_type") != Entry::kNone && items_.side.transfer(item) != nullptr;
    bool closed = false;
    const Entry::Index value = transfer ? entry_.find(place, "tensor") : place;
    if (!entry_.is(value, NodeKind::object)) {
      put("value", kNull);
      closed = options_.python_values;
    } else if (const Entry::Index type = entry_.find(value, "type");
               type != Entry::kNone && entry_.text(type) == "torch.ProcessGroup" && !item.is_tensor) {
      for (const std::string_view key : {"type", "group_ranks", "group_id"}) put_member(value, key);
      put("data_name", data_name(item));
      return options_.python_values;
    } else if (options_.python_values && text_of(item.statistics[dump::kMax]) == kNull) {
      put("value", kNull);
      closed = true;
    } else {
      write_object(item, value);
    }
    if (!transfer || options_.as_release8) return closed;
    put_member(place, "class_type");
    if (node_.find("batch_isend_irecv") != std::string_view::npos) return closed;
    for (const std::string_view key : {"op", "peer", "tag", "group_id"}) put_member(place, key);
    return closed;
  }

  void write_object(const dump::Item& item, Entry::Index value) {
    entry_.children(value, [&](Entry::Index member) {
      const std::string_view key = entry_.key(member);
      if ((key == "md5" && options_.python_values && !options_.compared) ||
          (key == "requires_grad" && options_.as_release8))
        return;
      put(key, text_of(member));
    });
    const auto missing = [&](std::string_view key) { return entry_.find(value, key) == Entry::kNone; };
    if (missing("data_name")) put("data_name", data_name(item));
    if (missing("requires_grad") && !options_.as_release8) put("requires_grad", kNull);
    for (std::size_t i = 0; i < kStatisticKeys.size(); ++i) {
      if (missing(kStatisticKeys[i])) put(kStatisticKeys[i], text_of(item.statistics[i]));
    }
    if (missing("dtype")) put("dtype", string_text(dtype_of(item, value)));
    if (missing("shape")) put("shape", string_text(items_.side.text(item.shape)));
    if (options_.add_checksums && missing("md5")) put("md5", items_.side.text(item.checksum));
  }

  /// Ranks that are named are numbers like others to releases 8.x.
  std::string_view dtype_of(const dump::Item& item, Entry::Index value) const {
    const Entry::Index number = entry_.find(value, "value");
    if (options_.as_release8 && entry_.is(number, NodeKind::integer)) return "<class 'int'>";
    return items_.side.text(item.dtype);
  }

  std::string_view data_name(const dump::Item& item) const {
    return item.data_name == 0 ? std::string_view("-1") : items_.side.text(item.data_name);
  }

  std::string text_of(Entry::Index value) const {
    switch (entry_.kind(value)) {
      case NodeKind::null:
        return std::string(kNull);
      case NodeKind::string:
        return string_text(entry_.text(value));
      case NodeKind::array:
      case NodeKind::object:
        return plain_text(entry_.python_str(value));
      case NodeKind::real:
        if (options_.as_release8) return rounded_text(entry_.number(value));
        return entry_.python_str(value);
      default:
        return entry_.python_str(value);
    }
  }

  std::string text_of(const dump::RecordedValue& value) const {
    if (value.kind == dump::ValueKind::none) return std::string(kNull);
    if (value.kind == dump::ValueKind::real)
      return options_.as_release8 ? rounded_text(value.real) : python_repr(value.real);
    if (value.kind == dump::ValueKind::text) return string_text(items_.side.text(value.text));
    return dump::to_text(value, items_.side.pool);
  }

  std::string string_text(std::string_view text) const { return short_decimal(plain_text(text)); }

  std::string plain_text(std::string_view text) const {
    constexpr std::string_view kNone = "None";
    if (!options_.python_values) return std::string(text == kNone ? kNull : text);
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      if (text.substr(at, kNone.size()) == kNone) {
        out += kNull;
        at += kNone.size();
      } else {
        if (text[at] != '\'') out += text[at];
        ++at;
      }
    }
    return out;
  }

  void put_member(Entry::Index object, std::string_view key) {
    if (const Entry::Index member = entry_.find(object, key); member != Entry::kNone)
      put(key, text_of(member));
  }

  void put(std::string_view key, std::string text) { out_.emplace_back(key, std::move(text)); }
  void put(std::string_view key, std::string_view text) { put(key, std::string(text)); }

  const dump::EntryItems& items_;
  const Entry& entry_;
  std::string_view node_;
  const DataOptions& options_;
  TextMembers out_;
};

}  // namespace

std::string rounded_text(double value) {
  std::string text = python_repr(value);
  if (!std::isfinite(value)) return text;
  if (text.find('e') != std::string::npos) return fmt::format("{:.6e}", value);
  return python_repr(parse_number(fmt::format("{:.6f}", value)).value_or(value));
}

std::string short_decimal(std::string text) {
  constexpr std::size_t kMostDigits = 20;
  constexpr std::size_t kDecimals = 6;
  std::string_view number = text;
  const bool percent = number.ends_with('%');
  if (percent) number.remove_suffix(1);
  const std::size_t dot = number.find('.');
  if (dot == std::string_view::npos) return text;
  const std::string_view whole = number.substr(0, dot);
  const std::string_view decimals = number.substr(dot + 1);
  if (!dump::is_digits(whole) || !dump::is_digits(decimals) || whole.size() > kMostDigits ||
      decimals.size() > kMostDigits || decimals.size() <= kDecimals)
    return text;
  return fmt::format("{:.6f}{}", parse_number(number).value_or(0), percent ? "%" : "");
}

std::vector<ItemText> item_texts(const dump::EntryItems& items, const Entry& entry, std::string_view node,
                                 const DataOptions& options) {
  ItemWriter writer(items, entry, node, options);
  std::vector<ItemText> texts;
  texts.reserve(items.side.items.size());
  for (std::size_t i = 0; i < items.side.items.size(); ++i) texts.push_back(writer.write(i));
  if (options.python_values) {
    // Where parameters count as outputs they follow these.
    std::vector<ItemText> ordered;
    for (const bool parameters : {false, true}) {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if ((items.side.items[i].state == dump::State::parameters) == parameters)
          ordered.push_back(std::move(texts[i]));
      }
    }
    return ordered;
  }
  return texts;
}

void put_items(JsonWriter& json, const std::vector<ItemText>& items, bool outputs) {
  std::vector<const ItemText*> parts;
  TextIndex places;
  const auto key_of = [&](std::uint32_t place) -> std::string_view { return parts[place]->key; };
  for (const ItemText& item : items) {
    if (item.output != outputs) continue;
    const std::uint32_t known = places.find(item.key, key_of);
    if (known != TextIndex::kNone) {
      parts[known] = &item;
      continue;
    }
    parts.push_back(&item);
    places.add(static_cast<std::uint32_t>(parts.size() - 1), key_of);
  }
  json.open_object();
  for (const ItemText* part : parts) json.member(part->key, part->members);
  json.close();
}

}  // namespace msprobe::graph

// SPDX-License-Identifier: Apache-2.0
#include "graph/rank_source.hpp"

#include <string_view>

#include "dump/entry.hpp"
#include "dump/entry_items.hpp"
#include "dump/member_stream.hpp"
#include "graph/data/overflow.hpp"
#include "graph/edges.hpp"

namespace msprobe::graph {

NodeData RankSource::data(model_tree::NodeIndex node) const {
  NodeData data;
  const std::string_view name = tree().name(node);
  const dump::EntryPlace* place = rank_.place(name);
  if (place == nullptr) return data;
  dump::Entry entry;
  dump::read_entry_at(*rank_.json, place->offset, place->size, entry, name);
  const dump::EntryItems items = dump::items_of(name, entry, place->size, rank_.json->name());
  data.items = item_texts(items, entry, name, options_);
  if (overflow_check_) data.overflow_level = overflow_level(name, entry, options_);
  data.communication = communication_of(name, entry);
  return data;
}

}  // namespace msprobe::graph

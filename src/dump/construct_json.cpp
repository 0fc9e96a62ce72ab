// SPDX-License-Identifier: Apache-2.0
#include "dump/construct_json.hpp"

#include <algorithm>
#include <unordered_set>

#include "dump/member_stream.hpp"

namespace msprobe::dump {
std::string_view ConstructTable::parent(std::string_view entry) const {
  const auto found = parents_.find(entry);
  return found == parents_.end() ? std::string_view() : std::string_view(found->second);
}

std::vector<std::string> ConstructTable::chain(std::string_view entry) const {
  std::vector<std::string> names{std::string(entry)};
  std::unordered_set<std::string_view> seen{entry};
  for (std::string_view name = parent(entry); !name.empty() && seen.insert(name).second;
       name = parent(name)) {
    names.emplace_back(name);
  }
  std::reverse(names.begin(), names.end());
  return names;
}

ConstructTable read_construct_json(const ByteSource& file) {
  ConstructTable table;
  MemberStream stream(file);
  stream.enter();
  std::string entry;
  Entry value;
  while (stream.next(entry)) {
    stream.entry(value, entry);
    const Entry::Index parent = value.is(0, NodeKind::array) && !value.empty(0) ? 1 : 0;
    if (value.is(parent, NodeKind::string) && !value.text(parent).empty())
      table.add(entry, std::string(value.text(parent)));
  }
  return table;
}

}  // namespace msprobe::dump

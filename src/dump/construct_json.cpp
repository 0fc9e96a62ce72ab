// SPDX-License-Identifier: Apache-2.0
#include "dump/construct_json.hpp"

#include <algorithm>
#include <unordered_set>

#include "dump/member_stream.hpp"

namespace msprobe::dump {
namespace {

/// The first string of a value: the parent, plain or in a list.
class ParentHandler : public IgnoreTokens {
 public:
  explicit ParentHandler(std::string& parent) : parent_(parent) {}
  void restart() {
    parent_.clear();
    depth_ = 0;
    usable_ = true;
    seen_ = false;
  }
  void open(bool object) {
    // Only one list may stand before the name.
    if (object || ++depth_ > 1) usable_ = false;
  }
  void string(std::string_view raw, bool escaped) {
    if (usable_ && !seen_) {
      if (escaped) {
        append_unescaped(parent_, raw);
      } else {
        parent_.assign(raw);
      }
    }
    seen_ = true;
  }
  void number(std::string_view, const char*) { seen_ = true; }
  void literal(char) { seen_ = true; }

 private:
  std::string& parent_;
  int depth_ = 0;
  bool usable_ = true;
  bool seen_ = false;  // a value that is not a container
};

}  // namespace

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
  std::string parent;
  while (stream.next(entry)) {
    parent.clear();
    ParentHandler handler(parent);
    stream.value(handler);
    if (!parent.empty()) table.add(entry, parent);
  }
  return table;
}

}  // namespace msprobe::dump

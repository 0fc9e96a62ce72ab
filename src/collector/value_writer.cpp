// SPDX-License-Identifier: Apache-2.0
#include "collector/value_writer.hpp"

#include <algorithm>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "support/error.hpp"

namespace msprobe::collector {
namespace {

/// `level`: that of its place; readers reject a value deeper than kMaxDepth in all.
dump::Entry parse_foreign(std::string_view json, int level) {
  constexpr int kMost = static_cast<int>(kMaxJsonDepth);
  try {
    return dump::read_json(json, "a value", static_cast<std::size_t>(std::max(kMost - level, 1)));
  } catch (const FormatError&) {
    throw FormatError("a value is not JSON");
  }
}

}  // namespace

void append_foreign_json(std::string& out, std::string_view json, int level) {
  const dump::Entry entry = parse_foreign(json, level);
  dump::append_json(out, entry, 0, level, 1);
}

void append_foreign_members(std::string& out, std::string_view json, int level) {
  const dump::Entry entry = parse_foreign(json, level);
  if (!entry.is(0, dump::NodeKind::object)) throw FormatError("a value is not a JSON object");
  entry.children(0, [&](dump::Entry::Index child) {
    out += ',';
    append_json_line(out, level, 1);
    append_json_string(out, entry.key(child));
    out += ": ";
    dump::append_json(out, entry, child, level, 1);
  });
}

bool ValueWriter::item(std::string_view key) {
  if (hidden_ > 0) return false;
  if (path_sizes_.empty()) {
    if (begun_) return false;
    begun_ = true;
    return true;
  }
  path_.resize(path_sizes_.back());
  if (!path_.empty()) path_ += '.';
  if (json_.in_object()) {
    json_.key(key);
    path_ += key;
  } else {
    append_json_integer(path_, json_.items());
    json_.element();
  }
  return true;
}

void ValueWriter::go_back(const ItemMark& mark) noexcept {
  json_.go_back(mark.json);
  begun_ = mark.begun;
}

void ValueWriter::open(std::string_view key, bool object) {
  if (!item(key)) {
    // A container that does not fit is an item, too, because its close() must find it.
    ++hidden_;
    return;
  }
  if (path_sizes_.size() == kMaxDepth) {
    text() += "null";
    ++hidden_;
    return;
  }
  if (object) {
    json_.open_object();
  } else {
    json_.open_list();
  }
  path_sizes_.push_back(path_.size());
}

bool ValueWriter::close() {
  if (hidden_ > 0) {
    --hidden_;
    return true;
  }
  if (path_sizes_.empty()) return false;
  json_.close();
  path_.resize(path_sizes_.back());
  path_sizes_.pop_back();
  return true;
}

}  // namespace msprobe::collector

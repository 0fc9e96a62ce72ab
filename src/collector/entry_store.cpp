// SPDX-License-Identifier: Apache-2.0
#include "collector/entry_store.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "support/json_writer.hpp"

namespace msprobe::collector {
namespace {

constexpr int kEntryLevel = 2;

void append_entry(std::string& out, const PendingEntry& entry) {
  append_json_string(out, entry.name);
  out += ": ";
  if (entry.members.size() == 1 && entry.members[0].key.empty()) {
    entry.members[0].section.append_to(out);
    return;
  }
  out += '{';
  for (std::size_t i = 0; i < entry.members.size(); ++i) {
    if (i > 0) out += ',';
    append_json_line(out, kEntryLevel + 1, 1);
    append_json_string(out, entry.members[i].key);
    out += ": ";
    entry.members[i].section.append_to(out);
  }
  append_json_line(out, kEntryLevel, 1);
  out += '}';
}

}  // namespace

void MemberText::append_to(std::string& out) const {
  std::size_t done = 0;
  for (const TextGap& gap : gaps) {
    out.append(text, done, gap.offset - done);
    out += gap.slot->text;
    done = gap.offset;
  }
  out.append(text, done);
}

void PendingEntry::set(int place, std::string_view key, MemberText section) {
  const auto at =
      std::ranges::find_if(members, [&](const EntryMember& m) { return m.place > place || m.key == key; });
  if (at != members.end() && at->key == key) {
    at->section = std::move(section);
  } else {
    members.insert(at, {place, std::string(key), std::move(section)});
  }
}

bool PendingEntry::final() const {
  if (open || holds > 0) return false;
  for (const EntryMember& member : members) {
    for (const MemberText::TextGap& gap : member.section.gaps) {
      if (gap.slot->awaited && !gap.slot->filled) return false;
    }
  }
  return true;
}

PendingEntry& EntryStore::place(std::string name, bool later) {
  const std::uint64_t id = next_++;
  PendingEntry& entry = *entries_.emplace(id, std::make_unique<PendingEntry>()).first->second;
  entry.id = id;
  entry.name = std::move(name);
  entry.aside = later;
  std::list<PendingEntry*>& line = later ? aside_ : order_;
  entry.position = line.insert(line.end(), &entry);
  return entry;
}

PendingEntry* EntryStore::find(std::uint64_t id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.get();
}

std::vector<PendingEntry*> EntryStore::open() const {
  std::vector<PendingEntry*> open(aside_.rbegin(), aside_.rend());
  std::ranges::copy_if(order_, std::back_inserter(open), &PendingEntry::open);
  return open;
}

void EntryStore::close(PendingEntry& entry) {
  entry.open = false;
  if (!entry.aside) return;
  entry.aside = false;
  order_.splice(order_.end(), aside_, entry.position);
}

void EntryStore::close_all() {
  // Entries that began last are inside those that began before.
  while (!aside_.empty()) close(*aside_.back());
  for (PendingEntry* entry : order_) {
    entry->open = false;
    entry->holds = 0;
    for (PendingEntry::EntryMember& member : entry->members) {
      for (const MemberText::TextGap& gap : member.section.gaps) gap.slot->awaited = false;
    }
  }
}

void EntryStore::take_final(GrowingFile& file) {
  while (!order_.empty() && order_.front()->final()) {
    const PendingEntry& entry = *order_.front();
    if (!entry.members.empty() && !entry.hidden) {
      file.begin_member();
      append_entry(file.text(), entry);
      ++taken_;
    }
    order_.pop_front();
    entries_.erase(entry.id);
  }
}

std::string EntryStore::provisional(const GrowingFile& file) const {
  std::string out;
  const auto append = [&](const PendingEntry* entry) {
    if (entry->members.empty() || entry->hidden) return;
    file.begin_provisional(out);
    append_entry(out, *entry);
  };
  std::for_each(order_.begin(), order_.end(), append);
  std::for_each(aside_.rbegin(), aside_.rend(), append);
  return out;
}

std::uint64_t EntryStore::waiting() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      entries_, [](const auto& one) { return !one.second->members.empty() && !one.second->hidden; }));
}

std::uint64_t EntryStore::held() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, entry] : entries_) {
    for (const PendingEntry::EntryMember& member : entry->members) bytes += member.section.text.size();
  }
  return bytes;
}

}  // namespace msprobe::collector

// SPDX-License-Identifier: Apache-2.0
// The entries of dump.json that can still change, in their order in the file.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/growing_file.hpp"

namespace msprobe::collector {

/// A piece of text that arrives later.
struct LateText {
  std::uint64_t entry = 0;  // the entry that waits for it; 0: none yet
  bool filled = false;
  bool awaited = true;  // the entry stays open for it
  std::string text;     // null, until it is filled
};

/// The text of one member of an entry, with gaps.
struct MemberText {
  struct TextGap {
    std::size_t offset = 0;
    std::shared_ptr<LateText> slot;
  };
  std::string text;
  std::vector<TextGap> gaps;
  void append_to(std::string& out) const;
};

struct PendingEntry {
  struct EntryMember {
    int place = 0;    // members are in this order
    std::string key;  // empty: the entry's value is this member alone
    MemberText section;
  };
  std::uint64_t id = 0;
  std::string name;
  std::vector<EntryMember> members;
  bool open = true;
  bool aside = false;
  bool hidden = false;  // not in the file, whatever it contains
  std::uint32_t holds = 0;
  std::list<PendingEntry*>::iterator position;

  /// Replaces an earlier member with the same key.
  void set(int place, std::string_view key, MemberText section);
  bool final() const;
};

class EntryStore {
 public:
  /// Adds an entry at the end. With `later`, it gets its place only when it is closed: after all entries that
  /// came before that.
  PendingEntry& place(std::string name, bool later = false);
  /// Null for an entry that was dropped or never existed.
  PendingEntry* find(std::uint64_t id);
  void close(PendingEntry& entry);
  void close_all();
  /// All open entries; those that get their place later come first, the last one before the others.
  std::vector<PendingEntry*> open() const;

  /// Moves the final entries at the front into the file. Entries without members vanish.
  void take_final(GrowingFile& file);
  /// All other entries in their present state.
  std::string provisional(const GrowingFile& file) const;
  /// The number of entries that were moved into the file or will be, as far as is known now.
  std::uint64_t count() const { return taken_ + waiting(); }
  /// The number of entries that were not moved yet.
  std::uint64_t waiting() const;
  /// The number of bytes of text in memory.
  std::uint64_t held() const;

 private:
  std::uint64_t next_ = 1;
  std::uint64_t taken_ = 0;  // into the file
  std::unordered_map<std::uint64_t, std::unique_ptr<PendingEntry>> entries_;
  std::list<PendingEntry*> order_;
  std::list<PendingEntry*> aside_;
};

}  // namespace msprobe::collector

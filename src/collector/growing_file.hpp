// SPDX-License-Identifier: Apache-2.0
// A JSON file that grows and is whole at any moment: head, members that will not change, members that may,
// tail. Each write makes a new file beside it, into which the system copies the part that stays, and renames
// it.
#pragma once

#include <cstdint>
#include <string>

namespace msprobe::collector {

class GrowingFile {
 public:
  /// `head` ends with the opening bracket of the growing object; `tail` is the text from after its closing
  /// bracket to the end of the file; `level` is that of its members.
  GrowingFile(std::string path, std::string head, std::string tail, int level);

  /// Starts the next member that will not change; its text goes to text().
  void begin_member();
  std::string& text() { return pending_; }

  /// Writes everything, with `provisional` at the end (members that begin with begin_provisional()). Throws
  /// IoError; pending text is kept for the next try, up to a limit.
  void write(const std::string& provisional);
  /// As begin_member(), but into a text for write().
  void begin_provisional(std::string& provisional) const;

  /// Updates the path after the folder was renamed.
  void move(std::string path) { path_ = std::move(path); }
  void set_head(std::string head) { head_ = std::move(head); }
  void set_tail(std::string tail) { tail_ = std::move(tail); }

  /// The number of members in the file that will not change.
  std::uint64_t members() const { return members_; }
  /// The size of the file in bytes after the last write.
  std::uint64_t size() const { return size_; }

 private:
  void append_separator(std::string& out, bool first) const;

  std::string path_;
  std::string head_;
  std::string tail_;
  int level_;
  bool any_ = false;           // true if there is a member that will not change, written or not
  std::string pending_;        // not yet in the file
  std::uint64_t waiting_ = 0;  // members that are in it
  std::uint64_t members_ = 0;  // in the file
  std::uint64_t begin_ = 0;    // of the members in the file
  std::uint64_t kept_ = 0;     // their bytes
  std::uint64_t size_ = 0;
};

}  // namespace msprobe::collector

// SPDX-License-Identifier: Apache-2.0
// Files that appear under their name only when they are whole, and the directories they go to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// Creates `path` and its parents where they are missing. IoError names the part that cannot be made.
void create_directories(const std::string& path);

/// What becomes of a file, or a link, that has the name of an output already.
enum class Existing : std::uint8_t {
  replace,  // msprobe gives the name, and an earlier run may have left it
  refuse,   // the command line names the file, and does not say --overwrite
};

/// Throws Error unless a file could be created (or replaced) at `path` now; leaves nothing. Lets a command
/// find out before hours of work that its result has no place.
void check_output(const std::string& path, Existing existing = Existing::replace);

/// Makes the folder of an output file and tries whether the file can come to be there, before hours of work.
void prepare_output(const std::string& path, Existing existing = Existing::replace);

/// Writes all bytes to a file descriptor. False if it is a pipe whose reader is gone; any other failure is an
/// IoError that names `name`. A signal that asks the process to stop ends a blocked write with Interrupted.
bool write_all(int descriptor, std::string_view bytes, const std::string& name);

enum class Linked : std::uint8_t {
  yes,
  refused,   // by the file system, for whatever reason
  too_many,  // the file has as many names as it can have
};
/// Gives the file `from` another name in the same file system, in place of what has it. It stays one file:
/// who writes to it by one name, not in its place, changes what is found by all.
Linked link_file(const std::string& from, const std::string& to);

/// Writes `to` anew with the bytes of `from`.
void copy_file(const std::string& from, const std::string& to);

/// A file in the making: it has no name until commit(), so that it leaves nothing even where the process is
/// killed. On file systems that know no such files it has a temporary name beside its place; what killed
/// processes of this machine left of that kind is removed by the next one. The mode is 0644 less the umask. A
/// symbolic link at `path` is replaced, never what it leads to; directories, devices and pipes are refused.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path, Existing existing = Existing::replace);
  /// A file in an open folder, whatever its path leads to by now; `path` is for messages. A link at its place
  /// is replaced.
  static OutputFile in_folder(int folder, const std::string& name, const std::string& path);
  /// A file without a name in a folder, for what is read again: the one for temporary files unless named.
  static OutputFile unnamed(std::string folder = {});
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  void write(std::string_view bytes);
  /// Appends `size` bytes of another file from `offset` on; IoError naming it if it has fewer.
  void append_from(const std::string& path, std::uint64_t offset, std::uint64_t size);
  /// Replaces bytes that were written before.
  void write_at(std::uint64_t offset, std::string_view bytes);
  void read_at(std::uint64_t offset, std::span<char> out);
  /// No more writing; reports what the system had kept back (quota, full disk on a network file system).
  void finish();
  /// finish() and the name.
  void commit();

  /// Commits all, or as far as the system allows none: if one fails, those renamed before are removed again.
  static void commit_all(std::vector<OutputFile>& files);

 private:
  OutputFile() = default;
  void open();
  bool open_nameless();
  void open_named();
  bool link_to_target();
  void copy_to_named();
  /// `path`: of the source, for messages.
  void append_from(int source, const std::string& path, std::uint64_t offset, std::uint64_t size);
  void flush();
  void discard() noexcept;

  std::string path_;       // as the caller named it
  std::string target_;     // where it goes
  std::string temporary_;  // its name until then; empty: it has none
  Existing existing_ = Existing::replace;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string buffer_;  // what was written last, as long as it is little
};

}  // namespace msprobe

// SPDX-License-Identifier: Apache-2.0
// Writes files that appear under their name only when they are whole, and makes their directories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// Creates `path` and its parents if they are missing. Throws IoError with the part that cannot be made.
void create_directories(const std::string& path);

/// The treatment of an existing file, or link, with the name of an output.
enum class Existing : std::uint8_t {
  replace,  // msprobe chooses the name, and an earlier run may have left the file
  refuse,   // the command line names the file without --overwrite
};

/// Throws Error unless a file could be created (or replaced) at `path` now; leaves nothing. A command calls
/// it before hours of work, to learn that its result cannot be stored.
void check_output(const std::string& path, Existing existing = Existing::replace);

/// Makes the folder of an output file and checks, before hours of work, that the file can be created.
void prepare_output(const std::string& path, Existing existing = Existing::replace);

/// Writes all bytes to a file descriptor. Returns false for a pipe whose reader is gone; throws IoError with
/// `name` for any other failure. A signal that asks the process to stop ends a blocked write with
/// Interrupted.
bool write_all(int descriptor, std::string_view bytes, const std::string& name);

enum class Linked : std::uint8_t {
  yes,
  refused,   // by the file system, for any reason
  too_many,  // the file has as many names as it can have
};
/// Gives the file `from` another name in the same file system, and replaces a file of that name. It stays one
/// file: a program that writes into it by one name changes it for all names.
Linked link_file(const std::string& from, const std::string& to);

/// Replaces `to` by a copy of `from`.
void copy_file(const std::string& from, const std::string& to);

/// A file that is being written. It has no name until commit(), so that it leaves nothing even if the process
/// is killed. On file systems without such files it has a temporary name in the same folder; the next process
/// on this machine removes those that killed processes left. The mode is 0644 less the umask. A symbolic link
/// at `path` is replaced, never its target; directories, devices and pipes are rejected.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path, Existing existing = Existing::replace);
  /// A file in an open folder, even if the folder was moved; messages use `path`. A link at its place is
  /// replaced.
  static OutputFile in_folder(int folder, const std::string& name, const std::string& path);
  /// A file without a name, for data that is read again. It is in the folder for temporary files unless
  /// named.
  static OutputFile unnamed(std::string folder = {});
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  void write(std::string_view bytes);
  /// Appends `size` bytes of another file from `offset` on; throws IoError with its name if it has fewer.
  void append_from(const std::string& path, std::uint64_t offset, std::uint64_t size);
  /// Replaces bytes that were written before.
  void write_at(std::uint64_t offset, std::string_view bytes);
  void read_at(std::uint64_t offset, std::span<char> out);
  /// Ends writing; reports errors that the system had delayed (quota, full disk on a network file system).
  void finish();
  /// Calls finish() and gives the file its name.
  void commit();

  /// Commits all files, or, as far as possible, none: if one fails, those renamed before are removed again.
  static void commit_all(std::vector<OutputFile>& files);

 private:
  OutputFile() = default;
  void open();
  bool open_nameless();
  void open_named();
  bool link_to_target();
  void copy_to_named();
  /// `path`: that of the source, for messages.
  void append_from(int source, const std::string& path, std::uint64_t offset, std::uint64_t size);
  void flush();
  void discard() noexcept;

  std::string path_;       // as the caller named it
  std::string target_;     // where it goes
  std::string temporary_;  // its name until then; may be empty
  Existing existing_ = Existing::replace;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string buffer_;  // recently written bytes that are still few
};

}  // namespace msprobe

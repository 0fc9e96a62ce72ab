// SPDX-License-Identifier: Apache-2.0
#include "support/byte_source.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "support/error.hpp"
#include "support/walk_beneath.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::byte_source_test {
namespace {

namespace fs = std::filesystem;

using Folder = test::ScratchDirectory;

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read(const ByteSource& source, std::uint64_t offset, std::size_t length) {
  std::string text(length, '\0');
  source.read_at(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

TEST_CASE("a file, memory and a part of either give the same bytes at the same offsets") {
  const Folder folder;
  put(folder / "digits", "0123456789");
  for (const auto& source : {open_file(folder / "digits"), memory_source(std::string_view("0123456789")),
                             slice_source(memory_source(std::string_view("ab0123456789cd")), 2, 10)}) {
    CHECK(source->size() == 10);
    CHECK(read(*source, 0, 10) == "0123456789");
    CHECK(read(*source, 3, 4) == "3456");
    CHECK(read(*source, 10, 0).empty());
    CHECK_THROWS_AS(read(*source, 10, 1), FormatError);
    CHECK_THROWS_AS(read(*source, 9, 2), FormatError);
    CHECK_THROWS_AS(read(*source, 11, 0), FormatError);
    CHECK_THROWS_AS(read(*source, ~std::uint64_t{0}, 2), FormatError);
    CHECK_THROWS_AS(read(*source, ~std::uint64_t{0}, 0), FormatError);
  }
}

TEST_CASE("a part must be inside of its whole, also where the sum overflows") {
  const auto whole = memory_source(std::string_view("0123456789"));
  CHECK(slice_source(whole, 10, 0)->size() == 0);
  CHECK_THROWS_AS(slice_source(whole, 11, 0), FormatError);
  CHECK_THROWS_AS(slice_source(whole, 5, 6), FormatError);
  CHECK_THROWS_AS(slice_source(whole, 5, ~std::uint64_t{0} - 2), FormatError);
  CHECK_THROWS_AS(slice_source(whole, ~std::uint64_t{0}, 2), FormatError);
  const auto inner = slice_source(slice_source(whole, 2, 6), 1, 3);
  CHECK(read(*inner, 0, 3) == "345");
  CHECK_THROWS_AS(read(*inner, 0, 4), FormatError);
}

TEST_CASE("a file that shrank since it was opened is reported, not read past") {
  const Folder folder;
  put(folder / "f", "0123456789");
  const auto source = open_file(folder / "f");
  REQUIRE(::truncate((folder / "f").c_str(), 4) == 0);
  CHECK(source->size() == 10);
  CHECK(read(*source, 0, 4) == "0123");
  CHECK_THROWS_AS(read(*source, 0, 5), FormatError);
}

TEST_CASE("read_all keeps to its limit") {
  const auto source = memory_source(std::string_view("0123456789"), "ten");
  CHECK(read_all(*source, 10).size() == 10);
  CHECK_THROWS_WITH_AS((void)read_all(*source, 9), "ten: too large: 10 bytes, at most 9 are accepted here",
                       FormatError);
}

TEST_CASE("what is no regular file is refused at once, with its name and the reason") {
  const Folder folder;
  CHECK_THROWS_WITH_AS(open_file(folder / "absent"), (folder / "absent: No such file or directory").c_str(),
                       IoError);
  CHECK_THROWS_WITH_AS(open_file(folder.path()), (folder.path() + ": Is a directory").c_str(), IoError);
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(open_file(folder / "pipe"), (folder / "pipe: not a regular file").c_str(), IoError);
  CHECK_THROWS_AS(open_file("/dev/zero"), IoError);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string socket_path = folder / "socket";
  REQUIRE(socket_path.size() < sizeof address.sun_path);
  socket_path.copy(address.sun_path, socket_path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK_THROWS_AS(open_file(socket_path), IoError);
  ::close(socket);
}

TEST_CASE("names below a folder cannot lead out of it") {
  const Folder folder;
  fs::create_directories(folder / "dump/deep");
  put(folder / "secret", "secret");
  put(folder / "dump/a.pt", "inside");
  put(folder / "dump/deep/b.pt", "deeper");
  put(folder / "dump/..odd..name", "odd");
  fs::create_symlink("a.pt", folder / "dump/link");
  fs::create_symlink("../secret", folder / "dump/out");
  fs::create_symlink(folder / "secret", folder / "dump/absolute");
  fs::create_directory_symlink("..", folder / "dump/up");
  const std::string dump = folder / "dump";

  CHECK(read(*open_file_beneath(dump, "a.pt"), 0, 6) == "inside");
  CHECK(read(*open_file_beneath(dump, "deep/b.pt"), 0, 6) == "deeper");
  CHECK(read(*open_file_beneath(dump, "..odd..name"), 0, 3) == "odd");
  for (const std::string name :
       {"../secret", "deep/../../secret", "deep/../a.pt", "..", "", "/etc/hostname"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(open_file_beneath(dump, name), FormatError);
  }
  CHECK_THROWS_AS(open_file_beneath(dump, folder / "secret"), FormatError);
  CHECK_THROWS_AS(open_file_beneath(dump, std::string("a.pt\0x", 6)), FormatError);
  for (const char* name : {"out", "absolute", "up/secret"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(open_file_beneath(dump, name), FormatError);
  }
  CHECK_THROWS_AS(open_file_beneath(dump, "absent"), IoError);
  CHECK_THROWS_AS(open_file_beneath(folder / "nowhere", "a.pt"), IoError);
}

TEST_CASE("a walk below a folder gives what the kernel's own gives") {
  const Folder folder;
  fs::create_directories(folder / "dump/deep/er");
  fs::create_directories(folder / "dump-beside");
  put(folder / "secret", "secret");
  put(folder / "dump-beside/a.pt", "beside");
  put(folder / "dump/a.pt", "inside");
  put(folder / "dump/deep/b.pt", "deeper");
  REQUIRE(::mkfifo((folder / "dump/pipe").c_str(), 0600) == 0);
  const std::pair<const char*, const char*> links[] = {{"link", "a.pt"},
                                                       {"deep/back", "../a.pt"},
                                                       {"deep/er/far", "../../deep/./b.pt"},
                                                       {"chain", "deep/back"},
                                                       {"folder", "deep"},
                                                       {"out", "../secret"},
                                                       {"absolute", "/etc/passwd"},
                                                       {"up", ".."},
                                                       {"deep/up", "../.."},
                                                       {"beside", "../dump-beside"},
                                                       {"circle", "circle"},
                                                       {"a", "b"},
                                                       {"b", "a"},
                                                       {"dangling", "nothing"},
                                                       {"magic", "/proc/self/root"},
                                                       {"there-and-back", "../dump/a.pt"},
                                                       {"self", "."},
                                                       {"trailing", "deep/"}};
  for (const auto& [name, target] : links) fs::create_symlink(target, folder / (std::string("dump/") + name));

  const int dump = ::open((folder / "dump").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(dump >= 0);
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  for (const char* name : {"a.pt",
                           "./a.pt",
                           "deep//b.pt",
                           "deep/./b.pt",
                           "a.pt/",
                           "a.pt/x",
                           "absent",
                           "absent/a.pt",
                           "deep",
                           "deep/",
                           ".",
                           "pipe",
                           "link",
                           "link/",
                           "deep/back",
                           "deep/er/far",
                           "chain",
                           "folder/b.pt",
                           "folder/er/far",
                           "out",
                           "absolute",
                           "up/secret",
                           "deep/up/secret",
                           "up/dump/a.pt",
                           "beside/a.pt",
                           "circle",
                           "a",
                           "a/x",
                           "dangling",
                           "magic",
                           "magic/etc/passwd",
                           "there-and-back",
                           "self/self/a.pt",
                           "trailing/b.pt",
                           "..",
                           "../secret",
                           "deep/../a.pt",
                           "deep/../../secret",
                           "/etc/passwd",
                           ""}) {
    CAPTURE(name);
    open_how how{};
    how.flags = static_cast<std::uint64_t>(kFlags);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    errno = 0;
    const int known = static_cast<int>(::syscall(SYS_openat2, dump, name, &how, sizeof how));
    const int known_error = errno;
    if (known < 0 && (known_error == ENOSYS || known_error == EPERM)) {
      MESSAGE("skipped: this system has no openat2");
      break;
    }
    errno = 0;
    const int walked = walk_beneath(dump, name, kFlags);
    const int error = errno;
    CHECK((walked >= 0) == (known >= 0));
    if (known < 0 && *name != '\0') CHECK(error == known_error);
    if (walked >= 0 && known >= 0) {
      struct stat one {};
      struct stat other {};
      REQUIRE(::fstat(walked, &one) == 0);
      REQUIRE(::fstat(known, &other) == 0);
      CHECK(one.st_ino == other.st_ino);
    }
    if (walked >= 0) ::close(walked);
    if (known >= 0) ::close(known);
  }
  // Without the kernel's answer beside it.
  for (const char* name : {"out", "absolute", "up/secret", "deep/up/secret", "beside/a.pt", "../secret"}) {
    CAPTURE(name);
    CHECK(walk_beneath(dump, name, kFlags) == -1);
    CHECK(errno == EXDEV);
  }
  ::close(dump);
}

}  // namespace msprobe::byte_source_test

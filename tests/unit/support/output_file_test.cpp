// SPDX-License-Identifier: Apache-2.0
#include "support/output_file.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/error.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::support_output_file_test {

using namespace msprobe;
using test::put_file;
using test::read_file;
using test::ScratchDirectory;

namespace {

std::string message_of(const std::string& path) {
  return test::message_of<IoError>([&] { const OutputFile file(path); }, "no error");
}

}  // namespace

TEST_CASE("an output file appears when it is committed") {
  const ScratchDirectory scratch;
  OutputFile file(scratch / "result.csv");
  file.write("one ");
  file.write("two");
  file.write_at(0, "ONE");
  CHECK(file.size() == 7);
  CHECK_FALSE(std::filesystem::exists(scratch / "result.csv"));
  file.commit();
  CHECK(read_file(scratch / "result.csv") == "ONE two");
  CHECK(scratch.names() == std::vector<std::string>{"result.csv"});
}

TEST_CASE("an output file has the usual mode") {
  const ScratchDirectory scratch;
  const mode_t before = ::umask(0027);
  OutputFile file(scratch / "result.csv");
  file.commit();
  ::umask(before);
  struct stat status {};
  REQUIRE(::stat((scratch / "result.csv").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0640);
}

TEST_CASE("what is not committed leaves nothing, and the old file stays") {
  const ScratchDirectory scratch;
  put_file(scratch / "result.csv", "old");
  CHECK_THROWS_AS(
      [&] {
        OutputFile file(scratch / "result.csv");
        file.write("new");
        throw std::runtime_error("stopped");
      }(),
      std::runtime_error);
  CHECK(read_file(scratch / "result.csv") == "old");
  CHECK(scratch.names() == std::vector<std::string>{"result.csv"});

  OutputFile file(scratch / "result.csv");
  file.write("new");
  OutputFile moved(std::move(file));
  moved.commit();
  CHECK(read_file(scratch / "result.csv") == "new");
}

TEST_CASE("a link at the place is replaced, not what it leads to") {
  const ScratchDirectory scratch;
  put_file(scratch / "real", "old");
  std::filesystem::create_symlink("real", scratch / "link");
  std::filesystem::create_symlink("nowhere", scratch / "dangling");
  for (const char* name : {"link", "dangling"}) {
    OutputFile file(scratch / name);
    file.write("new");
    file.commit();
    CHECK_FALSE(std::filesystem::is_symlink(scratch / name));
    CHECK(read_file(scratch / name) == "new");
  }
  CHECK(read_file(scratch / "real") == "old");
  CHECK(scratch.names() == std::vector<std::string>{"dangling", "link", "real"});
}

TEST_CASE("what is there, or comes to be there, is refused where it must not be replaced") {
  const ScratchDirectory scratch;
  put_file(scratch / "file", "old");
  std::filesystem::create_symlink("file", scratch / "link");
  std::filesystem::create_symlink("nowhere", scratch / "dangling");
  for (const char* name : {"file", "link", "dangling"}) {
    const std::string path = scratch / name;
    CHECK_THROWS_WITH_AS(check_output(path, Existing::refuse), (path + " already exists").c_str(),
                         UsageError);
  }
  OutputFile late(scratch / "late", Existing::refuse);
  late.write("mine");
  put_file(scratch / "late", "theirs");
  CHECK_THROWS_WITH_AS(late.commit(), (scratch / "late" + " already exists").c_str(), UsageError);
  CHECK(read_file(scratch / "late") == "theirs");
  CHECK(read_file(scratch / "file") == "old");
}

TEST_CASE("a place that cannot take a file is named with the reason") {
  const ScratchDirectory scratch;
  put_file(scratch / "file", "");
  std::filesystem::create_directory(scratch / "folder");
  CHECK(message_of(scratch / "missing/result.csv") ==
        scratch / "missing/result.csv" + ": cannot be created: no directory " + (scratch / "missing"));
  CHECK(message_of(scratch / "file/result.csv") ==
        scratch / "file/result.csv" + ": cannot be created: Not a directory");
  CHECK(message_of(scratch / "folder") == scratch / "folder" + ": is a directory, not a file to write");
  CHECK(message_of(scratch / "folder/") == scratch / "folder/" + ": is a directory, not a file to write");
  // With standard output in a file, the last of these leads to one.
  std::filesystem::create_symlink("/dev/null", scratch / "to_device");
  for (const std::string& device : {scratch / "to_device", std::string("/dev/stdout")})
    CHECK(message_of(device) == device + ": is not a regular file, so it cannot be replaced");
  CHECK(message_of("/dev/null") == "/dev/null: is not a regular file, so it cannot be replaced");
  CHECK(message_of("") == "the name of an output file is empty");
  CHECK(message_of(scratch / "bad\x1b[31m/x").find('\x1b') == std::string::npos);
  CHECK_THROWS_AS(check_output(scratch / "missing/result.csv"), IoError);
  check_output(scratch / "fine.csv");
  CHECK(scratch.names() == std::vector<std::string>{"file", "folder", "to_device"});
  if (::geteuid() != 0) {  // nothing is forbidden to root
    std::filesystem::permissions(scratch / "folder", std::filesystem::perms::owner_read);
    CHECK(message_of(scratch / "folder/x").find(": cannot be created: Permission denied") !=
          std::string::npos);
    std::filesystem::permissions(scratch / "folder", std::filesystem::perms::owner_all);
  }
}

TEST_CASE("a full disk is an error and leaves nothing") {
  const ScratchDirectory scratch;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    OutputFile file(scratch / "result.csv");
    file.write(std::string(10'000, 'x'));
    file.commit();
  } catch (const IoError& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old_handler);
  CHECK(message == scratch / "result.csv" + ": cannot be written: File too large");
  CHECK(scratch.names().empty());
}

TEST_CASE("several files are committed together or not at all") {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch / "sub");
  std::vector<OutputFile> files;
  files.emplace_back(scratch / "a");
  files.emplace_back(scratch / "sub/b");
  std::filesystem::remove_all(scratch / "sub");
  CHECK_THROWS_AS(OutputFile::commit_all(files), IoError);
  files.clear();
  CHECK(scratch.names().empty());
}

TEST_CASE("an unnamed file can be read back") {
  OutputFile file = OutputFile::unnamed();
  file.write("0123456789");
  file.write_at(2, "ab");
  std::string back(4, '\0');
  file.read_at(1, back);
  CHECK(back == "1ab4");
  CHECK_THROWS_AS(file.read_at(8, back), IoError);
  CHECK_FALSE(std::filesystem::exists(file.path()));
}

TEST_CASE("directories are made with their parents") {
  const ScratchDirectory scratch;
  create_directories(scratch / "a/b/../c/");
  create_directories(scratch / "a/c");
  create_directories("");
  create_directories("/");
  CHECK(std::filesystem::is_directory(scratch / "a/c"));
  put_file(scratch / "file", "");
  try {
    create_directories(scratch / "file/below");
    FAIL("a directory below a file");
  } catch (const IoError& error) {
    CHECK(std::string(error.what()) == scratch / "file" + ": is not a directory");
  }
  CHECK_THROWS_AS(create_directories(scratch / std::string(300, 'n')), IoError);
}

}  // namespace msprobe::support_output_file_test

// SPDX-License-Identifier: Apache-2.0
#include "report/writers.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "support/error.hpp"
#include "support/parallel.hpp"
#include "unit/report/fake_table.hpp"

namespace msprobe::report_writers_test {

using namespace msprobe;
using namespace msprobe::report;
using test::CountingTable;
using test::FakeTable;
using test::put_file;
using test::read_file;
using test::ScratchDirectory;
using test::written;

namespace {

constexpr Format kFormats[] = {Format::csv, Format::xlsx, Format::json, Format::jsonl};

/// Puts another file behind standard output while it lives.
class RedirectedStdout {
 public:
  explicit RedirectedStdout(int descriptor) {
    std::fflush(stdout);
    saved_ = ::dup(STDOUT_FILENO);
    ::dup2(descriptor, STDOUT_FILENO);
    ::close(descriptor);
  }
  ~RedirectedStdout() {
    ::dup2(saved_, STDOUT_FILENO);
    ::close(saved_);
  }
  RedirectedStdout(const RedirectedStdout&) = delete;
  RedirectedStdout& operator=(const RedirectedStdout&) = delete;

 private:
  int saved_;
};

}  // namespace

TEST_CASE("formats have names and extensions") {
  for (const Format format : kFormats) CHECK(format_from_name(extension(format)) == format);
  CHECK(extension(Format::xlsx) == "xlsx");
  CHECK_FALSE(format_from_name("xls").has_value());
  CHECK_FALSE(format_from_name("").has_value());
}

TEST_CASE("a result replaces the file before it") {
  const ScratchDirectory scratch;
  put_file(scratch / "result.csv", "an older result that is longer than the new one");
  const auto files = write_file(CountingTable(1), Format::csv, scratch / "result.csv");
  CHECK(files == std::vector<std::string>{scratch / "result.csv"});
  CHECK(read_file(scratch / "result.csv") == "Name,Index,Half,Even\nname.0,0,0.0,True\n");
  CHECK(scratch.names() == std::vector<std::string>{"result.csv"});
}

TEST_CASE("csv splits where the limit is passed") {
  const ScratchDirectory scratch;
  WriteOptions options;
  options.csv_rows_per_file = 3;
  CHECK(write_file(CountingTable(3), Format::csv, scratch / "whole.csv", options).size() == 1);
  const auto files = write_file(CountingTable(7), Format::csv, scratch / "r.1.csv", options);
  CHECK(files == std::vector<std::string>{scratch / "r.1_part_1.csv", scratch / "r.1_part_2.csv",
                                          scratch / "r.1_part_3.csv"});
  CHECK(read_file(files[0]) ==
        "Name,Index,Half,Even\nname.0,0,0.0,True\nname.1,1,0.5,False\nname.2,2,1.0,True\n");
  CHECK(read_file(files[2]) == "Name,Index,Half,Even\nname.6,6,3.0,True\n");
  CHECK(scratch.names() ==
        std::vector<std::string>{"r.1_part_1.csv", "r.1_part_2.csv", "r.1_part_3.csv", "whole.csv"});
}

TEST_CASE("a table that fails on the way leaves nothing new") {
  for (const Format format : kFormats) {
    const ScratchDirectory scratch;
    put_file(scratch / "result", "old");
    WriteOptions options;
    options.csv_rows_per_file = 1000;
    CHECK_THROWS_WITH_AS(write_file(CountingTable(5000, 4321), format, scratch / "result", options),
                         "bad row", std::runtime_error);
    CHECK(scratch.names() == std::vector<std::string>{"result"});
    CHECK(read_file(scratch / "result") == "old");
  }
}

TEST_CASE("a directory that is not there is an error with its name") {
  const ScratchDirectory scratch;
  for (const Format format : kFormats) {
    CHECK_THROWS_AS(write_file(CountingTable(1), format, scratch / "missing/result", {}), IoError);
  }
  CHECK(scratch.names().empty());
}

TEST_CASE("the bytes do not depend on the number of threads") {
  const CountingTable table(5000);
  for (const Format format : kFormats) {
    std::string one;
    {
      const ThreadLimit limit(1);
      one = written(table, format);
    }
    const ThreadLimit limit(8);
    CHECK(one.size() > 1000);
    CHECK(one == written(table, format));
  }
}

TEST_CASE("rows are counted as they are written") {
  for (const Format format : kFormats) {
    std::uint64_t told = 0;
    WriteOptions options;
    options.csv_rows_per_file = 10'000;
    options.on_rows = [&](std::uint64_t rows) { told += rows; };
    (void)written(CountingTable(9999), format, options);
    CHECK(told == 9999);
  }
}

TEST_CASE("standard output gets the same bytes as a file") {
  const ScratchDirectory scratch;
  const CountingTable table(2000);
  for (const Format format : kFormats) {
    bool whole = false;
    {
      const RedirectedStdout redirect(::open((scratch / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
      whole = write_stdout(table, format);
    }
    CHECK(whole);
    CHECK(read_file(scratch / "out") == written(table, format));
  }
}

TEST_CASE("csv on standard output is never split") {
  const ScratchDirectory scratch;
  WriteOptions options;
  options.csv_rows_per_file = 3;
  {
    const RedirectedStdout redirect(::open((scratch / "out").c_str(), O_WRONLY | O_CREAT, 0600));
    CHECK(write_stdout(CountingTable(7), Format::csv, options));
  }
  CHECK(read_file(scratch / "out") == written(CountingTable(7), Format::csv));
}

TEST_CASE("a closed pipe ends quietly, a full device does not") {
  const auto old_handler = ::signal(SIGPIPE, SIG_IGN);
  for (const Format format : kFormats) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    ::close(ends[0]);
    bool whole = true;
    {
      const RedirectedStdout redirect(ends[1]);
      whole = write_stdout(CountingTable(100), format);
    }
    CHECK_FALSE(whole);
    std::string message;
    {
      const RedirectedStdout redirect(::open("/dev/full", O_WRONLY));
      try {
        write_stdout(CountingTable(100), format);
      } catch (const IoError& error) {
        message = error.what();
      }
    }
    CHECK(message == "standard output: cannot be written: No space left on device");
  }
  ::signal(SIGPIPE, old_handler);
}

}  // namespace msprobe::report_writers_test

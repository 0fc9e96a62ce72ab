// SPDX-License-Identifier: Apache-2.0
#include "support/progress.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/log.hpp"

namespace msprobe::support_progress_test {

using namespace msprobe;

namespace {

/// The output of `body` to stderr, which is a file meanwhile.
std::string stderr_of(const std::function<void()>& body) {
  std::string path = "/tmp/msprobe_progress_XXXXXX";
  const int file = mkstemp(path.data());
  REQUIRE(file >= 0);
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(file);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  return text.str();
}

/// The output of `body` to stderr, which is a terminal of 40 columns meanwhile.
std::string terminal_output_of(const char* term, const std::function<void()>& body) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(end >= 0);
  winsize size{};
  size.ws_row = 10;
  size.ws_col = 40;
  REQUIRE(ioctl(terminal, TIOCSWINSZ, &size) == 0);

  const char* old_term = std::getenv("TERM");
  const std::string saved_term = old_term == nullptr ? "" : old_term;
  setenv("TERM", term, 1);
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  dup2(end, STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  setenv("TERM", saved_term.c_str(), 1);

  // The output waits in the terminal; nothing waiting means nothing was written.
  std::string text;
  pollfd waiting{terminal, POLLIN, 0};
  while (poll(&waiting, 1, 0) == 1 && (waiting.revents & POLLIN) != 0) {
    char buffer[4096];
    const ssize_t count = read(terminal, buffer, sizeof(buffer));
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  close(end);
  close(terminal);
  return text;
}

void short_phase() {
  Progress progress(ProgressMode::automatic);
  progress.begin("comparing /a/rather/long/path/to/some/dump.json", 10, "rows");
  progress.advance(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(350));
  progress.end();
}

}  // namespace

TEST_CASE("a status line says how far, how much and how long") {
  CHECK(progress_line({"comparing", "rows", 1234, 2745, 0.5}, 100) ==
        "comparing  44% [========>           ]  1,234/2,745 rows");
  CHECK(progress_line({"comparing", "rows", 50, 200, 10}, 100) ==
        "comparing  25% [=====>              ]  50/200 rows  30 s left");
  CHECK(progress_line({"reading", "B", 1'500'000, 3'000'000, 75}, 100) ==
        "reading  50% [==========>         ]  1.5 MB/3.0 MB  1 min 15 s left");
  CHECK(progress_line({"reading", "rows", 5, 5, 3}, 100) == "reading 100% [====================]  5/5 rows");
  CHECK(progress_line({"reading", "rows", 1, 3700 * 2, 1}, 100) ==
        "reading   0% [>                   ]  1/7,400 rows  2 h 03 min left");
}

TEST_CASE("a phase of unknown length counts") {
  CHECK(progress_line({"walking", "files", 1234567, 0, 0}, 100) == "walking  1,234,567 files");
  CHECK(progress_line({"making the report", "", 0, 0, 3}, 100) == "making the report  3 s");
  CHECK(progress_line({"walking", "files", 3, 0, 61}, 100) == "walking  3 files  1 min 01 s");
}

TEST_CASE("more done than announced is shown as all") {
  CHECK(progress_line({"x", "rows", 9, 5, 0}, 100).find("100% [====================]") != std::string::npos);
}

TEST_CASE("a narrow terminal loses the bar, then the middle of the label, and never gets a longer line") {
  const ProgressState state{"comparing /data/run/step0/rank12", "rows", 50, 200, 0};
  CHECK(progress_line(state, 60) == "comparing /data/run/step0/rank12  25%  50/200 rows");
  CHECK(progress_line(state, 40) == "comparing ..ep0/rank12  25%  50/200 rows");
  for (std::size_t width = 0; width < 80; ++width) CHECK(progress_line(state, width).size() <= width);
  // Characters are counted, not bytes, and none is cut.
  CHECK(progress_line({"äöüßäöüßäöüß", "n", 1, 0, 0}, 13) == "äöü..öüß  1 n");
}

TEST_CASE("nothing is written to what is not a terminal") {
  CHECK(stderr_of([] {
          Progress progress(ProgressMode::automatic);
          progress.begin("work", 10, "rows");
          progress.advance(5);
          std::this_thread::sleep_for(std::chrono::milliseconds(150));
          progress.end();
        }).empty());
  CHECK(stderr_of([] {
          Progress progress(ProgressMode::never);
          progress.begin("work", 10, "rows");
        }).empty());
}

TEST_CASE("a terminal gets the line in its width, and the line goes away") {
  const std::string text = terminal_output_of("xterm", short_phase);
  CHECK(text.find("50%") != std::string::npos);
  CHECK(text.find('\n') == std::string::npos);
  CHECK(text.ends_with("\r\x1b[K"));
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\r\x1b[K", begin), text.size());
    CHECK(end - begin < 40);
    begin = end + 4;
  }
}

TEST_CASE("a dumb terminal and a quiet program show no progress") {
  CHECK(terminal_output_of("dumb", short_phase).empty());
  set_log_level(LogLevel::quiet);
  CHECK(terminal_output_of("xterm", short_phase).empty());
  set_log_level(LogLevel::normal);
}

TEST_CASE("work that is over at once shows nothing") {
  CHECK(terminal_output_of("xterm", [] {
          Progress progress(ProgressMode::automatic);
          progress.begin("work", 10, "rows");
          progress.end();
        }).empty());
}

TEST_CASE("a phase may turn out to be longer") {
  const std::string text = stderr_of([] {
    Progress progress(ProgressMode::always);
    progress.begin("comparing", 100, "rows");
    progress.advance(50);
    progress.expect(1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(350));
    progress.end();
  });
  CHECK(text.find("50/1,000 rows") != std::string::npos);
  CHECK(text.find("50/100 rows") == std::string::npos);
}

TEST_CASE("a log line replaces the status line, and the end clears it") {
  const std::string text = stderr_of([] {
    Progress progress(ProgressMode::always);
    progress.begin("first\x1b", 4, "rows");
    log_error("something");
    progress.begin("second", 0, "rows");
    progress.end();
    log_error("later");
  });
  // The clock decides how often the ticker draws, so only the order is fixed.
  const auto at = [&text](const char* part) {
    const std::size_t position = text.find(part);
    CHECK_MESSAGE(position != std::string::npos, part);
    return position;
  };
  CHECK(at("first\\x1b   0% [") < at("\r\x1b[Kmsprobe: error: something\n"));
  CHECK(at("something\n") < at("\r\x1b[Ksecond  0 rows"));
  CHECK(at("second") < at("\r\x1b[Kmsprobe: error: later\n"));
  CHECK(text.ends_with("\r\x1b[Kmsprobe: error: later\n"));
}

TEST_CASE("counting from many threads while the line is drawn loses nothing") {
  const std::string text = stderr_of([] {
    Progress progress(ProgressMode::always);
    progress.begin("work", 4000, "rows");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&progress] {
        for (int i = 0; i < 1000; ++i) progress.advance();
        log_error("thread done");
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  });
  CHECK(text.find("4,000/4,000 rows") != std::string::npos);
  CHECK(text.ends_with("\r\x1b[K"));
}

}  // namespace msprobe::support_progress_test

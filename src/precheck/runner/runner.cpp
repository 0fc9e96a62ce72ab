// SPDX-License-Identifier: Apache-2.0
#include "precheck/runner/runner.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::chrono::milliseconds kStartLimit{300'000};  // PyTorch from a slow disk
constexpr int kMaxFailedStarts = 3;
constexpr std::size_t kShownText = 300;

}  // namespace

std::string first_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  if (line.size() > kShownText) line = line.substr(0, kShownText) + "...";
  return display(line);
}

const RunnerHello& Runner::start() {
  while (!process_) {
    auto process = std::make_unique<RunnerProcess>(start_, inputs_, outputs_);
    try {
      hello_ = read_hello(process->receive(kStartLimit));
    } catch (const RunnerLost& lost) {
      if (++failed_starts_ < kMaxFailedStarts) continue;
      const std::string& told = process->messages();
      const std::size_t last = told.find_last_not_of('\n');
      const std::size_t line = last == std::string::npos ? 0 : told.rfind('\n', last) + 1;
      const std::string end =
          last == std::string::npos ? "" : ": " + first_line(told.substr(line, last + 1 - line));
      throw Error(fmt::format("{}: the runner {}{}", display(start_.python), lost.what(), end));
    }
    if (!hello_.fatal.empty())
      throw Error(fmt::format("{}: {}", display(start_.python), first_line(hello_.fatal)),
                  start_.framework == Framework::mindspore
                      ? "--python names a Python with MindSpore, and with PyTorch, the reference; for "
                        "--recorded PyTorch is enough"
                      : "--python names a Python with PyTorch 1.13 or later");
    failed_starts_ = 0;
    process_ = std::move(process);
  }
  return hello_;
}

Runner& RunnerPool::at(std::size_t worker, const RunnerStart& start) {
  while (runners_.size() <= worker) runners_.push_back(std::make_unique<Runner>(start));
  if (runners_[worker]->how() != start) runners_[worker] = std::make_unique<Runner>(start);
  return *runners_[worker];
}

}  // namespace msprobe::precheck

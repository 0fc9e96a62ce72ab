// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(200);

bool is_of_training(const std::string& folder) {
  return path_exists(folder + "/messages.jsonl");
}

class FolderStreams {
 public:
  FolderStreams(const std::string& folder, OnlineDesk& desk) : folder_(folder), desk_(desk) {}

  void run() {
    auto last = std::chrono::steady_clock::now();
    for (;;) {
      check_interrupt();
      bool any = look_for_new();
      bool all_ended = true;
      for (const auto& [name, stream] : streams_) {
        any = stream->advance() || any;
        all_ended = all_ended && stream->ended();
      }
      const auto now = std::chrono::steady_clock::now();
      if (any) last = now;
      if (!streams_.empty() && all_ended && now - last >= kLastBegin) return;
      if (!any) std::this_thread::sleep_for(kBetweenLooks);
    }
  }
  void finish() {
    for (const auto& [name, stream] : streams_) stream->finish();
  }
  OnlineCounts counts() const {
    OnlineCounts counts;
    for (const auto& [name, stream] : streams_) stream->count(counts);
    return counts;
  }

 private:
  bool look_for_new() {
    bool any = false;
    for (const std::string& name : names_in(folder_, WhichNames::folders)) {
      const std::string folder = folder_ + '/' + name;
      if (streams_.contains(name) || !is_of_training(folder)) continue;
      streams_.emplace(name, std::make_unique<OnlineStream>(folder, name, OnlineWriter::training, desk_));
      log_info(fmt::format("online pre-check: {} begins", display(name)));
      any = true;
    }
    return any;
  }

  const std::string& folder_;
  OnlineDesk& desk_;
  std::map<std::string, std::unique_ptr<OnlineStream>> streams_;
};

}  // namespace

bool has_calls(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder, WhichNames::folders);
  return std::ranges::any_of(names,
                             [&](const std::string& name) { return is_of_training(folder + '/' + name); });
}

OnlineCounts judge_folder(const std::string& folder, const OnlineSettings& settings,
                          const Standards& standards, bool color) {
  Runner runner(online_runner(settings.python, settings.device));
  OnlineDesk desk{settings, standards, runner, color};
  FolderStreams streams(folder, desk);
  return judge_streams(streams);
}

}  // namespace msprobe::precheck

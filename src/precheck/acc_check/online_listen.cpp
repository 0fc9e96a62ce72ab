// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_listen.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "precheck/runner/process.hpp"
#include "precheck/runner/receiver.hpp"
#include "precheck/runner/shared_file.hpp"
#include "precheck/runner/wire.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/log.hpp"
#include "support/text.hpp"
#include "support/version.hpp"

namespace msprobe::precheck {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kStartOfReceiver{60'000};
constexpr milliseconds kEndOfReceiver{5'000};
constexpr milliseconds kRequestLimit{30'000};
constexpr milliseconds kBetweenEvents{100};

std::string receiver_settings(const ListenAddress& address) {
  JsonWriter json;
  json.open_object();
  json.member("host", address.host);
  json.member("port", static_cast<std::uint64_t>(address.port));
  json.member("tls", address.tls);
  json.member("release", std::string(kVersion));
  json.close();
  return json.take();
}

/// The process that has the connections. It writes what comes to files.
class Receiver {
 public:
  Receiver(const ListenAddress& address, const std::string& python) {
    const std::string text = std::string(kReceiver) + '\0' + std::string(kWire);
    program_.append(std::as_bytes(std::span(text)));
    process_.emplace(OwnProgram{.name = "receiver.py",
                                .text = program_.descriptor(),
                                .python = python,
                                .arguments = {receiver_settings(address)}});
    const dump::Entry event = wait(kStartOfReceiver);
    if (const std::string fatal(event.string(0, "fatal")); !fatal.empty()) throw Error(display(fatal));
    folder_ = event.string(0, "folder");
    listens_ = event.string(0, "listens");
    if (folder_.empty()) throw Error("the receiver did not start");
  }
  ~Receiver() {
    // It removes its folder, unless it is dead.
    process_->end(kEndOfReceiver);
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  const std::string& folder() const { return folder_; }
  const std::string& listens() const { return listens_; }

  /// The next event of the receiver, if one comes within the limit. Error if the receiver is gone,
  /// Interrupted.
  std::optional<dump::Entry> event(milliseconds limit) {
    return guarded([&]() -> std::optional<dump::Entry> {
      const std::optional<std::string> line = process_->receive_soon(limit);
      if (!line) return std::nullopt;
      return dump::read_json(*line, "the receiver");
    });
  }
  /// Says that this training is not needed any more.
  void drop(std::uint64_t number) {
    guarded([&] {
      process_->send(std::to_string(number) + '\n', kRequestLimit);
      return true;
    });
  }

 private:
  dump::Entry wait(milliseconds limit) {
    return guarded([&] { return dump::read_json(process_->receive(limit), "the receiver"); });
  }

  template <typename Work>
  auto guarded(const Work& work) -> decltype(work()) {
    try {
      return work();
    } catch (const RunnerLost& lost) {
      const std::string_view told = trimmed(process_->messages());
      const std::string last(told.substr(told.rfind('\n') + 1));
      throw Error(fmt::format("the receiver of calls {}{}{}", lost.what(), last.empty() ? "" : ": ",
                              first_line(last)));
    }
  }
  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
    return text;
  }

  SharedFile program_;
  std::optional<RunnerProcess> process_;
  std::string folder_;
  std::string listens_;
};

class NetworkStreams {
 public:
  NetworkStreams(Receiver& receiver, OnlineDesk& desk) : receiver_(receiver), desk_(desk) {}

  void run() {
    auto last = std::chrono::steady_clock::now();
    bool any = true;
    for (;;) {
      any = take_events(any ? milliseconds(0) : kBetweenEvents);
      any = advance() || any;
      const auto now = std::chrono::steady_clock::now();
      if (any) last = now;
      if (has_begun_ && streams_.empty() && open_ == 0 && now - last >= kLastBegin) return;
    }
  }
  void finish() {
    for (const auto& [number, stream] : streams_) {
      stream->finish();
      stream->count(counts_);
    }
    streams_.clear();
  }
  const OnlineCounts& counts() const { return counts_; }

 private:
  bool take_events(milliseconds limit) {
    bool any = false;
    while (const std::optional<dump::Entry> event = receiver_.event(any ? milliseconds(0) : limit)) {
      any = true;
      take(*event);
    }
    return any;
  }

  void take(const dump::Entry& event) {
    const auto number = [&](std::string_view key) { return event.integer(event.find(0, key)); };
    if (const auto begins = number("begins")) {
      has_begun_ = true;
      const std::string peer(event.string(0, "peer"));
      const std::string folder = fmt::format("{}/{}", receiver_.folder(), *begins);
      streams_.emplace(*begins, std::make_unique<OnlineStream>(folder, peer, OnlineWriter::receiver, desk_));
      log_info(fmt::format("online pre-check: {} begins{}", display(peer),
                           event.flag(0, "again") ? " again after a lost connection" : ""));
    } else if (const auto ends = number("ends")) {
      if (const auto found = streams_.find(*ends); found != streams_.end()) found->second->finish();
    } else if (const auto open = number("open")) {
      open_ = *open;
    } else if (const std::string warning(event.string(0, "warning")); !warning.empty()) {
      log_warning(display(warning));
    }
  }

  bool advance() {
    bool any = false;
    for (auto at = streams_.begin(); at != streams_.end();) {
      OnlineStream& stream = *at->second;
      any = stream.advance() || any;
      if (!stream.ended()) {
        ++at;
        continue;
      }
      stream.count(counts_);
      receiver_.drop(static_cast<std::uint64_t>(at->first));
      at = streams_.erase(at);
      any = true;
    }
    return any;
  }

  Receiver& receiver_;
  OnlineDesk& desk_;
  std::map<std::int64_t, std::unique_ptr<OnlineStream>> streams_;
  OnlineCounts counts_;
  std::int64_t open_ = 0;  // trainings that may still say something
  bool has_begun_ = false;
};

}  // namespace

ListenAddress read_listen_address(const std::string& text) {
  const auto refuse = [&] {
    throw UsageError(
        fmt::format("--listen: '{}' must be HOST:PORT, such as localhost:9000 or [::1]:9000", display(text)));
  };
  const std::size_t colon = text.rfind(':');
  ListenAddress address;
  if (colon == std::string::npos) refuse();
  const auto port = whole_number<std::uint16_t>(std::string_view(text).substr(colon + 1));
  if (!port) refuse();
  address.port = *port;
  address.host = text.substr(0, colon);
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  else if (address.host.find(':') != std::string::npos)
    refuse();
  return address;
}

OnlineCounts judge_calls_of_network(const ListenAddress& address, const OnlineSettings& settings,
                                    const Standards& standards, bool color) {
  // Start the runner first, so that a missing package is reported before a training relies on it.
  Runner runner(online_runner(settings.python, settings.device));
  runner.start();
  Receiver receiver(address, settings.python);
  log_info(fmt::format("online pre-check: listens at {}{}", display(receiver.listens()),
                       address.tls.empty() ? ", without TLS" : ""));
  OnlineDesk desk{settings, standards, runner, color};
  NetworkStreams streams(receiver, desk);
  return judge_streams(streams);
}

}  // namespace msprobe::precheck

// SPDX-License-Identifier: Apache-2.0
#include "support/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "support/log.hpp"
#include "support/stage.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr std::size_t kBarWidth = 20;
constexpr std::size_t kMinLabel = 8;
constexpr std::size_t kDefaultWidth = 80;
constexpr const char* kClearLine = "\r\x1b[K";

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
}

std::size_t columns(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_continuation));
}

/// Byte offset of the given character.
std::size_t offset_of(std::string_view text, std::size_t character) {
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    if (is_continuation(text[i])) continue;
    if (character == 0) break;
    --character;
  }
  return i;
}

/// `text` cut in the middle to `width` characters, because the end of a path says more than its middle.
std::string elide(std::string_view text, std::size_t width) {
  const std::size_t count = columns(text);
  if (count <= width) return std::string(text);
  if (width < 3) return std::string(text.substr(0, offset_of(text, width)));
  const std::size_t head = (width - 2) / 2;
  const std::size_t tail = width - 2 - head;
  return fmt::format("{}..{}", text.substr(0, offset_of(text, head)),
                     text.substr(offset_of(text, count - tail)));
}

std::string duration(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string bar(double fraction) {
  const auto filled = static_cast<std::size_t>(fraction * static_cast<double>(kBarWidth));
  std::string text(filled, '=');
  if (filled < kBarWidth) text += '>';
  text.resize(kBarWidth, ' ');
  return "[" + text + "]";
}

std::string amounts(const ProgressState& state) {
  if (state.unit == "B") {
    return state.total == 0 ? human_bytes(state.done)
                            : fmt::format("{}/{}", human_bytes(state.done), human_bytes(state.total));
  }
  return state.total == 0
             ? fmt::format("{} {}", human_count(state.done), state.unit)
             : fmt::format("{}/{} {}", human_count(state.done), human_count(state.total), state.unit);
}

std::size_t terminal_width() {
  winsize size{};
  // One column stays free, because some terminals wrap a full line.
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) return size.ws_col - std::size_t{1};
  return kDefaultWidth - 1;
}

bool shows(ProgressMode mode) {
  if (mode != ProgressMode::automatic) return mode == ProgressMode::always;
  const char* term = std::getenv("TERM");
  return log_level() != LogLevel::quiet && isatty(STDERR_FILENO) == 1 && term != nullptr &&
         std::string_view(term) != "dumb";
}

}  // namespace

std::string progress_line(const ProgressState& state, std::size_t width) {
  std::string before;
  std::string after = state.unit.empty() ? std::string() : "  " + amounts(state);
  std::string picture;
  if (state.total != 0) {
    const std::uint64_t done = std::min(state.done, state.total);
    const double fraction = static_cast<double>(done) / static_cast<double>(state.total);
    before = fmt::format(" {:3}%", static_cast<int>(fraction * 100));
    picture = " " + bar(fraction);
    // In the first second, the rate is unreliable.
    if (state.seconds >= 1 && done != 0 && done != state.total) {
      after += fmt::format("  {} left", duration(state.seconds * (1 / fraction - 1)));
    }
  } else if (state.seconds >= 1) {
    after += "  " + duration(state.seconds);
  }
  const std::size_t label = columns(state.label);
  if (label + before.size() + picture.size() + after.size() > width) picture.clear();
  const std::size_t fixed = before.size() + picture.size() + columns(after);
  const std::size_t room = width > fixed ? width - fixed : 0;
  return elide(elide(state.label, std::max(room, kMinLabel)) + before + picture + after, width);
}

struct Progress::Impl {
  explicit Impl(ProgressMode mode) : always(mode == ProgressMode::always), shown(shows(mode)) {}

  /// Logs how long the phase before took.
  void time(const std::string& phase) {
    const std::lock_guard lock(stage_mutex);
    stage.reset();
    if (!phase.empty()) stage.emplace(phase);
  }

  void draw() {
    with_log_lock([this] {
      if (!running) return;
      const std::chrono::duration<double> seconds = Clock::now() - begun;
      const std::string line =
          kClearLine + progress_line({label, unit, done, total, seconds.count()}, terminal_width());
      std::fwrite(line.data(), 1, line.size(), stderr);
      visible = true;
    });
  }

  /// The caller holds the log's lock.
  void clear() {
    if (std::exchange(visible, false)) std::fputs(kClearLine, stderr);
  }

  void tick() {
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, kTick, [this] { return stop; })) {
      lock.unlock();
      try {
        draw();
      } catch (const std::bad_alloc&) {
        // The work itself reports the lack of memory.
      }
      lock.lock();
    }
  }

  const bool always;
  bool shown;
  std::atomic<std::uint64_t> done{0};

  // The log's lock protects these.
  std::string label;
  std::string unit;
  std::uint64_t total = 0;
  Clock::time_point begun;
  bool running = false;
  bool visible = false;

  std::mutex stage_mutex;
  std::optional<Stage> stage;

  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  std::thread ticker;
};

Progress::Progress(ProgressMode mode) : impl_(std::make_unique<Impl>(mode)) {
  if (!impl_->shown) return;
  try {
    impl_->ticker = std::thread([impl = impl_.get()] { impl->tick(); });
  } catch (const std::system_error&) {
    impl_->shown = false;  // the work continues without a thread
    return;
  }
  set_log_preamble([impl = impl_.get()] { impl->clear(); });
}

Progress::~Progress() {
  if (!impl_->shown) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->wake.notify_one();
  impl_->ticker.join();
  end();
  set_log_preamble({});
}

void Progress::begin(std::string label, std::uint64_t total, std::string unit) {
  impl_->time(label);
  impl_->done = 0;
  if (!impl_->shown) return;
  with_log_lock([&] {
    impl_->label = display(label);
    impl_->unit = std::move(unit);
    impl_->total = total;
    impl_->begun = Clock::now();
    impl_->running = true;
  });
  // On a terminal, a short phase shows nothing; `always` shows at least one line for each phase.
  if (impl_->always) impl_->draw();
}

void Progress::advance(std::uint64_t done) {
  impl_->done.fetch_add(done, std::memory_order_relaxed);
}

void Progress::expect(std::uint64_t total) {
  if (!impl_->shown) return;
  with_log_lock([&] { impl_->total = total; });
}

void Progress::end() {
  impl_->time({});
  if (!impl_->shown) return;
  with_log_lock([this] {
    impl_->running = false;
    impl_->clear();
  });
}

}  // namespace msprobe

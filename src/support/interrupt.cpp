// SPDX-License-Identifier: Apache-2.0
#include "support/interrupt.hpp"

#include <csignal>

#include "support/error.hpp"

namespace msprobe {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void on_signal(int number) {
  if (g_interrupted != 0) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  g_interrupted = 1;
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() noexcept {
  return g_interrupted != 0;
}

void check_interrupt() {
  if (interrupted()) throw Interrupted();
}

}  // namespace msprobe

// SPDX-License-Identifier: Apache-2.0
#include "support/out_of_memory.hpp"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

namespace msprobe {
namespace {

// Cleaning up after an allocation failure takes only kilobytes: a message, a name, lists of files.
constexpr std::size_t kReserve = std::size_t{256} << 10;

std::atomic<void*> g_reserve{nullptr};
std::atomic<bool> g_ran_out{false};
std::terminate_handler g_otherwise = nullptr;
int g_status = 0;

/// Fails the allocation, but frees the reserve for the code that cleans up.
[[noreturn]] void on_no_memory() {
  g_ran_out = true;
  std::free(g_reserve.exchange(nullptr));
  throw std::bad_alloc();
}

/// Allocates nothing and takes no lock: the log's lock may be held.
[[noreturn]] void on_terminate() {
  if (g_ran_out) {
    constexpr std::string_view kLine = "msprobe: error: not enough memory\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
    _exit(g_status);
  }
  g_otherwise();  // our bug leaves its core
  std::abort();
}

}  // namespace

void prepare_for_no_memory(int status) {
  g_status = status;
  g_reserve = std::malloc(kReserve);
  std::set_new_handler(on_no_memory);
  g_otherwise = std::set_terminate(on_terminate);
}

}  // namespace msprobe

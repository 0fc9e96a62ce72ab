// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/error.hpp"

namespace msprobe {

/// A reader may refuse what it reads; any other exception ends the program.
template <typename Read>
void unless_refused(const Read& read) {
  try {
    read();
  } catch (const FormatError&) {
  }
}

}  // namespace msprobe

/// Begins a target: `FUZZ_TARGET(zip)(const std::uint8_t* data, std::size_t size) {...}`. An engine calls a
/// function of one fixed name in each program; the program that replays all targets needs a name for each.
#ifdef FUZZ_ENGINE
#define FUZZ_ENTRY(name) LLVMFuzzerTestOneInput
#else
#define FUZZ_ENTRY(name) fuzz_##name
#endif
#define FUZZ_TARGET(name)                                                       \
  static void name##_target(const std::uint8_t* data, std::size_t size);        \
  extern "C" int FUZZ_ENTRY(name)(const std::uint8_t* data, std::size_t size) { \
    name##_target(data, size);                                                  \
    return 0;                                                                   \
  }                                                                             \
  static void name##_target

/// The same for a target whose input may be refused.
#define FUZZ_READER(name)                                                \
  static void name##_reader(const std::uint8_t* data, std::size_t size); \
  FUZZ_TARGET(name)(const std::uint8_t* data, std::size_t size) {        \
    msprobe::unless_refused([&] { name##_reader(data, size); });         \
  }                                                                      \
  static void name##_reader

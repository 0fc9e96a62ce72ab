// SPDX-License-Identifier: Apache-2.0
// The messages of errors that tests expect.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "support/error.hpp"

namespace msprobe::test {

/// The message of the FormatError that read() throws, one line that begins with the file's name; empty if it
/// throws none.
template <typename Read>
std::string complaint_about(const std::string& file, Read read) {
  try {
    read();
  } catch (const FormatError& error) {
    std::string message = error.what();
    CHECK(message.starts_with(file + ": "));
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return {};
}

/// The message of the E that `act` throws; if it throws none, `accepted`.
template <typename E = FormatError, typename Act>
std::string message_of(const Act& act, const char* accepted = "accepted") {
  try {
    act();
  } catch (const E& error) {
    return error.what();
  }
  return accepted;
}

}  // namespace msprobe::test

/// Checks that complaint(bytes), which the including file defines, says these words.
#define CHECK_REFUSED(bytes, words)                                                        \
  do {                                                                                     \
    const std::string message_ = complaint(bytes);                                         \
    CHECK_MESSAGE(message_.find(words) != std::string::npos, "got: '" << message_ << "'"); \
  } while (false)

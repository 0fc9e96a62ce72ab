// SPDX-License-Identifier: Apache-2.0
// The exceptions that stop a command. A problem of a single row is a value in that row instead.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace msprobe {

/// The base of every exception that msprobe throws on purpose; `what()` is one line that a user can act on.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::string hint = {})
      : std::runtime_error(message), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

/// The command line asks for something that cannot be done.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// The operating system reported an error: the message names the file and the reason.
class IoError : public Error {
 public:
  explicit IoError(const std::string& message) : Error(message) {}
  IoError(const std::string& path, const std::string& reason) : Error(path + ": " + reason) {}
};

/// A file is not what it claims to be: the message names the file and the reason.
class FormatError : public Error {
 public:
  explicit FormatError(const std::string& message) : Error(message) {}
  FormatError(const std::string& path, const std::string& reason) : Error(path + ": " + reason) {}
};

/// The user pressed Ctrl-C (or the process got SIGTERM). It derives neither from Error nor from
/// std::exception, so that code that continues after a failure never catches it; main() turns it into an exit
/// status.
class Interrupted {};

}  // namespace msprobe

// SPDX-License-Identifier: Apache-2.0
// Iterates over the fields of a protobuf message. The reader allocates nothing and never recurses: a nested
// message is a range of bytes, for which the caller makes another reader.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace msprobe::formats {

struct ProtobufField {
  std::uint64_t number = 0;
  bool is_bytes = false;    // else a number: varint, or of fixed width
  std::uint64_t value = 0;  // of a number
  std::string_view bytes;   // text, a nested message, packed numbers
};

class ProtobufReader {
 public:
  /// `fail` must throw; it receives a description of the fault.
  using Fail = std::function<void(const std::string&)>;
  ProtobufReader(std::string_view message, const Fail& fail) : rest_(message), fail_(fail) {}

  /// False at the end of the message.
  bool next(ProtobufField& field);
  /// A bare varint, as packed lists hold them. `empty()` says whether one is left.
  std::uint64_t varint();
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view take(std::uint64_t count);

  std::string_view rest_;
  const Fail& fail_;
};

}  // namespace msprobe::formats

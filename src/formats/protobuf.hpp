// SPDX-License-Identifier: Apache-2.0
// The fields of a protobuf message, one after the other. It allocates nothing and never recurses: a nested
// message is a stretch of bytes that the caller reads with another one of these.
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
  /// `fail` throws; it is told what is wrong with the message.
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

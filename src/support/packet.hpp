// SPDX-License-Identifier: Apache-2.0
// Encodes values as bytes between processes of one job. All run the same program, so there are neither names
// nor versions. A function in the namespace of a struct lists its members once, for both directions:
//   void carry(auto& packet, Carried<Finding> auto& finding) { packet(finding.kind, finding.text); }
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/error.hpp"

namespace msprobe {

[[noreturn]] inline void refuse_packet() {
  throw FormatError("a packet between processes is not in order");
}

/// A struct is constant when it is written, but not when it is read.
template <typename T, typename Struct>
concept Carried = std::same_as<std::remove_const_t<T>, Struct>;

/// The part that a struct inherits, as a member of its list.
template <typename Base, typename Struct>
auto& base_of(Struct& value) {
  return static_cast<std::conditional_t<std::is_const_v<Struct>, const Base, Base>&>(value);
}

/// Values that are copied byte for byte.
template <typename T>
concept PlainValue = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class PacketWriter {
 public:
  template <typename... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  void put_size(std::size_t size) { put(static_cast<std::uint64_t>(size)); }

  template <PlainValue T>
  void put(T value) {
    append(&value, sizeof value);
  }
  void put(const std::string& text) {
    put_size(text.size());
    bytes_ += text;
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    put_size(values.size());
    if constexpr (PlainValue<T> && !std::same_as<T, bool>) {
      append(values.data(), values.size() * sizeof(T));
    } else {
      for (const auto& value : values) put(static_cast<const T&>(value));
    }
  }
  template <typename T, std::size_t N>
  void put(const std::array<T, N>& values) {
    for (const T& value : values) put(value);
  }
  template <typename A, typename B>
  void put(const std::pair<A, B>& values) {
    put(values.first);
    put(values.second);
  }
  template <typename T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  /// An object with several pointers to it is sent once.
  template <typename T>
  void put(const std::shared_ptr<const T>& value) {
    constexpr std::uint32_t kNull = UINT32_MAX;
    if (value == nullptr) return put(kNull);
    const auto [place, is_new] = shared_.try_emplace(value.get(), static_cast<std::uint32_t>(shared_.size()));
    put(place->second);
    if (is_new) put(*value);
  }
  template <typename T>
  requires std::is_class_v<T>
  void put(const T& value) { carry(*this, value); }

  std::string bytes_;
  std::unordered_map<const void*, std::uint32_t> shared_;
};

class PacketReader {
 public:
  /// `bytes` must outlive the reader.
  explicit PacketReader(std::string_view bytes) : left_(bytes) {}

  /// Throws FormatError if the packet ends early.
  template <typename... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  std::string_view left() const { return left_; }

 private:
  std::string_view take(std::size_t size) {
    if (size > left_.size()) throw FormatError("a packet between processes ends early");
    const std::string_view bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return bytes;
  }
  /// A number of elements that each take at least `each` bytes.
  std::size_t get_size(std::size_t each = 1) {
    std::uint64_t size = 0;
    get(size);
    if (size > left_.size() / each) throw FormatError("a packet between processes ends early");
    return static_cast<std::size_t>(size);
  }

  template <PlainValue T>
  void get(T& value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  /// The byte is checked, because a bool that is neither true nor false is undefined behaviour.
  void get(bool& value) {
    const char byte = take(1).front();
    if (byte != 0 && byte != 1) refuse_packet();
    value = byte == 1;
  }
  void get(std::string& text) { text = take(get_size()); }
  template <typename T>
  void get(std::vector<T>& values) {
    if constexpr (PlainValue<T> && !std::same_as<T, bool>) {
      values.resize(get_size(sizeof(T)));
      const std::string_view bytes = take(values.size() * sizeof(T));
      if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
      values.clear();
      for (std::size_t left = get_size(); left > 0; --left) {
        T value{};
        get(value);
        values.push_back(std::move(value));
      }
    }
  }
  template <typename T, std::size_t N>
  void get(std::array<T, N>& values) {
    for (T& value : values) get(value);
  }
  template <typename A, typename B>
  void get(std::pair<A, B>& values) {
    get(values.first);
    get(values.second);
  }
  template <typename T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    std::optional<T> fresh;  // GCC 12 warns that `value` is uninitialised
    if (there) get(fresh.emplace());
    value.swap(fresh);
  }
  template <typename T>
  void get(std::shared_ptr<const T>& value) {
    constexpr std::uint32_t kNull = UINT32_MAX;
    std::uint32_t number = kNull;
    get(number);
    value.reset();
    if (number == kNull) return;
    if (number > shared_.size()) refuse_packet();
    if (number == shared_.size()) {
      const auto made = std::make_shared<T>();
      shared_.push_back(made);
      get(*made);
    }
    value = std::static_pointer_cast<const T>(shared_[number]);
  }
  template <typename T>
  requires std::is_class_v<T>
  void get(T& value) { carry(*this, value); }

  std::string_view left_;
  std::vector<std::shared_ptr<const void>> shared_;
};

}  // namespace msprobe

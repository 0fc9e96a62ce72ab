// SPDX-License-Identifier: Apache-2.0
#include "support/packet.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace msprobe::packet_test {
namespace {

enum class Colour : std::uint8_t { red, green };

struct Inner {
  std::string text;
  std::optional<double> number;
  bool operator==(const Inner&) const = default;
};

void carry(auto& packet, Carried<Inner> auto& inner) {
  packet(inner.text, inner.number);
}

struct Base {
  int number = 0;
  bool operator==(const Base&) const = default;
};

void carry(auto& packet, Carried<Base> auto& base) {
  packet(base.number);
}

struct Outer : Base {
  Colour colour = Colour::red;
  bool flag = false;
  std::vector<Inner> list;
  std::vector<std::uint32_t> numbers;
  std::vector<bool> bits;
  std::array<std::int64_t, 3> array{};
  std::pair<std::string, std::uint8_t> pair;
  std::shared_ptr<const std::vector<std::int64_t>> one;
  std::shared_ptr<const std::vector<std::int64_t>> same;
  std::shared_ptr<const std::vector<std::int64_t>> none;
};

void carry(auto& packet, Carried<Outer> auto& outer) {
  packet(base_of<Base>(outer), outer.colour, outer.flag, outer.list, outer.numbers, outer.bits, outer.array,
         outer.pair, outer.one, outer.same, outer.none);
}

Outer example() {
  Outer outer;
  outer.number = -7;
  outer.colour = Colour::green;
  outer.flag = true;
  outer.list = {{"a", 0.1}, {std::string("\0x", 2), std::nullopt}};
  outer.numbers = {1, UINT32_MAX};
  outer.bits = {true, false, true};
  outer.array = {1, INT64_MIN, 3};
  outer.pair = {"key", 255};
  outer.one = std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{4, 5});
  outer.same = outer.one;
  return outer;
}

std::string packed(const Outer& outer) {
  PacketWriter packet;
  packet(outer);
  return packet.take();
}

}  // namespace

TEST_CASE("what was packed comes out") {
  const Outer in = example();
  const std::string bytes = packed(in);
  Outer out;
  out.list = {{"is replaced", 1.0}};
  PacketReader packet(bytes);
  packet(out);
  CHECK(packet.left().empty());
  CHECK(out.number == in.number);
  CHECK(out.colour == in.colour);
  CHECK(out.flag);
  CHECK(out.list == in.list);
  CHECK(out.numbers == in.numbers);
  CHECK(out.bits == in.bits);
  CHECK(out.array == in.array);
  CHECK(out.pair == in.pair);
  REQUIRE(out.one != nullptr);
  CHECK(*out.one == *in.one);
  CHECK(out.same == out.one);  // one list, as before
  CHECK(out.none == nullptr);
}

TEST_CASE("a packet that ends early is refused, wherever it ends") {
  const std::string bytes = packed(example());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Outer out;
    PacketReader packet(std::string_view(bytes).substr(0, size));
    CHECK_THROWS_AS(packet(out), FormatError);
  }
}

TEST_CASE("what is neither true nor false is refused") {
  for (const int byte : {2, 127, 255}) {
    const std::string bytes(1, static_cast<char>(byte));
    bool flag = false;
    CHECK_THROWS_AS(PacketReader{bytes}(flag), FormatError);
    std::optional<double> number;
    CHECK_THROWS_AS(PacketReader{bytes}(number), FormatError);
  }
}

TEST_CASE("a size beyond the packet asks for no memory") {
  PacketWriter claim;
  claim(std::numeric_limits<std::uint64_t>::max(), std::uint8_t{1});
  const std::string bytes = claim.take();
  std::string text;
  CHECK_THROWS_AS(PacketReader{bytes}(text), FormatError);
  std::vector<double> numbers;
  CHECK_THROWS_AS(PacketReader{bytes}(numbers), FormatError);
  std::vector<Inner> list;
  CHECK_THROWS_AS(PacketReader{bytes}(list), FormatError);
}

}  // namespace msprobe::packet_test

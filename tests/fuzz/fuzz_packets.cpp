// SPDX-License-Identifier: Apache-2.0
// Packets that processes of a job hand to each other. The first byte chooses a kind, the next nine change its
// packet (where, how, with what), and those that follow are its contents; for tables all bytes are changes.
// Packed values come out as they were; a packet that is cut or changed is refused, or is one of other
// contents.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "anomaly/packets.hpp"
#include "checkpoint/packets.hpp"
#include "compare/analysis/packets.hpp"
#include "compare/sinks/packets.hpp"
#include "diagnosis/packets.hpp"
#include "dump/member_stream.hpp"
#include "fuzz_target.hpp"
#include "measuring/packets.hpp"
#include "merge_result/packets.hpp"
#include "mpi/requests.hpp"
#include "report/packed_table.hpp"
#include "support/error.hpp"
#include "unit/report/fake_table.hpp"

namespace msprobe::merge_result {

void carry(PacketWriter& packet, const RankValues& rank) {
  pack_rank(rank, packet);
}

void carry(PacketReader& packet, RankValues& rank) {
  rank = unpack_rank(packet);
}

}  // namespace msprobe::merge_result

namespace {

using namespace msprobe;

/// Gives members values where a reader would read them.
class PacketFiller {
 public:
  explicit PacketFiller(std::span<const std::uint8_t> input) : left_(input) {}

  template <typename... T>
  void operator()(T&... values) {
    (fill(values), ...);
  }

 private:
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }

  template <PlainValue T>
  void fill(T& value) {
    const std::uint8_t chosen = byte();
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(chosen % 3);
    } else if constexpr (std::is_floating_point_v<T>) {
      constexpr std::array<T, 4> kOdd = {std::numeric_limits<T>::quiet_NaN(),
                                         std::numeric_limits<T>::infinity(), std::numeric_limits<T>::lowest(),
                                         T(-0.0)};
      value = chosen < 252 ? static_cast<T>(chosen) / 8 : kOdd[chosen - 252];
    } else if constexpr (std::is_same_v<T, bool>) {
      value = chosen % 2 == 1;
    } else {
      value = chosen < 255 ? static_cast<T>(chosen) : std::numeric_limits<T>::max();
    }
  }
  void fill(std::string& text) { text.assign(byte() % 5, static_cast<char>('a' + byte())); }
  template <typename T>
  void fill(std::vector<T>& values) {
    for (std::size_t count = byte() % 3; count > 0; --count) {
      T value{};
      fill(value);
      values.push_back(std::move(value));
    }
  }
  template <typename T, std::size_t N>
  void fill(std::array<T, N>& values) {
    for (T& value : values) fill(value);
  }
  template <typename A, typename B>
  void fill(std::pair<A, B>& values) {
    fill(values.first);
    fill(values.second);
  }
  template <typename T>
  void fill(std::optional<T>& value) {
    if (byte() % 2 == 1) fill(value.emplace());
  }
  /// Some of them the same.
  template <typename T>
  void fill(std::shared_ptr<const T>& value) {
    static std::shared_ptr<const T> last;
    const std::uint8_t chosen = byte() % 3;
    if (chosen == 0) return;
    if (chosen == 1 || last == nullptr) {
      const auto made = std::make_shared<T>();
      fill(*made);
      last = made;
    }
    value = last;
  }
  void fill(dump::Entry& entry) {
    constexpr std::array<std::string_view, 4> kEntries = {
        "{}", R"({"input_args": [{"Max": 1.5, "shape": [2, 3], "Max": NaN}], "output": null})",
        "[true, \"\\u00e9\", -1e9]", R"({"a": {"b": {}}, "a": [[], "text"], "b": false})"};
    entry = dump::read_json(kEntries[byte() % kEntries.size()], "an entry");
    entry.keep();
  }
  void fill(merge_result::RankValues& rank) {
    for (std::size_t count = byte() % 3; count > 0; --count)
      rank.names.emplace_back("Torch.exp.0.forward.output.0");
    for (std::size_t count = byte() % 3; count > 0; --count) {
      merge_result::RankValues::RankValue& value = rank.values.emplace_back();
      fill(value.number);
      value.text = byte() % 2 == 1 ? "unsupported" : "";
    }
  }
  template <typename T>
  requires std::is_class_v<T>
  void fill(T& value) { carry(*this, value); }

  std::span<const std::uint8_t> left_;
};

template <typename T>
std::string packed(const T& value) {
  PacketWriter packet;
  packet(value);
  return packet.take();
}

template <typename T>
void unpack(const std::string& bytes, bool right) {
  T value{};
  PacketReader packet(bytes);
  try {
    packet(value);
  } catch (const FormatError&) {
    if (right) __builtin_trap();
    return;
  }
  const std::string again = packed(value);
  if (right && (!packet.left().empty() || again != bytes)) __builtin_trap();
  T same{};
  PacketReader second(again);
  second(same);
  if (packed(same) != again) __builtin_trap();
}

constexpr std::size_t kChanges = 9;
constexpr std::size_t kEach = 3;  // bytes of a change

void change(std::string& bytes, std::span<const std::uint8_t> by) {
  constexpr std::array<std::uint64_t, 6> kNumbers = {0, 1, 2, UINT32_MAX, UINT64_MAX, std::uint64_t{1} << 61};
  if (bytes.empty()) return;
  const std::size_t at = static_cast<std::size_t>(by[0] | by[1] << 8) % bytes.size();
  switch (by[2] % 4) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes[at] = static_cast<char>(by[2] / 4);
      break;
    case 2:
      bytes.erase(at, 1 + by[2] / 4);
      break;
    default:
      for (std::size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
        bytes[at + i] = static_cast<char>(kNumbers[by[2] / 4 % kNumbers.size()] >> (8 * i));
  }
}

/// Packs the rows of a table, changes their bytes and reads them.
void try_table(std::span<const std::uint8_t> input) {
  using namespace report;
  const std::vector<std::string> frames = {"File a.py, line 1"};
  const test::FakeTable table(
      {"text", "list", "spelled", "real"},
      {{Text{"a"}, Text{"x", "[1]", &frames}, Spelled{Spelled::NumberForm::percent, 12.5, 0}, 0.5},
       {std::int64_t{-1}, Text{"y", "[]"}, true, Text{"b"}}});
  std::string bytes = pack_table(table);
  for (std::size_t at = 0; at + kEach <= input.size(); at += kEach) {
    change(bytes, input.subspan(at, kEach));
    unless_refused([&] {
      const std::shared_ptr<const Table> other = unpack_table(bytes);
      std::vector<Cell> cells;
      Scratch scratch;
      for (std::size_t i = 0; i < other->rows(); ++i) {
        other->row(i, cells, scratch);
        for (const Cell& cell : cells) plain_text(cell);
      }
    });
  }
}

template <typename T>
void try_kind(std::span<const std::uint8_t> input) {
  std::array<std::uint8_t, kChanges> changes{};
  const std::size_t given = std::min(input.size(), kChanges);
  std::copy_n(input.begin(), given, changes.begin());
  T value{};
  PacketFiller filler(input.subspan(given));
  filler(value);
  std::string bytes = packed(value);
  unpack<T>(bytes, true);
  for (std::size_t at = 0; at < kChanges; at += kEach) {
    change(bytes, std::span(changes).subspan(at, kEach));
    unpack<T>(bytes, false);
  }
}

template <typename... Kinds>
void try_one(std::size_t chosen, std::span<const std::uint8_t> input) {
  std::size_t number = 0;
  if (chosen % (sizeof...(Kinds) + 1) == sizeof...(Kinds)) return try_table(input);
  ((number++ == chosen % (sizeof...(Kinds) + 1) ? try_kind<Kinds>(input) : void()), ...);
}

}  // namespace

FUZZ_TARGET(packets)(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  try_one<anomaly::RankScan, anomaly::RootDetails, anomaly::EntryFindings, checkpoint::ParameterResult,
          compare::RankDifferences, compare::TaskSummary, compare::PackedRank, compare::SimilarName,
          diagnosis::RankFindings, measuring::MeasuredRows, merge_result::RankValues, mpi::RootRequest,
          mpi::Reply>(data[0], std::span(data, size).subspan(1));
}

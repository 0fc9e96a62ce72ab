// SPDX-License-Identifier: Apache-2.0
#include "merge_result/packets.hpp"

#include <cstring>
#include <string>
#include <string_view>

namespace msprobe::merge_result {
namespace {

using Value = RankValues::RankValue;

void carry_numbers(auto& packet, auto& value) {
  packet(value.kind, value.maxima, value.npu, value.bench, value.number);
}

void carry_rank(auto& packet, auto& rank) {
  packet(rank.rank, rank.left_out, rank.unreadable, rank.not_found, rank.indices, rank.columns, rank.npu_real,
         rank.bench_real);
}

std::string_view kept(PacketReader& packet, std::pmr::memory_resource& memory) {
  std::string text;
  packet(text);
  if (text.empty()) return {};
  char* const place = static_cast<char*>(memory.allocate(text.size(), 1));
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

}  // namespace

void pack_rank(const RankValues& rank, PacketWriter& packet) {
  carry_rank(packet, rank);
  packet(rank.names.size(), rank.values.size());
  for (const std::string_view name : rank.names) packet(std::string(name));
  for (const Value& value : rank.values) {
    carry_numbers(packet, value);
    packet(std::string(value.text));
  }
}

RankValues unpack_rank(PacketReader& packet) {
  RankValues rank;
  carry_rank(packet, rank);
  std::size_t names = 0;
  std::size_t values = 0;
  packet(names, values);
  rank.memory = std::make_unique<std::pmr::monotonic_buffer_resource>();
  for (; names > 0; --names) rank.names.push_back(kept(packet, *rank.memory));
  for (; values > 0; --values) {
    Value& value = rank.values.emplace_back();
    carry_numbers(packet, value);
    value.text = kept(packet, *rank.memory);
  }
  return rank;
}

}  // namespace msprobe::merge_result

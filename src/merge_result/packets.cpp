// SPDX-License-Identifier: Apache-2.0
#include "merge_result/packets.hpp"

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
  std::string text;
  for (; names > 0; --names) {
    packet(text);
    rank.names.push_back(rank.keep(text));
  }
  for (; values > 0; --values) {
    Value& value = rank.values.emplace_back();
    carry_numbers(packet, value);
    packet(text);
    value.text = rank.keep(text);
  }
  return rank;
}

}  // namespace msprobe::merge_result

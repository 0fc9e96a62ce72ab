// SPDX-License-Identifier: Apache-2.0
// The values of a model that ranks hold in parts: what each rank has of them, and how they make up the whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dump/side.hpp"
#include "pairing/side.hpp"

namespace msprobe::pairing {

/// How the ranks of a group hold a value.
enum class Share : std::uint8_t {
  undecided,
  copies,  // each has it
  shards,  // parts along an axis, in the order of the ranks
  sums,    // terms of a sum
};

struct Decision {
  Share share = Share::undecided;
  std::uint8_t axis = 0;   // of shards
  std::uint8_t block = 1;  // this many neighbouring ranks have the same shard
  bool differ = false;     // copies that are not equal
  bool untold = false;     // statistics that were not recorded and are not to be compared
  bool operator==(const Decision&) const = default;
};

/// The part of a value that one rank holds. Texts are numbers of the Joins' pool.
struct RankPart {
  dump::StatisticValues statistics;
  std::uint32_t rank = 0;  // of the Joins' ranks
  std::uint32_t dtype = 0;
  std::uint32_t shape = 0;
  std::uint32_t data_name = 0;  // 0: there is no data file
  dump::Placement placement;
};

/// The item of an entry with a name; null if the entry has no such item. `place`: its index if the ranks have
/// the same entry.
const Item* item_of_entry(const Side& side, const dump::Api& api, std::string_view name, std::uint32_t place);

class Joins {
 public:
  struct JoinedRank {
    std::int64_t number = 0;
    std::string tensor_directory;
  };
  explicit Joins(std::vector<JoinedRank> all) : ranks(std::move(all)) {}

  std::vector<JoinedRank> ranks;
  dump::TextPool pool;

  /// Adds a part to the next item.
  void add_part(std::uint32_t rank, const Side& side, const Item& item);
  /// Ends the next item, which now has all of its parts. An item with one part or without parts is whole.
  void end_item();

  std::size_t items() const { return ends_.size(); }
  std::span<const RankPart> parts(std::size_t item) const;
  bool is_split(std::size_t item) const { return parts(item).size() > 1; }
  Decision& decision(std::size_t item) { return decisions_[item]; }
  const Decision& decision(std::size_t item) const { return decisions_[item]; }
  std::vector<std::int64_t> numbers(std::size_t item) const;

 private:
  std::vector<RankPart> parts_;
  std::vector<std::uint32_t> ends_;  // by item
  std::vector<Decision> decisions_;
};

/// An element type whose statistics are joined, and how exact it is.
struct Precision {
  int digits = 0;  // of the mantissa; 0: the numbers stay as they are
  int least_exponent = 0;
  double largest = 0;
};
std::optional<Precision> precision_of(std::string_view dtype);
double rounded(double value, const Precision& precision);

/// The number in a statistic, if it is one.
std::optional<double> number_in(const RecordedValue& value);

/// Whether Max and Min are equal, and Mean and Norm agree to a millionth. A value that is not a number agrees
/// with everything.
bool same_statistics(const dump::StatisticValues& a, const dump::StatisticValues& b);

/// The statistic of the whole. `weights`: elements of the parts; empty: as many in each. Nothing if a part
/// has no number; `missing` if the parts do not determine it.
std::optional<RecordedValue> join_statistic(std::size_t which, std::span<const RecordedValue> values,
                                            std::span<const double> weights, Share share);

/// `[2, 3]`; nothing if it is no list of sizes.
std::optional<std::vector<std::int64_t>> axes_of(std::string_view shape);

/// The number of elements of each shard if these differ; else empty.
std::vector<double> weights_of(const Joins& joins, std::span<const RankPart> parts);

}  // namespace msprobe::pairing

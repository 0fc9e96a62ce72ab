// SPDX-License-Identifier: Apache-2.0
// The golden row of each target row: the result of every way of pairing.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "pairing/alignment.hpp"
#include "pairing/rules.hpp"
#include "pairing/side.hpp"

namespace msprobe::pairing {

inline constexpr std::uint32_t kUnmatched = UINT32_MAX;

/// Why a row has no partner.
enum class Unmatched : std::uint8_t {
  no,             // it has one
  entry_missing,  // golden has no such entry at all
  item_missing,   // it has the entry, but not this input or output
  dtype,          // the partner's dtype cannot be compared with this one
  nothing,        // there is nothing to pair: a gradient that is null, which the other framework leaves out
  other_code,     // of two code bases: golden has no such content
};

/// How the reader learns that a row's partner has another name.
enum class OtherName : std::uint8_t {
  no,
  aligned,  // both do the same at the same place
  fuzzy,    // -fm
  content,  // of two code bases: both have the same contents
};

/// A row: an item of the target and its partner. Rows without a target item, which only some comparisons have
/// (--consistent_check), show items that only golden has.
struct Pair {
  std::uint32_t target = 0;
  std::uint32_t golden = kUnmatched;
  Unmatched reason = Unmatched::no;
  std::uint32_t candidate = kUnmatched;  // a partner that it cannot have, e.g. because of its dtype
  OtherName other_name = OtherName::no;
  bool not_joined = false;     // of merged ranks: their parts do not make up golden's item
  bool copies_differ = false;  // of merged ranks: copies that should be equal differ

  bool has_target() const { return target != kUnmatched; }
  bool has_golden() const { return golden != kUnmatched; }
  bool matched() const { return has_target() && has_golden(); }
};

struct Matching {
  std::vector<Pair> pairs;        // every target item, in target order (several times where keys repeat)
  std::uint64_t golden_only = 0;  // golden items without a partner; each has no row, or a separate one
  bool mapping_applies = true;    // the mapping names something of the target; of no meaning without a file
  bool conflict = false;          // no order keeps that of both sides: rows follow the target
  std::shared_ptr<const pairing::Alignment> alignment;  // by what entries do and where, if not by name
};

/// Decides when rows of different dtypes may stay paired (docs/pairing.md, "Types").
enum class DtypeCheck {
  groups,     // of one framework: within the rules' groups
  canonical,  // as `groups`, and names of two frameworks within the rules' classes
  none,       // the user named the pairs
};
bool dtypes_match(std::string_view target, std::string_view golden, const Rules& rules,
                  DtypeCheck check = DtypeCheck::groups);

}  // namespace msprobe::pairing

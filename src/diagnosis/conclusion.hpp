// SPDX-License-Identifier: Apache-2.0
// Ranks and steps taken together: the earliest evidence, followed through communication
// (docs/how-it-decides.md, "Ranks and steps").
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "diagnosis/rank_diagnosis.hpp"

namespace msprobe::diagnosis {

struct Diagnosis {
  /// The culprit, then evidence that does not follow from it, then evidence that may follow from it, then
  /// hints; each group in order.
  std::vector<Finding> findings;
  std::size_t independent = 0;  // how many follow from no other; 0: there is no culprit
  std::array<std::uint64_t, kOrigins> counts{};
  Coverage coverage;             // of the tensors of both sides
  std::uint64_t unread = 0;      // tensors that could not be read
  std::uint64_t broken_off = 0;  // places whose evidence is weaker: something could not be read again
  std::string first_broken_off;
  std::uint64_t agreeing = 0;  // entries before the culprit, in its rank and step
  std::uint64_t rounded = 0;   // how many of these differ at all
  double largest_before = 0;   // the largest excess among them
  std::uint64_t left_out = 0;  // entries after certain evidence, which were not judged
  bool tensors = false;
  double threshold = 0;
  double largest_excess = 0;
  std::string largest_entry;
  double visible = 0;
  std::string visible_module;
  bool drifted = false;            // parameters differ before the first step that was recorded
  bool apart = false;              // they differ by more than rounding grows to in training
  std::vector<std::string> notes;  // remarks on the whole comparison, each once
  EarlyEnd early_end;              // the first one; one of the notes
  /// Where two code bases agree, in one step of one rank.
  struct Agreement {
    std::string step;
    std::string rank;
    std::string text;
    std::vector<MeetingPoint> points;
  };
  std::vector<Agreement> agreements;
  std::string doubt;  // about the matching of communication; may be empty

  bool has_culprit() const { return independent > 0; }
  /// Whether rounding explains all differences before the culprit.
  bool is_clear() const { return count(Origin::unexplained) == 0; }
  /// A culprit, or rows that differ by more than rounding explains although no rule could judge them.
  bool found_something() const { return has_culprit() || !is_clear(); }
  /// Whether everything could be judged. If not, the absence of a culprit says little.
  bool is_judged() const {
    return unread == 0 && broken_off == 0 && !apart && is_clear() && coverage.is_complete();
  }
  const Finding& culprit() const { return findings.front(); }
  /// The second independent fault, or null.
  const Finding* second() const { return independent > 1 ? &findings[1] : nullptr; }
  std::uint64_t rows() const { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }
  std::uint64_t count(Origin origin) const { return counts[static_cast<std::size_t>(origin)]; }
};

/// Finds the culprit of all ranks, which come in the order of their steps. It does not look at items any
/// more. `names_source`: operations with an argument that names the sending rank.
Diagnosis conclude(const std::vector<RankFindings>& ranks,
                   const std::set<std::string, std::less<>>& names_source = {});

}  // namespace msprobe::diagnosis

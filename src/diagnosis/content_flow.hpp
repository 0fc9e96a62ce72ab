// SPDX-License-Identifier: Apache-2.0
// One run as a graph of what is in its tensors: which call makes a content, and which take it. Names of
// entries and of places say nothing here.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/imports.hpp"
#include "dump/construct_json.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "pairing/alignment.hpp"
#include "pairing/joins.hpp"

namespace msprobe::diagnosis {

/// A tensor, however often it is recorded: views and transposes of it have the same content.
struct Content {
  std::uint32_t item = 0;       // where it is recorded first
  std::uint32_t maker = kNone;  // place in the calls; kNone: no recorded call puts it out
  std::uint64_t elements = 0;
  double max = 0;
  double min = 0;
  double mean = 0;  // NaN where it is not recorded
  double norm = 0;  // not negative
  double u = 0;     // unit roundoff of its type; 0 for integers

  /// Of what has infinities, as masked scores, the other statistics say nothing.
  bool is_finite() const { return std::isfinite(max) && std::isfinite(min) && std::isfinite(norm); }
};

bool is_same(const Content& a, const Content& b);
/// As an item has it, alone.
Content content_of(const dump::Side& side, std::uint32_t item);
/// Of shards: the whole has their elements.
Content joined(const Content& one, const Content& other);

/// How far the same tensor of two implementations is apart, as measuring::Measure has it; NaN for tensors of
/// other sizes.
double error_between(const Content& content, const Content& golden);

/// A tensor of which ranks or micro batches hold parts.
struct Joint {
  std::uint32_t whole = 0;  // contents
  std::uint32_t part = 0;
};

class ContentFlow {
 public:
  /// Of the entries in that direction that count, in the order of execution, rank by rank where `joins` says
  /// what each holds (it may be null). Modules count where they put out what no operation does. Tensors of
  /// one value, of bools and with NaN have no content. Where a call takes a part of what another one put out,
  /// or several in one, a call without an entry stands between them for the code that nobody recorded.
  ContentFlow(const dump::Side& side, const Joins* joins, dump::Direction direction,
              const std::function<bool(std::uint32_t api)>& counts);

  const dump::Side& side() const { return *side_; }
  const std::vector<Content>& contents() const { return contents_; }
  const std::vector<std::uint32_t>& calls() const { return calls_; }  // entries; kNone: unrecorded
  bool is_recorded(std::uint32_t call) const { return calls_[call] != kNone; }
  /// Contents that a call takes, each once, in the order of its inputs.
  std::span<const std::uint32_t> taken(std::uint32_t call) const { return taken_.of(call); }
  std::span<const std::uint32_t> given(std::uint32_t call) const { return given_.of(call); }
  /// Calls that take a content, in their order.
  std::span<const std::uint32_t> takers(std::uint32_t content) const { return takers_.of(content); }
  /// Of a module, or by its place in a call.
  bool is_parameter(std::uint32_t content) const { return is_parameter_[content]; }
  /// The content of an item; kNone: it has none, or no call of the flow has it.
  std::uint32_t content_of(std::uint32_t item, std::uint32_t rank = 0) const {
    return content_of_[rank][item];
  }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(content_of_.size()); }
  /// As a rank has it, whether a call of the flow does or not; nothing where it is no tensor or not known.
  std::optional<Content> described(std::uint32_t item, std::uint32_t rank) const;
  /// Does a recorded call put it out?
  bool is_made(std::uint32_t content) const {
    return contents_[content].maker != kNone && is_recorded(contents_[content].maker);
  }
  /// Where a module has it as a parameter, or kNone.
  std::uint32_t parameter_item(std::uint32_t content) const { return parameter_item_[content]; }
  /// Of the parts of ranks, and of micro batches, in their order.
  const std::vector<Joint>& joints() const { return joints_; }
  /// The first entry that puts out NaN, or kNone: nothing is known of what follows.
  std::uint32_t first_nan() const { return first_nan_; }
  /// So often every module runs.
  std::size_t micro_batches() const { return micro_batches_; }

  std::string name(std::uint32_t call) const {
    return std::string(side_->text(side_->apis[calls_[call]].name));
  }
  /// `linear` of a call of `Functional.linear`; empty for unrecorded code.
  std::string operation(std::uint32_t call) const;

 private:
  /// Lists one behind the other.
  struct Lists {
    std::vector<std::uint32_t> begin{0};
    std::vector<std::uint32_t> values;
    void close() { begin.push_back(static_cast<std::uint32_t>(values.size())); }
    std::span<const std::uint32_t> of(std::uint32_t list) const {
      return {values.data() + begin[list], values.data() + begin[list + 1]};
    }
  };
  class Index;
  class Builder;

  void find_takers();

  const dump::Side* side_;
  std::vector<Content> contents_;
  std::vector<std::uint32_t> calls_;
  Lists taken_;
  Lists given_;
  Lists takers_;
  std::vector<Joint> joints_;
  std::size_t micro_batches_ = 1;
  std::uint32_t first_nan_ = kNone;
  std::vector<std::vector<std::uint32_t>> content_of_;  // by rank and item
  const Joins* joins_ = nullptr;
  std::vector<bool> is_parameter_;  // by content
  std::vector<std::uint32_t> parameter_item_;
};

/// Of a model and its loss. What no module runs behind the first backward is that of a function of its own,
/// or of an optimizer. `construct` may be null.
ContentFlow forward_flow(const dump::Side& side, const Joins* joins, const dump::ConstructTable* construct);

}  // namespace msprobe::diagnosis

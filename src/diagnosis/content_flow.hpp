// SPDX-License-Identifier: Apache-2.0
// One run as a graph of tensor contents: which call makes a content, and which calls take it. The names of
// entries and places play no role here.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "pairing/alignment.hpp"
#include "pairing/joins.hpp"

namespace msprobe::diagnosis {

/// A tensor, however often it is recorded: its views and transposes have the same content.
struct Content {
  std::uint32_t item = 0;                // where it is recorded first
  std::uint32_t maker = pairing::kNone;  // index of the call that made it; kNone: no recorded call did
  std::uint64_t elements = 0;
  double max = 0;
  double min = 0;
  double mean = 0;  // NaN where it is not recorded
  double norm = 0;  // not negative
  double u = 0;     // unit roundoff of its type; 0 for integers

  /// Whether all statistics are finite. Where a tensor has infinities, as masked scores have, its other
  /// statistics say nothing.
  bool is_finite() const { return std::isfinite(max) && std::isfinite(min) && std::isfinite(norm); }
};

bool is_same(const Content& a, const Content& b);
/// The content of one item.
Content content_of(const dump::Side& side, std::uint32_t item);
/// The content of the whole that two shards make up.
Content joined(const Content& one, const Content& other);

/// How far the same tensor of two implementations is apart, as measuring::Measure has it; NaN for tensors of
/// other sizes.
double error_between(const Content& content, const Content& golden);

/// A tensor of which ranks or micro-batches hold parts.
struct Joint {
  std::uint32_t whole = 0;  // contents
  std::uint32_t part = 0;
};

class ContentFlow {
 public:
  /// Builds the graph from the entries of `direction` for which `counts` is true, in the order of execution.
  /// It goes rank by rank where `joins`, which may be null, says what each rank holds. A module counts where
  /// its output is not the output of an operation. Tensors of one value, of bools and with NaN have no
  /// content. Where a call takes a part of another call's output, or several outputs in one, a call without
  /// an entry links them: it represents the code that no recorder wrote.
  ContentFlow(const dump::Side& side, const pairing::Joins* joins, dump::Direction direction,
              const std::function<bool(std::uint32_t api)>& counts);

  const dump::Side& side() const { return *side_; }
  const std::vector<Content>& contents() const { return contents_; }
  const std::vector<std::uint32_t>& calls() const {
    return calls_;
  }  // by call: its entry; kNone: unrecorded code
  bool is_recorded(std::uint32_t call) const { return calls_[call] != pairing::kNone; }
  /// Contents that a call takes, each once, in the order of its inputs.
  std::span<const std::uint32_t> taken(std::uint32_t call) const { return taken_.of(call); }
  std::span<const std::uint32_t> given(std::uint32_t call) const { return given_.of(call); }
  /// Calls that take a content, in their order.
  std::span<const std::uint32_t> takers(std::uint32_t content) const { return takers_.of(content); }
  /// Whether a content is a parameter: a module has it, or its place in a call says so.
  bool is_parameter(std::uint32_t content) const { return is_parameter_[content]; }
  /// The content of an item; kNone: it has none, or no call of the flow has it.
  std::uint32_t content_of(std::uint32_t item, std::uint32_t rank = 0) const {
    return content_of_[rank][item];
  }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(content_of_.size()); }
  /// The content of an item on a rank, whether or not a call of the flow has it; nothing where the item is
  /// not a tensor or its content is not known.
  std::optional<Content> described(std::uint32_t item, std::uint32_t rank) const;
  /// Whether a recorded call made the content.
  bool is_made(std::uint32_t content) const {
    return contents_[content].maker != pairing::kNone && is_recorded(contents_[content].maker);
  }
  /// The item where a module has the content as a parameter, or kNone.
  std::uint32_t parameter_item(std::uint32_t content) const { return parameter_item_[content]; }
  /// The tensors that ranks or micro-batches hold in parts, in order.
  const std::vector<Joint>& joints() const { return joints_; }
  /// The first entry with NaN in an output, or kNone. Nothing is known about the entries after it.
  std::uint32_t first_nan() const { return first_nan_; }
  /// How often every module runs in the step.
  std::size_t micro_batches() const { return micro_batches_; }

  /// The largest unit roundoff of its contents.
  double coarsest() const;
  std::string name(std::uint32_t call) const {
    return std::string(side_->text(side_->apis[calls_[call]].name));
  }
  /// `linear` of a call of `Functional.linear`; empty for unrecorded code.
  std::string operation(std::uint32_t call) const;

 private:
  /// Several lists in one array.
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
  std::uint32_t first_nan_ = pairing::kNone;
  std::vector<std::vector<std::uint32_t>> content_of_;  // by rank and item
  const pairing::Joins* joins_ = nullptr;
  std::vector<bool> is_parameter_;  // by content
  std::vector<std::uint32_t> parameter_item_;
};

/// The flow of a model and its loss. An entry after the first backward that no module calls belongs to a
/// separate function or an optimizer, and is left out. `construct` may be null.
ContentFlow forward_flow(const dump::Side& side, const pairing::Joins* joins,
                         const dump::ConstructTable* construct);

}  // namespace msprobe::diagnosis

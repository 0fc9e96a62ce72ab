// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/megatron_merge.hpp"

#include <fmt/format.h>

#include "checkpoint/names.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

/// Each slice has two halves side by side; the result has the first halves of all slices, then the second
/// halves.
Parameter join_halves(const std::vector<Parameter>& slices, std::size_t axis) {
  std::vector<Parameter> parts;
  for (const bool second : {false, true}) {
    for (const Parameter& slice : slices) {
      const std::int64_t length = axis < slice.shape.size() ? slice.shape[axis] : 1;
      if (length % 2 != 0) {
        throw FormatError(display(slice.name), fmt::format("a gated projection of shape {} has no halves",
                                                           shape_text(slice.shape)));
      }
      parts.push_back(narrow(slice, axis, second ? length / 2 : 0, length / 2));
    }
  }
  return concatenate(parts, axis);
}

std::string replaced(std::string name, std::string_view from, std::string_view to) {
  const std::size_t at = name.rfind(from);
  if (at != std::string::npos) name.replace(at, from.size(), to);
  return name;
}

/// A first projection is gated if it has twice as many rows as the second one has columns: that holds for
/// every layout and needs no arguments.
bool is_gated(const std::string& name, const Parameter& slice, const MergeContext& context) {
  std::string second = replaced(name, "linear_fc1", "linear_fc2");
  second = replaced(std::move(second), ".bias", ".weight");
  const Parameter* sibling = context.sibling(second);
  if (sibling != nullptr && sibling->shape.size() == 2 && !slice.shape.empty()) {
    return slice.shape[0] == 2 * sibling->shape[1];
  }
  return context.gated.value_or(false);
}

/// Views a tensor with experts side by side as (local experts, rows, columns).
Parameter expert_view(const Parameter& slice, bool first_projection, std::int64_t experts) {
  const bool fits =
      slice.shape.size() == 2 && experts > 0 && slice.shape[first_projection ? 1 : 0] % experts == 0;
  if (!fits) {
    throw FormatError(display(slice.name),
                      fmt::format("{} cannot be divided into {} experts", shape_text(slice.shape), experts));
  }
  if (first_projection) return reshaped(slice, {experts, slice.shape[0], slice.shape[1] / experts});
  return reshaped(slice, {experts, slice.shape[0] / experts, slice.shape[1]});
}

Parameter merge_expert_group(const std::string& name, const std::vector<Parameter>& slices,
                             const MergeContext& context, MergeKind kind) {
  if (!context.local_experts) {
    throw FormatError(display(name), "the number of experts is unknown, so they cannot be separated");
  }
  const bool first = kind == MergeKind::experts_in;
  std::vector<Parameter> views;
  for (const Parameter& slice : slices) views.push_back(expert_view(slice, first, *context.local_experts));
  if (views.size() == 1) return views[0];
  if (!first) return concatenate(views, 1);
  const Parameter* sibling = context.sibling(replaced(name, "weight1", "weight2"));
  bool gated = context.gated.value_or(false);
  if (sibling != nullptr && sibling->shape.size() == 2) {
    gated = views[0].shape[2] == 2 * (sibling->shape[0] / *context.local_experts);
  }
  return gated ? join_halves(views, 2) : concatenate(views, 2);
}

void as_replicas(CheckpointEntry& entry, const std::string& name, const std::vector<Parameter>& slices) {
  entry.parameter = slices[0];
  for (std::size_t t = 1; t < slices.size(); ++t) {
    if (slices[t].shape != slices[0].shape || slices[t].dtype != slices[0].dtype) {
      entry.problem =
          fmt::format("its copies on the tensor-parallel ranks differ: {} {} on rank 0, {} {} on rank {}",
                      tensor::info(slices[0].dtype).name, shape_text(slices[0].shape),
                      tensor::info(slices[t].dtype).name, shape_text(slices[t].shape), t);
      return;
    }
    entry.replicas.push_back({slices[t], fmt::format("tensor-parallel rank {}", t), {}});
  }
  if (!is_known_replica(name) && !slices[0].shape.empty()) entry.slices = slices;
}

}  // namespace

CheckpointEntry merge_slices(const std::string& name, const std::vector<Parameter>& slices,
                             const MergeContext& context) {
  CheckpointEntry entry;
  try {
    const MergeKind kind = merge_kind(name);
    if (kind == MergeKind::experts_in || kind == MergeKind::experts_out) {
      entry.parameter = merge_expert_group(name, slices, context, kind);
    } else if (slices.size() == 1) {
      entry.parameter = slices[0];
    } else if (kind == MergeKind::replicated) {
      as_replicas(entry, name, slices);
    } else if (kind == MergeKind::fc1 && is_gated(name, slices[0], context)) {
      entry.parameter = join_halves(slices, 0);
    } else {
      entry.parameter = concatenate(slices, kind == MergeKind::columns ? 1 : 0);
    }
  } catch (const FormatError& error) {
    entry.parameter = slices[0];
    entry.problem = error.what();
  }
  entry.parameter.name = name;
  return entry;
}

CheckpointEntry join_expert_groups(const std::string& name, const std::vector<Parameter>& groups) {
  CheckpointEntry entry;
  try {
    entry.parameter = concatenate(groups, 0);
    const Shape& shape = entry.parameter.shape;  // (experts, rows, columns)
    entry.parameter.reported_shape = merge_kind(name) == MergeKind::experts_in
                                         ? Shape{shape[1], shape[0] * shape[2]}
                                         : Shape{shape[0] * shape[1], shape[2]};
  } catch (const FormatError& error) {
    entry.parameter = groups[0];
    entry.problem = error.what();
  }
  entry.parameter.name = name;
  return entry;
}

}  // namespace msprobe::checkpoint

// SPDX-License-Identifier: Apache-2.0
// Names of parameters: the names that Megatron's versions use for the same thing, components that programs
// and wrappers add (`state_dict.model.`, `module.`, `_orig_mod`), and the order that people expect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::checkpoint {

/// Today's name for a parameter of a Megatron checkpoint: legacy and TransformerEngine names and wrapper
/// prefixes (`module.`, `language_model.`) are mapped, component by component. `has_decoder`: some name of
/// the checkpoint has a component `decoder`, so that `encoder` is a separate part and not an old name for
/// `decoder`.
std::string megatron_name(std::string_view raw, bool has_decoder);

/// True if it is internal state of TransformerEngine and no parameter.
bool is_extra_state(std::string_view name);

/// True if it is computed from the configuration of the model, so that a checkpoint may omit it.
bool is_computed_buffer(std::string_view name);

/// True if it belongs to an expert of a mixture (not to the experts that all tokens share).
bool is_expert(std::string_view name);

/// The layer of `decoder.layers.<i>.` or `encoder.layers.<i>.` at the head of the name.
std::optional<std::int64_t> layer_of(std::string_view name);
std::string with_layer(std::string_view name, std::int64_t layer);

/// The expert of `experts.local_experts.<i>.` or of a grouped `experts.linear_fc1.weight<i>`.
std::optional<std::int64_t> expert_of(std::string_view name);
std::string with_expert(std::string_view name, std::int64_t expert);

/// One name for both ways to number experts: `experts.linear_fc1.weight3` becomes
/// `experts.local_experts.3.linear_fc1.weight`. Other names stay.
std::string expert_key(std::string_view name);

/// How slices of tensor-parallel ranks become the whole.
enum class MergeKind : std::uint8_t {
  replicated,   // every rank holds all of it, as far as the name shows
  rows,         // axis 0
  columns,      // axis 1
  fc1,          // axis 0; if gated, the halves of each slice apart
  experts_in,   // `experts.weight1`: all experts' first projections side by side
  experts_out,  // `experts.weight2`
};
MergeKind merge_kind(std::string_view name);

/// True if `replicated` is certain, so that the shapes of slices need no second look.
bool is_known_replica(std::string_view name);

/// True if the rows may be padded to a multiple that depends on the parallel layout.
bool is_vocabulary(std::string_view name);

/// True for optimizer, scheduler and random state, by the head of the name.
bool is_training_state(std::string_view name);

/// True if this head starts the names of all parameters in a record that holds more than parameters. Names
/// for which is_beside_model() is true are then state as well; elsewhere they could be modules of the model.
bool is_container(std::string_view head);
bool is_beside_model(std::string_view name);

/// Order of reports: embeddings, layers by number, everything else; numbers inside names count as numbers.
bool in_model_order(std::string_view a, std::string_view b);

/// The name without the components of wrappers that may occur anywhere in it, such as torch.compile's and
/// FSDP's. No module of a model has such a name.
std::string without_wrappers(std::string_view name);

/// Heads to be taken off, one after the other: {"state_dict", "model"}.
using Heads = std::vector<std::string_view>;

/// The name without those of the heads that it has, in their order.
std::string without_heads(std::string name, const Heads& heads);

/// Ways to read these names: first as they are, then without the components that start most of them.
std::vector<Heads> possible_heads(const std::vector<std::string>& names);

}  // namespace msprobe::checkpoint

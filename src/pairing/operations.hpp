// SPDX-License-Identifier: Apache-2.0
// Tells from the name of an operation how errors propagate through it.
#pragma once

#include <cstddef>
#include <string_view>

#include "dump/operations.hpp"

namespace msprobe::pairing {

using dump::Nature;

/// The nature of an operation, by its name alone (`add`, `__truediv__`, `Dropout`).
Nature nature_of(std::string_view operation);

/// Whether the operation has a row in data/operations.yaml.
bool is_known_operation(std::string_view operation);

/// True for norms, whose output has the same size for any input, and for operations without a row, which may
/// be norms.
bool may_normalise(std::string_view operation);

/// Arithmetic on elements, which repeats the smaller of its inputs: sums, products, quotients.
bool is_elementwise(std::string_view operation);

/// Whether the order of its two operands does not matter.
bool is_commutative(std::string_view operation);

/// Products of matrices and convolutions, which devices may compute with fewer bits than their inputs have.
bool is_product(std::string_view operation);

/// softmax and log_softmax, also with a mask or a scale.
bool is_softmax(std::string_view operation);

/// Its output is the size of what goes in, a norm of its elements.
bool gives_size(std::string_view operation);

/// A recurrent network as one operation. It has many steps, and approximates functions on a GPU, so its error
/// may be larger than that of other operations.
bool is_recurrent(std::string_view operation);

/// Between processes.
bool is_communication(std::string_view operation);

/// Is this positional input of the operation a parameter by its role?
bool is_parameter_position(std::string_view operation, std::size_t position);
bool takes_parameters(std::string_view operation);
/// Is it a running mean or variance, which no gradient trains?
bool is_running_statistic(std::string_view operation, std::size_t position);

/// Changes its first input: `add_`, `__iadd__`.
bool is_in_place(std::string_view operation);

/// Writes to its first input without reading it, all of it or some elements: `copy_`, `__setitem__`.
bool only_writes(std::string_view operation);
/// True for views: the output is the input, or a part of it, in the same memory.
bool is_view(std::string_view operation);
/// True for activations: they may work in place, and the gradient of the input is that of the output times a
/// factor for each element.
bool is_activation(std::string_view operation);

/// True for operations that only move or repeat the elements of their input.
bool only_moves(std::string_view operation);
/// Calls of one family do the same, by other names or with other settings; empty where there are many kinds
/// of one name.
std::string_view family_of(std::string_view operation);
/// Some recorders leave out operations that keep the elements as they are, or take no part of the program's
/// data.
bool is_left_out(std::string_view operation);

}  // namespace msprobe::pairing

// SPDX-License-Identifier: Apache-2.0
#include "pairing/operations.hpp"

namespace msprobe::pairing {
namespace {

using dump::find_operation;
using dump::KnownOperation;
using Kind = dump::OperationKind;

/// The row of an operation. A name without a row gets an empty one, which says nothing in particular.
const KnownOperation& row_of(std::string_view operation) {
  static constexpr KnownOperation kUnknown;
  const KnownOperation* const found = find_operation(operation);
  return found == nullptr ? kUnknown : *found;
}

bool has(dump::Positions positions, std::size_t position) {
  constexpr std::size_t kBits = 8 * sizeof positions;
  return position < kBits && (positions >> position & 1) != 0;
}

}  // namespace

Nature nature_of(std::string_view operation) {
  return row_of(operation).nature;
}

bool is_known_operation(std::string_view operation) {
  return find_operation(operation) != nullptr;
}

bool may_normalise(std::string_view operation) {
  const KnownOperation& row = row_of(operation);
  return row.kind == Kind::norm || row.kind == Kind::unknown || row.nature == Nature::normalising;
}

bool is_elementwise(std::string_view operation) {
  return row_of(operation).kind == Kind::arithmetic;
}

bool is_commutative(std::string_view operation) {
  return row_of(operation).is(KnownOperation::kCommutative);
}

bool is_product(std::string_view operation) {
  const Kind kind = row_of(operation).kind;
  return kind == Kind::product || kind == Kind::attention || kind == Kind::recurrent;
}

bool is_softmax(std::string_view operation) {
  return row_of(operation).kind == Kind::softmax;
}

bool gives_size(std::string_view operation) {
  return row_of(operation).is(KnownOperation::kSize);
}

bool is_recurrent(std::string_view operation) {
  return row_of(operation).kind == Kind::recurrent;
}

bool is_parameter_position(std::string_view operation, std::size_t position) {
  return has(row_of(operation).parameters, position);
}

bool takes_parameters(std::string_view operation) {
  return row_of(operation).parameters != 0;
}

bool is_running_statistic(std::string_view operation, std::size_t position) {
  return has(row_of(operation).running_statistics, position);
}

bool is_in_place(std::string_view operation) {
  return dump::has_in_place_mark(operation);
}

bool is_activation(std::string_view operation) {
  return row_of(operation).is(KnownOperation::kInPlaceGradient);
}

bool is_view(std::string_view operation) {
  return row_of(operation).is(KnownOperation::kView);
}

bool is_communication(std::string_view operation) {
  return row_of(operation).kind == Kind::communication;
}

bool only_moves(std::string_view operation) {
  return row_of(operation).is(KnownOperation::kView) || row_of(operation).is(KnownOperation::kMoves);
}

std::string_view family_of(std::string_view operation) {
  const KnownOperation& row = row_of(operation);
  if (row.kind == Kind::activation) return "activation";
  if (is_product(operation)) return "product";
  if (row.kind == Kind::norm || row.nature == Nature::normalising) return "norm";
  return row.is(KnownOperation::kLandmark) ? row.row : std::string_view();
}

bool is_left_out(std::string_view operation) {
  const KnownOperation& row = row_of(operation);
  return row.is(KnownOperation::kLeftOut) && row.name == operation;
}

bool only_writes(std::string_view operation) {
  return dump::has_in_place_mark(operation) && row_of(operation).is(KnownOperation::kOverwrites);
}

}  // namespace msprobe::pairing

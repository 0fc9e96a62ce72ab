// SPDX-License-Identifier: Apache-2.0
// The replay: functions that rows of data/operations.yaml name, and the arguments of a call.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "diagnosis/replay/array.hpp"
#include "diagnosis/replay/call.hpp"

namespace msprobe::diagnosis::replay {

/// The expected output.
struct Expected {
  Array value;
  /// Not empty: elements that the definition leaves open have 1.
  std::vector<std::uint8_t> open;
  /// The norm of intermediate numbers that are in effect subtracted from each other, as far as it is larger
  /// than the norm of the result. An error of 2^-24 times this norm is rounding.
  double sizes = 0;
  /// The norms of the difference and of the expected output, if the operation measures them itself.
  struct Distance {
    double difference = 0;
    double norm = 0;
  };
  std::optional<Distance> distance;
  double covered = 1;  // the part of the elements that is not open only because there are too many
};
using Results = std::vector<Expected>;

struct Operation;

/// The arguments of a call by the names that its row in data/operations.yaml gives them.
class Arguments {
 public:
  Arguments(const Call& call, const Operation& operation, std::string_view signature, bool is_reflected,
            Workspace& workspace);

  const Call& call() const { return call_; }
  const Operation& operation() const { return operation_; }
  Workspace& workspace() const { return workspace_; }

  /// Null where the argument is not given, or is None.
  const Value* find(std::string_view name);
  bool given(std::string_view name) { return find(name) != nullptr; }
  const Value& need(std::string_view name);
  /// The name of the argument at this position; NoStatement where the call cannot have one.
  std::string_view name(std::size_t position) const;
  /// Does an argument of this call have the name, given or not?
  bool has(std::string_view name) { return slot(name) != nullptr; }
  /// The outputs do not depend on these.
  void ignore(std::initializer_list<std::string_view> names);
  void ignore_all();

  Array tensor(std::string_view name);
  /// A tensor without its values, for products that read them while they compute.
  Array unread_tensor(std::string_view name);
  std::optional<Array> tensor_if_given(std::string_view name);
  /// A tensor, or a number as an array without axes.
  Array operand(std::string_view name);
  bool is_tensor(std::string_view name);
  double number(std::string_view name, double otherwise);
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  bool flag(std::string_view name, bool otherwise);
  std::string_view text(std::string_view name, std::string_view otherwise);
  /// A list of integers; one integer is a list of one.
  Shape integers(std::string_view name, Shape otherwise);
  std::optional<tensor::DType> dtype(std::string_view name);

  /// Parameters of a module.
  std::optional<Array> parameter(std::string_view name);
  Array need_parameter(std::string_view name);
  Array need_unread_parameter(std::string_view name);

  std::size_t outputs() const { return call_.outputs.size(); }
  const Tensor& output(std::size_t index) const;
  Array recorded(std::size_t index) const { return workspace_.load(output(index)); }

  /// Throws NoStatement if the call has an argument that the operation did not read.
  void finish() const;

 private:
  struct ArgumentSlot {
    std::string_view name;  // `a|b`: by the overload; empty: of more arguments than the signature lists
    bool used = false;
    const Value* value = nullptr;
  };
  ArgumentSlot* slot(std::string_view name);
  /// Null if the module has no such parameter.
  const Tensor* find_parameter(std::string_view name) const;

  const Call& call_;
  const Operation& operation_;
  Workspace& workspace_;
  std::vector<ArgumentSlot> slots_;
};

/// The function that `replay` of a row names.
struct Operation {
  std::string_view name;
  Results (*run)(Arguments&);
  double (*unary)(double) = nullptr;
  double (*binary)(double, double) = nullptr;
  /// For modules, whose settings and parameters are no arguments.
  Results (*run_module)(Arguments&) = nullptr;
};

/// The result of an operation with a single output.
Results only(Array value, double sizes = 0);

std::span<const Operation> pointwise_operations();
std::span<const Operation> product_operations();
std::span<const Operation> normalization_operations();
std::span<const Operation> index_operations();
std::span<const Operation> reduction_operations();
std::span<const Operation> loss_operations();

}  // namespace msprobe::diagnosis::replay

// SPDX-License-Identifier: Apache-2.0
// What an operation is to the replay: its names, its arguments, and how its outputs follow from them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "diagnosis/imports.hpp"
#include "diagnosis/replay/array.hpp"
#include "diagnosis/replay/call.hpp"

namespace msprobe::diagnosis::replay {

/// What an output should be.
struct Expected {
  Array value;
  /// Not empty: elements that the definition leaves open have 1.
  std::vector<std::uint8_t> open;
  /// Norm of the numbers in between that were as good as subtracted from each other, as far as it is larger
  /// than that of the result. An error of 2^-24 of it is rounding.
  double sizes = 0;
  /// Measured by the operation itself: norms of the difference and of what should be.
  struct Distance {
    double difference = 0;
    double norm = 0;
  };
  std::optional<Distance> distance;
  double covered = 1;  // the part of the elements that is not open only because there are too many
};
using Results = std::vector<Expected>;

struct Operation;

/// The arguments of a call by the names of a signature: names apart by spaces, in order of position, `a|b`
/// for one that has two names; `-` behind a name: whatever it is, the outputs do not depend on it.
class Arguments {
 public:
  Arguments(const Call& call, const Operation& operation, bool is_reflected, Workspace& workspace);

  const Call& call() const { return call_; }
  const Operation& operation() const { return operation_; }
  Workspace& workspace() const { return workspace_; }

  /// Nothing where it is not given, or is None.
  const Value* find(std::string_view name);
  bool given(std::string_view name) { return find(name) != nullptr; }
  const Value& need(std::string_view name);

  Array tensor(std::string_view name);
  /// The same without its values, for products that read them as they go.
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

  /// NoStatement if an argument was given that nobody asked for.
  void finish() const;

 private:
  struct Slot {
    std::string_view names;
    bool ignored = false;
    bool used = false;
    const Value* value = nullptr;
  };
  Slot* slot(std::string_view name);
  /// Nothing where the module has none.
  const Tensor* find_parameter(std::string_view name) const;

  const Call& call_;
  const Operation& operation_;
  Workspace& workspace_;
  std::vector<Slot> slots_;
};

/// Where a name means this operation.
enum class Where : std::uint8_t {
  torch,       // PyTorch, and MindSpore's `mint`, which follows it
  functional,  // torch.nn.functional alone, and its like in mint
  plain,       // torch and torch.Tensor, not torch.nn.functional
  methods,     // torch.Tensor alone
  anywhere,    // MindSpore's own operations of the name do the same
  npu,         // torch_npu
  module,      // a class of torch.nn, named as the operation
};

struct Operation {
  std::string_view names;  // apart by spaces
  Where where;
  std::string_view signature;
  Results (*run)(Arguments&);
  double (*unary)(double) = nullptr;
  double (*binary)(double, double) = nullptr;
};

/// A result without anything beside it.
Results only(Array value, double sizes = 0);

std::span<const Operation> pointwise_operations();
std::span<const Operation> product_operations();
std::span<const Operation> normalization_operations();
std::span<const Operation> index_operations();
std::span<const Operation> reduction_operations();
std::span<const Operation> loss_operations();

}  // namespace msprobe::diagnosis::replay

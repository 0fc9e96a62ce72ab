// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay/replay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>

#include "diagnosis/limits.hpp"
#include "diagnosis/replay/operation.hpp"
#include "dump/operations.hpp"
#include "support/memory_gate.hpp"

namespace msprobe::diagnosis::replay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The name of a function without the marks of its variants.
struct PlainName {
  std::string_view name;
  bool is_reflected = false;
  bool is_in_place = false;
};

PlainName plain_name(std::string_view name) {
  PlainName result{name};
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) {
    result.name = name.substr(2, name.size() - 4);
    // `__radd__` and `__iadd__`, but not `__round__`.
    const bool has_mark = result.name.starts_with('r') || result.name.starts_with('i');
    if (has_mark && dump::find_operation(result.name.substr(1)) != nullptr) {
      result.is_reflected = result.name.front() == 'r';
      result.is_in_place = result.name.front() == 'i';
      result.name.remove_prefix(1);
    }
  } else if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') {
    result.is_in_place = true;
    result.name.remove_suffix(1);
  }
  return result;
}

struct Found {
  const Operation* operation = nullptr;
  std::string_view signature;
};

/// Settings of a module are not recorded: it can be computed if it has none.
std::string_view module_signature(const dump::KnownOperation& row, const Operation& operation) {
  const std::string_view signature = dump::arguments_like(row, {});
  const std::string_view input = signature.substr(0, signature.find(' '));
  const bool has_none = signature == input || signature.substr(input.size()) == " inplace=False";
  const bool is_class = row.kind == dump::OperationKind::activation && has_none;
  return operation.run_module != nullptr || is_class ? input : std::string_view();
}

std::string_view signature_of(const Call& call, const dump::KnownOperation& row) {
  if (call.prefix == "Mint") return dump::arguments_of(row, "Torch");
  if (call.prefix == "MintFunctional") return dump::arguments_of(row, "Functional");
  // MindSpore's operations of the same prefix are others; of MSAdapter only `Torch` can be distinguished from
  // them.
  const bool is_foreign = call.prefix == "Aten" || (call.is_mindspore && call.prefix != "Torch");
  if (is_foreign)
    return row.is(dump::KnownOperation::kPortable) ? dump::arguments_like(row, call.prefix) : "";
  // `Distributed.gather` is no `Torch.gather`.
  return call.prefix == "Distributed" ? "" : dump::arguments_of(row, call.prefix);
}

Found find_operation(const Call& call, std::string_view name) {
  const dump::KnownOperation* const row = dump::find_operation(name);
  // A private function and a class that shares a row need not do the same.
  if (row == nullptr || row->replay.empty() || (call.is_module ? row->row : name) != row->name) return {};
  for (const auto& table : {pointwise_operations(), product_operations(), normalization_operations(),
                            index_operations(), reduction_operations(), loss_operations()}) {
    for (const Operation& operation : table) {
      if (operation.name != row->replay) continue;
      const std::string_view signature =
          call.is_module ? module_signature(*row, operation) : signature_of(call, *row);
      return {signature.empty() ? nullptr : &operation, signature};
    }
  }
  return {};
}

/// Does a recorded element that is no finite number, or stands for one, agree?
bool agrees(double recorded, double expected, double largest) {
  if (std::isnan(recorded) || std::isnan(expected)) return std::isnan(recorded) && std::isnan(expected);
  const bool same_sign = std::signbit(recorded) == std::signbit(expected);
  if (std::isinf(recorded)) return same_sign && std::fabs(expected) >= largest * (1 - kNearTheEnd);
  return same_sign && std::isfinite(expected) && std::fabs(expected) <= largest * (1 + kNearTheEnd);
}

class Judge {
 public:
  Judge(const Expected& expected, const Tensor& output, Workspace& workspace)
      : expected_(expected), output_(output) {
    // An operation that measured the distance has already read the output.
    if (!expected.distance) recorded_ = workspace.load(output);
    if (!expected.distance && expected.value.shape != output.shape) refuse_argument();
  }

  void measure(ReplayedOutput& into) const {
    const double u = unit_roundoff(output_.dtype);
    double difference = 0;
    double norm = 0;
    if (expected_.distance) {
      difference = expected_.distance->difference;
      norm = expected_.distance->norm;
    } else {
      elements(difference, norm);
    }
    double slack = 0x1p-24 * expected_.sizes;
    if (is_floating(output_.dtype)) {
      // Small numbers have fewer digits, or are taken for 0.
      const double least = output_.dtype == tensor::DType::float16 ? smallest_step(output_.dtype)
                                                                   : smallest_normal(output_.dtype);
      slack += least * std::sqrt(static_cast<double>(output_.size()));
    }
    into.tolerance = kFew * u + kRightKernel + (norm > 0 ? slack / norm : 0);
    if (norm > 0) {
      into.r = difference / norm;
    } else {
      into.r = difference <= slack ? 0 : kInfinity;
    }
    into.covered = expected_.covered;
    into.status = Status::computed;
  }

 private:
  void elements(double& difference, double& norm) const {
    const bool is_bool = tensor::info(recorded_.dtype).kind == tensor::DTypeKind::boolean;
    const bool is_integer = tensor::info(recorded_.dtype).kind == tensor::DTypeKind::integer;
    const double largest = is_floating(recorded_.dtype) ? largest_of(recorded_.dtype) : kInfinity;
    const bool is_unsigned = is_integer && tensor::info(recorded_.dtype).name.starts_with('u');
    const int bits = std::min(static_cast<int>(8 * tensor::info(recorded_.dtype).size), 53);
    const double most_integer = std::ldexp(1.0, is_unsigned ? bits : bits - 1) - 1;
    const double least_integer = is_unsigned ? 0 : -most_integer - 1;
    double squares = 0;
    double squared_norm = 0;
    bool disagree = false;
    for (std::size_t i = 0; i < recorded_.size(); ++i) {
      if (!expected_.open.empty() && expected_.open[i] != 0) continue;
      const double y = recorded_.values[i];
      double f = expected_.value.values[i];
      if (is_bool) f = f != 0 ? 1 : 0;
      if (is_integer) {
        // The result of a type for numbers beyond its range does not depend on the operation.
        if (!std::isfinite(f) || f < least_integer || f > most_integer) refuse_argument();
        f = std::trunc(f);
      }
      if (!std::isfinite(y) || !std::isfinite(f) || std::fabs(f) > largest) {
        disagree = disagree || !agrees(y, f, largest);
        continue;
      }
      squares += (y - f) * (y - f);
      squared_norm += f * f;
    }
    difference = disagree ? kInfinity : std::sqrt(squares);
    norm = std::sqrt(squared_norm);
  }

  const Expected& expected_;
  const Tensor& output_;
  Array recorded_;
};

/// An operation in place whose input was read after it: input and output are one.
bool input_is_output(const Call& call, const Tensor& output, Workspace& workspace) {
  for (const Value& value : call.positional) {
    if (value.kind != Value::ValueForm::tensor) continue;
    if (value.tensor.shape != output.shape) return false;
    return workspace.load(value.tensor).values == workspace.load(output).values;
  }
  return false;
}

bool may_be_in_place(const Call& call, const PlainName& name) {
  return call.is_module || name.is_in_place ||
         std::any_of(call.keywords.begin(), call.keywords.end(), [](const NamedValue& keyword) {
           return keyword.name == "inplace" && keyword.value.number != 0;
         });
}

void judge(const Call& call, const PlainName& name, const Expected& expected, std::size_t index,
           Workspace& workspace, ReplayedOutput& into) {
  const Tensor& output = call.outputs[index].tensor;
  Judge(expected, output, workspace).measure(into);
  if (into.r > into.tolerance && may_be_in_place(call, name) && input_is_output(call, output, workspace)) {
    throw NoStatement(Status::argument_not_recorded);
  }
}

/// Calls of all ranks together hold no more than one may.
MemoryGate& gate() {
  static MemoryGate gate(ReplayLimits().elements);
  return gate;
}

void add_elements(const Value& value, std::uint64_t& elements) {
  if (value.kind == Value::ValueForm::tensor &&
      __builtin_add_overflow(elements, value.tensor.size(), &elements))
    elements = UINT64_MAX;
  for (const Value& item : value.items) add_elements(item, elements);
}

/// About how many elements will be in memory: those of all tensors, and of the outputs once more.
std::uint64_t elements_of(const Call& call) {
  std::uint64_t elements = 0;
  for (const Value& value : call.positional) add_elements(value, elements);
  for (const NamedValue& keyword : call.keywords) add_elements(keyword.value, elements);
  for (const NamedValue& parameter : call.parameters) add_elements(parameter.value, elements);
  for (const Output& output : call.outputs) {
    if (__builtin_add_overflow(elements, output.tensor.size(), &elements) ||
        __builtin_add_overflow(elements, output.tensor.size(), &elements))
      elements = UINT64_MAX;
  }
  return elements;
}

void set_all(ReplayResult& result, Status status, const std::string& reason) {
  for (ReplayedOutput& output : result) {
    output.status = status;
    output.reason = reason;
  }
}

}  // namespace

std::string_view to_text(Status status) {
  constexpr std::array<std::string_view, 7> kTexts = {
      "computed", "unknown operation", "unknown argument", "argument not recorded",
      "random",   "too large",         "broken off"};
  return kTexts[static_cast<std::size_t>(status)];
}

ReplayResult replay(const Call& call, const ReplayLimits& limits) {
  ReplayResult result;
  for (const Output& output : call.outputs) {
    ReplayedOutput replayed;
    replayed.place = output.place;
    result.push_back(std::move(replayed));
  }
  const PlainName name = call.is_module ? PlainName{call.operation} : plain_name(call.operation);
  const auto [operation, signature] = find_operation(call, name.name);
  if (operation == nullptr || result.empty()) return result;
  try {
    const MemoryGate::Pass pass(gate(), std::min(elements_of(call), limits.elements));
    Workspace workspace(limits);
    Arguments arguments(call, *operation, signature, name.is_reflected, workspace);
    const auto run =
        call.is_module && operation->run_module != nullptr ? operation->run_module : operation->run;
    const Results expected = run(arguments);
    arguments.finish();
    if (expected.size() < result.size()) refuse_argument();
    for (std::size_t i = 0; i < result.size(); ++i) {
      try {
        judge(call, name, expected[i], i, workspace, result[i]);
      } catch (const NoStatement& reason) {
        result[i].status = reason.status();
        result[i].reason = reason.reason();
      }
    }
  } catch (const NoStatement& reason) {
    set_all(result, reason.status(), reason.reason());
  } catch (const std::bad_alloc&) {
    set_all(result, Status::broken_off, "not enough memory");
  }
  return result;
}

ReplayResult replay_entry(std::string_view name, const dump::Entry& entry, const std::string& directory,
                          const ReplayLimits& limits) {
  const std::optional<Call> call = read_call(name, entry, directory);
  return call ? replay(*call, limits) : ReplayResult();
}

}  // namespace msprobe::diagnosis::replay

// SPDX-License-Identifier: Apache-2.0
// One recorded call of an operation, as its entry of a dump describes it: its name, arguments and outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dump/entry.hpp"
#include "formats/stored_tensor.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::diagnosis::replay {

/// A recorded tensor. Its elements are read when they are asked for.
struct Tensor {
  std::vector<std::int64_t> shape;
  tensor::DType dtype = tensor::DType::float32;  // as the entry has it; the file may be wider
  bool plain = true;  // false: a shard, a nested tensor, a type that we do not know
  /// Opens the file; empty if the tensor has no file. Throws IoError or FormatError.
  std::function<formats::StoredTensor()> open;

  /// Product of the shape; UINT64_MAX if that is too large to say.
  std::uint64_t size() const;
};

/// An argument.
struct Value {
  enum class ValueForm : std::uint8_t {
    none,  // also objects that the collector cannot name
    boolean,
    integer,
    real,
    text,
    dtype,
    tensor,
    list,
    other,
  };
  ValueForm kind = ValueForm::none;
  double number = 0;  // of boolean, integer and real
  std::string text;
  tensor::DType dtype = tensor::DType::float32;
  Tensor tensor;
  std::vector<Value> items;

  bool is_number() const {
    return kind == ValueForm::boolean || kind == ValueForm::integer || kind == ValueForm::real;
  }
};

struct NamedValue {
  std::string name;
  Value value;
};

struct Output {
  std::string place;  // `output.0`, `output.1.values`
  Tensor tensor;
};

struct Call {
  std::string prefix;     // `Functional`; `Module` or `Cell` for modules
  std::string operation;  // `linear`, `__iadd__`; the class of a module
  bool is_module = false;
  bool is_mindspore = false;  // its tensors are MindSpore's
  bool has_inputs = false;    // whether the entry has the arguments
  bool has_parameters = false;
  std::vector<Value> positional;
  std::vector<NamedValue> keywords;
  std::vector<NamedValue> parameters;
  std::vector<Output> outputs;  // the tensors among the results, in order
};

/// The call of a forward entry; nothing for entries of other kinds. `directory` holds its tensors
/// (`dump_tensor_data`). Nothing of the entry is kept.
std::optional<Call> read_call(std::string_view name, const dump::Entry& entry, const std::string& directory);

}  // namespace msprobe::diagnosis::replay

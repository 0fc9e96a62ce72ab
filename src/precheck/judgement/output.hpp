// SPDX-License-Identifier: Apache-2.0
// The outputs of a call, and the judgement on them: this header separates the code that makes calls from the
// code that judges them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tensor/dtype.hpp"

namespace msprobe::precheck {

/// `Torch.matmul.0`: what was called, without direction.
struct ApiName {
  std::string type;    // "Torch", "Tensor", "Functional", …
  std::string name;    // "matmul", "linalg.inv"
  std::string number;  // "0"

  std::string text() const { return type + '.' + name + '.' + number; }
};

enum class CallDirection : std::uint8_t { forward, backward };

/// Elements in row-major order, little-endian. The bytes belong to the caller, and are as many as the shape
/// asks for.
struct TensorOutput {
  tensor::DType dtype = tensor::DType::float32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

/// `repr` is what Python prints, so that integers of any size and all texts can be compared; `real` serves
/// floats.
struct ScalarOutput {
  enum class ScalarKind : std::uint8_t { boolean, integer, real, text };
  ScalarKind kind = ScalarKind::integer;
  std::string repr;
  double real = 0;
};

/// A value of a type that is not judged; `type` as Python prints it: `<class 'set'>`.
struct OtherOutput {
  std::string type;
};

/// One of: None, a tensor, a Python scalar, a list (or tuple) of outputs, something else.
struct CallOutput {
  struct List {
    std::vector<CallOutput> elements;
    bool tuple = false;
  };
  std::variant<std::monostate, TensorOutput, ScalarOutput, List, OtherOutput> value;
};

/// The release whose choice of criteria the figures follow.
enum class Selection : std::uint8_t { release_8, release_26 };

/// The status of the Python tool, which knows no other; its words are in result_files.
enum class PythonStatus : std::uint8_t { none, pass, warning, error, skip };

/// msprobe's verdict, from better to worse. An output that could not be judged is `skip`, never `pass`.
enum class PrecheckVerdict : std::uint8_t { none, pass, skip, warning, error };

/// The numbers of a details file, in the order of its columns.
enum class Figure : std::uint8_t {
  cosine,
  max_absolute,
  hundredth,  // shares of elements with a relative error below 1 %, 0.1 %, 0.01 %
  thousandth,
  ten_thousandth,
  binary,  // share of elements that differ
  balance,
  rmse,
  small_share,
  max_relative,
  mean_relative,
  inf_nan_rate,
  relative_rate,
  absolute_rate,
  max_ulp,
  mean_ulp,
  ulp_share,
};
inline constexpr std::size_t kFigureCount = static_cast<std::size_t>(Figure::ulp_share) + 1;

/// A number, and the type that it had in the Python tool, which decides how its files spell it.
struct FigureValue {
  enum class Form : std::uint8_t { blank, real, single, integer, text };
  Form form = Form::blank;
  double value = 0;
  std::string text;  // in place of a number
};

/// A row of the details file.
struct OutputRow {
  std::string name;             // "Torch.matmul.0.forward.output.0"
  std::string reference_dtype;  // as the Python tool writes them; empty: a blank column
  std::string device_dtype;
  std::string shape;
  std::array<FigureValue, kFigureCount> figures;
  PythonStatus status = PythonStatus::none;
  std::string message;
  PrecheckVerdict verdict = PrecheckVerdict::none;
  std::string reason;      // of a verdict that is not `pass`, and of a pass that needs one; one line
  bool only_ours = false;  // the Python tool has no such row, and files of its columns alone do not get it

  FigureValue& operator[](Figure figure) { return figures[static_cast<std::size_t>(figure)]; }
  const FigureValue& operator[](Figure figure) const { return figures[static_cast<std::size_t>(figure)]; }
};

/// One direction of one call.
struct CallJudgement {
  std::vector<OutputRow> rows;
  PythonStatus status = PythonStatus::none;
  PrecheckVerdict verdict = PrecheckVerdict::none;  // the worst of all outputs
  std::string reason;                               // of the first output that is as bad
};

/// The tensors that went into the call, as far as the judgement needs them.
struct InputFacts {
  bool float8_input = false;
  /// The largest finite magnitude among them; 0: not known. An error that is no larger than a rounding of the
  /// inputs counts as a warning, because sums that cancel have such results.
  double input_scale = 0;
};

class Standards;

/// Judges the outputs of a call. It never throws because of their contents, and takes a few KB of memory
/// besides them.
CallJudgement judge(const ApiName& api, CallDirection direction, const CallOutput& reference,
                    const CallOutput& device, const Standards& standards, Selection selection,
                    const InputFacts& inputs = {});

}  // namespace msprobe::precheck

// SPDX-License-Identifier: Apache-2.0
// Converts kernel dumps and tensor files: the options and the results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/element_values.hpp"
#include "formats/tensor_writer.hpp"
#include "support/progress.hpp"
#include "tensor/dtype.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::parse {

struct ParseOptions {
  std::string input;  // a file or a folder
  formats::OutputFormat format = formats::OutputFormat::pt;
  std::string output_directory = "./output";
  bool recursive = false;
  /// Files that no known ending names are bare elements of this type.
  std::optional<tensor::DType> raw_dtype;
  std::optional<std::vector<std::int64_t>> raw_shape;  // else one axis with all elements
};

/// One tensor (or stretch of bytes) of an input.
struct TensorResult {
  std::string name;                 // in its file; empty: the only one
  std::string output;               // below the output folder; empty: not written
  std::string dtype;                // as stored; empty for bytes that are not a tensor
  std::string written_dtype;        // a different type if the output lacks the stored one
  std::vector<std::int64_t> shape;  // as written
  std::optional<tensor::Statistics> statistics;
  std::optional<formats::IntegerRange> range;  // of integers
  std::string problem;                         // why it was not converted
};

struct FileResult {
  std::string file;  // below the input folder
  std::vector<TensorResult> tensors;
  std::string problem;  // with the file as a whole
  bool failed() const;
};

struct ParseReport {
  std::vector<FileResult> files;     // sorted by name
  std::vector<std::string> skipped;  // notes and tables beside the dumps, recognized by extension
  std::string failed_list;           // lists the failed files; empty: no file failed, or one file was given
  std::size_t failures() const;
};

/// Converts as much as possible. Throws Error only if nothing can be done at all (no such input, no place for
/// the output).
ParseReport parse(const ParseOptions& options, Progress* progress);

}  // namespace msprobe::parse

// SPDX-License-Identifier: Apache-2.0
// The output of the shell's commands cn and pt: the elements of one tensor, and of two side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/stored_tensor.hpp"

namespace msprobe::parse {

/// The tensor of a file in any format that msprobe reads. FormatError if the file holds no tensor or several.
formats::StoredTensor open_single(const std::string& path);

/// `[Shape: (2, 3)] [Dtype: float32] [Max: 3.0] [Min: 0.0] [Mean: 1.5]`; a NaN makes all of them NaN, as in
/// NumPy. FormatError for a tensor without elements.
std::string specification(const formats::StoredTensor& tensor, const std::string& path);

/// Writes every element as C's `%g`, one line for each row of the last axis, unless the file exists already.
/// Returns whether it was written.
bool save_as_text(const formats::StoredTensor& tensor, const std::string& path);

/// The command pt.
std::string show_tensor(const std::string& path);

struct ElementRow {
  std::uint64_t index = 0;
  float left = 0;
  float right = 0;
  float difference = 0;
};

struct ElementComparison {
  std::uint64_t count = 0;
  bool all_close = true;
  double cosine = 0;
  std::uint64_t wrong = 0;  // |left - right| > absolute + relative * |right|; never for NaN
  std::uint64_t nan = 0;    // elements where either side is NaN
  std::vector<ElementRow> first;
  std::vector<ElementRow> first_wrong;
};

struct ElementTolerance {
  double absolute = 0.001;
  double relative = 0.001;
};

/// Compares both sides as float32, flattened; the shorter one is extended with zeros. At most `rows` rows in
/// each list.
ElementComparison compare_elements(const formats::StoredTensor& left, const formats::StoredTensor& right,
                                   const ElementTolerance& tolerance, std::size_t rows);

struct CompareRequest {
  std::string left;
  std::string right;
  std::size_t rows = 20;
  ElementTolerance tolerance;
  bool save = false;
};

/// The command cn.
std::string compare_files(const CompareRequest& request);

}  // namespace msprobe::parse

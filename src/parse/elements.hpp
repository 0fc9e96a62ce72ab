// SPDX-License-Identifier: Apache-2.0
// What cn and pt of the shell show: the elements of one tensor, and those of two side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/stored_tensor.hpp"

namespace msprobe::parse {

/// The one tensor of a file that the suite reads. FormatError if the file holds none or several.
formats::StoredTensor open_single(const std::string& path);

/// `[Shape: (2, 3)] [Dtype: float32] [Max: 3.0] [Min: 0.0] [Mean: 1.5]`; NaN spreads, as in NumPy.
/// FormatError for a tensor without elements.
std::string specification(const formats::StoredTensor& tensor, const std::string& path);

/// Writes every element as C's `%g`, one line for each row of the last axis, unless the file is there
/// already. Returns whether it was written.
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
  std::uint64_t wrong = 0;  // |left - right| > absolute + relative * |right|; NaN is never counted
  std::uint64_t nan = 0;    // elements where either side is NaN
  std::vector<ElementRow> first;
  std::vector<ElementRow> first_wrong;
};

struct Tolerance {
  double absolute = 0.001;
  double relative = 0.001;
};

/// Both sides as float32, flattened; the shorter one is filled up with zeros. At most `rows` of each list.
ElementComparison compare_elements(const formats::StoredTensor& left, const formats::StoredTensor& right,
                                   const Tolerance& tolerance, std::size_t rows);

struct CompareRequest {
  std::string left;
  std::string right;
  std::size_t rows = 20;
  Tolerance tolerance;
  bool save = false;
};

/// The command cn.
std::string compare_files(const CompareRequest& request);

}  // namespace msprobe::parse

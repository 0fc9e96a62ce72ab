// SPDX-License-Identifier: Apache-2.0
// Converts one input file to its results.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parse/find_files.hpp"
#include "parse/parse.hpp"

namespace msprobe::parse {

/// A result that got a shorter name because its own was too long.
struct RenamedResult {
  std::string now;
  std::string wanted;
};

/// Converts the files of one run; safe to use from several threads.
class Converter {
 public:
  /// Both arguments must outlive the converter.
  Converter(const ParseOptions& options, const InputFiles& inputs);
  ~Converter();
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  /// Converts one file; the result contains any error. Throws Interrupted only.
  FileResult convert(const std::string& name, std::vector<RenamedResult>& renamed);

 private:
  struct Shared;
  class Job;
  std::unique_ptr<Shared> shared_;
};

/// True if the results of this file are named by its stem (`x.bin` and `x.pt` both give `x.npy`), not by its
/// whole name.
bool named_by_stem(const std::string& name, const ParseOptions& options);

}  // namespace msprobe::parse

// SPDX-License-Identifier: Apache-2.0
// One input file to its results.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parse/find_files.hpp"
#include "parse/parse.hpp"

namespace msprobe::parse {

/// A result whose name would have been too long.
struct RenamedResult {
  std::string now;
  std::string wanted;
};

/// Converts the files of one run; safe to use from several threads.
class Converter {
 public:
  /// Both must outlive it.
  Converter(const ParseOptions& options, const InputFiles& inputs);
  ~Converter();
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  /// Converts one file; what goes wrong with it stands in the result. Throws Interrupted only.
  FileResult convert(const std::string& name, std::vector<RenamedResult>& renamed);

 private:
  struct Shared;
  class Job;
  std::unique_ptr<Shared> shared_;
};

/// Are results of this file called by its stem (`x.bin` and `x.pt` both give `x.npy`), not by its whole name?
bool named_by_stem(const std::string& name, const ParseOptions& options);

}  // namespace msprobe::parse

// SPDX-License-Identifier: Apache-2.0
// The findings of inspect about a path: plain data, which the two renderers print.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/element_values.hpp"
#include "formats/pickle_rating.hpp"
#include "support/byte_source.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::inspect {

using formats::Rating;

struct TensorFacts {
  std::string name;  // empty for the only tensor of its file
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;  // in elements
  std::int64_t elements = 0;
  std::uint64_t bytes = 0;
  bool big_endian = false;
  bool conjugate = false;
  bool negative = false;
  std::shared_ptr<const tensor::Statistics> statistics;  // nullptr: not requested
  std::optional<formats::IntegerRange> range;            // of integers, if statistics were requested
  std::vector<std::string> first;
  /// For a part of a tensor that is spread over ranks: the shape of the whole tensor, and the position of the
  /// part in it.
  std::vector<std::int64_t> whole;
  std::vector<std::int64_t> begin;
  std::string problem;  // why it could not be read; then only the name is certain
};

struct GlobalFacts {
  std::string name;
  std::string where;  // member of an archive; empty: the file itself
  std::uint64_t offset = 0;
  bool called = false;
  Rating rating = Rating::unknown;
};

/// Content of a file besides tensors and names of pickles that may act: code, or bytes that msprobe does not
/// understand.
struct ContentFacts {
  std::string what;   // "Python source", "not recognized"
  std::string where;  // member of an archive; empty: the file itself
  Rating rating = Rating::unknown;
};

struct FileFacts {
  std::string container;
  std::uint64_t size = 0;
  std::vector<TensorFacts> tensors;
  bool single = false;                                        // one tensor, described in full
  std::string holds;                                          // for a pickle: the kind of its outermost value
  std::vector<std::pair<std::string, std::string>> values;    // of its outermost dict: no tensors
  std::vector<std::pair<std::string, std::string>> metadata;  // of a safetensors file
  bool has_pickle = false;
  std::vector<GlobalFacts> globals;
  std::vector<ContentFacts> contents;

  /// The worst rating among the findings.
  Rating rating() const;
};

struct RankFacts {
  std::string label;
  std::string json;  // path of dump.json or debug.json
  std::string task;
  std::string level;
  std::string framework;
  std::uint64_t entries = 0;
  std::uint64_t tensors = 0;                        // number of values with a dtype
  std::map<std::string, std::uint64_t> types;       // Functional, Module, …
  std::map<std::string, std::uint64_t> directions;  // forward, backward, …
  std::uint64_t named_files = 0;                    // number of data_name members
  std::uint64_t files = 0;                          // number of files in dump_tensor_data
  std::vector<std::string> absent;                  // those of stack.json and construct.json that are missing
  std::vector<std::string> missing_files;           // named in the dump but missing; the first kMostNames
  std::uint64_t missing_count = 0;
  std::vector<std::string> stray_files;  // present but not named in the dump; the first kMostNames
  std::uint64_t stray_count = 0;
  std::string problem;
};
inline constexpr std::size_t kMostNames = 10;

struct StepFacts {
  std::string label;
  std::vector<RankFacts> ranks;
  std::vector<std::string> missing_ranks;  // ranks that other steps have, or that leave a gap in the numbers
};

struct TreeFacts {
  std::string kind;  // "file", "rank", "step", "root"
  std::vector<StepFacts> steps;
};

/// For a folder that is a checkpoint: its parameters, with the names that ckpt_compare uses.
struct CheckpointFacts {
  std::string format;
  std::uint64_t parameters = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::map<std::string, std::uint64_t> types;  // float32, …
  std::vector<std::string> warnings;
  std::vector<std::string> unreadable;  // parameters and reasons; the first kMostNames
  std::uint64_t unreadable_count = 0;
};

/// A file below a folder that is not known to be harmless.
struct RatedFile {
  std::string path;  // relative to the folder
  Rating rating = Rating::unknown;
  std::vector<std::string> reasons;  // the worst first; the first kMostReasons
  std::uint64_t reason_count = 0;
  std::string problem;  // why it could not be read completely
};
inline constexpr std::size_t kMostReasons = 3;

/// For a folder whose files were all rated.
struct RatedFolder {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t ok = 0;
  std::uint64_t unknown = 0;
  std::uint64_t dangerous = 0;
  std::uint64_t empty = 0;        // files without a byte
  std::uint64_t unfinished = 0;   // files with a problem, regardless of their rating
  std::vector<RatedFile> listed;  // by path; all files that are not ok

  Rating rating() const {
    return dangerous > 0 ? Rating::dangerous : unknown > 0 ? Rating::unknown : Rating::ok;
  }
};

struct PathFacts {
  std::string path;
  std::optional<FileFacts> file;
  std::optional<CheckpointFacts> checkpoint;
  std::optional<TreeFacts> tree;
  std::optional<RatedFolder> rated;
  std::vector<std::string> problems;  // what could not be inspected, and why
  std::vector<std::string> warnings;  // what was rated but not described

  bool failed() const;
};

struct Options {
  bool all_statistics = false;  // also for each tensor of a file with several
  std::size_t first = 8;        // number of elements shown
  bool rate = false;            // rate every file of a folder, too
};

/// Inspects the path; problems with the path itself go into `problems`.
PathFacts inspect_path(const std::string& path, const Options& options);

/// The message without the file's name, which the output shows already.
std::string without_path(const std::string& message, const std::string& path);

// The parts of inspect_path().
void inspect_file(const std::string& path, const Options& options, PathFacts& facts);
void inspect_tree(const std::string& path, PathFacts& facts);
void inspect_checkpoint(const std::string& path, PathFacts& facts);
/// Rates every file below the folder by its content.
void rate_folder(const std::string& path, PathFacts& facts);
/// Rates a file without listing its tensors. A file that is neither a tensor file nor a pickle is rated by
/// its kind and its name.
void rate_file(const std::shared_ptr<const ByteSource>& source, PathFacts& facts);

/// The findings as text, without the problems of the path itself. Empty if there is nothing else.
std::string to_text(const PathFacts& facts, bool color);
/// One JSON document: an object for a single path, or an array of objects. `write` receives it in pieces.
void to_json(const std::vector<PathFacts>& facts, const std::function<void(const std::string&)>& write);

}  // namespace msprobe::inspect

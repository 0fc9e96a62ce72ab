// SPDX-License-Identifier: Apache-2.0
#include "graph/request.hpp"

#include "comparison/request/request.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::graph {

GraphRequest read_graph_request(const std::string& path) {
  const compare::Request request(path);
  // A null says that there is none.
  const auto path_at = [&](const char* key) {
    const auto found = request.json().find(key);
    return found != request.json().end() && found->is_null() ? std::string() : request.text(key, false);
  };
  GraphRequest result;
  result.target = path_at("npu_path");
  if (result.target.empty()) throw FormatError(display(path), "Missing npu_path");
  result.golden = path_at("bench_path");
  result.print_rows = request.flag("is_print_compare_log", result.print_rows);
  if (request.json().contains("parallel_merge")) {
    throw FormatError(display(path),
                      "parallel_merge is not read from here: name the sizes with --rank_size, --tp and --pp");
  }
  return result;
}

}  // namespace msprobe::graph

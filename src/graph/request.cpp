// SPDX-License-Identifier: Apache-2.0
#include "graph/request.hpp"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

constexpr std::uint64_t kMostRequestBytes = std::uint64_t{1} << 20;

/// Empty if it is not there.
std::string path_of(const nlohmann::json& request, const char* key, const std::string& file) {
  const auto found = request.find(key);
  if (found == request.end() || found->is_null()) return {};
  if (!found->is_string()) throw FormatError(display(file), std::string(key) + " must be text");
  return found->get<std::string>();
}

}  // namespace

GraphRequest read_graph_request(const std::string& path) {
  const std::vector<std::byte> bytes = read_all(*open_file(path), kMostRequestBytes);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const nlohmann::json request = nlohmann::json::parse(text, text + bytes.size(), nullptr, false);
  if (!request.is_object()) throw FormatError(display(path), "not a JSON object");
  GraphRequest result;
  result.target = path_of(request, "npu_path", path);
  if (result.target.empty()) throw FormatError(display(path), "Missing npu_path");
  result.golden = path_of(request, "bench_path", path);
  if (const auto print = request.find("is_print_compare_log"); print != request.end()) {
    if (!print->is_boolean()) throw FormatError(display(path), "is_print_compare_log must be true or false");
    result.print_rows = print->get<bool>();
  }
  if (request.contains("parallel_merge")) {
    throw FormatError(display(path),
                      "parallel_merge is not read from here: name the sizes with --rank_size, --tp and --pp");
  }
  return result;
}

}  // namespace msprobe::graph

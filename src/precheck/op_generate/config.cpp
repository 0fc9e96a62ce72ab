// SPDX-License-Identifier: Apache-2.0
#include "precheck/op_generate/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

using dump::Entry;
using dump::NodeKind;

constexpr std::uint64_t kMaxCaseConfig = std::uint64_t{1} << 20;

class CaseConfig {
 public:
  CaseConfig(const std::string& path, const Entry& entry) : path_(path), entry_(entry) {}

  std::string text(std::string_view key) const {
    const Entry::Index node = entry_.find(0, key);
    if (node == Entry::kNone || entry_.is(node, NodeKind::null)) return {};
    if (!entry_.is(node, NodeKind::string)) fail(key, "must be text");
    return std::string(entry_.text(node));
  }

  /// The number of a key; nothing if the key is missing.
  std::optional<std::uint32_t> number(std::string_view key, std::uint32_t least, std::uint32_t most) const {
    const Entry::Index node = entry_.find(0, key);
    if (node == Entry::kNone || entry_.is(node, NodeKind::null)) return std::nullopt;
    const auto value = entry_.integer(node);
    if (!value || *value < least || *value > most)
      fail(key, fmt::format("must be a whole number from {} to {}", least, most));
    return static_cast<std::uint32_t>(*value);
  }

  std::string choice(std::string_view key, std::array<std::string_view, 2> choices) const {
    std::string value = text(key);
    if (!value.empty() && std::find(choices.begin(), choices.end(), value) == choices.end())
      fail(key, fmt::format("'{}' must be {} or {}", display(value), choices[0], choices[1]));
    return value;
  }

  [[noreturn]] void fail(std::string_view key, const std::string& reason) const {
    throw FormatError(path_, fmt::format("{}: {}", key, reason));
  }

 private:
  const std::string& path_;
  const Entry& entry_;
};

}  // namespace

CaseRequest read_case_config(const std::string& path) {
  const Entry entry = dump::read_json(read_all(*open_file(path), kMaxCaseConfig), path);
  if (!entry.is(0, NodeKind::object)) throw FormatError(path, "it is not a JSON object");
  const CaseConfig config(path, entry);
  CaseRequest request;
  request.dump_json = config.text("dump_json_path");
  request.extract = config.text("extract_api_path");
  request.api = config.text("api_name");
  if (request.api.empty()) config.fail("api_name", "is missing: it names the operation");
  if (request.dump_json.empty() && request.extract.empty())
    config.fail("dump_json_path", "is missing, and so is extract_api_path");
  request.backward = config.choice("propagation", {"forward", "backward"}) == "backward";
  request.needs_backward = request.backward;
  const std::string data = config.choice("data_mode", {"random_data", "real_data"});
  request.data = data == "random_data" ? CaseData::random
                 : data == "real_data" ? CaseData::real
                                       : CaseData::automatic;
  request.seed = config.number("random_seed", 0, UINT32_MAX);
  request.iterations = config.number("iter_times", 1, kMostIterations).value_or(1);
  return request;
}

}  // namespace msprobe::precheck

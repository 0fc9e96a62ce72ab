// SPDX-License-Identifier: Apache-2.0
#include "config_check/verl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config_check/slime_log.hpp"
#include "config_check/verl_log.hpp"
#include "dump/member_stream.hpp"
#include "pack/yaml.hpp"
#include "support/ascii.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using pack::FlatMap;
using pack::PackValue;
using report::Severity;

constexpr std::uint64_t kMostExpectations = std::uint64_t{64} << 20;
constexpr int kIndent = 2;
constexpr const char* kYes = "是";
constexpr const char* kNo = "否";
constexpr const char* kNotThere = "NA";

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  const std::string lower = lower_case(name);
  return std::ranges::any_of(endings, [&](std::string_view end) { return lower.ends_with(end); });
}

bool is_log(std::string_view name) {
  return ends_with_any(name, {".log", ".txt"});
}

bool is_expectation(std::string_view name) {
  return ends_with_any(name, {".yaml", ".yml", ".json"});
}

std::string json_text(const PackValue& value) {
  std::string text;
  pack::append_json(text, value, kIndent);
  return text;
}

void write_text(const std::string& path, const std::string& text, VerlResult& result) {
  OutputFile file(path);
  file.write(text);
  file.commit();
  result.files.push_back(path);
}

std::string cell(const PackValue* value) {
  return value == nullptr ? kNotThere : pack::python_repr(*value);
}

/// Where both have a section without parameters there is nothing to compare.
void add_row(const std::string& path, const PackValue* first, const PackValue* second, VerlResult& result) {
  const bool equal = first != nullptr && second != nullptr && equal_verl(*first, *second);
  const bool is_empty = equal && first->is(PackValue::Type::map) && first->items().empty();
  ++(is_empty ? result.coverage.explained : result.coverage.compared);
  ++result.compared;
  result.table->add({path, cell(first), cell(second), std::string(equal ? kYes : kNo)},
                    equal ? Severity::none : Severity::error);
}

void write_tables(const std::string& stem, const VerlOptions& options, VerlResult& result) {
  report::WriteOptions write;
  write.csv_byte_order_mark = true;
  write.quote_prefix = true;
  for (const report::Format format : options.formats) {
    const std::string path = fmt::format("{}/{}.{}", options.output, stem, report::extension(format));
    for (const std::string& file : report::write_file(*result.table, format, path, write))
      result.files.push_back(file);
  }
}

void check_logs(std::string_view option, const std::string& npu_log, const std::string& bench_log) {
  if (is_log(npu_log) && is_log(bench_log)) return;
  throw UsageError(fmt::format("{} needs two logs, whose names end in .log or .txt", option));
}

FlatMap flat(const PackValue& map) {
  FlatMap out;
  for (std::size_t i = 0; i < map.items().size(); ++i) out.set(map.keys()[i], map.items()[i]);
  return out;
}

struct LaunchSide {
  const std::string& log;
  const PackValue& config;
  const FlatMap& values;
};

/// Writes the configurations of both logs, and a row for each name that is not left out.
void compare_sides(const LaunchSide& npu, const LaunchSide& bench, bool (*left_out)(std::string_view),
                   const VerlOptions& options, VerlResult& result) {
  std::set<std::string> paths;
  for (const LaunchSide* side : {&npu, &bench}) {
    for (const auto& [path, value] : side->values.items()) {
      if (!left_out(path)) paths.insert(path);
    }
  }
  result.headline = fmt::format("{} against {}", display(npu.log), display(bench.log));
  result.table = std::make_unique<RowTable>(
      std::vector<std::string>{"超参名称", "NPU生效值", "bench生效值", "是否一致"});
  for (const std::string& path : paths) add_row(path, npu.values.find(path), bench.values.find(path), result);
  create_directories(options.output);
  write_text(options.output + "/NPU_config.json", json_text(npu.config), result);
  write_text(options.output + "/bench_config.json", json_text(bench.config), result);
  write_tables("hyper_params_compare", options, result);
}

}  // namespace

VerlResult compare_verl(const std::string& npu_log, const std::string& bench_log,
                        const VerlOptions& options) {
  check_logs("verl-compare", npu_log, bench_log);
  const VerlConfig npu = read_verl_log(*open_file(npu_log));
  const VerlConfig bench = read_verl_log(*open_file(bench_log));
  VerlResult result;
  result.warnings = npu.warnings;
  result.warnings.insert(result.warnings.end(), bench.warnings.begin(), bench.warnings.end());
  const FlatMap left = flatten_verl(npu.value, npu_log);
  const FlatMap right = flatten_verl(bench.value, bench_log);
  compare_sides({npu_log, npu.value, left}, {bench_log, bench.value, right}, is_runtime_path, options,
                result);
  return result;
}

VerlResult compare_slime(const std::string& npu_log, const std::string& bench_log,
                         const VerlOptions& options) {
  check_logs("slime-compare", npu_log, bench_log);
  const PackValue npu = read_slime_log(*open_file(npu_log));
  const PackValue bench = read_slime_log(*open_file(bench_log));
  const auto is_profile = [](std::string_view name) {
    return name.find("profile") != std::string_view::npos;
  };
  VerlResult result;
  compare_sides({npu_log, npu, flat(npu)}, {bench_log, bench, flat(bench)}, is_profile, options, result);
  return result;
}

VerlResult verify_verl(const std::vector<std::string>& files, const Tables& tables,
                       const VerlOptions& options) {
  if (files.size() > 2)
    throw UsageError(
        fmt::format("verl-verify supports up to two files, but received {} files", files.size()));
  const std::string& log = files.back();
  if (files.size() == 1 && is_expectation(log))
    throw UsageError("verl-verify needs a log: " + display(log) + " is a file of expected values");
  if (files.size() == 2 && is_log(files.front()) && is_expectation(log))
    throw UsageError("verl-verify takes the expected values first and the log last");
  if (!is_log(log))
    throw UsageError("verl-verify takes a log that ends in .log or .txt, not " + display(log));
  FlatMap expected = tables.verl;
  if (files.size() == 2) {
    const std::string& path = files.front();
    if (!is_expectation(path))
      throw UsageError("verl-verify takes expected values from .yaml, .yml or .json, not " + display(path));
    const std::string text = read_all(*open_file(path), kMostExpectations);
    const PackValue value = ends_with_any(path, {".json"})
                                ? pack::from_entry(dump::read_json(text, path), 0, path)
                                : pack::read_yaml(text, path);
    if (!value.is(PackValue::Type::map))
      throw FormatError(display(path), "the expected values must be a mapping of names");
    expected = flatten_verl(value, path);
  }
  const VerlConfig target = read_verl_log(*open_file(log));
  const FlatMap found = flatten_verl(target.value, log);
  VerlResult result;
  result.headline = fmt::format("{} against {}", display(log),
                                files.size() == 2 ? display(files.front()) : "the built-in expectations");
  result.warnings = target.warnings;
  result.table = std::make_unique<RowTable>(
      std::vector<std::string>{"关键参数名称", "bench生效值", "target生效值", "是否一致"});
  for (const auto& [path, value] : expected.items()) add_row(path, &value, found.find(path), result);
  create_directories(options.output);
  write_text(options.output + "/tgt_config.json", json_text(target.value), result);
  write_tables("hyper_params_verify", options, result);
  return result;
}

}  // namespace msprobe::config_check

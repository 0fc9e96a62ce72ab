// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/against.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <utility>

#include "dump/construct_json.hpp"
#include "dump/side.hpp"
#include "pairing/alignment.hpp"
#include "precheck/runner/runner.hpp"
#include "report/writers.hpp"
#include "support/output_file.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::array<const char*, 2> kSideFolders = {"/A", "/B"};

dump::Side entries_of(const std::string& json) {
  dump::RankDump rank;
  rank.json = json;
  rank.directory = std::filesystem::path(json).parent_path().string();
  if (rank.directory.empty()) rank.directory = ".";
  return dump::load_side(rank, {.stacks = false, .stack_json = {}});
}

}  // namespace

AgainstResult check_against(const AgainstOptions& options, const Standards& standards, Progress* progress) {
  std::array<CheckOptions, 2> checks = {options.check, options.check};
  checks[1].dump_json = options.other_json;
  // Reading both dumps before the long work begins reports broken ones early.
  const std::array<CallPlan, 2> plans = {read_plan(checks[0]), read_plan(checks[1])};
  const std::array<dump::Side, 2> entries = {entries_of(checks[0].dump_json),
                                             entries_of(checks[1].dump_json)};
  const dump::ConstructBeside construct_a(checks[0].dump_json);
  const dump::ConstructBeside construct_b(checks[1].dump_json);
  const pairing::Alignment alignment =
      pairing::align(entries[0], entries[1], &construct_a.table(), &construct_b.table());

  AgainstResult result;
  RunnerPool runners;
  std::array<std::vector<SideOperation>, 2> operations;
  for (std::size_t side = 0; side < 2; ++side) {
    std::optional<ResultFiles> files;
    const auto open_files = [&]() -> ResultFiles& {
      if (!files) {
        create_directories(options.folder + kSideFolders[side]);
        files.emplace(ResultFiles::create(options.folder + kSideFolders[side], options.time, options.style));
      }
      return *files;
    };
    result.summaries[side] = check_calls(
        checks[side], plans[side], standards,
        options.error_data.empty() ? std::string() : options.error_data + kSideFolders[side], runners,
        [&](const OperationReport& report) {
          open_files().add(report);
          cover(report, result.coverage[side]);
          operations[side].push_back(side_operation(report));
        },
        progress);
    result.files.push_back(open_files().result_path());
    result.files.push_back(open_files().details_path());
  }
  result.sides = lay_side_by_side(std::move(operations), entries[0], entries[1], alignment);
  report::WriteOptions style;
  style.csv_byte_order_mark = true;  // as the files of each side
  style.csv_line_end = "\r\n";
  const std::string path = options.folder + "/accuracy_checking_sides_" + options.time + ".csv";
  const auto table = sides_table(result.sides);
  std::vector<std::string> written = report::write_file(*table, report::Format::csv, path, style);
  result.files.insert(result.files.begin(), written.begin(), written.end());
  return result;
}

}  // namespace msprobe::precheck

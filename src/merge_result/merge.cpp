// SPDX-License-Identifier: Apache-2.0
#include "merge_result/merge.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "merge_result/packets.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/result_name.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::merge_result {

class MergedTable final : public report::Table {
 public:
  MergedTable(const Merged& merged, std::size_t index) : merged_(merged), index_(index) {
    columns_.emplace_back("NPU Name");
    for (const RankValues& rank : merged.ranks_) columns_.push_back("rank" + std::to_string(rank.rank));
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return merged_.names_.size(); }
  report::Severity severity(std::size_t) const override { return report::Severity::none; }
  void row(std::size_t row, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    cells.clear();
    scratch.clear();
    cells.push_back(report::Text{merged_.names_[row]});
    for (std::size_t r = 0; r < merged_.ranks_.size(); ++r) {
      const std::uint32_t own = merged_.rows_[r][row];
      cells.push_back(own == Merged::kNone ? report::Cell(report::Text{})
                                           : merged_.ranks_[r].cell(index_, own, scratch));
    }
  }

 private:
  const Merged& merged_;
  std::size_t index_;
  std::vector<std::string> columns_;
};

Merged::Merged(std::vector<RankValues> ranks, MergeReport& report) {
  for (RankValues& rank : ranks) {
    const std::string label = "rank" + std::to_string(rank.rank);
    // The first rank that can be merged defines the indices.
    if (rank.left_out.empty() && ranks_.empty()) report.indices = rank.indices;
    if (rank.left_out.empty() && rank.indices != report.indices)
      rank.left_out = "its indices differ from those of the other ranks";
    report.any_unreadable = report.any_unreadable || rank.unreadable;
    if (!rank.left_out.empty()) {
      report.warnings.push_back(label + " is left out: " + rank.left_out);
      continue;
    }
    for (const std::string& api : rank.not_found)
      report.warnings.push_back(label + " has no row of " + display(api));
    report.ranks.push_back(rank.rank);
    ranks_.push_back(std::move(rank));
  }
  if (ranks_.empty()) {
    std::string reasons;
    for (const std::string& warning : report.warnings) reasons += "; " + warning;
    throw FormatError("nothing to merge" + reasons);
  }
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  for (const RankValues& rank : ranks_) {
    for (const std::string_view name : rank.names) {
      if (numbers.emplace(name, static_cast<std::uint32_t>(names_.size())).second) names_.push_back(name);
    }
  }
  for (const RankValues& rank : ranks_) {
    std::vector<std::uint32_t>& rows = rows_.emplace_back(names_.size(), kNone);
    for (std::size_t i = 0; i < rank.names.size(); ++i)
      rows[numbers.at(rank.names[i])] = static_cast<std::uint32_t>(i);
  }
  report.rows = names_.size();
}

std::unique_ptr<report::Table> Merged::table(std::size_t index) const {
  return std::make_unique<MergedTable>(*this, index);
}

namespace {

std::vector<std::string> write(const Merged& merged, const MergeReport& report, report::Format format,
                               const std::string& stem) {
  if (format == report::Format::xlsx) {
    std::vector<std::unique_ptr<report::Table>> tables;
    std::vector<report::NamedTable> sheets;
    for (std::size_t i = 0; i < report.indices.size(); ++i) {
      tables.push_back(merged.table(i));
      sheets.push_back({report.indices[i], tables.back().get()});
    }
    report::write_workbook(sheets, stem + ".xlsx");
    return {stem + ".xlsx"};
  }
  std::vector<std::string> files;
  for (std::size_t i = 0; i < report.indices.size(); ++i) {
    std::string name = report.indices[i];
    std::replace(name.begin(), name.end(), ' ', '_');
    const std::string path = stem + "_" + name + "." + std::string(report::extension(format));
    for (std::string& file : report::write_file(*merged.table(i), format, path))
      files.push_back(std::move(file));
  }
  return files;
}

std::uint64_t bytes_of(const RankFiles& files) {
  std::uint64_t bytes = 0;
  for (const std::string& path : files.paths) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace

MergeReport merge(const MergeOptions& options) {
  const MergeConfig config = read_config(options.config);
  MergeInputs inputs = find_inputs(options.input);
  std::string stem = options.output + "/multi_ranks_compare_merge_";
  if (team().is_root()) {
    stem += claim_time_stamp(options.output, team().begun());
    check_output(stem);
  }
  std::vector<RankValues> ranks(inputs.ranks.size());
  SharedWork work;
  work.units = "results of ranks";
  work.name = [&](std::size_t i) { return display(inputs.ranks[i].paths.front()); };
  for (const RankFiles& files : inputs.ranks) {
    for (const std::string& path : files.paths) work.plan = fingerprint(work.plan, path);
    work.bytes.push_back(team().hands_out() ? bytes_of(files) : 0);
  }
  work.compute = [&](std::size_t i) { ranks[i] = read_rank(inputs.ranks[i], config); };
  work.pack = [&](std::size_t i, PacketWriter& packet) { pack_rank(ranks[i], packet); };
  work.unpack = [&](std::size_t i, PacketReader& packet) { ranks[i] = unpack_rank(packet); };
  team().share(work);
  MergeReport report;
  if (!team().is_root()) return report;
  report.warnings = std::move(inputs.warnings);
  const Merged merged(std::move(ranks), report);
  for (const report::Format format : options.formats) {
    for (std::string& file : write(merged, report, format, stem)) report.files.push_back(std::move(file));
  }
  return report;
}

}  // namespace msprobe::merge_result

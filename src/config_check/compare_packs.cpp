// SPDX-License-Identifier: Apache-2.0
#include "config_check/compare_packs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config_check/checks.hpp"
#include "config_check/extract.hpp"
#include "pack/pack_reader.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using report::Format;

/// A section's table on standard output: a first column has the section's name.
class NamedRows final : public report::Table {
 public:
  NamedRows(const std::string& name, const report::Table& rows)
      : name_(name), rows_(rows), columns_(rows.columns()) {
    columns_.insert(columns_.begin(), "section");
  }
  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return rows_.rows(); }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    rows_.row(index, cells, scratch);
    cells.insert(cells.begin(), report::Text{name_});
  }
  report::Severity severity(std::size_t index) const override { return rows_.severity(index); }

 private:
  const std::string& name_;
  const report::Table& rows_;
  std::vector<std::string> columns_;
};

bool has(const pack::Pack& pack, pack::Section which) {
  return !pack.members(which).empty() || !pack.misplaced(which).empty();
}

SheetSection check_section(pack::Section which, const Packs& packs, const ComparePacksOptions& options,
                           const Tables& tables) {
  const bool in_bench = has(packs.bench, which);
  const bool in_cmp = has(packs.cmp, which);
  SheetSection section;
  section.name = pack::name_of(which);
  if (!in_bench || !in_cmp) {
    section.status = SectionStatus::missing;
    if (in_bench || in_cmp) section.coverage.miss("only one pack has the section", section.name);
    section.reasons.emplace_back(in_bench ? "only in bench" : in_cmp ? "only in cmp" : kInNeither);
    return section;
  }
  for (const pack::Pack* pack : {&packs.bench, &packs.cmp}) {
    for (const std::string& name : pack->misplaced(which)) {
      section.reasons.push_back(
          fmt::format("{}: {}: not a known member of a pack", display(pack->name()), display(name)));
    }
  }
  if (packs.bench.members(which).empty() || packs.cmp.members(which).empty()) {
    section.unreadable = true;
    section.status = SectionStatus::unreadable;
    return section;
  }
  try {
    SheetSection checked = [&] {
      switch (which) {
        case pack::Section::env:
          return check_environment(packs, tables);
        case pack::Section::pip:
          return check_packages(packs, tables, options.all_packages);
        case pack::Section::dataset:
          return check_dataset(packs);
        case pack::Section::weights:
          return check_weights(packs);
        case pack::Section::hyperparameters:
          return check_hyper_parameters(packs, tables);
        case pack::Section::random:
          break;
      }
      return check_random(packs);
    }();
    checked.reasons.insert(checked.reasons.begin(), section.reasons.begin(), section.reasons.end());
    section = std::move(checked);
    if (!section.reasons.empty()) {
      section.unreadable = true;
      section.status = SectionStatus::error;
    }
  } catch (const FormatError& error) {
    section.table.reset();
    section.unreadable = true;
    section.status = SectionStatus::unreadable;
    section.reasons.emplace_back(error.what());
  }
  return section;
}

PackComparison compare(const Packs& packs, const ComparePacksOptions& options, const Tables& tables) {
  // A damaged archive stops the command here, before it writes anything; later errors are errors of the
  // contents.
  packs.bench.verify();
  packs.cmp.verify();
  PackComparison comparison;
  for (const pack::Pack* pack : {&packs.bench, &packs.cmp}) {
    comparison.warnings.insert(comparison.warnings.end(), pack->warnings().begin(), pack->warnings().end());
    if (std::ranges::none_of(pack::kSections, [&](pack::Section which) { return has(*pack, which); }))
      comparison.empty.push_back(pack->name());
  }
  for (const pack::Section which : pack::kSections)
    comparison.sections.push_back(check_section(which, packs, options, tables));
  return comparison;
}

void write_tables(PackComparison& comparison, const ComparePacksOptions& options) {
  const RowTable summary = summary_table(comparison);
  std::vector<report::NamedTable> tables = {{"summary", &summary}};
  for (const SheetSection& section : comparison.sections) {
    if (section.table) tables.push_back({section.name, section.table.get()});
  }
  report::WriteOptions write;
  write.quote_prefix = true;
  write.wrap_lines = true;  // stacks have one frame per line
  for (const Format format : options.formats) {
    if (format == Format::xlsx) {
      const std::string path = options.output + "/result.xlsx";
      report::write_workbook(tables, path, write);
      comparison.files.push_back(path);
      continue;
    }
    for (const report::NamedTable& table : tables) {
      const std::string path =
          fmt::format("{}/result_{}.{}", options.output, table.name, report::extension(format));
      for (const std::string& file : report::write_file(*table.table, format, path, write))
        comparison.files.push_back(file);
    }
  }
}

void write_stdout(const PackComparison& comparison) {
  const RowTable summary = summary_table(comparison);
  const std::string name = "summary";
  if (!report::write_stdout(NamedRows(name, summary), Format::jsonl)) return;
  for (const SheetSection& section : comparison.sections) {
    if (section.table && !report::write_stdout(NamedRows(section.name, *section.table), Format::jsonl))
      return;
  }
}

}  // namespace

Coverage PackComparison::coverage() const {
  Coverage all;
  for (const std::string& pack : empty) all.miss("the pack has none of the sections that are compared", pack);
  for (const SheetSection& section : sections) all.add(section.coverage);
  return all;
}

RowTable summary_table(const PackComparison& comparison) {
  RowTable table({"filename", "pass_check"});
  for (const SheetSection& section : comparison.sections)
    table.add({section.name, std::string(name_of(section.status))}, section.severity());
  return table;
}

PackComparison compare_packs(const ComparePacksOptions& options, const Tables& tables) {
  const pack::Pack bench(open_file(options.bench));
  const pack::Pack cmp(open_file(options.cmp));
  PackComparison comparison = compare({bench, cmp}, options, tables);
  if (options.output == "-") {
    write_stdout(comparison);
    return comparison;
  }
  create_directories(options.output);
  extract(bench, options.output + "/bench");
  extract(cmp, options.output + "/cmp");
  write_tables(comparison, options);
  return comparison;
}

}  // namespace msprobe::config_check

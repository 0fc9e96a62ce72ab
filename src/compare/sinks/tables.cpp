// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "diagnosis/sentences.hpp"
#include "report/packed_table.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/progress.hpp"

namespace msprobe::compare {
namespace {

std::vector<std::string> write_files(const report::Table& table, const std::vector<report::Format>& formats,
                                     const std::string& stem, bool add_extension, Existing existing,
                                     Progress* progress) {
  if (progress != nullptr) progress->begin("writing", table.rows() * formats.size(), "rows");
  std::vector<std::string> files;
  for (const report::Format format : formats) {
    const std::string path = add_extension ? stem + "." + std::string(report::extension(format)) : stem;
    report::WriteOptions write;
    write.sheet = "compare_result";
    write.existing = existing;
    if (progress != nullptr) write.on_rows = [progress](std::uint64_t rows) { progress->advance(rows); };
    for (std::string& file : report::write_file(table, format, path, write)) files.push_back(std::move(file));
  }
  return files;
}

class JoinedTable final : public report::Table {
 public:
  JoinedTable(std::vector<JoinedPart> parts, std::optional<std::vector<std::string>> objects)
      : parts_(std::move(parts)), objects_(std::move(objects)) {
    for (const JoinedPart& part : parts_) {
      ends_.push_back(part.rows->rows() + (ends_.empty() ? 0 : ends_.back()));
      if (part.rows->columns() != parts_.front().rows->columns()) {
        throw UsageError("the tables of the ranks have different columns and cannot share one file",
                         "leave out --output-file to get one file for each rank");
      }
    }
    steps_ = std::ranges::any_of(parts_, [](const JoinedPart& one) { return !one.step.empty(); });
    if (steps_) columns_.emplace_back("Step");
    columns_.emplace_back("Rank");
    const std::vector<std::string>& columns = parts_.front().rows->columns();
    columns_.insert(columns_.end(), columns.begin(), columns.end());
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return ends_.back(); }
  std::optional<std::vector<std::string>> objects() const override { return objects_; }
  report::Severity severity(std::size_t index) const override {
    const std::size_t part = part_of(index);
    return parts_[part].rows->severity(index - begin(part));
  }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    const std::size_t at = part_of(index);
    const JoinedPart& part = parts_[at];
    part.rows->row(index - begin(at), cells, scratch);
    cells.insert(cells.begin(), report::Text{part.rank});
    if (steps_) cells.insert(cells.begin(), report::Text{part.step});
  }

 private:
  std::size_t part_of(std::size_t index) const {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  }
  std::size_t begin(std::size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }

  std::vector<JoinedPart> parts_;
  std::vector<std::size_t> ends_;
  std::vector<std::string> columns_;
  bool steps_ = false;
  std::optional<std::vector<std::string>> objects_;
};

const std::vector<report::Format>& formats_of(const TableOptions& options, const CompareTask& task) {
  static const std::vector<report::Format> kWorkbook = {report::Format::xlsx};
  return task.workbook && !options.formats_chosen ? kWorkbook : options.formats;
}

class FileForEach final : public Sink {
 public:
  explicit FileForEach(const TableOptions& options) : options_(options) {}

  void begin(const TaskPlan& plan) override {
    plan_ = &plan;
    create_directories(options_.directory);
    check_output(options_.directory + "/compare_result_" + options_.time);
  }

  void take(std::size_t index, const std::shared_ptr<const Rows>& rows, TaskSummary& summary) override {
    const CompareTask& task = plan_->tasks[index];
    const std::vector<report::Format>& formats = formats_of(options_, task);
    if (rows->rows() == 0 || formats.empty()) return;
    const std::string stem = result_stem(options_.directory, task, task.name, options_.time);
    create_directories(std::filesystem::path(stem).parent_path().string());
    // With several tasks, the progress shows the comparison, which goes on while other tables are written.
    Progress* const progress = plan_->tasks.size() == 1 ? options_.progress : nullptr;
    for (std::string& file : write_files(*rows, formats, stem, true, Existing::replace, progress))
      summary.files.push_back(std::move(file));
  }

 private:
  TableOptions options_;
  const TaskPlan* plan_ = nullptr;
};

/// Rows of several tasks wait on the result's disk until the last task is done.
class OneFile final : public Sink {
 public:
  explicit OneFile(const TableOptions& options) : options_(options), store_(options.file) {}

  void begin(const TaskPlan& plan) override {
    plan_ = &plan;
    if (!plan.entries && plan.tasks.size() > 1) {
      throw UsageError(fmt::format("{} results cannot share one file", plan.tasks.size()),
                       "leave out --output-file to get one file for each");
    }
    if (options_.file != "-") prepare_output(options_.file, options_.existing);
    kept_.resize(plan.tasks.size());
  }

  void take(std::size_t index, const std::shared_ptr<const Rows>& rows, TaskSummary& /*summary*/) override {
    if (kept_.size() == 1) {
      kept_[index] = rows;
    } else if (rows->rows() > 0) {
      kept_[index] = store_.add(*rows);
    }
  }

  void pack(std::size_t task, PacketWriter& packet) const override {
    packet(kept_[task] == nullptr ? std::string() : report::pack_table(*kept_[task]));
  }
  void unpack(std::size_t task, PacketReader& packet) override {
    std::string bytes;
    packet(bytes);
    if (!bytes.empty()) kept_[task] = store_.add(*report::unpack_table(bytes));
  }

  void end(CompareReport& report) override {
    std::vector<JoinedPart> parts;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const CompareTask& task = plan_->tasks[i];
      if (kept_[i] != nullptr && kept_[i]->rows() > 0)
        parts.push_back({task.step, task.rank, std::move(kept_[i])});
    }
    if (parts.empty()) return;
    const std::vector<report::Format>& formats = formats_of(options_, plan_->tasks.front());
    if (formats.empty()) return;
    std::shared_ptr<const report::Table> table = parts.front().rows;
    if (parts.size() > 1) {
      std::optional<std::vector<std::string>> objects;
      if (report.diagnosis) objects = diagnosis::to_json(*report.diagnosis);
      table = joined_table(std::move(parts), std::move(objects));
    }
    if (options_.file == "-") {
      report.pipe_closed = !report::write_stdout(*table, formats.front());
    } else {
      report.tasks.front().files =
          write_files(*table, formats, options_.file, false, options_.existing, options_.progress);
    }
  }

 private:
  TableOptions options_;
  const TaskPlan* plan_ = nullptr;
  report::TableStore store_;
  std::vector<std::shared_ptr<const report::Table>> kept_;
};

}  // namespace

std::shared_ptr<const report::Table> joined_table(std::vector<JoinedPart> parts,
                                                  std::optional<std::vector<std::string>> objects) {
  return std::make_shared<JoinedTable>(std::move(parts), std::move(objects));
}

std::string result_stem(const std::string& directory, const CompareTask& task, const std::string& what,
                        const std::string& time) {
  return directory + "/" + task.folder + task.prefix + what + task.suffix + (task.timed ? "_" + time : "");
}

std::unique_ptr<Sink> table_sink(const TableOptions& options) {
  if (options.file.empty()) return std::make_unique<FileForEach>(options);
  return std::make_unique<OneFile>(options);
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/html_report.hpp"

#include <unistd.h>

#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/sinks/html_page.hpp"
#include "compare/sinks/report_data.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/output_file.hpp"

namespace msprobe::compare {
namespace {

/// Leaves a writer when the reader of standard output is gone.
struct ClosedPipe {};

class HtmlReport final : public Sink {
 public:
  HtmlReport(const std::string& directory, const std::string& file)
      : directory_(directory), path_(directory.empty() ? file : directory + "/" + file) {}

  void begin(const Plan& plan) override {
    if (!plan.entries) {
      throw UsageError("--format html shows dumps with a dump.json only: take csv, xlsx, json or jsonl here");
    }
    if (!directory_.empty()) create_directories(directory_);
    if (path_ != "-") check_output(path_);
    packed_.resize(plan.tasks.size());
  }

  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& /*summary*/) override {
    packed_[task] = pack_rank(*rows->of_entries());
  }

  void end(CompareReport& report) override {
    if (path_ == "-") {
      try {
        write_html(report, packed_, [](std::string_view bytes) {
          if (!write_all(STDOUT_FILENO, bytes, "standard output")) throw ClosedPipe();
        });
      } catch (const ClosedPipe&) {
        report.pipe_closed = true;
      }
      return;
    }
    OutputFile file(path_);
    write_html(report, packed_, [&](std::string_view bytes) { file.write(bytes); });
    check_interrupt();
    file.commit();
    report.html_file = path_;
  }

 private:
  std::string directory_;
  std::string path_;
  std::vector<PackedRank> packed_;
};

}  // namespace

std::unique_ptr<Sink> html_sink(const std::string& directory, const std::string& file) {
  return std::make_unique<HtmlReport>(directory, file);
}

}  // namespace msprobe::compare

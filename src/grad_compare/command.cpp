// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <vector>

#include "grad_compare/similarity.hpp"
#include "report/table.hpp"
#include "report/writers.hpp"
#include "support/command.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/output_folder.hpp"
#include "support/text.hpp"

namespace msprobe::grad_compare {
namespace {

constexpr std::size_t kMostSuspectsTold = 10;

/// similarities.csv: one row per parameter, one column per step, and the row `summary` for all parameters.
class SimilarityTable final : public report::Table {
 public:
  /// `rank` must outlive the table.
  explicit SimilarityTable(const RankSimilarity& rank) : rank_(rank), columns_{"step"} {
    for (const std::uint64_t step : rank.steps) columns_.push_back(std::to_string(step));
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return rank_.parameters.size() + 1; }
  report::Severity severity(std::size_t) const override { return report::Severity::none; }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    cells.clear();
    scratch.clear();
    if (index == rank_.parameters.size()) {
      cells.emplace_back(report::Text{"summary"});
      for (const EqualShare& share : rank_.summary) cells.emplace_back(share.value());
      return;
    }
    cells.emplace_back(report::Text{rank_.parameters[index]});
    for (const std::optional<EqualShare>& share : rank_.shares[index])
      cells.push_back(share ? report::Cell(share->value()) : report::Cell(report::Text{}));
  }

 private:
  const RankSimilarity& rank_;
  std::vector<std::string> columns_;
};

std::vector<std::string> write_results(const Similarity& similarity, const std::string& first,
                                       const std::string& second, const std::string& output) {
  report::WriteOptions as_the_python_tool;
  as_the_python_tool.csv_byte_order_mark = true;
  as_the_python_tool.csv_line_end = "\r\n";
  std::vector<std::string> files;
  for (const RankSimilarity& rank : similarity.ranks) {
    if (rank.steps.empty()) continue;
    const std::string folder = fmt::format("{}/rank{}", output, rank.rank);
    create_directories(folder);
    for (std::string& file : report::write_file(SimilarityTable(rank), report::Format::csv,
                                                folder + "/similarities.csv", as_the_python_tool))
      files.push_back(std::move(file));
  }
  OutputFile page(output + "/similarities.html");
  page.write(render_page(similarity, first, second));
  page.commit();
  files.push_back(page.path());
  return files;
}

class GradCompareCommand final : public Command {
 public:
  std::string_view name() const override { return "grad_compare"; }
  std::string_view summary() const override {
    return "Compare the signs of gradients of two runs (task grad_probe)";
  }

  void declare(OptionList& options) override {
    options.add_pair(first_, second_, "DIR", "two recordings of task grad_probe",
                     "Recording of task grad_probe: a folder with rank<N>");
    options.add("-o,--output_path=DIR", output_, "Folder for the results")
        .details("It is created where missing.");
    gate_.declare(options, "gradients", {"suspect", "unequal", "never"})
        .details("`unequal` also counts any sign that differs.");
  }

  Outcome run(const Context& context) override {
    check_output_folder(output_);
    const Similarity similarity = compare_signs(first_, second_, context.progress);
    create_directories(output_);
    const std::vector<std::string> files = write_results(similarity, first_, second_, output_);
    std::string text = headline(similarity);
    for (std::size_t i = 0; i < similarity.suspects.size() && i < kMostSuspectsTold; ++i)
      text += "\n  " + sentence(similarity.suspects[i]);
    if (similarity.suspects.size() > kMostSuspectsTold)
      text += fmt::format("\n  and {} more", human_count(similarity.suspects.size() - kMostSuspectsTold));
    for (const std::string& file : files) text += "\n  written: " + display(file);
    log_info(text);
    bool findings = !similarity.suspects.empty();
    if (gate_.level() == "unequal") findings = findings || !all_equal(similarity);
    return gate_.end(findings, coverage_of(similarity), similarity.gaps);
  }

 private:
  std::string first_;
  std::string second_;
  std::string output_ = "./msprobe_compare_output";
  Gate gate_;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<GradCompareCommand>();
}

}  // namespace msprobe::grad_compare

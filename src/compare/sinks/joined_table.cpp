// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/joined_table.hpp"

#include <algorithm>

#include "support/error.hpp"

namespace msprobe::compare {
namespace {

using report::Cell;
using report::Scratch;

class JoinedTable final : public report::Table {
 public:
  explicit JoinedTable(std::vector<JoinedPart> parts) : parts_(std::move(parts)) {
    for (const JoinedPart& part : parts_) {
      ends_.push_back(part.rows->rows() + (ends_.empty() ? 0 : ends_.back()));
      if (part.rows->columns() != parts_.front().rows->columns()) {
        throw UsageError("the ranks give tables with different columns, which do not fit into one file",
                         "leave out --output-file to get one file for each rank");
      }
    }
    steps_ =
        std::any_of(parts_.begin(), parts_.end(), [](const JoinedPart& one) { return !one.step.empty(); });
    if (steps_) columns_.emplace_back("Step");
    columns_.emplace_back("Rank");
    const std::vector<std::string>& columns = parts_.front().rows->columns();
    columns_.insert(columns_.end(), columns.begin(), columns.end());
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return ends_.back(); }
  report::Severity severity(std::size_t index) const override {
    const std::size_t part = part_of(index);
    return parts_[part].rows->severity(index - begin(part));
  }
  void row(std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const override {
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
};

}  // namespace

std::shared_ptr<const report::Table> joined_table(std::vector<JoinedPart> parts) {
  return std::make_shared<JoinedTable>(std::move(parts));
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/sinks/sink.hpp"
#include "dump/side.hpp"
#include "measuring/tensor_factors.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using measuring::FactorSide;
using measuring::TensorFactors;

/// A factor that could not be applied, and the rows concerned.
struct FailedFactor {
  std::string reason;
  std::string first;  // row
  std::uint64_t rows = 0;
};

void carry(auto& packet, Carried<FailedFactor> auto& failure) {
  packet(failure.reason, failure.first, failure.rows);
}

class Failures {
 public:
  void add(const FailedFactor& failure) {
    const auto [place, is_new] = places_.try_emplace(failure.reason, all_.size());
    if (is_new) return all_.push_back(failure);
    all_[place->second].rows += failure.rows;
  }
  std::vector<FailedFactor> take() { return std::move(all_); }

 private:
  std::vector<FailedFactor> all_;
  std::unordered_map<std::string, std::size_t> places_;
};

/// The effects of the factors in a task.
struct FactorUse {
  bool tensors = false;
  std::vector<char> met;  // by name
  std::vector<FailedFactor> failures;
};

void carry(auto& packet, Carried<FactorUse> auto& use) {
  packet(use.tensors, use.met, use.failures);
}

class FactorNotesSink final : public KeepingSink<FactorUse> {
 public:
  FactorNotesSink(std::shared_ptr<const TensorFactors> factors, const std::string& file)
      : factors_(std::move(factors)), file_(file) {}

  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& /*summary*/) override {
    const verdict::RankResult& result = rows->of_entries()->result();
    FactorUse& found = kept_[task];
    if (result.mode != measuring::Mode::tensor) return;
    found.tensors = true;
    found.met.resize(factors_->all().size());
    Failures failures;
    for (std::size_t i = 0; i < result.rows.size(); ++i) {
      const pairing::Pair& row = result.rows[i];
      if (row.has_target()) meet(FactorSide::target, result.target, row.target, found);
      if (row.has_golden()) meet(FactorSide::golden, result.golden, row.golden, found);
      for (const std::string& reason : result.metrics[i].not_multiplied)
        failures.add({reason, std::string(result.name_of(row)), 1});
    }
    found.failures = failures.take();
  }

  void end(CompareReport& report) override {
    std::vector<std::string>& lines = report.not_multiplied;
    const auto add = [&](const std::string& line) { lines.push_back(line); };
    for (const std::string& remark : factors_->remarks()) add(display(file_) + ", " + remark);
    const bool tensors = std::ranges::any_of(kept_, [](const FactorUse& found) { return found.tensors; });
    if (!tensors) return add("no tensors were compared, and --config affects nothing else");
    Failures failures;
    std::vector<char> met(factors_->all().size());
    for (const FactorUse& found : kept_) {
      for (const FailedFactor& failure : found.failures) failures.add(failure);
      for (std::size_t i = 0; i < found.met.size(); ++i) met[i] = met[i] != 0 || found.met[i] != 0;
    }
    for (const FailedFactor& failure : failures.take()) {
      const std::string more =
          failure.rows > 1 ? fmt::format(" and {} more", human_count(failure.rows - 1)) : "";
      add(fmt::format("{}{}: {}", display(failure.first), more, failure.reason));
    }
    for (std::size_t i = 0; i < met.size(); ++i) {
      const TensorFactors::FactoredTensor& named = factors_->all()[i];
      if (met[i] == 0)
        add(fmt::format("no row of {1} has the data name {0}", display(named.data_name),
                        named.side == FactorSide::target ? "target" : "golden"));
    }
    constexpr std::size_t kMostLines = 20;
    if (lines.size() <= kMostLines) return;
    const std::uint64_t rest = lines.size() - kMostLines;
    lines.resize(kMostLines);
    add(fmt::format("and {} more", human_count(rest)));
  }

 private:
  void meet(FactorSide side, const dump::Side& items, std::uint32_t index, FactorUse& found) const {
    const auto one = [&](std::uint32_t item) {
      if (const auto place = factors_->find(side, items.text(items.items[item].data_name)))
        found.met[*place] = 1;
    };
    const auto merged = items.merged.find(index);
    if (merged == items.merged.end()) return one(index);
    for (const std::uint32_t part : merged->second) one(part);
  }

  std::shared_ptr<const TensorFactors> factors_;
  std::string file_;
};

}  // namespace

std::unique_ptr<Sink> factor_sink(std::shared_ptr<const TensorFactors> factors, const std::string& file) {
  return std::make_unique<FactorNotesSink>(std::move(factors), file);
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/data_mapping.hpp"

#include <filesystem>
#include <unordered_set>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/matching/mapping_file.hpp"
#include "compare/sinks/tables.hpp"
#include "support/output_file.hpp"

namespace msprobe::compare {
namespace {

void write_data_mapping(const RankResult& result, const std::string& path) {
  OutputFile file(path);
  std::string text;
  std::unordered_set<std::string_view> written;
  for (const Row& row : result.rows) {
    if (!row.has_target()) continue;
    const std::string_view name = result.target.name(result.target_item(row));
    if (!written.insert(name).second) continue;
    const std::uint32_t golden = row.has_golden() ? row.pair.golden : row.pair.candidate;
    append_mapping_line(
        text, name,
        golden == kUnmatched ? std::string_view("N/A") : result.golden.name(result.golden.items[golden]));
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    if (text.size() < kPiece) continue;
    file.write(text);
    text.clear();
  }
  file.write(text);
  file.commit();
}

class DataMapping final : public Sink {
 public:
  DataMapping(const std::string& directory, const std::string& time) : directory_(directory), time_(time) {}

  void begin(const Plan& plan) override { plan_ = &plan; }
  void take(std::size_t index, const std::shared_ptr<const Rows>& rows, TaskSummary& summary) override {
    const std::string path = result_stem(directory_, plan_->tasks[index], "data_mapping", time_) + ".yaml";
    create_directories(std::filesystem::path(path).parent_path().string());
    write_data_mapping(rows->of_entries()->result(), path);
    summary.files.push_back(path);
  }

 private:
  std::string directory_;
  std::string time_;
  const Plan* plan_ = nullptr;
};

}  // namespace

std::unique_ptr<Sink> data_mapping_sink(const std::string& directory, const std::string& time) {
  return std::make_unique<DataMapping>(directory, time);
}

}  // namespace msprobe::compare

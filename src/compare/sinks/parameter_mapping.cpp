// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/sinks/data_mapping.hpp"
#include "diagnosis/content_flow.hpp"
#include "diagnosis/parameter_map.hpp"
#include "dump/side.hpp"
#include "pairing/mapping_file.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using diagnosis::ContentFlow;

constexpr std::string_view kHead =
    "# Parameters paired by content, by `msprobe compare --map-parameters`; lines without # are a mapping "
    "for -dm.\n"
    "# Statistics do not show the order of elements: what is equal may be transposed or permuted.\n";

ContentFlow flow_of(const dump::Side& side, const std::shared_ptr<pairing::Joins>& joins,
                    const std::shared_ptr<const dump::ConstructBeside>& construct) {
  return diagnosis::forward_flow(side, joins.get(), construct ? &construct->table() : nullptr);
}

/// `layers.0.q.weight [64, 64]`.
std::string described(const ContentFlow& flow, std::uint32_t content) {
  const dump::Side& side = flow.side();
  return display(fmt::format("{} {}", diagnosis::parameter_name(flow, content),
                             side.text(side.items[diagnosis::parameter_place(flow, content)].shape)));
}

std::string described(const ContentFlow& flow, const std::vector<std::uint32_t>& contents) {
  std::string text;
  for (const std::uint32_t each : contents) text += (text.empty() ? "" : " + ") + described(flow, each);
  return text;
}

/// Sorts lines by their place in the model, because groups are found in another order.
std::string lines_of(const ContentFlow& target, const ContentFlow& golden,
                     const diagnosis::ParameterMap& map) {
  std::vector<std::pair<std::uint32_t, std::string>> lines;
  for (const diagnosis::ParameterGroup& group : map.groups) {
    std::string text;
    const bool one = group.ours.size() == 1 && group.theirs.size() == 1;
    if (one &&
        target.contents()[group.ours.front()].elements == golden.contents()[group.theirs.front()].elements) {
      const std::uint32_t ours = diagnosis::parameter_place(target, group.ours.front());
      const std::uint32_t theirs = diagnosis::parameter_place(golden, group.theirs.front());
      const dump::Item& item = target.side().items[ours];
      const dump::Item& partner = golden.side().items[theirs];
      if (target.side().text(item.shape) != golden.side().text(partner.shape))
        text += fmt::format("# other shape: {} is {}\n", described(target, group.ours),
                            described(golden, group.theirs));
      pairing::append_mapping_line(text, target.side().name(item), golden.side().name(partner));
    } else {
      text =
          fmt::format("# joined: {} is {}\n", described(target, group.ours), described(golden, group.theirs));
    }
    lines.emplace_back(group.ours.front(), std::move(text));
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const auto& [place, text] : lines) all += text;
  for (const std::uint32_t each : map.ours_alone)
    all += "# only in target: " + described(target, each) + '\n';
  for (const std::uint32_t each : map.theirs_alone)
    all += "# only in golden: " + described(golden, each) + '\n';
  return all;
}

/// The lines of a data mapping, and comments for parameters that it cannot pair.
std::string parameter_mapping(const verdict::RankResult& result) {
  const ContentFlow target = flow_of(result.target, result.target_joins, result.target_construct);
  const ContentFlow golden = flow_of(result.golden, result.golden_joins, result.golden_construct);
  return lines_of(target, golden, diagnosis::map_parameters(target, golden, diagnosis::kSameContent));
}

class ParameterMapping final : public KeepingSink<std::string> {
 public:
  ParameterMapping(const std::string& path, Existing existing) : path_(path), existing_(existing) {}

  void begin(const TaskPlan& plan) override {
    check_output(path_, existing_);
    KeepingSink::begin(plan);
  }
  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& /*summary*/) override {
    kept_[task] = parameter_mapping(rows->of_entries()->result());
  }
  void end(CompareReport& report) override {
    OutputFile file(path_, existing_);
    file.write(kHead);
    std::unordered_set<std::string_view> written;
    for (const std::string& text : kept_) {
      for (const std::string_view line : split(text, "\n")) {
        // Steps and ranks have the same parameters, so each line is written once.
        if (line.empty() || !written.insert(line).second) continue;
        file.write(line);
        file.write("\n");
      }
    }
    file.commit();
    report.tasks.front().files.push_back(path_);
  }

 private:
  std::string path_;
  Existing existing_;
};

}  // namespace

std::unique_ptr<Sink> parameter_mapping_sink(const std::string& path, Existing existing) {
  return std::make_unique<ParameterMapping>(path, existing);
}

}  // namespace msprobe::compare

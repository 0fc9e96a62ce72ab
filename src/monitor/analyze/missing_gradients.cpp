// SPDX-License-Identifier: Apache-2.0
#include "monitor/analyze/missing_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>

#include "monitor/input/rows.hpp"
#include "monitor/input/tree.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace msprobe::monitor {
namespace {

/// Rank, step, and the tag's `{stage}:{name}:{micro step}` and task.
using PlaceOfAlert = std::tuple<std::int64_t, std::int64_t, std::string, std::string>;

enum class SeenGradients : std::uint8_t { untold, no_tensor, tensor };

/// The csv files of these tasks have their name, and a row a tensor.
bool may_be_missing(const Alert& alert) {
  return (alert.task() == "actv" || alert.task() == "actv_grad") &&
         alert.message.find("AnomalyNan") != std::string::npos &&
         alert.message.find("current value nan") != std::string::npos;
}

PlaceOfAlert place_of(const Alert& alert) {
  return {alert.rank, alert.step, alert.tag.substr(0, alert.tag.find('/')), std::string(alert.task())};
}

void look(const RankFolder& rank, const SeriesFile& file, std::map<PlaceOfAlert, SeenGradients>& places) {
  bool wanted = false;
  for (auto& [place, seen] : places) {
    const auto& [number, step, series, task] = place;
    if (number != rank.rank || task != file.prefix || step < file.begin || step > file.end) continue;
    seen = std::max(seen, SeenGradients::no_tensor);
    wanted = true;
  }
  if (!wanted) return;
  MonitorRows rows(open_file(file.path), file.prefix);
  MonitorRow row;
  while (rows.next(row)) {
    check_interrupt();
    if (row.absent || !row.stage || !row.micro_step) continue;
    const auto found = places.find(
        {rank.rank, row.step, fmt::format("{}:{}:{}", *row.stage, row.name, *row.micro_step), file.prefix});
    if (found != places.end()) found->second = SeenGradients::tensor;
  }
}

}  // namespace

std::string folder_of_series(const std::string& folder) {
  std::error_code ignored;
  const std::filesystem::path root = std::filesystem::canonical(folder, ignored);
  return (root.filename() == "anomaly_detected" ? root.parent_path() : root).string();
}

std::size_t drop_missing_gradients(const std::string& folder, std::vector<Alert>& alerts) {
  std::map<PlaceOfAlert, SeenGradients> places;
  for (const Alert& alert : alerts) {
    if (may_be_missing(alert)) places.try_emplace(place_of(alert), SeenGradients::untold);
  }
  if (places.empty()) return 0;
  try {
    for (const RankFolder& rank : find_tree(folder_of_series(folder)).ranks) {
      for (const SeriesFile& file : rank.files) look(rank, file, places);
    }
  } catch (const Error&) {  // there are no series beside the alerts, or not all can be read
    return 0;
  }
  return std::erase_if(alerts, [&](const Alert& alert) {
    return may_be_missing(alert) && places.at(place_of(alert)) == SeenGradients::no_tensor;
  });
}

}  // namespace msprobe::monitor

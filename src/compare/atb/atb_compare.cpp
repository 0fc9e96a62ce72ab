// SPDX-License-Identifier: Apache-2.0
#include "compare/atb/atb_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "compare/lists/list_rows.hpp"
#include "dump/names.hpp"
#include "formats/atb_bin.hpp"
#include "formats/element_values.hpp"
#include "sheets/csv_rows.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using formats::StoredTensor;
using verdict::Verdict;
using StatisticTexts = std::array<std::string, 4>;

const StatisticTexts kNoTexts = {"N/A", "N/A", "N/A", "N/A"};

constexpr std::size_t kColumns = 15;
constexpr std::size_t kMaxItems = 5'000'000;
constexpr std::size_t kMostOneSided = 20;
// The places of the columns.
constexpr std::size_t kDevice = 0, kExecution = 1, kOperation = 2, kOpId = 4, kDirection = 5, kIndex = 6,
                      kDtype = 7, kShape = 9, kFirstStatistic = 10, kTensor = 14;
constexpr const char* kStatisticTitles[] = {"Max", "Min", "Mean", "Norm"};

/// Combines `0_3` and `Model/Linear` to `0_Model/3_Linear/`.
std::optional<std::string> scope_of(std::string_view names, std::string_view ids) {
  const auto name_parts = split(names, "/");
  const auto id_parts = split(ids, "_");
  if (name_parts.size() != id_parts.size()) return std::nullopt;
  std::string scope;
  for (std::size_t i = 0; i < name_parts.size(); ++i) {
    scope += std::string(id_parts[i]) + "_" + std::string(name_parts[i]) + "/";
  }
  return scope;
}

/// The part of a path after `atb_dump_data/data/DEVICE/EXECUTION/`, the folder that is compared.
std::optional<std::string> tensor_path(std::string_view path) {
  const std::size_t start = path.rfind("atb_dump_data");
  if (start == std::string_view::npos) return std::nullopt;
  path.remove_prefix(start);
  for (int part = 0; part < 4; ++part) {
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    path.remove_prefix(slash + 1);
  }
  return path.empty() ? std::nullopt : std::optional<std::string>(path);
}

bool read_item(const std::vector<std::string>& fields, AtbItem& item) {
  if (fields.size() != kColumns) return false;
  const auto scope = scope_of(fields[kOperation], fields[kOpId]);
  if (!scope) return false;
  if (fields[kTensor] != "N/A") {
    const auto path = tensor_path(fields[kTensor]);
    if (!path) return false;
    item.tensor = *path;
  }
  item.name = valid_utf8(*scope + fields[kDirection] + "." + fields[kIndex]);
  item.device = valid_utf8(fields[kDevice]);
  item.execution = valid_utf8(fields[kExecution]);
  item.dtype = valid_utf8(fields[kDtype]);
  item.shape = valid_utf8(fields[kShape]);
  for (std::size_t i = 0; i < 4; ++i) item.statistics[i] = valid_utf8(fields[kFirstStatistic + i]);
  return true;
}

/// Both folders; everything but their tensors has been read.
struct AtbDumps {
  std::string target_folder;
  std::string golden_folder;
  AtbSide target;
  AtbSide golden;
};

struct AtbPair {
  const AtbItem* target;
  const AtbItem* golden;
};

using ByName = std::map<std::string_view, std::vector<const AtbItem*>>;

ByName by_name(const AtbSide& side) {
  ByName names;
  for (const AtbItem& item : side.items) names[item.name].push_back(&item);
  return names;
}

void report_one_sided(const ByName& names, const ByName& others, const char* where,
                      std::vector<std::string>& lines) {
  std::size_t count = 0;
  for (const auto& [name, items] : names) {
    if (others.contains(name)) continue;
    if (++count <= kMostOneSided) lines.push_back(std::string(name) + ": only in " + where);
  }
  if (count > kMostOneSided) {
    lines.push_back(fmt::format("{} more only in {}", human_count(count - kMostOneSided), where));
  }
}

/// The pairs in target order. Repeated names pair in their order.
std::vector<AtbPair> join(const AtbSide& target, const ByName& goldens) {
  std::vector<AtbPair> pairs;
  std::map<std::string_view, std::size_t> seen;
  for (const AtbItem& item : target.items) {
    const auto other = goldens.find(item.name);
    const std::size_t order = seen[item.name]++;
    if (other == goldens.end()) continue;
    if (order < other->second.size()) pairs.push_back({&item, other->second[order]});
  }
  return pairs;
}

ListedRow started(const AtbPair& pair) {
  ListedRow row;
  row.name = pair.target->name;
  for (std::string AtbItem::*field :
       {&AtbItem::name, &AtbItem::device, &AtbItem::execution, &AtbItem::dtype, &AtbItem::shape}) {
    row.cells.emplace_back(pair.target->*field);
    row.cells.emplace_back(pair.golden->*field);
  }
  if (pair.target->dtype != pair.golden->dtype || pair.target->shape != pair.golden->shape) {
    row.verdict = Verdict::error;
    row.reason = pair.target->dtype != pair.golden->dtype ? "the types differ" : "the shapes differ";
  }
  return row;
}

ListedRow statistics_row(const AtbPair& pair) {
  ListedRow row = started(pair);
  StatisticTexts differences;
  StatisticTexts relatives;
  row.unknown = true;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto n = parse_number(pair.target->statistics[i]);
    const auto b = parse_number(pair.golden->statistics[i]);
    differences[i] = relatives[i] = "N/A";
    if (!n || !b) continue;
    row.unknown = false;
    const double difference = *n - *b;
    differences[i] = python_repr(difference);
    const double relative = difference == 0 ? 0 : std::fabs(difference / *b * 100);
    if (difference == 0 || *b != 0) relatives[i] = python_repr(relative);
    row.weight =
        std::max(row.weight, std::isnan(relative) ? std::numeric_limits<double>::infinity() : relative);
  }
  for (std::string& text : differences) row.cells.emplace_back(std::move(text));
  for (std::string& text : relatives) row.cells.emplace_back(std::move(text));
  for (std::size_t i = 0; i < 4; ++i) {
    row.cells.emplace_back(pair.target->statistics[i]);
    row.cells.emplace_back(pair.golden->statistics[i]);
  }
  row.measure = fmt::format("relative error {:.4g}%", row.weight);
  if (row.weight > 50 && row.verdict == Verdict::pass) {
    row.verdict = Verdict::error;
    row.reason = "a statistic is off by more than 50%";
  }
  return row;
}

StoredTensor open_item(const std::string& folder, const AtbItem& item) {
  if (item.tensor.empty()) throw FormatError(display(item.name), "it has no file");
  const auto slash = item.tensor.rfind('/');
  const std::string beside = slash == std::string::npos ? "" : item.tensor.substr(0, slash + 1);
  return formats::open_atb_bin(open_file_beneath(folder, item.tensor), [&](const std::string& name) {
    return open_file_beneath(folder, beside + name);
  });
}

StatisticTexts statistics_text(const StoredTensor& tensor) {
  StatisticTexts texts = kNoTexts;
  const tensor::Statistics all = formats::statistics_of(tensor);
  const auto kind = tensor::info(tensor.dtype).kind;
  if (kind == tensor::DTypeKind::boolean) {
    texts[0] = all.max > 0 ? "True" : "False";
    texts[1] = all.min > 0 ? "True" : "False";
    return texts;
  }
  const double values[] = {all.max, all.min, all.mean(), all.norm()};
  for (std::size_t i = 0; i < 4; ++i) {
    if (all.nan == 0 && !std::isnan(values[i]))
      texts[i] = python_repr(static_cast<double>(static_cast<float>(values[i])));
  }
  return texts;
}

ListedRow tensor_row(const AtbPair& pair, const std::string& target_folder,
                     const std::string& golden_folder) {
  ListedRow row = started(pair);
  std::array<std::string, measuring::kMetrics> metric_texts;
  metric_texts.fill("N/A");
  StatisticTexts target_texts = kNoTexts;
  StatisticTexts golden_texts = kNoTexts;
  try {
    const StoredTensor target = open_item(target_folder, *pair.target);
    target_texts = statistics_text(target);
    const StoredTensor golden = open_item(golden_folder, *pair.golden);
    golden_texts = statistics_text(golden);
    const measuring::TensorMetrics metrics = measuring::compare_tensors(target, golden, {});
    if (metrics.status == measuring::MetricStatus::computed) {
      for (std::size_t i = 0; i < measuring::kMetrics; ++i) {
        if (metrics.is_scalar && i != measuring::kMaxAbs && i != measuring::kMaxRelative) {
          metric_texts[i] = "unsupported";
        } else if (!std::isnan(metrics.value[i])) {
          metric_texts[i] = python_repr(metrics.value[i]);
        }
      }
      row.weigh(metrics);
      if (!metrics.is_scalar && !(metrics.value[measuring::kCosine] >= 0.9)) {
        row.verdict = Verdict::error;
        row.reason = "the cosine is below 0.9";
      }
    } else {
      row.verdict = metrics.failed ? Verdict::error : row.verdict;
      if (!metrics.messages.empty()) row.reason = metrics.messages.back();
    }
  } catch (const Error& error) {
    row.verdict = std::max(row.verdict, Verdict::warning);
    row.unreadable = true;
    row.reason = error.what();
  }
  for (std::string& text : metric_texts) row.cells.emplace_back(std::move(text));
  for (std::size_t i = 0; i < 4; ++i) {
    row.cells.emplace_back(std::move(target_texts[i]));
    row.cells.emplace_back(std::move(golden_texts[i]));
  }
  return row;
}

std::vector<std::string> columns_of(bool tensors) {
  std::vector<std::string> columns;
  const auto both = [&](const char* name) {
    columns.push_back(std::string("Target ") + name);
    columns.push_back(std::string("Golden ") + name);
  };
  for (const char* name : {"Data Name", "Device and PID", "Execution Count", "Data Type", "Data Shape"})
    both(name);
  if (tensors) {
    for (const char* name : {"Cosine", "Euc Distance", "Max Absolute Err", "Max Relative Err",
                             "One Thousandth Err Ratio", "Five Thousandth Err Ratio"})
      columns.emplace_back(name);
  } else {
    for (const char* name : kStatisticTitles) columns.push_back(std::string(name) + " Diff");
    for (const char* name : kStatisticTitles)
      columns.push_back("Relative Err of " + std::string(name) + "(%)");
  }
  for (const char* name : kStatisticTitles) both(name);
  columns.emplace_back("Err_message");
  return columns;
}

AtbDumps read_atb(const std::string& target, const std::string& golden) {
  AtbDumps dumps{target, golden, read_atb_csv(*open_file(target + "/statistic.csv")),
                 read_atb_csv(*open_file(golden + "/statistic.csv"))};
  for (const auto& [side, folder] : {std::pair(&dumps.target, &target), std::pair(&dumps.golden, &golden)}) {
    if (side->skipped > 0) {
      log_warning(fmt::format("{}/statistic.csv: {} rows of an unknown form left out", display(*folder),
                              human_count(side->skipped)));
    }
  }
  if (dumps.target.tensors != dumps.golden.tensors) {
    throw FormatError(fmt::format("only {} has tensors, the other side has statistics",
                                  display(dumps.target.tensors ? target : golden)));
  }
  return dumps;
}

std::shared_ptr<const Rows> compare_atb(const AtbDumps& dumps, Progress* progress) {
  const std::vector<AtbPair> pairs = join(dumps.target, by_name(dumps.golden));
  const bool tensors = dumps.target.tensors;
  RowList list{columns_of(tensors), {}};
  list.fill(pairs.size(), tensors ? progress : nullptr, "comparing tensors", "rows", [&](std::size_t i) {
    ListedRow row =
        tensors ? tensor_row(pairs[i], dumps.target_folder, dumps.golden_folder) : statistics_row(pairs[i]);
    row.cells.emplace_back(row.reason);
    return row;
  });
  return std::make_shared<ListRows>(tensors ? measuring::Mode::tensor : measuring::Mode::statistics,
                                    std::move(list));
}

}  // namespace

AtbSide read_atb_csv(const ByteSource& file) {
  sheets::CsvRows rows(file);
  std::vector<std::string> fields;
  AtbSide side;
  bool header = true;
  bool first = true;
  while (rows.next(fields)) {
    if (header) {
      header = false;
      continue;
    }
    if (first) side.tensors = fields.back() != "N/A";
    first = false;
    AtbItem item;
    if (!read_item(fields, item)) {
      ++side.skipped;
      continue;
    }
    if (side.items.size() == kMaxItems) throw FormatError(display(file.name()), "more than 5,000,000 rows");
    side.items.push_back(std::move(item));
  }
  if (side.items.empty()) {
    throw FormatError(display(file.name()), "not an ATB dump: expected 15 columns");
  }
  return side;
}

TaskPlan plan_atb(const std::string& target, const std::string& golden, Progress* progress) {
  auto dumps = std::make_shared<const AtbDumps>(read_atb(target, golden));
  TaskPlan plan;
  plan.one_at_a_time = true;
  const ByName targets = by_name(dumps->target);
  const ByName goldens = by_name(dumps->golden);
  report_one_sided(targets, goldens, "target", plan.one_sided);
  report_one_sided(goldens, targets, "golden", plan.one_sided);
  CompareTask& task = plan.tasks.emplace_back();
  task.target = target;
  task.golden = golden;
  task.name = dumps->target.tensors ? "atb_tensor_compare_result" : "atb_stats_compare_result";
  task.workbook = true;
  task.run = [dumps, progress] { return compare_atb(*dumps, progress); };
  return plan;
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include "measuring/tensor_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dump/side.hpp"
#include "formats/joined_tensor.hpp"
#include "formats/tensor_file.hpp"
#include "measuring/joined_data.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::measuring {
namespace {

using dump::Item;
using dump::Side;
using pairing::Joins;
using pairing::Pair;
using pairing::Share;

const char kNoTargetFile[] = "NPU does not have data file.";
const char kNoGoldenFile[] = "Bench does not have data file.";
constexpr char kOfTarget = 1;
constexpr char kOfGolden = 2;
const char kUnmatchedMessage[] = "Bench api/module unmatched.";

/// Should the item have a data file? Plain arguments, null and empty tensors have none.
bool expects_data(const Side& side, const Item& item) {
  if (!item.is_tensor) return false;
  const std::string_view shape = side.text(item.shape);
  return !(shape.find("[0,") != std::string_view::npos || shape.find("[0]") != std::string_view::npos ||
           shape.find(" 0,") != std::string_view::npos || shape.find(" 0]") != std::string_view::npos);
}

TensorMetrics unsupported(std::string message, bool failed) {
  TensorMetrics metrics;
  metrics.messages.push_back(std::move(message));
  metrics.failed = failed;
  return metrics;
}

formats::StoredTensor open(const MeasuredRank& result, const Side& side, const Item& item) {
  if (result.python.files_by_framework) {
    const bool pytorch = side.header.framework.empty() || side.header.framework == "pytorch";
    const std::string_view suffix = pytorch ? ".pt" : ".npy";
    if (const std::string_view name = side.text(item.data_name); !name.ends_with(suffix))
      throw FormatError(display(name), fmt::format("the name does not end in {}", suffix));
  }
  return open_data(side, item);
}

void print_row(const MeasuredRank& result, const Pair& row, const TensorMetrics& metrics) {
  std::string line = display(result.name_of(row));
  if (metrics.status == MetricStatus::computed) {
    line += fmt::format(": Cosine {} MaxAbsErr {} MaxRelativeErr {} One Thousandth Err Ratio {}",
                        metrics.is_scalar ? "unsupported" : python_repr(metrics.value[kCosine]),
                        python_repr(metrics.value[kMaxAbs]), python_repr(metrics.value[kMaxRelative]),
                        metrics.is_scalar ? "unsupported" : python_repr(metrics.value[kOneThousandth]));
  }
  for (const std::string& message : metrics.messages) line += " " + message;
  log_info(line);
}

}  // namespace

TensorRows::TensorRows(MeasuredRank& result, BytesAhead& bytes)
    : result_(result),
      bytes_(bytes),
      done_(result.target.apis.size()),
      first_row_(result.target.apis.size() + 1),
      rows_(result.rows.size()) {
  result.metrics.resize(result.rows.size());
  if (result.target_joins || result.golden_joins) copies_differ_.resize(result.rows.size());
  for (const Pair& row : result.rows) {
    if (row.has_target()) ++first_row_[result.target_item(row).api];
  }
  std::uint32_t end = 0;
  for (std::uint32_t& place : first_row_) place = end += place;
  for (std::size_t i = result.rows.size(); i-- > 0;) {
    if (!result.rows[i].has_target()) continue;
    rows_[--first_row_[result.target_item(result.rows[i]).api]] = static_cast<std::uint32_t>(i);
  }
  if (!bytes_.wanted()) return;
  std::uint64_t all = 0;
  for (const Pair& row : result.rows) all += bytes_of(row);
  bytes_.add_tensors(all);
}

std::uint64_t TensorRows::bytes_of(const Pair& row) const {
  if (!row.matched()) return 0;
  const auto size = [](const Side& side, const Item& item) {
    return item.data_name == 0 ? 0 : tensor_bytes(side.text(item.dtype), side.text(item.shape));
  };
  return size(result_.target, result_.target_item(row)) + size(result_.golden, result_.golden_item(row));
}

void TensorRows::measure_entry(std::uint32_t target_api) {
  if (done_[target_api]) return;
  std::vector<std::uint32_t> rows;
  take_entry(target_api, rows);
  for (std::uint32_t api = target_api + 1; api < done_.size(); ++api) {
    if (rows.size() + first_row_[api + 1] - first_row_[api] > most_threads()) break;
    if (!done_[api]) take_entry(api, rows);
  }
  measure(rows);
}

void TensorRows::take_entry(std::uint32_t target_api, std::vector<std::uint32_t>& rows) {
  done_[target_api] = true;
  find_groups(target_api);
  const auto place = [&](std::uint32_t api) { return rows_.begin() + first_row_[api]; };
  rows.insert(rows.end(), place(target_api), place(target_api + 1));
}

MeasuredRows TensorRows::measure_range(std::size_t part, std::size_t parts) {
  std::vector<std::uint64_t> ends;  // for each row, the bytes of it and all before it
  std::uint64_t all = 0;
  for (const Pair& row : result_.rows) ends.push_back(all += bytes_of(row));
  const auto row_at = [&](std::size_t place) {
    if (place == 0) return ends.begin();
    if (place == parts) return ends.end();
    return std::lower_bound(ends.begin(), ends.end(), all / parts * place);
  };
  const auto first = static_cast<std::uint32_t>(row_at(part) - ends.begin());
  const auto end = static_cast<std::uint32_t>(row_at(part + 1) - ends.begin());
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = first; i < end; ++i) {
    rows.push_back(i);
    if (!result_.rows[i].has_target()) continue;
    const std::uint32_t api = result_.target_item(result_.rows[i]).api;
    if (!done_[api]) find_groups(api);
    done_[api] = true;
  }
  measure(rows);
  MeasuredRows measured = {result_.rows.size(), first, {}};
  for (const std::uint32_t row : rows) measured.metrics.push_back(std::move(result_.metrics[row]));
  return measured;
}

void TensorRows::take(MeasuredRows&& measured) {
  if (measured.rows != result_.rows.size() || measured.first + measured.metrics.size() > measured.rows)
    throw FormatError(display(result_.target.json), "changed while it was compared");
  taken_.resize(result_.rows.size());
  for (std::size_t i = 0; i < measured.metrics.size(); ++i) {
    taken_[measured.first + i] = true;
    result_.metrics[measured.first + i] = std::move(measured.metrics[i]);
  }
}

void TensorRows::finish(bool print_rows) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < result_.rows.size(); ++i) {
    const Pair& row = result_.rows[i];
    if (result_.is_left_out(row)) {
      result_.metrics[i] = TensorMetrics();
      result_.metrics[i].status = MetricStatus::left_out;
    } else if (!taken_.empty() && taken_[i]) {
      continue;
    } else if (!row.has_target() || !done_[result_.target_item(row).api]) {
      rows.push_back(i);
    }
  }
  for (std::uint32_t api = 0; api < done_.size() && api < result_.entries_reached; ++api) {
    if (!done_[api]) find_groups(api);
    done_[api] = true;
  }
  measure(rows);
  for (const auto& [api, problem] : groups_unread_) {
    if (api < result_.entries_reached)
      log_warning("the groups of a grouped kernel cannot be read: " + problem);
  }
  for (std::size_t i = 0; i < result_.rows.size(); ++i) {
    Pair& row = result_.rows[i];
    if (result_.is_left_out(row)) continue;
    if (print_rows) print_row(result_, row, result_.metrics[i]);
    if (!copies_differ_.empty() && copies_differ_[i] != 0) {
      if ((copies_differ_[i] & kOfTarget) != 0) result_.target_joins->decision(row.target).differ = true;
      if ((copies_differ_[i] & kOfGolden) != 0) result_.golden_joins->decision(row.golden).differ = true;
      row.copies_differ = true;
    }
  }
}

void TensorRows::measure(const std::vector<std::uint32_t>& rows) {
  parallel_for(rows.size(), [&](std::size_t i) {
    const Pair& row = result_.rows[rows[i]];
    result_.metrics[rows[i]] = measured(row);
    if (!copies_differ_.empty()) {
      copies_differ_[rows[i]] = copies_that_differ(row);
      if (copies_differ_[rows[i]] == (kOfTarget | kOfGolden) && take_for_own(row)) {
        copies_differ_[rows[i]] = 0;
        result_.metrics[rows[i]] = measured(row);
      }
    }
    if (bytes_.wanted()) bytes_.advance(bytes_of(result_.rows[rows[i]]));
  });
}

/// The state of one pair while its files are opened.
struct TensorRows::Reading {
  std::optional<std::int64_t> valid_rows;  // of the target, until the elements beyond them are set to 0
  FactorNotes notes;
};

/// Opens an item that one side has fused from several: the parts share one input, their parameters are
/// stacked along the first axis, their outputs along the second.
formats::StoredTensor TensorRows::open_item(FactorSide which, std::uint32_t index, Reading& reading) const {
  const Side& side = which == FactorSide::target ? result_.target : result_.golden;
  const auto opened = [&](std::uint32_t part) {
    const Item& item = side.items[part];
    return with_factors(which, item, open(result_, side, item), reading);
  };
  const auto merged = side.merged.find(index);
  if (merged == side.merged.end()) return opened(index);
  const std::string_view name = side.name(side.items[merged->second.front()]);
  const bool input = name.find(".input.") != std::string_view::npos;
  std::vector<formats::StoredTensor> parts;
  for (const std::uint32_t part : merged->second) {
    parts.push_back(opened(part));
    if (input) return parts.front();
  }
  const bool parameters = name.find(".parameters.") != std::string_view::npos;
  return formats::join_tensors(parts, parameters ? 0 : 1);
}

formats::StoredTensor TensorRows::with_factors(FactorSide which, const Item& item,
                                               const formats::StoredTensor& tensor, Reading& reading) const {
  if (!result_.factors) return tensor;
  const Side& side = which == FactorSide::target ? result_.target : result_.golden;
  const std::optional<std::size_t> place = result_.factors->find(which, side.text(item.data_name));
  if (!place) return tensor;
  std::optional<std::int64_t> none;
  return multiplied(tensor, result_.factors->all()[*place],
                    which == FactorSide::target ? reading.valid_rows : none, reading.notes);
}

TensorMetrics TensorRows::compared(const formats::StoredTensor& target, const formats::StoredTensor& golden,
                                   Reading&& reading) const {
  TensorMetrics metrics = compare_tensors(target, golden, result_.python, reading.valid_rows);
  metrics.messages.insert(metrics.messages.begin(), reading.notes.messages.begin(),
                          reading.notes.messages.end());
  metrics.not_multiplied = std::move(reading.notes.failures);
  return metrics;
}

TensorMetrics TensorRows::measured(const Pair& row) const {
  if (!row.has_target()) return unsupported(kUnmatchedMessage, false);
  const Item& item = result_.target_item(row);
  if (item.data_name == 0) return unsupported(kNoTargetFile, expects_data(result_.target, item));
  if (!row.matched()) return unsupported(kUnmatchedMessage, false);
  const Item& bench = result_.golden_item(row);
  if (bench.data_name == 0) return unsupported(kNoGoldenFile, expects_data(result_.golden, bench));
  const std::string target_name(result_.target.text(item.data_name));
  const std::string golden_name(result_.golden.text(bench.data_name));
  try {
    if (result_.target_joins || result_.golden_joins) return measured_joined(row);
    Reading reading{.valid_rows = valid_rows(item), .notes = {}};
    const formats::StoredTensor target = open_item(FactorSide::target, row.target, reading);
    const formats::StoredTensor golden = open_item(FactorSide::golden, row.golden, reading);
    return compared(target, golden, std::move(reading));
  } catch (const Error& error) {
    const bool one_name = target_name == golden_name;  // the reason has the folder
    return unsupported(
        fmt::format("Dump file: {}{}{} not found or read failed. ({})", display(target_name),
                    one_name ? "" : " or ", one_name ? "" : display(golden_name), error.what()),
        true);
  }
}

/// Joins the ranks' parts while reading them. Weights that were fused before they were split are interleaved:
/// if all statistics agree but the elements do not, the parts are tried as two or three pieces each.
TensorMetrics TensorRows::measured_joined(const Pair& row) const {
  const auto opened = [&](FactorSide which, std::uint32_t index, std::size_t chunks, Reading& reading) {
    const bool is_target = which == FactorSide::target;
    const Side& side = is_target ? result_.target : result_.golden;
    const Joins* const joins = is_target ? result_.target_joins.get() : result_.golden_joins.get();
    const Item& item = side.items[index];
    const bool in_parts = joins != nullptr && !joins->parts(index).empty();
    return with_factors(which, item, in_parts ? open_joined(*joins, index, chunks) : open_data(side, item),
                        reading);
  };
  const auto compared_in = [&](std::size_t chunks) {
    Reading reading{.valid_rows = valid_rows(result_.target_item(row)), .notes = {}};
    const Joins* const joins = result_.target_joins.get();
    const bool in_parts =
        joins != nullptr && joins->is_split(row.target) && joins->decision(row.target).share != Share::copies;
    if (reading.valid_rows && in_parts) {
      reading.valid_rows.reset();
      reading.notes.messages.emplace_back(
          "NPU elements beyond the valid length of the call are compared: each rank has its own length.");
    }
    const formats::StoredTensor target = opened(FactorSide::target, row.target, chunks, reading);
    const formats::StoredTensor golden = opened(FactorSide::golden, row.golden, chunks, reading);
    return compared(target, golden, std::move(reading));
  };
  const auto is_untold = [](const Joins* joins, std::uint32_t item) {
    return joins != nullptr && joins->is_split(item) && joins->decision(item).untold &&
           joins->decision(item).share == Share::sums;
  };
  if (is_untold(result_.target_joins.get(), row.target) || is_untold(result_.golden_joins.get(), row.golden))
    return unsupported("The ranks hold terms that are masked before they are summed.", false);
  TensorMetrics metrics = compared_in(1);
  constexpr double kApart = 0.01;
  if (metrics.failed || !(metrics.measure.e > kApart)) return metrics;
  const auto shards_of = [](const Joins* joins, std::uint32_t item) -> std::size_t {
    return joins != nullptr && joins->is_split(item) && joins->decision(item).share == Share::shards
               ? joins->parts(item).size()
               : 1;
  };
  if (shards_of(result_.target_joins.get(), row.target) ==
          shards_of(result_.golden_joins.get(), row.golden) ||
      metrics.measure.b > kApart)
    return metrics;
  for (const std::size_t chunks : {2, 3}) {
    try {
      TensorMetrics other = compared_in(chunks);
      if (!other.failed && other.measure.e < metrics.measure.e / 2) return other;
    } catch (const FormatError&) {
      // The parts cannot be cut into so many pieces.
    }
  }
  return metrics;
}

char TensorRows::copies_that_differ(const Pair& row) const {
  const auto differ = [](const Joins* joins, std::uint32_t item) {
    if (joins == nullptr || !joins->is_split(item) || joins->parts(item).front().data_name == 0) return false;
    const pairing::Decision& decision = joins->decision(item);
    if (decision.share != Share::copies && decision.block == 1) return false;
    try {
      return !copies_agree(*joins, item);
    } catch (const Error&) {
      return true;
    }
  };
  char found = 0;
  if (!row.matched()) return found;
  if (differ(result_.target_joins.get(), row.target)) found |= kOfTarget;
  if (differ(result_.golden_joins.get(), row.golden)) found |= kOfGolden;
  return found;
}

/// If copies differ on both sides, in as many ranks on each, they are not copies: each rank holds its own
/// data. Compares them as shards then.
bool TensorRows::take_for_own(const Pair& row) {
  Joins& target = *result_.target_joins;
  Joins& golden = *result_.golden_joins;
  const auto are_copies = [](const Joins& joins, std::uint32_t item) {
    return joins.decision(item).share == Share::copies;
  };
  if (!are_copies(target, row.target) || !are_copies(golden, row.golden) ||
      target.parts(row.target).size() != golden.parts(row.golden).size())
    return false;
  target.decision(row.target) = golden.decision(row.golden) = {.share = Share::shards};
  return true;
}

/// The outputs of grouped kernels are undefined after the last group. An argument of the call has the lengths
/// of the groups.
void TensorRows::find_groups(std::uint32_t target_api) {
  const Side& side = result_.target;
  const auto has = [](std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  const dump::Api& api = side.apis[target_api];
  const std::string_view name = side.text(api.name);
  const std::string_view argument = has(name, "npu_dequant_swiglu_quant") ? ".group_index"
                                    : has(name, "npu_grouped_matmul")     ? ".group_list"
                                                                          : "";
  if (argument.empty()) return;
  for (const std::uint32_t i : api.items()) {
    const Item& groups = side.items[i];
    if (groups.data_name == 0 || !side.name(groups).ends_with(argument)) continue;
    try {
      group_rows_[target_api] = sum_of_integers(open(result_, side, groups));
    } catch (const Error& error) {
      groups_unread_[target_api] = error.what();
    }
    return;
  }
}

std::optional<std::int64_t> TensorRows::valid_rows(const Item& item) const {
  const auto found = group_rows_.find(item.api);
  if (found == group_rows_.end()) return std::nullopt;
  if (result_.target.name(item).find("output") == std::string_view::npos) return std::nullopt;
  return found->second;
}

}  // namespace msprobe::measuring

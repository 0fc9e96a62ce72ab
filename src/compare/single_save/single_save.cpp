// SPDX-License-Identifier: Apache-2.0
#include "compare/single_save/single_save.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "formats/element_values.hpp"
#include "formats/npy.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace msprobe::compare {
namespace {

using formats::StoredTensor;
using verdict::Verdict;

constexpr std::size_t kSavedAtOnce = std::size_t{16} << 10;

/// The part that both have: cut along every axis, or along the flat array if the numbers of axes differ.
struct CommonPart {
  StoredTensor target;
  StoredTensor golden;
  std::int64_t count = 0;  // elements, the first ones in logical order
};

CommonPart common_part(StoredTensor target, StoredTensor golden) {
  CommonPart part;
  if (target.shape.size() == golden.shape.size()) {
    for (std::size_t axis = 0; axis < target.shape.size(); ++axis) {
      target.shape[axis] = golden.shape[axis] = std::min(target.shape[axis], golden.shape[axis]);
    }
  }
  part.count = std::min(target.numel(), golden.numel());
  part.target = std::move(target);
  part.golden = std::move(golden);
  return part;
}

struct ArrayDifference {
  std::int64_t count = 0;
  std::int64_t equal = 0;
  std::int64_t first_unequal = -1;
  double max_abs = 0;
  double max_relative = 0;
  std::int64_t within_thousandth = 0;
  std::int64_t within_hundredth = 0;
  bool numbers = false;  // both have an element that is a number
};

/// Complex numbers are treated as pairs: `parts` is 2.
struct Element {
  bool equal = false;
  double distance = 0;
  double size = 0;  // the larger of both
};

Element element_at(std::span<const double> n, std::span<const double> b, std::size_t at, std::size_t parts) {
  Element element;
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  if (parts == 1) {
    element.equal = same(n[at], b[at]);
    element.distance = std::fabs(n[at] - b[at]);
    element.size = std::max(std::fabs(n[at]), std::fabs(b[at]));
  } else {
    const std::size_t i = 2 * at;
    element.equal = same(n[i], b[i]) && same(n[i + 1], b[i + 1]);
    element.distance = std::hypot(n[i] - b[i], n[i + 1] - b[i + 1]);
    element.size = std::max(std::hypot(n[i], n[i + 1]), std::hypot(b[i], b[i + 1]));
  }
  if (element.equal) element.distance = 0;  // Inf - Inf
  return element;
}

void add_element(const Element& element, ArrayDifference& sum) {
  if (element.equal) {
    ++sum.equal;
  } else if (sum.first_unequal < 0) {
    sum.first_unequal = sum.count;
  }
  ++sum.count;
  sum.numbers = sum.numbers || !std::isnan(element.size);
  // A NaN stays once it has occurred.
  if (!(element.distance <= sum.max_abs) && !std::isnan(sum.max_abs)) sum.max_abs = element.distance;
  double relative = element.equal ? 0 : element.distance / element.size;
  bool thousandth = element.distance <= 0.001 * element.size;
  bool hundredth = element.distance <= 0.01 * element.size;
  if (!element.equal && !std::isfinite(element.distance)) {
    relative = measuring::kInfinite;
    thousandth = hundredth = false;
  } else if (element.equal) {
    thousandth = hundredth = true;
  }
  sum.max_relative = std::max(sum.max_relative, relative);
  sum.within_thousandth += thousandth ? 1 : 0;
  sum.within_hundredth += hundredth ? 1 : 0;
}

ArrayDifference difference_of(const CommonPart& part) {
  formats::ValueReader target(part.target);
  formats::ValueReader golden(part.golden);
  if (target.numbers_per_element() != golden.numbers_per_element()) {
    throw FormatError(part.target.storage->name(), "only one of the two arrays is complex");
  }
  ArrayDifference sum;
  while (sum.count < part.count) {
    check_interrupt();
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(part.count - sum.count, kSavedAtOnce));
    const std::span<const double> n = target.read(count);
    const std::span<const double> b = golden.read(count);
    for (std::size_t i = 0; i < count; ++i) {
      add_element(element_at(n, b, i, target.numbers_per_element()), sum);
    }
  }
  return sum;
}

double percentage(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole) * 100;
}

std::string shape_text(const StoredTensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

void judge(const ArrayDifference& difference, bool same_shape, ListedRow& row) {
  if (difference.within_hundredth < difference.count) {
    row.verdict = Verdict::error;
    row.reason = "elements are off by more than a hundredth";
  } else if (difference.within_thousandth < difference.count) {
    row.verdict = Verdict::warning;
    row.reason = "elements are off by more than a thousandth";
  } else if (!same_shape) {
    row.verdict = Verdict::warning;
    row.reason = "the shapes differ: the common part was compared";
  }
  row.weight = difference.max_relative;
  row.measure = fmt::format("max relative error {:.4g}", difference.max_relative);
}

std::string saved_name(const SavedKey& key) {
  return fmt::format("step {} rank {} micro step {} id {}", key[0], key[1], key[2], key[3]);
}

ListedRow saved_row(const SavedKey& key, const std::string& target_file, const std::string& golden_file) {
  ListedRow row;
  row.name = saved_name(key);
  row.cells.assign(key.begin(), key.end());
  try {
    const StoredTensor target = formats::open_npy(open_file(target_file));
    const StoredTensor golden = formats::open_npy(open_file(golden_file));
    row.cells.emplace_back(shape_text(target));
    row.cells.emplace_back(shape_text(golden));
    const CommonPart part = common_part(target, golden);
    if (part.count == 0) throw FormatError(target_file, "the arrays have no element in common");
    const ArrayDifference difference = difference_of(part);
    row.cells.emplace_back(percentage(difference.equal, difference.count));
    row.cells.push_back(difference.first_unequal < 0 ? ListedCell(std::string())
                                                     : ListedCell(difference.first_unequal));
    row.cells.emplace_back(difference.max_abs);
    row.cells.emplace_back(difference.max_relative);
    row.cells.emplace_back(percentage(difference.within_thousandth, difference.count));
    row.cells.emplace_back(percentage(difference.within_hundredth, difference.count));
    judge(difference, target.shape == golden.shape, row);
    row.unknown = !difference.numbers;
  } catch (const Error& error) {
    constexpr std::size_t kColumns = 12;
    row.cells.resize(kColumns, std::string("N/A"));
    row.verdict = Verdict::warning;
    row.unreadable = true;
    row.reason = error.what();
  }
  row.cells.emplace_back(row.reason);
  return row;
}

void report_missing(const std::string& tag, const SavedArrays& here, const SavedArrays* there,
                    const char* where, std::vector<std::string>& lines) {
  constexpr std::size_t kMostOneSided = 20;
  std::size_t missing = 0;
  for (const auto& [key, file] : here) {
    if (there != nullptr && there->contains(key)) continue;
    if (++missing > kMostOneSided) continue;
    lines.push_back(fmt::format("{} {}: only in {}", tag, saved_name(key), where));
  }
  if (missing > kMostOneSided)
    lines.push_back(fmt::format("{}: {} more only in {}", tag, missing - kMostOneSided, where));
}

}  // namespace

RowList compare_saved(const SavedArrays& target, const SavedArrays& golden, Progress* progress) {
  RowList list;
  list.columns = report::columns_of(
      "step,rank,micro_step,id,shape1,shape2,相同元素百分比(%),首个不匹配元素索引,最大绝对误差,"
      "最大相对误差,误差在千分之一内元素占比(%),误差在百分之一内元素占比(%),Err_message");
  struct SavedPair {
    const SavedKey* key;
    const std::string* target;
    const std::string* golden;
  };
  std::vector<SavedPair> common;
  for (const auto& [key, file] : target) {
    const auto other = golden.find(key);
    if (other != golden.end()) common.push_back({&key, &file, &other->second});
  }
  list.fill(common.size(), progress, "comparing arrays", "arrays",
            [&](std::size_t i) { return saved_row(*common[i].key, *common[i].target, *common[i].golden); });
  return list;
}

TaskPlan plan_single_saves(const FoundSaves& target, const FoundSaves& golden, Progress* progress) {
  TaskPlan plan;
  plan.one_at_a_time = true;
  for (const auto& [tag, arrays] : target.tags) {
    const auto other = golden.tags.find(tag);
    report_missing(tag, arrays, other == golden.tags.end() ? nullptr : &other->second, "target",
                   plan.one_sided);
    if (other == golden.tags.end()) continue;
    CompareTask& task = plan.tasks.emplace_back();
    task.label = tag;
    task.name = tag;
    task.timed = false;
    task.workbook = true;
    task.target = target.path + "/data/" + tag;
    task.golden = golden.path + "/data/" + tag;
    task.run = [here = arrays, there = other->second, progress] {
      return std::make_shared<ListRows>(measuring::Mode::tensor, compare_saved(here, there, progress));
    };
  }
  for (const auto& [tag, arrays] : golden.tags) {
    const auto other = target.tags.find(tag);
    report_missing(tag, arrays, other == target.tags.end() ? nullptr : &other->second, "golden",
                   plan.one_sided);
  }
  if (plan.tasks.empty()) throw FormatError("the two trees of saved arrays have no tag in common");
  return plan;
}

}  // namespace msprobe::compare

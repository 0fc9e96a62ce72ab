// SPDX-License-Identifier: Apache-2.0
#include "parse/elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "formats/element_values.hpp"
#include "formats/tensor_set.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/log.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::parse {
namespace {

using formats::StoredTensor;
using formats::ValueReader;
using tensor::DTypeKind;

constexpr std::size_t kElementsAtOnce = std::size_t{16} << 10;
constexpr std::size_t kShownRows = 16;
constexpr std::size_t kShownColumns = 8;
// No elements are left out, since users of this command want to see all of them.
constexpr std::size_t kNoLimit = 1'000'000;

std::string table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  report::TerminalStyle style;
  style.width = kNoLimit;
  return report::render_columns(header, rows, style);
}

/// A shape as Python prints the tuple.
std::string tuple_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

std::string extremum_text(double value, const StoredTensor& tensor) {
  if (tensor::info(tensor.dtype).kind == DTypeKind::boolean) return value != 0 ? "True" : "False";
  return formats::number_text(value, tensor.dtype);
}

/// A NaN loses its sign, as when Python prints it.
double plain(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

/// Saves the text beside the tensor. The folder of a dump may be read-only; the result is shown anyway.
bool try_to_save(const StoredTensor& tensor, const std::string& path) {
  try {
    if (!save_as_text(tensor, path)) log_info(display(path) + " already exists and is kept");
    return true;
  } catch (const IoError& error) {
    log_warning(error.what());
    return false;
  }
}

/// Returns the next `count` values as float32; zeros after the end of the tensor.
class FloatFeed {
 public:
  explicit FloatFeed(const StoredTensor& tensor) : reader_(tensor) {}

  const std::vector<float>& next(std::size_t count) {
    const std::size_t parts = reader_.numbers_per_element();
    const auto values = reader_.read(count);
    out_.assign(count, 0.0F);
    // Complex numbers are converted to their real parts, as in NumPy.
    for (std::size_t i = 0; i < values.size() / parts; ++i) out_[i] = static_cast<float>(values[i * parts]);
    return out_;
  }

 private:
  ValueReader reader_;
  std::vector<float> out_;
};

bool is_close(float left, float right, float difference, const ElementTolerance& tolerance) {
  if (!std::isfinite(left) || !std::isfinite(right)) return left == right;
  return static_cast<double>(difference) <=
         tolerance.absolute + tolerance.relative * std::fabs(static_cast<double>(right));
}

std::string rows_table(const char* title, const std::vector<ElementRow>& rows) {
  std::vector<std::vector<std::string>> cells;
  cells.reserve(rows.size());
  for (const ElementRow& row : rows) {
    cells.push_back({std::to_string(row.index), formats::float_text(row.left), formats::float_text(row.right),
                     formats::float_text(row.difference)});
  }
  return std::string(title) + "\n" + table({"Index", "Left", "Right", "Diff"}, cells);
}

std::string side_text(const char* title, const std::string& path, const StoredTensor& tensor, bool saved) {
  std::string text = fmt::format("{}:\n - File: {}\n", title, display(path));
  if (saved) text += fmt::format(" - TxtFile: {}.txt\n", display(path));
  return text + " - Spec: " + specification(tensor, path) + "\n";
}

}  // namespace

StoredTensor open_single(const std::string& path) {
  const auto set = formats::open_tensors(open_file(path));
  if (set->size() != 1) {
    throw FormatError(display(path),
                      fmt::format("it holds {} tensors, but this command needs a file with one "
                                  "('msprobe inspect' lists them)",
                                  set->size()));
  }
  return set->tensor(0);
}

std::string specification(const StoredTensor& tensor, const std::string& path) {
  if (tensor.numel() == 0) throw FormatError(display(path), "the data is empty");
  tensor::Statistics statistics = formats::statistics_of(tensor);
  if (statistics.nan > 0) statistics.max = statistics.min = std::numeric_limits<double>::quiet_NaN();
  const auto range = formats::integer_range(tensor.dtype, statistics);
  return fmt::format("[Shape: {}] [Dtype: {}] [Max: {}] [Min: {}] [Mean: {}]", tuple_text(tensor.shape),
                     tensor::info(tensor.dtype).name,
                     range ? range->max : extremum_text(statistics.max, tensor),
                     range ? range->min : extremum_text(statistics.min, tensor),
                     formats::number_text(statistics.mean(), tensor.dtype));
}

bool save_as_text(const StoredTensor& tensor, const std::string& path) {
  if (std::filesystem::exists(path)) return false;
  OutputFile file(path);
  ValueReader reader(tensor);
  const std::size_t parts = reader.numbers_per_element();
  const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  std::int64_t column = 0;
  std::string text;
  while (reader.remaining() > 0) {
    check_interrupt();
    text.clear();
    const auto values = reader.read(kElementsAtOnce);
    for (std::size_t i = 0; i < values.size(); i += parts) {
      if (parts == 2) {
        text += fmt::format("({:g}{:+g}j)", plain(values[i]), plain(values[i + 1]));
      } else {
        text += fmt::format("{:g}", plain(values[i]));
      }
      const bool last = ++column == columns;
      text += last ? '\n' : ' ';
      if (last) column = 0;
    }
    file.write(text);
  }
  file.commit();
  return true;
}

std::string show_tensor(const std::string& path) {
  const StoredTensor tensor = open_single(path);
  const std::string spec = specification(tensor, path);
  const auto elements = formats::first_elements(tensor, kShownRows * kShownColumns);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < elements.size(); i += kShownColumns) {
    const std::size_t end = std::min(i + kShownColumns, elements.size());
    rows.push_back({std::to_string(i),
                    fmt::format("{}", fmt::join(elements.begin() + static_cast<std::ptrdiff_t>(i),
                                                elements.begin() + static_cast<std::ptrdiff_t>(end), " "))});
  }
  const std::string text_file = path + ".txt";
  std::string out = table({"Index", "Data"}, rows) + spec + "\nPath: " + display(path) + "\n";
  if (try_to_save(tensor, text_file)) out += "TextFile: " + display(text_file) + "\n";
  return out;
}

ElementComparison compare_elements(const StoredTensor& left, const StoredTensor& right,
                                   const ElementTolerance& tolerance, std::size_t rows) {
  ElementComparison result;
  result.count = static_cast<std::uint64_t>(std::max(left.numel(), right.numel()));
  FloatFeed left_feed(left);
  FloatFeed right_feed(right);
  double dot = 0;
  double left_squares = 0;
  double right_squares = 0;
  for (std::uint64_t begin = 0; begin < result.count; begin += kElementsAtOnce) {
    check_interrupt();
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(kElementsAtOnce, result.count - begin));
    const std::vector<float>& l = left_feed.next(count);
    const std::vector<float>& r = right_feed.next(count);
    for (std::size_t i = 0; i < count; ++i) {
      const ElementRow row{begin + i, l[i], r[i], std::fabs(l[i] - r[i])};
      const double wide_left = row.left;
      const double wide_right = row.right;
      dot += wide_left * wide_right;
      left_squares += wide_left * wide_left;
      right_squares += wide_right * wide_right;
      if (std::isnan(row.left) || std::isnan(row.right)) ++result.nan;
      result.all_close = result.all_close && is_close(row.left, row.right, row.difference, tolerance);
      if (result.first.size() < rows) result.first.push_back(row);
      const double allowed = tolerance.absolute + tolerance.relative * std::fabs(wide_right);
      if (static_cast<double>(row.difference) > allowed) {
        if (result.first_wrong.size() < rows) result.first_wrong.push_back(row);
        ++result.wrong;
      }
    }
  }
  result.cosine = dot / (std::sqrt(left_squares) * std::sqrt(right_squares));
  return result;
}

std::string compare_files(const CompareRequest& request) {
  const StoredTensor left = open_single(request.left);
  const StoredTensor right = open_single(request.right);
  if (left.shape != right.shape) {
    log_warning(fmt::format("the shapes differ: {} and {}", tuple_text(left.shape), tuple_text(right.shape)));
  }
  if (left.numel() != right.numel()) {
    log_warning(fmt::format("the sizes differ: {} and {}; the shorter side is padded with zeros",
                            left.numel(), right.numel()));
  }
  const bool left_saved = request.save && try_to_save(left, request.left + ".txt");
  const bool right_saved = request.save && try_to_save(right, request.right + ".txt");
  const std::string sides = side_text("Left", request.left, left, left_saved) +
                            side_text("Right", request.right, right, right_saved);
  const ElementComparison found = compare_elements(left, right, request.tolerance, request.rows);
  std::string out = rows_table("Error Item Table", found.first_wrong);
  out += rows_table("Top Item Table", found.first) + sides;
  out +=
      fmt::format("NumCnt:   {}\nAllClose: {}\nCosSim:   {}\n", found.count,
                  found.all_close ? "True" : "False", formats::float_text(static_cast<float>(found.cosine)));
  const double share = static_cast<double>(found.wrong) / static_cast<double>(found.count);
  out += fmt::format("ErrorPer: {}  (rl= {}, al= {})\n", python_repr(share),
                     python_repr(request.tolerance.relative), python_repr(request.tolerance.absolute));
  // A difference to NaN never exceeds a tolerance, so the share above does not count it.
  if (found.nan > 0) out += fmt::format("NaN:      {} (ErrorPer does not count them)\n", found.nan);
  return out;
}

}  // namespace msprobe::parse

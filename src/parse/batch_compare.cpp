// SPDX-License-Identifier: Apache-2.0
#include "parse/batch_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <limits>
#include <vector>

#include "formats/element_values.hpp"
#include "parse/elements.hpp"
#include "report/writers.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::parse {
namespace {

namespace fs = std::filesystem;
using formats::StoredTensor;
using formats::ValueReader;
using tensor::DType;
using tensor::DTypeKind;

constexpr int kDepth = 5;
constexpr std::size_t kPiece = std::size_t{16} << 10;
constexpr std::array<std::string_view, 4> kSuffixes = {".npy", ".npz", ".pt", ".safetensors"};

bool is_tensor_name(const std::string& name) {
  return std::ranges::any_of(kSuffixes, [&](std::string_view s) { return name.ends_with(s); });
}

Listing list(const std::string& folder) {
  Listing found;
  for (const std::string& name : names_in(folder)) {
    (is_folder(fs::path(folder) / name) ? found.folders : found.files).push_back(name);
  }
  return found;
}

[[noreturn]] void refuse_pair(const std::string& mine, const std::string& golden, const std::string& what) {
  throw FormatError(fmt::format("{} and {}: {}", display(mine), display(golden), what));
}

/// The number that replaces a zero divisor: it is added before the division.
double least_step(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float64:
    case DType::complex128:
      return std::numeric_limits<double>::epsilon();
    default:
      return tensor::info(dtype).kind == DTypeKind::integer || tensor::info(dtype).kind == DTypeKind::boolean
                 ? std::numeric_limits<double>::epsilon()
                 : static_cast<double>(std::numeric_limits<float>::epsilon());
  }
}

/// The larger number; NaN if one of them is NaN, as in NumPy.
double spreading_max(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
}

struct Errors {
  double absolute = 0;
  double relative = 0;
};

Errors largest_errors(const StoredTensor& mine, const StoredTensor& golden) {
  Errors errors;
  const double step = least_step(mine.dtype);
  ValueReader left(mine);
  ValueReader right(golden);
  const bool complex = left.numbers_per_element() == 2;
  while (left.remaining() > 0) {
    check_interrupt();
    const auto l = left.read(kPiece);
    const auto r = right.read(kPiece);
    for (std::size_t i = 0; i < l.size(); i += complex ? 2 : 1) {
      const double difference =
          complex ? std::hypot(l[i] - r[i], l[i + 1] - r[i + 1]) : std::fabs(l[i] - r[i]);
      const double size = complex ? std::hypot(r[i], r[i + 1]) : std::fabs(r[i]);
      errors.absolute = spreading_max(errors.absolute, difference);
      errors.relative = spreading_max(errors.relative, difference / (size == 0 ? step : size));
    }
  }
  return errors;
}

bool same_bytes(const StoredTensor& mine, const StoredTensor& golden) {
  formats::ElementReader left(mine);
  formats::ElementReader right(golden);
  const std::size_t size = tensor::info(mine.dtype).size;
  std::vector<std::byte> l;
  std::vector<std::byte> r;
  while (left.remaining() > 0) {
    check_interrupt();
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(left.remaining(), kPiece));
    l.resize(count * size);
    r.resize(count * size);
    left.read(l);
    right.read(r);
    if (l != r) return false;
  }
  return true;
}

/// A field of the csv. Names are untrusted: they must neither break the line nor act as a formula.
std::string field(const std::string& text) {
  const std::string shown = valid_utf8(text);
  std::string out;
  append_csv_field(out, (report::looks_like_formula(shown) ? "'" : "") + shown);
  return out;
}

class BatchComparison {
 public:
  explicit BatchComparison(OutputFile& out) : out_(out) {
    out_.write(
        "\xef\xbb\xbfNPU File Name,Bench File Name,Mean,Bench Mean,Md5 Consistency,Max Abs Error,"
        "Max Relative Error\r\n");
  }

  void run(const std::string& mine, const std::string& golden) {
    const Listing left = list(mine);
    const Listing right = list(golden);
    if (left.folders != right.folders) refuse_pair(mine, golden, "the names of the operators differ");
    for (const std::string& name : left.folders) operation(mine + "/" + name, golden + "/" + name);
  }

 private:
  void operation(const std::string& mine, const std::string& golden) {
    const Listing left = list(mine);
    const Listing right = list(golden);
    if (left.folders.size() != right.folders.size())
      refuse_pair(mine, golden, "the numbers of timestamps differ");
    for (std::size_t i = 0; i < left.folders.size(); ++i) {
      timestamp(mine + "/" + left.folders[i], golden + "/" + right.folders[i]);
    }
  }

  void timestamp(const std::string& mine, const std::string& golden) {
    const Listing left = list(mine);
    const Listing right = list(golden);
    if (left.files.size() != right.files.size() || !left.folders.empty() || !right.folders.empty()) {
      refuse_pair(mine, golden, "they hold different numbers of files, or other things than files");
    }
    for (std::size_t i = 0; i < left.files.size(); ++i) {
      pair(mine, left.files[i], golden, right.files[i]);
    }
  }

  void pair(const std::string& mine, const std::string& left_name, const std::string& golden,
            const std::string& right_name) {
    const std::string left_path = mine + "/" + left_name;
    const std::string right_path = golden + "/" + right_name;
    const StoredTensor left = open_single(left_path);
    const StoredTensor right = open_single(right_path);
    if (left.shape != right.shape || left.dtype != right.dtype) {
      refuse_pair(left_path, right_path, "shape or type differ");
    }
    if (left.numel() == 0) throw FormatError(display(left_path), "the data is empty");
    const Errors errors = largest_errors(left, right);
    const DTypeKind kind = tensor::info(left.dtype).kind;
    const bool whole = kind == DTypeKind::integer || kind == DTypeKind::boolean;
    const auto number = [&](double value) { return formats::number_text(value, left.dtype); };
    out_.write(fmt::format(
        "{},{},{},{},{},{},{}\r\n", field(left_name), field(right_name),
        number(formats::statistics_of(left).mean()), number(formats::statistics_of(right).mean()),
        same_bytes(left, right) ? "True" : "False",
        whole ? fmt::format("{:.0f}", errors.absolute) : number(errors.absolute), number(errors.relative)));
  }

  OutputFile& out_;
};

}  // namespace

bool holds_only_tensors(const std::string& folder) {
  std::error_code error;
  bool any = false;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    check_interrupt();
    if (entry.depth() >= kDepth) entry.disable_recursion_pending();
    std::error_code ignored;
    if (entry->is_directory(ignored)) continue;
    if (!is_tensor_name(entry->path().filename().string())) return false;
    any = true;
  }
  if (error) throw IoError(display(folder), error.message());
  return any;
}

std::string batch_compare(const std::string& mine, const std::string& golden, const std::string& output) {
  std::error_code ignored;
  if (fs::equivalent(mine, golden, ignored)) {
    throw UsageError(fmt::format("{} and {} are the same folder", display(mine), display(golden)));
  }
  create_directories(output);
  std::string path = fmt::format("{}/batch_compare_{}.csv", output, std::time(nullptr));
  OutputFile file(path);
  BatchComparison(file).run(mine, golden);
  file.commit();
  return path;
}

}  // namespace msprobe::parse

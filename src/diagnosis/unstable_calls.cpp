// SPDX-License-Identifier: Apache-2.0
// Rows of free_benchmark.csv: results that changed when a call was made again with the last bits of its
// inputs changed. A row has only the largest change of a single element. How much of the whole tensor that
// is, is estimated from the tensor's size as if all elements changed by as much.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnosis/limits.hpp"
#include "diagnosis/noise_floor.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "measuring/measures.hpp"
#include "sheets/csv_rows.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Api;
using dump::Item;
using dump::Side;
using dump::State;

constexpr double kNoBound = std::numeric_limits<double>::infinity();

enum CallColumn : std::size_t {
  kCallMode,
  kCallStage,
  kCallName,
  kCallLargest,
  kCallType,
  kCallShape,
  kCallColumnCount
};
constexpr std::array<std::string_view, kCallColumnCount> kCallColumns = {"pert_mode", "stage", "api_name",
                                                                         "max_rel",   "dtype", "shape"};

/// The largest change of an element that was not too small to count.
struct LargestChange {
  double relative = 0;      // at least
  double bound = kNoBound;  // at most
  bool broke = false;       // a NaN or an infinity came or went
};

std::optional<LargestChange> change_of(std::string_view text) {
  if (text.empty()) return LargestChange{};
  if (text == "symbol_flipping") return LargestChange{.relative = 2};
  if (text == "inf") return LargestChange{.broke = true};
  const auto number = parse_number(text);
  if (!number || !(*number >= 0) || !std::isfinite(*number)) return std::nullopt;
  return LargestChange{.relative = *number, .bound = *number};
}

/// The smallest element that free_benchmark looked at.
double least_element(std::string_view dtype, bool backward) {
  if (backward) return 1e-3;
  const auto is = [&](std::string_view name) { return measuring::same_dtype(dtype, name); };
  return is("torch.bfloat16") ? 1e-2 : is("torch.float16") ? 1e-3 : is("torch.float64") ? 1e-8 : 1e-4;
}

class UnstableCalls final : public NoiseFloor {
 public:
  UnstableCalls(const ByteSource& csv, const Side& golden) : golden_(golden), file_(display(csv.name())) {
    for (std::uint32_t i = 0; i < golden.apis.size(); ++i)
      entries_.emplace(golden.text(golden.apis[i].name), i);
    read(csv);
  }

  diagnosis::Noise operator()(std::uint32_t golden_item) const override {
    const auto found = noise_.find(golden_item);
    return found == noise_.end() ? diagnosis::Noise() : found->second;
  }

 private:
  void read(const ByteSource& csv) {
    sheets::CsvRows rows(csv);
    std::vector<std::string> fields;
    if (!rows.next(fields)) throw FormatError(file_, "not a table of free_benchmark: it is empty");
    std::array<std::size_t, kCallColumnCount> places{};
    for (std::size_t i = 0; i < kCallColumnCount; ++i) {
      const auto at = std::find(fields.begin(), fields.end(), kCallColumns[i]);
      if (at == fields.end())
        throw FormatError(file_, fmt::format("not a table of free_benchmark: no column {}", kCallColumns[i]));
      places[i] = static_cast<std::size_t>(at - fields.begin());
    }
    const std::size_t width = fields.size();
    std::uint64_t count = 0;
    std::uint64_t used = 0;
    while (rows.next(fields)) {
      if (++count % 4096 == 0) check_interrupt();
      if (fields.size() != width)
        throw FormatError(file_,
                          fmt::format("line {}: {} fields instead of {}", rows.line(), fields.size(), width));
      std::array<std::string_view, kCallColumnCount> cells;
      for (std::size_t i = 0; i < kCallColumnCount; ++i) cells[i] = fields[places[i]];
      const auto change = change_of(cells[kCallLargest]);
      if (!change)
        throw FormatError(
            file_, fmt::format("line {}: '{}' is not a max_rel", rows.line(), display(cells[kCallLargest])));
      used += take(cells, *change) ? 1 : 0;
    }
    if (count != 0 && used == 0) {
      log_warning(fmt::format("{}: none of its {} rows matches an output of {}", file_, human_count(count),
                              display(golden_.json)));
    }
  }

  /// Whether a row belongs to an output of golden.
  bool take(const std::array<std::string_view, kCallColumnCount>& cells, const LargestChange& change) {
    // Elements that change places are not an effect of rounding.
    if (cells[kCallMode] == "change_value") return true;
    const auto found = entries_.find(cells[kCallName]);
    if (found == entries_.end()) return false;
    const Api& api = golden_.apis[found->second];
    const auto sizes = measuring::sizes_of(shape_of(cells[kCallShape]));
    bool used = false;
    for (const std::uint32_t i : api.items()) {
      const Item& item = golden_.items[i];
      if (item.state != State::output || !item.is_tensor ||
          !measuring::same_dtype(golden_.text(item.dtype), cells[kCallType]) ||
          measuring::sizes_of(golden_.text(item.shape)) != sizes)
        continue;
      add(i, noise_from(cells, change, api, item));
      used = true;
    }
    return used;
  }

  /// `[4, 8]` of `torch.Size([4, 8])`
  static std::string_view shape_of(std::string_view text) {
    constexpr std::string_view kFront = "torch.Size(";
    if (!text.starts_with(kFront) || !text.ends_with(')')) return text;
    return text.substr(kFront.size(), text.size() - kFront.size() - 1);
  }

  diagnosis::Noise noise_from(const std::array<std::string_view, kCallColumnCount>& cells,
                              const LargestChange& change, const Api& api, const Item& item) const {
    const auto n = static_cast<double>(measuring::elements_of(golden_.text(item.shape)));
    const double norm = measuring::number_of(golden_, item, dump::kNorm);
    const double size = norm / std::sqrt(n);
    const double least = least_element(cells[kCallType], cells[kCallStage] == "backward");
    // The change shows most in the smallest element that counts: one of n, or one as small as is looked at.
    const double share = size > 0 && std::isfinite(size) ? std::max(std::min(least / size, 1.0), 1 / n) : 1;
    diagnosis::Noise noise;
    noise.error = change.broke ? 1 : std::min(1.0, change.relative * share);
    noise.element = change.bound;
    if (const double u = roundoff_of_input(api); cells[kCallMode] == "bit_noise" && u > 0 && !change.broke)
      noise.growth = noise.error / (diagnosis::kFlippedBit * u);
    return noise;
  }

  /// The unit roundoff of the tensor whose bits were flipped, which is the first floating input.
  double roundoff_of_input(const Api& api) const {
    for (const std::uint32_t i : api.items()) {
      const Item& item = golden_.items[i];
      if (item.state != State::input || !item.is_tensor) continue;
      if (const double u = measuring::unit_roundoff(golden_.text(item.dtype)); u > 0) return u;
    }
    return 0;
  }

  void add(std::uint32_t item, const diagnosis::Noise& noise) {
    diagnosis::Noise& known = noise_[item];
    known.error = std::max(known.error, noise.error);
    known.growth = std::max(known.growth, noise.growth);
    known.element = std::max(known.element, noise.element);
  }

  const Side& golden_;
  std::string file_;
  std::unordered_map<std::string_view, std::uint32_t> entries_;  // by name
  std::unordered_map<std::uint32_t, diagnosis::Noise> noise_;    // by item
};

}  // namespace

std::unique_ptr<NoiseFloor> noise_of_unstable_calls(const ByteSource& csv, const Side& golden) {
  return std::make_unique<UnstableCalls>(csv, golden);
}

}  // namespace msprobe::diagnosis

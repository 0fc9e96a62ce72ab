// SPDX-License-Identifier: Apache-2.0
#include "collector/gradient_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "collector/config_reader.hpp"
#include "formats/tensor_writer.hpp"
#include "support/crc32.hpp"
#include "support/file_name.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"

namespace msprobe::collector {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kMostBounds = 1000;
constexpr double kLargestBound = 9223372036854775808.0;  // 2^63, as the Python tool has it

std::vector<IntervalEnd> read_bounds(const ConfigReader& section) {
  const Json* found = section.find("bounds");
  if (found == nullptr) return {{-1, "-1"}, {0, "0"}, {1, "1"}};
  if (!found->is_array() || found->empty() || found->size() > kMostBounds)
    section.fail("bounds", "must be a list of 1 to 1000 numbers");
  std::vector<IntervalEnd> bounds;
  for (const Json& bound : *found) {
    if (!bound.is_number()) section.fail("bounds", "must be a list of 1 to 1000 numbers");
    const auto value = bound.get<double>();
    if (value < -kLargestBound || value >= kLargestBound)
      section.fail("bounds", "must fit in 64-bit integers");
    if (!bounds.empty() && value <= bounds.back().value) section.fail("bounds", "must be in ascending order");
    bounds.push_back({value, bound.is_number_float() ? python_repr(value) : bound.dump()});
  }
  return bounds;
}

std::string header_of(const GradientProbeConfig& config) {
  std::string text(kByteOrderMark);
  text += "param_name";
  if (config.level == GradientLevel::l0) text += ",MD5";
  if (config.level == GradientLevel::l2) {
    std::string_view below = "-inf";
    for (const IntervalEnd& bound : config.bounds) {
      text += fmt::format(",\"({}, {}]\"", below, bound.text);
      below = bound.text;
    }
    text += fmt::format(",\"({}, inf)\",=0", below);
  }
  text += ",max,min,norm,shape";
  text += kLineEnd;
  return text;
}

/// Calls piece(values) with all elements in row-major order, widened to double.
template <typename Piece>
void each_values(const TensorView& view, Piece piece) {
  std::array<double, 2048> values;
  const std::size_t size = view.element_size();
  each_piece(view, [&](std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t n = std::min(values.size(), bytes.size() / size);
      tensor::to_double(view.dtype, bytes.first(n * size), std::span(values.data(), n));
      piece(std::span<const double>(values.data(), n));
      bytes = bytes.subspan(n * size);
    }
  });
}

/// The checksum of the elements as float32.
std::uint32_t checksum_of(const TensorView& view) {
  std::uint32_t crc = 0;
  std::array<float, 2048> floats;
  each_values(view, [&](std::span<const double> values) {
    std::ranges::transform(values, floats.begin(), [](double value) { return static_cast<float>(value); });
    crc = crc32(crc, std::as_bytes(std::span(floats.data(), values.size())));
  });
  return crc;
}

/// The number of elements in each interval between the bounds, and of zeros. A NaN is in no interval.
struct Shares {
  std::vector<std::uint64_t> intervals;
  std::uint64_t zero = 0;
};

Shares shares_of(const TensorView& view, const std::vector<IntervalEnd>& bounds) {
  Shares shares;
  shares.intervals.resize(bounds.size() + 1);
  each_values(view, [&](std::span<const double> values) {
    for (const double value : values) {
      if (value != value) continue;
      shares.zero += value == 0 ? 1 : 0;
      const auto above = std::ranges::lower_bound(bounds, value, {}, &IntervalEnd::value);
      ++shares.intervals[static_cast<std::size_t>(above - bounds.begin())];
    }
  });
  return shares;
}

void write_signs(const std::string& path, const TensorView& view) {
  OutputFile file(path);
  const auto writer = formats::make_tensor_writer(formats::OutputFormat::npy, file,
                                                  {{{}, tensor::DType::boolean, view.lengths()}});
  writer->begin(0);
  std::array<std::byte, 2048> signs;
  each_values(view, [&](std::span<const double> values) {
    std::ranges::transform(values, signs.begin(), [](double value) { return std::byte{value > 0}; });
    writer->write(std::span(signs.data(), values.size()));
  });
  writer->end();
  writer->finish();
  file.commit();
}

}  // namespace

bool GradientProbeConfig::takes(std::string_view parameter) const {
  return parameters.empty() || std::ranges::binary_search(parameters, parameter);
}

GradientProbeConfig read_gradient_probe(const Json& object, const std::string& where) {
  const ConfigReader section(object, KeyGroup::grad_probe, where);
  std::vector<std::string> parameters = section.texts("param_list");
  std::ranges::sort(parameters);
  return {static_cast<GradientLevel>(section.choice("grad_level")), std::move(parameters),
          read_bounds(section)};
}

void GradientProbe::add(const GradientProbeConfig& config, const std::string& folder, std::uint64_t step,
                        std::string_view parameter, const TensorView& gradient) {
  try {
    append(config, folder, step, parameter, gradient);
    ++rows_;
  } catch (const Error& error) {
    lose(1, error);
    throw;
  }
}

void GradientProbe::lose(std::uint64_t gradients, const Error& error) {
  lost_ += gradients;
  if (reason_.empty()) reason_ = error.what();
}

void GradientProbe::append(const GradientProbeConfig& config, const std::string& folder, std::uint64_t step,
                           std::string_view parameter, const TensorView& gradient) {
  if (text_.empty()) {
    create_directories(folder);
    path_ = fmt::format("{}/grad_summary_{}.csv", folder, step);
    text_ = header_of(config);
  }
  std::string row;
  append_csv_field(row, parameter);
  if (config.level == GradientLevel::l0) row += fmt::format(",{:08x}", checksum_of(gradient));
  if (config.level == GradientLevel::l2) {
    const Shares shares = shares_of(gradient, config.bounds);
    const auto count = static_cast<double>(gradient.count);
    const auto append_share = [&](std::uint64_t part) {
      row += ',' + python_repr(gradient.count == 0 ? 0 : static_cast<double>(part) / count);
    };
    for (const std::uint64_t part : shares.intervals) append_share(part);
    append_share(shares.zero);
  }
  const Measured measured = gradient.count == 0 ? Measured() : measure(gradient);
  row += fmt::format(",{},{},{},", python_repr(measured.max), python_repr(measured.min),
                     python_repr(measured.norm));
  append_csv_field(row, fmt::format("[{}]", fmt::join(gradient.lengths(), ", ")));
  row += kLineEnd;
  if (config.level != GradientLevel::l0) {
    const std::string signs = fmt::format("{}/step{}", folder, step);
    create_directories(signs);
    write_signs(signs + '/' + file_name(parameter, "npy"), gradient);
  }
  text_ += row;
}

void GradientProbe::finish() {
  if (text_.empty()) return;
  const std::string text = std::exchange(text_, {});
  const std::uint64_t rows = std::exchange(rows_, 0);
  try {
    OutputFile file(path_);
    file.write(text);
    file.commit();
  } catch (const Error& error) {
    lose(rows, error);
    throw;
  }
  gradients_ += rows;
  ++steps_;
}

}  // namespace msprobe::collector

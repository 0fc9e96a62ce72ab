// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quantized_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "checkpoint/packed_weight.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

using tensor::DType;

// Each expert becomes a separate block.
constexpr std::int64_t kMostStackedExperts = 4096;

/// A zero point is rounded, which moves the ends of the range by up to half a step: values beyond are
/// clipped.
void widen_ends(Levels& levels) {
  levels.half_gaps.front() = 1;
  levels.half_gaps.back() = 1;
}

/// The text before `suffix`, if the name ends so.
std::optional<std::string> stem_of(const std::string& name, std::string_view suffix) {
  if (!name.ends_with(suffix) || name.size() == suffix.size()) return {};
  return name.substr(0, name.size() - suffix.size());
}

class QuantizedFinder {
 public:
  explicit QuantizedFinder(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), settings_(checkpoint.path) {
    for (std::size_t i = 0; i < checkpoint.entries.size(); ++i) {
      const CheckpointEntry& entry = checkpoint.entries[i];
      // Copies would have to be compared as well, so entries with copies are not dequantized.
      const bool usable = entry.problem.empty() && entry.slices.empty() && entry.replicas.empty() &&
                          entry.parameter.numel() > 0;
      if (usable) index_.emplace(entry.parameter.name, i);
    }
  }

  QuantizedWeights run() {
    for (const auto& [name, i] : index_) {
      const DType dtype = checkpoint_.entries[i].parameter.dtype;
      if (const auto stem = stem_of(name, ".qweight"); stem && dtype == DType::int32) grouped_words(*stem);
      if (const auto stem = stem_of(name, ".weight_packed")) compressed(*stem);
      if (const auto stem = stem_of(name, "._weight_qdata")) {
        const std::string parts = *stem + "._weight";
        scaled_bytes(*stem + ".weight", {name, parts + "_scale", parts + "_zero_point"});
      }
      if (const auto stem = stem_of(name, "_blocks"); stem && dtype == DType::uint8) microscaled(*stem);
      for (const char* state : {".quant_state.bitsandbytes__nf4", ".quant_state.bitsandbytes__fp4"}) {
        if (const auto stem = stem_of(name, state)) table_of_16(*stem, i);
      }
      if (name.ends_with("weight") || name.ends_with("_proj")) one_byte(name, dtype);
    }
    std::ranges::sort(found_, {}, &QuantizedWeight::name);
    std::vector<LeftCodes> left_codes = left();
    return {std::move(found_), std::move(left_codes)};
  }

 private:
  const Parameter* get(const std::string& name) const {
    const auto at = index_.find(name);
    return at == index_.end() ? nullptr : &checkpoint_.entries[at->second].parameter;
  }

  /// The codes that belong to no weight that was found, and the reasons.
  std::vector<LeftCodes> left() const {
    std::vector<bool> used(checkpoint_.entries.size());
    for (const QuantizedWeight& weight : found_) {
      for (const std::size_t i : weight.used) used[i] = true;
    }
    std::vector<LeftCodes> left;
    for (const auto& [name, i] : index_) {
      const Parameter& codes = checkpoint_.entries[i].parameter;
      if (std::string reason = used[i] ? "" : why_left(name, codes); !reason.empty())
        left.push_back({i, std::move(reason)});
    }
    return left;
  }

  /// Says why these codes were left; empty if they are no codes.
  std::string why_left(const std::string& name, const Parameter& codes) const {
    std::vector<std::string> needed;
    if (const auto stem = stem_of(name, ".qweight"); stem && codes.dtype == DType::int32) {
      needed = {*stem + ".scales", *stem + ".qzeros"};
    } else if (const auto packed = stem_of(name, "_packed"); packed && packed->ends_with(".weight")) {
      needed = {*packed + "_scale"};
      if (settings_.has_zero_points()) needed.push_back(*packed + "_zero_point");
    } else if (const auto blocks = stem_of(name, "_blocks"); blocks && codes.dtype == DType::uint8) {
      needed = {*blocks + "_scales"};
    } else if (is_float8(codes.dtype) && codes.shape.size() >= 2 && name.ends_with("weight")) {
      const std::string& scale = get(name + "_scale_inv") != nullptr ? name + "_scale_inv" : name + "_scale";
      if (get(scale) == nullptr) return "its scales are missing";
      needed = {scale};
    } else {
      return {};
    }
    for (const std::string& part : needed) {
      if (get(part) == nullptr) return fmt::format("{} is missing", display(part));
    }
    const auto block = is_float8(codes.dtype) ? settings_.block() : std::nullopt;
    return fmt::format(
        "its shape {0} and the shape {2} of {1} fit no supported layout{3}", shape_text(codes.shape),
        display(needed.front()), shape_text(get(needed.front())->shape),
        block ? fmt::format(": weight_block_size is [{}, {}]", block->rows, block->columns) : "");
  }

  template <typename Make>
  std::shared_ptr<const Levels> levels(std::string_view key, const Make& make) {
    auto& known = levels_[std::string(key)];
    if (known == nullptr) known = std::make_shared<const Levels>(make());
    return known;
  }

  void add(std::string kind, Parameter parameter, const std::vector<std::string>& parts) {
    QuantizedWeight found{parameter.name, std::move(kind), {}, std::move(parameter)};
    for (const std::string& part : parts) {
      if (const auto at = index_.find(part); at != index_.end()) found.used.push_back(at->second);
    }
    found_.push_back(std::move(found));
  }

  /// The name of another tensor of the weight's module, such as the scales.
  static std::string beside(const std::string& weight, std::string_view what) {
    const std::size_t dot = weight.rfind('.');
    return dot == std::string::npos ? std::string(what) : weight.substr(0, dot + 1) + std::string(what);
  }

  /// The side of the blocks that `groups` scales along `length` belong to; 0 if no side fits.
  static std::int64_t block_side(std::int64_t length, std::int64_t groups) {
    if (groups <= 0) return 0;
    if (groups == 1) return length;
    // The last block may be smaller. DeepSeek-V3 uses 128, so 128 is tried first.
    for (const std::int64_t side : {128, 64, 32, 16, 256, 512}) {
      if ((length + side - 1) / side == groups) return side;
    }
    return length % groups == 0 ? length / groups : 0;
  }

  /// float8 and int8 with scales of any grid: DeepSeek's `weight_scale_inv`, `weight_scale` of
  /// compressed-tensors and ModelOpt, `SCB` of bitsandbytes; and ModelOpt's pairs of 4-bit numbers.
  void one_byte(const std::string& name, DType dtype) {
    const Parameter& codes = *get(name);
    const std::string rows_of_int8 = beside(name, "SCB");
    std::string scale_name = name + "_scale_inv";
    if (get(scale_name) == nullptr) scale_name = name + "_scale";
    const bool is_bitsandbytes = dtype == DType::int8 && get(rows_of_int8) != nullptr;
    if (is_bitsandbytes) scale_name = rows_of_int8;
    const Parameter* scale = get(scale_name);
    if (dtype == DType::uint8) {
      const std::string global = name + "_scale_2";
      if (scale != nullptr && get(global) != nullptr && codes.shape.size() >= 2)
        small_floats(name, name, codes, *scale, global, true);
      return;
    }
    scaled_bytes(name, {name, scale_name, name + "_zero_point", is_bitsandbytes},
                 {name + "_shape", beside(name, "input_scale"), beside(name, "output_scale"),
                  beside(name, "weight_format"), beside(name, "input_zero_point")});
  }

  static bool is_float8(DType dtype) {
    return tensor::info(dtype).kind == tensor::DTypeKind::floating && tensor::info(dtype).size == 1 &&
           dtype != DType::float8_e8m0fnu;
  }

  struct ByteNames {
    std::string codes;
    std::string scale;
    std::string zero;
    bool is_bitsandbytes = false;
  };
  void scaled_bytes(const std::string& name, const ByteNames& names,
                    const std::vector<std::string>& others = {}) {
    const Parameter& codes = *get(names.codes);
    const DType dtype = codes.dtype;
    const Parameter* scale = get(names.scale);
    if (scale == nullptr || codes.shape.size() < 2 || (!is_float8(dtype) && dtype != DType::int8)) return;
    PackedWeight packed;
    packed.shape = codes.shape;
    packed.columns = codes.shape.back();
    packed.rows = codes.numel() / packed.columns;
    packed.row_bytes = packed.columns;
    packed.codes = codes;
    packed.levels = levels(tensor::info(dtype).name, [&] {
      return is_float8(dtype) ? float8_levels(dtype) : integer_levels(8, 0, true);
    });
    const std::string grid = set_grid(packed, codes.shape, *scale);
    if (grid.empty()) return;
    const Parameter* zero = get(names.zero);
    if (zero != nullptr && zero->numel() != scale->numel()) return;
    const std::int64_t groups = (packed.columns + packed.scale_columns - 1) / packed.scale_columns;
    packed.load_scales = [scale = *scale, zero = zero == nullptr ? std::nullopt : std::optional(*zero),
                          groups, is_bitsandbytes = names.is_bitsandbytes] {
      Scales scales = scales_of(scale, groups);
      if (zero) scales.zeros = floats_of(*zero);
      if (is_bitsandbytes) {
        // The stored scale is the largest magnitude of the row.
        for (std::vector<float>* list : {&scales.scales, &scales.errors}) {
          for (float& value : *list) value /= 127;
        }
      }
      return scales;
    };
    std::string kind = fmt::format("{}, {}", tensor::info(dtype).name, grid);
    std::vector<std::string> parts = {names.codes, names.scale, names.zero};
    parts.insert(parts.end(), others.begin(), others.end());
    add(std::move(kind), decoded(name, std::move(packed)), parts);
  }

  /// Describes the grid for people; empty if the scales do not fit.
  std::string set_grid(PackedWeight& packed, const Shape& shape, const Parameter& scale) const {
    const std::int64_t length = shape[shape.size() - 2];
    if (scale.numel() == 1) {
      packed.scale_rows = packed.rows;
      packed.scale_columns = packed.columns;
      return "one scale";
    }
    if (scale.numel() == packed.rows) {
      packed.scale_columns = packed.columns;
      return "a scale for each row";
    }
    Shape one = scale.shape;
    const std::int64_t experts = packed.rows / length;
    if (scale.numel() == experts) {
      packed.scale_rows = length;
      packed.scale_columns = packed.columns;
      return "a scale for each expert";
    }
    if (one.size() != shape.size()) return {};
    if (!std::equal(one.begin(), one.end() - 2, shape.begin())) return {};
    if (const auto block = settings_.block()) {
      packed.scale_rows = block->rows;
      packed.scale_columns = block->columns;
      const auto count = [](std::int64_t all, std::int64_t side) { return (all + side - 1) / side; };
      if (one[one.size() - 2] != count(length, block->rows) ||
          one.back() != count(packed.columns, block->columns))
        return {};
    } else {
      packed.scale_rows = block_side(length, one[one.size() - 2]);
      packed.scale_columns = block_side(packed.columns, one.back());
    }
    if (packed.scale_rows == 0 || packed.scale_columns == 0) return {};
    // Blocks must not reach from one matrix into the next.
    if (experts > 1 && length % packed.scale_rows != 0) return {};
    return packed.scale_rows == 1 ? fmt::format("groups of {}", packed.scale_columns)
                                  : fmt::format("blocks of {} x {}", packed.scale_rows, packed.scale_columns);
  }

  /// Whole numbers in words (`pack-quantized` of compressed-tensors), or pairs of 4-bit floating-point ones.
  void compressed(const std::string& stem) {
    const std::string name = stem + ".weight";
    const std::string packed_name = name + "_packed";
    const Parameter& codes = *get(packed_name);
    const Parameter* scale = get(name + "_scale");
    if (scale == nullptr || codes.shape.size() != 2 || scale->shape.size() != 2) return;
    if (codes.dtype == DType::uint8) {
      small_floats(name, packed_name, codes, *scale, name + "_global_scale", false);
      return;
    }
    if (codes.dtype != DType::int32) return;
    PackedWeight packed;
    packed.rows = codes.shape[0];
    packed.columns = codes.shape[1] * 8;
    if (const Parameter* shape = get(name + "_shape"); shape != nullptr && shape->numel() == 2) {
      const std::vector<float> lengths = floats_of(*shape);
      packed.columns = index_of(lengths[1]);
    }
    packed.bits = packed.columns > 0 && (packed.columns + 3) / 4 == codes.shape[1] ? 8 : 4;
    if ((packed.columns * packed.bits + 31) / 32 != codes.shape[1]) return;
    packed.shape = {packed.rows, packed.columns};
    packed.row_bytes = codes.shape[1] * 4;
    packed.codes = codes;
    const int offset = 1 << (packed.bits - 1);
    std::int64_t groups = scale->shape[1];
    if (scale->numel() == 1) packed.scale_rows = packed.rows;
    if (scale->numel() != 1 && scale->shape[0] != packed.rows) return;
    packed.scale_columns = block_side(packed.columns, groups);
    if (packed.scale_columns == 0) return;
    const Parameter* zero = get(name + "_zero_point");
    if (zero == nullptr && settings_.has_zero_points()) return;
    packed.levels = levels(fmt::format("offset {} {}", packed.bits, zero != nullptr), [&] {
      Levels made = integer_levels(packed.bits, static_cast<float>(-offset), false);
      if (zero != nullptr) widen_ends(made);
      return made;
    });
    const Parameter* order = get(name + "_g_idx");
    packed.load_scales = [scale = *scale, zero = zero == nullptr ? std::nullopt : std::optional(*zero),
                          order = order == nullptr ? std::nullopt : std::optional(*order), groups,
                          bits = packed.bits, rows = packed.rows, offset] {
      Scales scales = scales_of(scale, groups);
      if (zero && zero->numel() == scale.numel()) {
        scales.zeros = floats_of(*zero);
      } else if (zero) {
        // The zero points are packed along the rows.
        const std::vector<float> values = unpacked(transposed(*zero), bits, WordOrder::rising);
        const std::int64_t padded = zero->shape[0] * (32 / bits);
        if (padded < rows || zero->shape[1] != groups)
          throw FormatError(display(zero->name), "its shape does not fit that of the scales");
        const std::vector<float> by_row = exchanged(values, groups, padded);
        for (std::int64_t i = 0; i < rows * groups; ++i)
          scales.zeros.push_back(by_row[static_cast<std::size_t>(i)] - static_cast<float>(offset));
      }
      if (order) {
        scales.group_of_column = groups_of(*order);
        // Without an order all entries are -1.
        if (std::ranges::all_of(scales.group_of_column, [](auto group) { return group == -1; }))
          scales.group_of_column.clear();
      }
      return scales;
    };
    std::string kind = fmt::format("int{}, groups of {}", packed.bits, packed.scale_columns);
    add(std::move(kind), decoded(name, std::move(packed)),
        {packed_name, name + "_scale", name + "_shape", name + "_zero_point", name + "_g_idx"});
  }

  /// NVFP4: 4-bit numbers, a float8 scale for 16 of them, and one for all, which multiplies (ModelOpt) or
  /// divides (compressed-tensors).
  void small_floats(const std::string& name, const std::string& codes_name, const Parameter& codes,
                    const Parameter& scale, const std::string& global_name, bool multiplies) {
    const Parameter* global = get(global_name);
    if (global == nullptr || global->numel() != 1 || codes.shape.size() != 2 || scale.shape.size() != 2)
      return;
    PackedWeight packed;
    packed.rows = codes.shape[0];
    packed.columns = 2 * codes.shape[1];
    packed.shape = {packed.rows, packed.columns};
    packed.bits = 4;
    packed.row_bytes = codes.shape[1];
    packed.codes = codes;
    packed.levels = levels("float4", [] { return table_levels(float4_levels().values); });
    packed.scale_columns = block_side(packed.columns, scale.shape[1]);
    if (scale.shape[0] != packed.rows || packed.scale_columns == 0) return;
    packed.load_scales = [scale, global = *global, multiplies] {
      Scales scales = scales_of(scale, scale.shape[1]);
      const float one = floats_of(global)[0];
      for (std::vector<float>* list : {&scales.scales, &scales.errors}) {
        for (float& value : *list) value = multiplies ? value * one : value / one;
      }
      // The scale itself is rounded before the weights are divided by it.
      for (float& error : scales.errors) error *= 2;
      return scales;
    };
    std::string kind = fmt::format("NVFP4, groups of {}", packed.scale_columns);
    add(std::move(kind), decoded(name, std::move(packed)),
        {codes_name, name + "_scale", global_name, beside(name, "input_scale"),
         beside(name, "input_global_scale")});
  }

  /// GPTQ (words along the inputs) and AWQ (along the outputs): (inputs, outputs) where the weight is
  /// (outputs, inputs).
  void grouped_words(const std::string& stem) {
    const Parameter& words = *get(stem + ".qweight");
    const Parameter* scale = get(stem + ".scales");
    const Parameter* zeros = get(stem + ".qzeros");
    const Parameter* order = get(stem + ".g_idx");
    if (scale == nullptr || zeros == nullptr || words.shape.size() != 2 || scale->shape.size() != 2) return;
    const std::int64_t groups = scale->shape[0];
    const std::int64_t outputs = scale->shape[1];
    const bool awq = words.shape[1] * 8 == outputs;
    if (!awq && words.shape[1] != outputs) return;
    PackedWeight packed;
    packed.rows = outputs;
    if (awq) {
      packed.bits = 4;
      packed.columns = words.shape[0];
      if (packed.columns % 2 != 0) return;
      packed.codes = awq_codes(words);
    } else {
      // Zero points have the same width as the weights, and show it.
      const std::int64_t width = zeros->shape.size() == 2 ? zeros->shape[1] * 32 / outputs : 0;
      if (width != 2 && width != 3 && width != 4 && width != 8) return;
      packed.bits = static_cast<int>(width);
      // Numbers of 3 bits cross from one word into the next, 32 of them in three words.
      if (width == 3 && (words.shape[0] % 3 != 0 || outputs % 32 != 0)) return;
      packed.columns = words.shape[0] * 32 / packed.bits;
      packed.codes = transposed(words);
    }
    packed.shape = {outputs, packed.columns};
    packed.row_bytes = packed.columns * packed.bits / 8;
    packed.levels = levels(fmt::format("words {}", packed.bits), [&] {
      Levels made = integer_levels(packed.bits, 0, false);
      widen_ends(made);
      return made;
    });
    packed.scale_columns = block_side(packed.columns, groups);
    if (packed.columns % groups == 0) packed.scale_columns = packed.columns / groups;
    const bool fits = zeros->shape == Shape{groups, outputs * packed.bits / 32} && packed.scale_columns > 0 &&
                      (order == nullptr || order->shape == Shape{packed.columns});
    if (!fits) return;
    // AutoGPTQ stores zero points minus one; its second format and AWQ store them unchanged.
    const float more = awq || settings_.is_second_gptq() ? 0 : 1;
    packed.load_scales = [scale = *scale, zeros = *zeros, awq, more, groups, outputs, bits = packed.bits,
                          order = order == nullptr ? std::nullopt : std::optional(*order)] {
      Scales scales = scales_of(scale, groups);
      scales.scales = exchanged(scales.scales, groups, outputs);
      scales.errors = exchanged(scales.errors, groups, outputs);
      scales.zeros =
          exchanged(unpacked(zeros, bits, awq ? WordOrder::awq : WordOrder::rising), groups, outputs);
      const float mask = static_cast<float>((1 << bits) - 1);
      // The sum keeps the width that it is stored in.
      for (float& zero : scales.zeros) zero = zero + more > mask ? 0 : zero + more;
      if (order) scales.group_of_column = groups_of(*order);
      return scales;
    };
    std::string kind =
        fmt::format("{} of {} bits, groups of {}", awq ? "AWQ" : "GPTQ", packed.bits, packed.scale_columns);
    add(std::move(kind), decoded(stem + ".weight", std::move(packed), words.bytes()),
        {stem + ".qweight", stem + ".qzeros", stem + ".scales", stem + ".g_idx"});
  }

  /// MXFP4 of gpt-oss: (experts, outputs, blocks, 16) bytes; the weight is (experts, inputs, outputs).
  void microscaled(const std::string& stem) {
    const Parameter& blocks = *get(stem + "_blocks");
    const Parameter* scale = get(stem + "_scales");
    const Shape& shape = blocks.shape;
    const bool fits = scale != nullptr && scale->dtype == DType::uint8 && shape.size() == 4 &&
                      shape[3] == 16 && scale->shape == Shape{shape[0], shape[1], shape[2]};
    if (!fits) return;
    if (shape[0] > kMostStackedExperts) return;
    const std::int64_t outputs = shape[1];
    const std::int64_t inputs = 32 * shape[2];
    std::vector<Parameter> experts;
    for (std::int64_t e = 0; e < shape[0]; ++e) {
      PackedWeight packed;
      packed.shape = {1, outputs, inputs};
      packed.rows = outputs;
      packed.columns = inputs;
      packed.bits = 4;
      packed.row_bytes = inputs / 2;
      packed.codes = narrow(blocks, 0, e, 1);
      packed.levels = levels("MXFP4", float4_levels);
      packed.scale_columns = 32;
      packed.load_scales = [part = narrow(*scale, 0, e, 1), groups = shape[2]] {
        Scales scales;
        scales.groups = groups;
        // Powers of two with a bias of 127 (E8M0 of the OCP specification); 255 is NaN.
        for (const float exponent : floats_of(part)) {
          scales.scales.push_back(exponent == 255 ? std::nanf("")
                                                  : std::ldexp(1.0F, static_cast<int>(exponent) - 127));
        }
        return scales;
      };
      experts.push_back(transposed(decoded(stem, std::move(packed))));
    }
    add("MXFP4, groups of 32", concatenate(experts, 0), {stem + "_blocks", stem + "_scales"});
  }

  /// bitsandbytes: 4-bit numbers of a table, two in a byte, and a scale for each 64 or so. The scales may be
  /// quantized as well. A tensor of bytes holds the rest of the settings as JSON.
  void table_of_16(const std::string& name, std::size_t state_index) {
    const Parameter& state = checkpoint_.entries[state_index].parameter;
    const Parameter* codes = get(name);
    const Parameter* scale = get(name + ".absmax");
    const Parameter* table = get(name + ".quant_map");
    constexpr std::int64_t kMostState = 1 << 16;
    if (codes == nullptr || scale == nullptr || table == nullptr || table->numel() != 16 ||
        codes->dtype != DType::uint8 || state.dtype != DType::uint8 || state.numel() > kMostState)
      return;
    std::string text(static_cast<std::size_t>(state.numel()), '\0');
    ParameterReader(state).read(std::as_writable_bytes(std::span(text)));
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    const auto shape = json.is_object() ? json.find("shape") : json.end();
    if (!json.is_object() || shape == json.end() || !shape->is_array()) return;
    PackedWeight packed;
    for (const auto& length : *shape) {
      if (!length.is_number_integer()) return;
      packed.shape.push_back(length.get<std::int64_t>());
    }
    const auto number = [&](const char* key, double otherwise) {
      const auto found = json.find(key);
      return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
    };
    const double block = number("blocksize", 64);
    const double nested_block = number("nested_blocksize", 256);
    if (!(block >= 1 && block <= 1e6 && nested_block >= 1 && nested_block <= 1e6)) return;
    packed.columns = checked_numel(packed.shape, name);
    if ((packed.columns + 1) / 2 != codes->numel()) return;
    packed.bits = 4;
    packed.high_first = true;
    packed.row_bytes = codes->numel();
    packed.codes = *codes;
    packed.levels = std::make_shared<const Levels>(table_levels(floats_of(*table)));
    packed.scale_columns = static_cast<std::int64_t>(block);
    const std::int64_t groups = scale->numel();
    const Parameter* nested = get(name + ".nested_absmax");
    const Parameter* nested_table = get(name + ".nested_quant_map");
    if (nested != nullptr && (nested_table == nullptr || nested_table->numel() != 256)) return;
    packed.load_scales = [scale = *scale, groups, offset = static_cast<float>(number("nested_offset", 0)),
                          step = static_cast<std::size_t>(nested_block),
                          nested = nested == nullptr ? std::nullopt : std::optional(*nested),
                          nested_table = nested == nullptr ? std::nullopt : std::optional(*nested_table)] {
      Scales scales = scales_of(scale, groups);
      if (!nested) return scales;
      const std::vector<float> outer = floats_of(*nested);
      const Levels levels = table_levels(floats_of(*nested_table));
      for (std::size_t i = 0; i < scales.scales.size(); ++i) {
        const auto code = static_cast<std::size_t>(index_of(scales.scales[i]));
        if (i / step >= outer.size() || code >= levels.values.size())
          throw FormatError(display(nested->name), "it does not fit the scales");
        scales.scales[i] = levels.values[code] * outer[i / step] + offset;
        scales.errors[i] = levels.half_gaps[code] * std::fabs(outer[i / step]);
      }
      return scales;
    };
    std::string kind = fmt::format("bitsandbytes {}, groups of {}", state.name.substr(state.name.size() - 3),
                                   packed.scale_columns);
    add(std::move(kind), decoded(name, std::move(packed)),
        {name, state.name, name + ".absmax", name + ".quant_map", name + ".nested_absmax",
         name + ".nested_quant_map"});
  }

  const Checkpoint& checkpoint_;
  std::map<std::string, std::size_t> index_;
  std::map<std::string, std::shared_ptr<const Levels>> levels_;
  std::vector<QuantizedWeight> found_;
  QuantizationSettings settings_;
};

}  // namespace

QuantizedWeights quantized_weights(const Checkpoint& checkpoint) {
  return QuantizedFinder(checkpoint).run();
}

}  // namespace msprobe::checkpoint

// SPDX-License-Identifier: Apache-2.0
// LoRA adapters as PEFT saves them: the update of a weight as a product of two small matrices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checkpoint/loaders.hpp"
#include "checkpoint/names.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "tensor/element_feed.hpp"

namespace msprobe::checkpoint {
namespace {

using tensor::DType;

// The most elements that the two matrices of a module may have together.
constexpr std::int64_t kMostAdapterElements = std::int64_t{1} << 26;

struct LowRankUpdate {
  Parameter weight;  // (outputs, inputs)
  Parameter down;    // A: (rank, inputs)
  Parameter up;      // B: (outputs, rank)
  double scale = 1;
};

std::vector<double> doubles_of(const Parameter& parameter) {
  tensor::ElementFeed<double, ParameterReader> feed(parameter);
  const auto values = feed.next(static_cast<std::size_t>(parameter.numel()));
  return {values.begin(), values.end()};
}

/// weight + scale * up * down, computed row by row; or how far the weight that a program merged may be from
/// it.
class UpdatedBytes final : public ByteSource {
 public:
  UpdatedBytes(std::shared_ptr<const LowRankUpdate> update, bool half_steps)
      : update_(std::move(update)),
        half_steps_(half_steps),
        columns_(update_->weight.shape[1]),
        rank_(static_cast<std::size_t>(update_->down.shape[0])),
        down_(doubles_of(update_->down)),
        up_(doubles_of(update_->up)) {}

  std::uint64_t size() const override {
    return static_cast<std::uint64_t>(update_->weight.numel()) * sizeof(float);
  }
  const std::string& name() const override { return update_->weight.name; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size(), name());
    const std::lock_guard lock(mutex_);
    const std::uint64_t row_bytes = static_cast<std::uint64_t>(columns_) * sizeof(float);
    while (!out.empty()) {
      compute(static_cast<std::int64_t>(offset / row_bytes));
      const std::size_t skip = offset % row_bytes;
      const std::size_t count = std::min<std::size_t>(out.size(), row_bytes - skip);
      std::memcpy(out.data(), std::as_bytes(std::span(row_)).data() + skip, count);
      out = out.subspan(count);
      offset += count;
    }
  }

 private:
  void compute(std::int64_t row) const {
    if (row == at_) return;
    if (!feed_ || row != at_ + 1) {
      const Parameter& weight = update_->weight;
      feed_.emplace(narrow(weight, 0, row, weight.shape[0] - row));
    }
    const auto width = static_cast<std::size_t>(columns_);
    const std::span<double> weight = feed_->next(width);
    sum_.assign(width, 0);
    terms_.assign(width, 0);
    for (std::size_t k = 0; k < rank_; ++k) {
      const double factor = update_->scale * up_[static_cast<std::size_t>(row) * rank_ + k];
      const double* line = down_.data() + k * width;
      for (std::size_t i = 0; i < width; ++i) {
        sum_[i] += factor * line[i];
        terms_[i] += std::fabs(factor * line[i]);
      }
    }
    row_.resize(width);
    // The sum is rounded to the type of the weight, and here to float32. The product is rounded to the type
    // of the adapter, and each of its terms and their sum to float32 at least.
    const double rounding = tensor::unit_roundoff(update_->weight.dtype);
    const double of_product = tensor::unit_roundoff(update_->up.dtype);
    const double of_terms = tensor::unit_roundoff(DType::float32);
    for (std::size_t i = 0; i < width; ++i) {
      const double value = weight[i] + sum_[i];
      const double half_step = rounding * std::fabs(value) + of_product * std::fabs(sum_[i]) +
                               of_terms * (2 * terms_[i] + std::fabs(weight[i]) + std::fabs(value));
      row_[i] = static_cast<float>(half_steps_ ? half_step : value);
    }
    at_ = row;
  }

  std::shared_ptr<const LowRankUpdate> update_;
  bool half_steps_;
  std::int64_t columns_;
  std::size_t rank_;
  std::vector<double> down_;
  std::vector<double> up_;
  mutable std::mutex mutex_;
  mutable std::optional<tensor::ElementFeed<double, ParameterReader>> feed_;
  mutable std::int64_t at_ = -2;  // the row that is in row_
  mutable std::vector<double> sum_;
  mutable std::vector<double> terms_;
  mutable std::vector<float> row_;
};

/// The scale of each module, as `adapter_config.json` sets it.
class AdapterSettings {
 public:
  explicit AdapterSettings(const std::string& folder) : path_(in_folder(folder, "adapter_config.json")) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
    json_ = nlohmann::json::parse(read_all(*open_file(path_), kMost), nullptr, false);
    if (!json_.is_object()) refuse("it holds no JSON object");
    const auto kind = json_.find("peft_type");
    if (kind != json_.end() && *kind != "LORA")
      refuse(fmt::format("an adapter of the kind {}; msprobe adds only LORA", display(kind->dump())));
    if (flag("use_dora")) refuse("an adapter with magnitudes (DoRA), which is not supported");
  }

  double scale(const std::string& module) const {
    const double rank = of_module("rank_pattern", module).value_or(number("r"));
    const double alpha = of_module("alpha_pattern", module).value_or(number("lora_alpha"));
    if (!(rank > 0)) refuse("the rank must be positive");
    return alpha / (flag("use_rslora") ? std::sqrt(rank) : rank);
  }
  /// True if the adapted weights have the shape (inputs, outputs).
  bool is_transposed() const { return flag("fan_in_fan_out"); }

 private:
  [[noreturn]] void refuse(const std::string& reason) const { throw FormatError(display(path_), reason); }
  bool flag(const char* key) const {
    const auto found = json_.find(key);
    return found != json_.end() && found->is_boolean() && found->get<bool>();
  }
  double number(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_number()) refuse(fmt::format("it has no number {}", key));
    return found->get<double>();
  }
  /// A key matches the end of a module's name, after a dot. PEFT reads keys as regular expressions, but most
  /// are plain names.
  std::optional<double> of_module(const char* key, const std::string& module) const {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_object()) return {};
    for (const auto& [end, value] : found->items()) {
      if (!value.is_number()) continue;
      if (end.find_first_of("*+?[](){}|^$\\") != std::string::npos)
        refuse(fmt::format("{} has a regular expression, which is not supported", key));
      if (module == end || module.ends_with("." + end)) return value.get<double>();
    }
    return {};
  }

  std::string path_;
  nlohmann::json json_;
};

std::optional<std::string> before(const std::string& name, std::string_view end) {
  if (!name.ends_with(end)) return {};
  return name.substr(0, name.size() - end.size());
}

class Adding {
 public:
  Adding(Checkpoint& base, const std::string& folder) : base_(base), folder_(folder), settings_(folder) {
    adapter_ = load(folder, {});
    for (const CheckpointEntry& entry : adapter_.entries) {
      if (!entry.problem.empty()) throw FormatError(display(folder), entry.problem);
      std::string name = without_wrappers(entry.parameter.name);
      // get_peft_model() puts this head before the names of the model.
      constexpr std::string_view kHead = "base_model.model.";
      if (name.starts_with(kHead)) name.erase(0, kHead.size());
      parts_.emplace(std::move(name), &entry.parameter);
    }
    for (std::size_t i = 0; i < base.entries.size(); ++i)
      names_.emplace(without_wrappers(base.entries[i].parameter.name), i);
  }

  std::string run() {
    std::size_t updated = 0;
    std::size_t replaced = 0;
    const auto is_of_adapter = [](const std::string& name) {
      return name.find(".lora_") != std::string::npos;
    };
    for (const auto& [name, parameter] : parts_) {
      if (name.ends_with(".lora_magnitude_vector"))
        refuse("it has magnitudes (DoRA), which are not supported");
      if (is_of_adapter(name)) continue;
      CheckpointEntry& entry = entry_of_base(name);
      std::string own = entry.parameter.name;
      entry = CheckpointEntry();
      entry.parameter = *parameter;
      entry.parameter.name = std::move(own);
      ++replaced;
    }
    for (const auto& [name, parameter] : parts_) {
      if (const auto module = before(name, ".lora_A.weight")) {
        update(*module, *parameter, part(*module + ".lora_B.weight"), settings_.is_transposed());
        ++updated;
      } else if (const auto table = before(name, ".lora_embedding_A")) {
        // The embedding is (words, size); its two matrices are (rank, words) and (size, rank).
        update(*table, *parameter, part(*table + ".lora_embedding_B"), true);
        ++updated;
      } else if (is_of_adapter(name) && !name.ends_with(".lora_B.weight") &&
                 !name.ends_with(".lora_embedding_B")) {
        refuse(fmt::format("{} is not a supported part of an adapter", display(name)));
      }
    }
    if (updated + replaced == 0) refuse("it has no weights of an adapter");
    std::string line = fmt::format("{}: {} is added to {} weight{}", display(base_.path), display(folder_),
                                   human_count(updated), updated == 1 ? "" : "s");
    if (replaced > 0) line += fmt::format("; it replaces {} more", human_count(replaced));
    return line;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const { throw FormatError(display(folder_), reason); }

  const Parameter& part(const std::string& name) const {
    const auto found = parts_.find(name);
    if (found == parts_.end()) refuse(fmt::format("{} is missing", display(name)));
    return *found->second;
  }

  /// Programs save a model with and without the name of its module `model`, so both names are tried.
  CheckpointEntry& entry_of_base(const std::string& name) {
    for (const std::string& each : {name, "model." + name, without_heads(name, {"model"})}) {
      const auto found = names_.find(each);
      if (found == names_.end()) continue;
      CheckpointEntry& entry = base_.entries[found->second];
      if (!entry.problem.empty()) throw FormatError(display(base_.path), entry.problem);
      return entry;
    }
    refuse(fmt::format("{} is not in {}, so that it cannot be added", display(name), display(base_.path)));
  }

  void update(const std::string& module, const Parameter& down, const Parameter& up, bool is_transposed) {
    CheckpointEntry& entry = entry_of_base(module + ".weight");
    Parameter weight = entry.parameter;
    const auto is_real = [](const Parameter& parameter) {
      return tensor::info(parameter.dtype).kind == tensor::DTypeKind::floating && parameter.shape.size() == 2;
    };
    if (!is_real(weight) || !is_real(down) || !is_real(up))
      refuse(fmt::format("{} is not a pair of matrices for a matrix of floating-point numbers",
                         display(module)));
    if (is_transposed) weight = transposed(weight);
    if (down.shape[0] != up.shape[1] || weight.shape != Shape{up.shape[0], down.shape[1]}) {
      refuse(fmt::format("{}: {} times {} does not fit the weight {}", display(module), shape_text(up.shape),
                         shape_text(down.shape), shape_text(weight.shape)));
    }
    if (down.numel() + up.numel() > kMostAdapterElements || weight.numel() == 0)
      refuse(fmt::format("{}: refused: matrices of {} elements", display(module), down.numel() + up.numel()));
    const auto change = std::make_shared<const LowRankUpdate>(
        LowRankUpdate{std::move(weight), down, up, settings_.scale(module)});
    const std::uint64_t memory =
        change->weight.memory() + static_cast<std::uint64_t>(down.numel() + up.numel()) * sizeof(double);
    Parameter result = computed(
        entry.parameter.name, change->weight.shape,
        [change](bool half_steps) { return std::make_shared<const UpdatedBytes>(change, half_steps); },
        memory);
    result.base = std::make_shared<const Parameter>(change->weight);
    // The steps of a quantized weight are wider than the rounding of the sum, so they replace it.
    if (change->weight.half_step) result.half_step = change->weight.half_step;
    entry = CheckpointEntry();
    entry.parameter = is_transposed ? transposed(result) : std::move(result);
  }

  Checkpoint& base_;
  const std::string& folder_;
  AdapterSettings settings_;
  Checkpoint adapter_;
  std::map<std::string, const Parameter*> parts_;
  std::unordered_map<std::string, std::size_t> names_;
};

}  // namespace

std::string add_adapter(Checkpoint& base, const std::string& folder) {
  return Adding(base, folder).run();
}

}  // namespace msprobe::checkpoint

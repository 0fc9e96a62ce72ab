// SPDX-License-Identifier: Apache-2.0
#include "measuring/tensor_factors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "formats/matrix_product.hpp"
#include "formats/tensor_file.hpp"
#include "measuring/tensor_metrics.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::measuring {
namespace {

using formats::StoredTensor;

/// A map of a section: matrices and the tensors of one side that they are for.
struct FactorKey {
  std::string_view section;
  std::string_view map;
  FactorSide side;
  bool on_the_left;
};
// In the order in which factors are applied.
constexpr std::array<FactorKey, 8> kFactorKeys = {
    {{"right_matmul", "target_tensor_map", FactorSide::target, false},
     {"right_matmul", "golden_tensor_map", FactorSide::golden, false},
     {"left_matmul", "target_tensor_map", FactorSide::target, true},
     {"left_matmul", "golden_tensor_map", FactorSide::golden, true},
     {"left_right_matmul", "left_target_tensor_map", FactorSide::target, true},
     {"left_right_matmul", "left_golden_tensor_map", FactorSide::golden, true},
     {"left_right_matmul", "right_target_tensor_map", FactorSide::target, false},
     {"left_right_matmul", "right_golden_tensor_map", FactorSide::golden, false}}};

/// Axes of length 1 do not count in a comparison, so they do not in a product.
StoredTensor without_axes_of_one(const StoredTensor& tensor) {
  StoredTensor squeezed = tensor;
  squeezed.shape.clear();
  squeezed.strides.clear();
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (tensor.shape[axis] == 1) continue;
    squeezed.shape.push_back(tensor.shape[axis]);
    squeezed.strides.push_back(tensor.strides[axis]);
  }
  return squeezed;
}

}  // namespace

class TensorFactors::Reader {
 public:
  Reader(const RuleFile& file, TensorFactors& factors) : file_(file), factors_(factors) {}

  void read() {
    const Node& root = file_.root();
    if (root.kind != Kind::map)
      file_.fail(root, "expected a mapping with right_matmul, left_matmul or left_right_matmul");
    for (const auto& [section, maps] : file_.members(root)) check(*section, *maps);
    for (const FactorKey& key : kFactorKeys) {
      for (const auto& [section, maps] : file_.members(root)) {
        if (section->text != key.section) continue;
        for (const auto& [map, matrices] : file_.members(*maps)) {
          if (map->text == key.map) take(key, *matrices);
        }
      }
    }
    for (const auto& [line, what] : remarks_)
      factors_.remarks_.push_back(fmt::format("line {}: {}", line, what));
  }

 private:
  using Kind = RuleFile::Kind;
  using Node = RuleFile::Node;

  void remark(const Node& node, const std::string& what) { remarks_.emplace(node.line + 1, what); }

  /// Nothing may pass for a product that is made.
  void check(const Node& section, const Node& maps) {
    const auto in_section = [&](const FactorKey& key) { return key.section == section.text; };
    if (std::none_of(kFactorKeys.begin(), kFactorKeys.end(), in_section))
      return remark(section, "unknown key '" + display(section.text) + "'");
    if (maps.is_null()) return;
    if (maps.kind != Kind::map)
      file_.fail(maps, section.text + " must be a mapping of matrices to data names");
    for (const auto& [map, matrices] : file_.members(maps)) {
      const bool known = std::any_of(
          kFactorKeys.begin(), kFactorKeys.end(),
          [&, name = &map->text](const FactorKey& key) { return in_section(key) && key.map == *name; });
      if (!known) {
        remark(*map, "unknown key '" + display(map->text) + "' in " + section.text);
      } else if (!matrices->is_null() && matrices->kind != Kind::map) {
        file_.fail(*matrices, map->text + " must be a mapping of matrices to data names");
      }
    }
  }

  void take(const FactorKey& key, const Node& matrices) {
    std::unordered_map<std::string, const Node*> taken;  // of one map the last matrix counts
    std::vector<const std::string*> order;
    for (const auto& [matrix, names] : file_.members(matrices)) {
      if (!matrix->is_text()) file_.fail(*matrix, "expected the file of a matrix");
      if (names->kind != Kind::list) {
        remark(*names, display(matrix->text) + " has no list of data names");
        continue;
      }
      for (const Node* name : file_.elements(*names)) {
        if (!name->is_text()) {
          remark(*name, "not a data name, for " + display(matrix->text));
          continue;
        }
        const auto [place, is_new] = taken.try_emplace(name->text, matrix);
        if (is_new) {
          order.push_back(&place->first);
        } else if (place->second->text != matrix->text) {
          remark(*name, fmt::format("{} is also listed under {}, which is ignored", display(name->text),
                                    display(place->second->text)));
          place->second = matrix;
        }
      }
    }
    for (const std::string* name : order) add(key, *name, taken.at(*name)->text);
  }

  void add(const FactorKey& key, const std::string& name, const std::string& matrix) {
    const auto [place, is_new] =
        factors_.places_[static_cast<std::size_t>(key.side)].try_emplace(name, factors_.all_.size());
    if (is_new) factors_.all_.push_back({key.side, name, {}});
    factors_.all_[place->second].factors.push_back({key.on_the_left, matrix});
  }

  const RuleFile& file_;
  TensorFactors& factors_;
  std::multimap<std::uint32_t, std::string> remarks_;  // by line
};

TensorFactors::TensorFactors(const RuleFile& file) {
  Reader(file, *this).read();
}

std::optional<std::size_t> TensorFactors::find(FactorSide side, std::string_view data_name) const {
  const auto& places = places_[static_cast<std::size_t>(side)];
  const auto found = places.find(std::string(data_name));
  return found == places.end() ? std::nullopt : std::optional(found->second);
}

formats::StoredTensor multiplied(const StoredTensor& tensor, const TensorFactors::FactoredTensor& named,
                                 std::optional<std::int64_t>& valid_rows, FactorNotes& notes) {
  // Each product is parallel in itself, and takes much memory.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const char* const side = named.side == FactorSide::target ? "NPU" : "Bench";
  const auto failed = [&](const std::string& reason) {
    notes.messages.push_back(fmt::format("{} tensor not multiplied: {}.", side, reason));
    notes.failures.push_back(reason);
  };
  const StoredTensor squeezed = without_axes_of_one(tensor);
  std::optional<formats::Elements> elements;
  bool done = false;
  for (const TensorFactors::Factor& factor : named.factors) {
    const std::string matrix = display(factor.matrix);
    std::optional<formats::Elements> other;
    try {
      other = formats::read_elements(formats::open_tensor(open_file(factor.matrix)));
      if (!elements) elements = formats::read_elements(squeezed, valid_rows);
    } catch (const Error& error) {
      failed(error.what());
      continue;
    }
    try {
      elements =
          factor.on_the_left ? formats::multiply(*other, *elements) : formats::multiply(*elements, *other);
    } catch (const FormatError& error) {
      failed(matrix + ": " + error.what());
      continue;
    }
    done = true;
    notes.messages.push_back(fmt::format("{} tensor multiplied by {} from the {}.", side, matrix,
                                         factor.on_the_left ? "left" : "right"));
  }
  if (!done) return tensor;
  if (valid_rows && *valid_rows < squeezed.shape.front())  // products of numbers are refused
    notes.messages.insert(notes.messages.begin(),
                          behind_valid_length(std::max<std::int64_t>(*valid_rows, 0)));
  valid_rows.reset();
  return formats::store(*elements, tensor.storage->name());
}

}  // namespace msprobe::measuring

// SPDX-License-Identifier: Apache-2.0
#include "precheck/standards/standards.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "dump/operations.hpp"
#include "precheck/standards/default_standards.hpp"
#include "support/rule_file.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

using Place = std::pair<std::string_view, double*>;

/// `0.5`, `1e-16`, `2^-10`.
std::optional<double> parse_power(std::string_view text) {
  const std::size_t sign = text.find('^');
  if (sign == std::string_view::npos) return parse_number(text);
  const auto base = parse_number(text.substr(0, sign));
  const auto exponent = parse_number(text.substr(sign + 1));
  if (!base || !exponent) return std::nullopt;
  return std::pow(*base, *exponent);
}

std::vector<Place> places(RatioLimits& limits) {
  return {{"max_relative", &limits.max_relative},
          {"mean_relative", &limits.mean_relative},
          {"rmse", &limits.rmse},
          {"small_share", &limits.small_share},
          {"balance", &limits.balance}};
}

std::vector<Place> places(TypeLimits& limits) {
  return {{"small_value", &limits.small_value},
          {"absolute_tolerance", &limits.absolute_tolerance},
          {"benchmark_tolerance", &limits.benchmark_tolerance},
          {"relative_tolerance", &limits.relative_tolerance},
          {"accumulative_bound", &limits.accumulative_bound},
          {"accumulative_balance", &limits.accumulative_balance},
          {"smallest_denominator", &limits.smallest_denominator},
          {"units_warning", &limits.units_warning},
          {"units_error", &limits.units_error}};
}

std::vector<Place> places(OtherLimits& limits) {
  return {{"accumulative_small_value", &limits.accumulative_small_value},
          {"ulp_float32", &limits.ulp_float32},
          {"ulp_other", &limits.ulp_other},
          {"ulp_float32_mean", &limits.ulp_float32_mean},
          {"ulp_float32_share", &limits.ulp_float32_share},
          {"ulp_other_share", &limits.ulp_other_share},
          {"ulp_ratio", &limits.ulp_ratio},
          {"thousandth", &limits.thousandth},
          {"cosine", &limits.cosine},
          {"max_absolute", &limits.max_absolute},
          {"hundredth_share", &limits.hundredth_share},
          {"thousandth_share", &limits.thousandth_share},
          {"ten_thousandth_share", &limits.ten_thousandth_share},
          {"dropout_zeros", &limits.dropout_zeros},
          {"dropout_elements", &limits.dropout_elements},
          {"quantized", &limits.quantized},
          {"wrong_share", &limits.wrong_share}};
}

}  // namespace

class StandardsReader {
 public:
  using Node = RuleFile::Node;

  StandardsReader(const RuleFile& file, Standards& standards) : file_(file), standards_(standards) {}

  /// Operations whose rows in data/operations.yaml name the list.
  void fill_lists() {
    for (const auto& [key, list] : lists()) {
      for (dump::Listed& each : dump::listed_operations(key)) list->insert(std::move(each.name));
    }
  }

  void read() {
    require_map(file_.root(), "the file");
    const auto known = lists();
    for (const auto& [key, value] : file_.members(file_.root())) {
      if (const auto list = known.find(key->text); list != known.end()) {
        *list->second = names(*value, key->text);
      } else if (key->text == "ratios") {
        read_ratios(*value);
      } else if (key->text == "types") {
        read_types(*value);
      } else if (key->text == "limits") {
        read_numbers(*value, places(standards_.limits_), key->text);
      } else {
        file_.fail(*key, "unknown rule '" + display(key->text) + "'");
      }
    }
  }

 private:
  /// The lists of operations by their names.
  std::map<std::string_view, Standards::Names*> lists() {
    const auto of = [&](Criterion criterion) {
      return &standards_.lists_[static_cast<std::size_t>(criterion)];
    };
    return {{"absolute_threshold", of(Criterion::absolute_threshold)},
            {"binary_consistency", of(Criterion::binary_consistency)},
            {"ulp", of(Criterion::ulp)},
            {"thousandth", of(Criterion::thousandth)},
            {"accumulative_error", of(Criterion::accumulative_error)},
            {"level_1", &standards_.levels_[1]},
            {"level_2", &standards_.levels_[2]},
            {"quantized", &standards_.quantized_}};
  }

  void require_map(const Node& node, std::string_view key) const {
    if (node.kind != RuleFile::Kind::map)
      file_.fail(node, display(key) + " must be a mapping of names to values");
  }

  Standards::Names names(const Node& node, std::string_view key) const {
    if (node.kind != RuleFile::Kind::list) file_.fail(node, display(key) + " must be a list of names");
    Standards::Names names;
    for (const Node* item : file_.elements(node)) {
      if (!item->is_text()) file_.fail(*item, display(key) + " must be a list of names");
      names.insert(item->text);
    }
    return names;
  }

  void read_numbers(const Node& node, const std::vector<Place>& places, std::string_view key) const {
    require_map(node, key);
    for (const auto& [name, value] : file_.members(node)) {
      const auto place = std::ranges::find(places, name->text, &Place::first);
      if (place == places.end())
        file_.fail(*name, display(key) + ": unknown number '" + display(name->text) + "'");
      const auto number = value->is_text() ? parse_power(value->text) : std::nullopt;
      if (!number || !std::isfinite(*number) || *number < 0)
        file_.fail(*value, display(name->text) + " must be a number that is not negative");
      *place->second = *number;
    }
  }

  void read_ratios(const Node& node) const {
    require_map(node, "ratios");
    for (const auto& [level, value] : file_.members(node)) {
      constexpr std::array<std::string_view, 3> kLevels = {"level_0", "level_1", "level_2"};
      const auto found = std::ranges::find(kLevels, level->text);
      if (found == kLevels.end()) file_.fail(*level, "the levels are level_0, level_1, level_2");
      const auto number = static_cast<std::size_t>(found - kLevels.begin());
      read_numbers(*value, places(standards_.ratios_[number]), level->text);
    }
  }

  void read_types(const Node& node) const {
    require_map(node, "types");
    for (const auto& [name, value] : file_.members(node)) {
      if (name->text != "other" && !tensor::dtype_from_torch(name->text))
        file_.fail(*name, "unknown type '" + display(name->text) + "'");
      // A new type begins with the numbers of `other`.
      const auto place = standards_.types_.try_emplace(name->text, standards_.types_["other"]).first;
      read_numbers(*value, places(place->second), name->text);
    }
  }

  const RuleFile& file_;
  Standards& standards_;
};

Standards Standards::built_in() {
  Standards standards;
  const RuleFile file("built-in standards", kDefaultStandards);
  StandardsReader reader(file, standards);
  reader.read();
  reader.fill_lists();
  return standards;
}

Standards Standards::load(const std::string& path) {
  Standards standards = built_in();
  StandardsReader(RuleFile::open(path), standards).read();
  return standards;
}

Criterion Standards::listed(std::string_view operation) const {
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    if (lists_[i].contains(operation)) return static_cast<Criterion>(i);
  }
  return Criterion::benchmark;
}

const RatioLimits& Standards::ratios(std::string_view operation) const {
  for (std::size_t level = 1; level < levels_.size(); ++level) {
    if (levels_[level].contains(operation)) return ratios_[level];
  }
  return ratios_[0];
}

const TypeLimits& Standards::type(std::string_view name) const {
  const auto found = types_.find(name);
  return found != types_.end() ? found->second : types_.find("other")->second;
}

}  // namespace msprobe::precheck

// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "config_check/checks.hpp"
#include "config_check/similarity.hpp"
#include "support/ascii.hpp"
#include "support/interrupt.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using pack::PackValue;
using report::Severity;

constexpr double kSimilar = 0.8;                  // names must be more similar than this
constexpr std::size_t kMostPairs = 25'000'000;    // limit for the pairs of names to compare
constexpr std::size_t kMostWork = 1'000'000'000;  // limit for the steps of all comparisons, roughly
constexpr const char* kOnlyBench = "Only in benchmark";
constexpr const char* kOnlyCmp = "Only in comparison";

std::string underscored(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

/// The part after the last dot, with underscores.
std::string reduced(std::string_view name) {
  return underscored(name.substr(name.rfind('.') + 1));
}

/// Numbers and Booleans as Python prints them, and text as it is; so 4 and "4" are equal.
std::optional<std::string> scalar_text(const PackValue& value) {
  if (value.is_container() || value.is(PackValue::Type::null)) return std::nullopt;
  return pack::python_str(value);
}

bool equal_values(const PackValue& a, const PackValue& b) {
  const auto left = scalar_text(a);
  const auto right = scalar_text(b);
  if (left && right) {
    if (*left == *right) return true;
    if (a.is(PackValue::Type::boolean) || b.is(PackValue::Type::boolean)) return false;
    const auto x = parse_number(*left);
    const auto y = parse_number(*right);
    return x && y && *x == *y;
  }
  return pack::equal_items(a, b, equal_values);
}

/// Numbers and Booleans as text, as the Python tool writes them in the sheet.
SheetCell value_cell(const PackValue& value) {
  if (value.is(PackValue::Type::null)) return std::monostate{};
  return pack::python_str(value);
}

class ParameterMatching {
 public:
  ParameterMatching(const std::string& file_name, const PackValue& bench, const PackValue& cmp,
                    const Tables& tables, RowTable& rows)
      : file_name_(file_name),
        bench_(bench),
        cmp_(cmp),
        tables_(tables),
        rows_(rows),
        taken_(cmp.keys().size(), false),
        matched_(bench.keys().size(), false) {}

  bool run() {
    const std::size_t first = rows_.rows();
    by_name([](std::string_view name) { return std::string(name); });
    by_name(underscored);
    by_name(reduced);
    by_alias();
    const bool compared = by_similarity();
    for (std::size_t i = 0; i < matched_.size(); ++i) {
      if (!matched_[i])
        rows_.add(
            {file_name_, bench_.keys()[i], kOnlyBench, value_cell(bench_.items()[i]), {}, {}, "warning"},
            Severity::warning);
    }
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (!taken_[i])
        rows_.add({file_name_, kOnlyCmp, cmp_.keys()[i], {}, cell_of(cmp_.items()[i]), {}, "warning"},
                  Severity::warning);
    }
    rows_.sort_from(first);
    return compared;
  }

 private:
  void pair(std::size_t bench, std::size_t cmp, const std::string& how, bool exact) {
    matched_[bench] = true;
    taken_[cmp] = true;
    const PackValue& a = bench_.items()[bench];
    const PackValue& b = cmp_.items()[cmp];
    const bool equal = equal_values(a, b);
    if (equal && exact) return;
    rows_.add({file_name_, bench_.keys()[bench], cmp_.keys()[cmp], value_cell(a), value_cell(b), how,
               equal ? "warning" : "error"},
              equal ? Severity::warning : Severity::error);
  }

  /// The names that are not taken yet, by the result of `form`; several names with the same result are in the
  /// order of the file.
  template <typename Form>
  std::unordered_map<std::string, std::vector<std::size_t>> free_names(Form form) const {
    std::unordered_map<std::string, std::vector<std::size_t>> names;
    for (std::size_t i = taken_.size(); i-- > 0;) {
      if (!taken_[i]) names[form(cmp_.keys()[i])].push_back(i);  // reversed, because the list is popped
    }
    return names;
  }

  template <typename Form>
  void by_name(Form form) {
    auto names = free_names(form);
    for (std::size_t i = 0; i < matched_.size(); ++i) {
      if (matched_[i]) continue;
      const auto found = names.find(form(bench_.keys()[i]));
      if (found == names.end() || found->second.empty()) continue;
      pair(i, found->second.back(), "pure name", true);
      found->second.pop_back();
    }
  }

  void by_alias() {
    auto names = free_names(reduced);
    for (std::size_t i = 0; i < matched_.size(); ++i) {
      if (matched_[i]) continue;
      const std::string name = reduced(bench_.keys()[i]);
      for (const AliasGroup& group : tables_.aliases) {
        if (std::find(group.names.begin(), group.names.end(), name) == group.names.end()) continue;
        for (const std::string& alias : group.names) {
          const auto found = names.find(alias);
          if (found == names.end() || found->second.empty()) continue;
          pair(i, found->second.back(), "mapping", true);
          found->second.pop_back();
          break;
        }
        if (matched_[i]) break;
      }
    }
  }

  bool by_similarity() {
    struct Other {
      std::string name;
      std::size_t index;
      bool ascii;
    };
    std::vector<Other> others;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) continue;
      std::string name = lower_case(reduced(cmp_.keys()[i]));
      const bool ascii = is_ascii(name);
      others.push_back({std::move(name), i, ascii});
    }
    const auto left = static_cast<std::size_t>(std::count(matched_.begin(), matched_.end(), false));
    if (!others.empty() && left > kMostPairs / others.size()) return false;
    for (std::size_t i = 0; i < matched_.size(); ++i) {
      if (matched_[i]) continue;
      check_interrupt();
      const std::string name = lower_case(reduced(bench_.keys()[i]));
      const bool ascii = is_ascii(name);
      double best = kSimilar;
      std::optional<std::size_t> partner;
      for (const auto& [other, index, other_ascii] : others) {
        if (taken_[index]) continue;
        const double shorter = static_cast<double>(std::min(name.size(), other.size()));
        const bool ascii_hopeless = 2 * shorter <= best * static_cast<double>(name.size() + other.size()) &&
                                    !(name.empty() && other.empty());
        if (ascii_hopeless && ascii && other_ascii) continue;
        if (!spend((name.size() + other.size()) / 4 + 1)) return false;
        if (similarity_bound(name, other) <= best) continue;
        if (!spend(name.size() * other.size() / 4 + 100)) return false;
        const double alike = similarity(name, other);
        if (alike > best) {
          best = alike;
          partner = index;
        }
      }
      if (partner) pair(i, *partner, "similarity:" + python_repr(best), false);
    }
    return true;
  }

  bool spend(std::size_t work) {
    if (work > work_left_) return false;
    work_left_ -= work;
    return true;
  }

  static bool is_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return (c & 0x80) == 0; });
  }

  const std::string& file_name_;
  const PackValue& bench_;
  const PackValue& cmp_;
  const Tables& tables_;
  RowTable& rows_;
  std::vector<bool> taken_;    // of cmp
  std::vector<bool> matched_;  // of bench
  std::size_t work_left_ = kMostWork;
};

PackValue read_parameters(const pack::Pack& pack, const pack::PackMember& member) {
  return pack::from_entry(read_object(pack, member), 0, pack.name() + ": " + member.name);
}

std::set<std::string> reduced_names(const PackValue& parameters) {
  std::set<std::string> names;
  for (const std::string& name : parameters.keys()) names.insert(reduced(name));
  return names;
}

/// Leaves out the names that the processes of both packs recorded: a process used the values that it
/// recorded, regardless of its script.
PackValue not_recorded(const PackValue& parameters, const std::set<std::string>& bench,
                       const std::set<std::string>& cmp) {
  PackValue left = PackValue::map();
  for (std::size_t i = 0; i < parameters.items().size(); ++i) {
    const std::string& name = parameters.keys()[i];
    const std::string plain = reduced(name);
    if (!bench.contains(plain) || !cmp.contains(plain)) left.push(name, parameters.items()[i]);
  }
  return left;
}

}  // namespace

std::vector<std::string> hyper_parameter_columns() {
  return {"file_name", "bench_para", "cmp_para", "bench_value", "cmp_value", "matched_with", "level"};
}

bool compare_hyper_parameters(const std::string& file_name, const PackValue& bench, const PackValue& cmp,
                              const Tables& tables, RowTable& rows) {
  return ParameterMatching(file_name, bench, cmp, tables, rows).run();
}

SheetSection check_hyper_parameters(const Packs& packs, const Tables& tables) {
  auto rows = std::make_unique<RowTable>(hyper_parameter_columns());
  SheetSection section;
  section.name = "hyperparameters";
  constexpr const char* kRecorded = "hyperparameters/hyperparameters_dynamic.json";
  const auto* const bench_recorded = packs.bench.find(pack::Section::hyperparameters, kRecorded);
  const auto* const cmp_recorded = packs.cmp.find(pack::Section::hyperparameters, kRecorded);
  for (const char* file : {"hyperparameters_static.json", "hyperparameters_dynamic.json"}) {
    const std::string name = std::string("hyperparameters/") + file;
    const auto* const bench = packs.bench.find(pack::Section::hyperparameters, name);
    const auto* const cmp = packs.cmp.find(pack::Section::hyperparameters, name);
    if (bench == nullptr && cmp == nullptr) continue;
    if (bench == nullptr || cmp == nullptr) {
      section.coverage.miss("only one pack has the file", file);
      rows->add({std::string(file),
                 bench == nullptr ? kOnlyCmp : file,
                 bench == nullptr ? file : kOnlyBench,
                 {},
                 {},
                 {},
                 "error"},
                Severity::error);
      continue;
    }
    PackValue ours = read_parameters(packs.bench, *bench);
    PackValue theirs = read_parameters(packs.cmp, *cmp);
    if (name != kRecorded && bench_recorded != nullptr && cmp_recorded != nullptr) {
      const std::set<std::string> by_bench = reduced_names(read_parameters(packs.bench, *bench_recorded));
      const std::set<std::string> by_cmp = reduced_names(read_parameters(packs.cmp, *cmp_recorded));
      ours = not_recorded(ours, by_bench, by_cmp);
      theirs = not_recorded(theirs, by_bench, by_cmp);
    }
    section.coverage.compared += std::max(ours.items().size(), theirs.items().size());
    if (ours.items().empty() && theirs.items().empty()) ++section.coverage.explained;
    if (!compare_hyper_parameters(file, ours, theirs, tables, *rows)) {
      log_warning(name + ": too many unmatched names; similar names were not searched");
    }
  }
  section.status = rows->status();
  section.table = std::move(rows);
  section.shown = {1, 2, 3, 4, 5};
  return section;
}

}  // namespace msprobe::config_check

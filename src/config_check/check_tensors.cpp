// SPDX-License-Identifier: Apache-2.0
// Statistics of a model's inputs and of its weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <unordered_map>

#include "config_check/checks.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using dump::Entry;
using report::Severity;

constexpr std::array<std::string_view, 4> kStatistics = {"max", "min", "mean", "norm"};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kNull = "null or NaN in both packs";
constexpr std::size_t kMostNames = std::size_t{256} << 20;  // bytes, of one file
constexpr int kMostDepth = 410;                             // of a tree; the JSON reader lets no more through

enum class Equal : std::uint8_t { yes, no, only_bench, only_cmp };

/// Long runs record millions of these, so they are small and hold no text.
struct TensorRow {
  std::uint32_t name = 0;
  Equal equal = Equal::no;
  std::array<double, 4> difference = {kNaN, kNaN, kNaN, kNaN};
};

/// The rows of one rank in one step.
struct RankTensors {
  std::uint64_t step = 0;
  std::uint64_t rank = 0;
  std::vector<std::string> names;
  std::vector<TensorRow> rows;
  std::size_t text = 0;  // of the names
  Coverage coverage;

  void add(std::string name, Equal equal) {
    text += name.size();
    if (text > kMostNames) throw FormatError("the tensor names of one file are too long in total");
    coverage.compared += equal == Equal::yes ? 0 : 1;
    rows.push_back({static_cast<std::uint32_t>(names.size()), equal});
    names.push_back(std::move(name));
  }
};

class TensorTable final : public SheetTable {
 public:
  explicit TensorTable(const char* name_column)
      : SheetTable({"step", "rank", name_column, "equal", "max_relative_diff", "min_relative_diff",
                    "mean_relative_diff", "norm_relative_diff"}) {}

  void add(const RankTensors& block) {
    // A name is the same in every step, so it is kept once.
    for (TensorRow row : block.rows) {
      const auto [place, inserted] = ids_.emplace(block.names[row.name], names_.size());
      if (inserted) names_.push_back(block.names[row.name]);
      row.name = static_cast<std::uint32_t>(place->second);
      rows_.push_back(row);
      count(row.equal == Equal::yes ? Severity::none : Severity::error);
    }
    if (!block.rows.empty()) starts_.push_back({rows_.size(), block.step, block.rank});
  }

  std::size_t rows() const override { return rows_.size(); }
  Severity severity(std::size_t index) const override {
    return rows_[index].equal == Equal::yes ? Severity::none : Severity::error;
  }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    cells.clear();
    scratch.clear();
    const TensorRow& row = rows_[index];
    const auto start =
        std::upper_bound(starts_.begin(), starts_.end(), index,
                         [](std::size_t value, const RankStart& each) { return value < each.end; });
    cells.emplace_back(static_cast<std::int64_t>(start->step));
    cells.emplace_back(static_cast<std::int64_t>(start->rank));
    cells.emplace_back(report::Text{names_[row.name]});
    if (row.equal == Equal::only_bench) {
      cells.emplace_back(report::Text{"only bench have"});
    } else if (row.equal == Equal::only_cmp) {
      cells.emplace_back(report::Text{"only cmp have"});
    } else {
      cells.emplace_back(row.equal == Equal::yes);
    }
    for (const double difference : row.difference) {
      if (std::isnan(difference)) {
        cells.emplace_back(report::Text{});
      } else {
        cells.emplace_back(difference);
      }
    }
  }

 private:
  struct RankStart {
    std::size_t end;  // after its last row
    std::uint64_t step;
    std::uint64_t rank;
  };
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> ids_;
  std::vector<TensorRow> rows_;
  std::vector<RankStart> starts_;
};

bool is_number(const Entry& entry, Entry::Index node) {
  return entry.is(node, dump::NodeKind::integer) || entry.is(node, dump::NodeKind::real);
}

/// An object with the four statistics.
bool is_record(const Entry& entry, Entry::Index node) {
  return entry.is(node, dump::NodeKind::object) &&
         std::ranges::all_of(kStatistics,
                             [&](std::string_view name) { return entry.find(node, name) != Entry::kNone; });
}

/// Is there anything in it that can be equal? Neither null nor NaN can.
bool has_content(const Entry& entry, Entry::Index node) {
  if (entry.is_container(node)) {
    bool any = false;
    entry.children(node, [&](Entry::Index child) { any = any || has_content(entry, child); });
    return any;
  }
  return !entry.is(node, dump::NodeKind::null) && !(is_number(entry, node) && std::isnan(entry.number(node)));
}

/// One statistic of both sides. True if they are equal, NaN and NaN too.
bool compare_numbers(const Entry& a, Entry::Index left, const Entry& b, Entry::Index right,
                     double& difference) {
  if (!is_number(a, left) || !is_number(b, right))
    return a.kind(left) == b.kind(right) && a.python_str(left) == b.python_str(right);
  const double bench = a.number(left);
  const double cmp = b.number(right);
  if (bench != 0) difference = std::fabs(bench - cmp) / std::fabs(bench);
  // Beyond 2^53 whole numbers are equal digit by digit only.
  if (a.is(left, dump::NodeKind::integer) && b.is(right, dump::NodeKind::integer))
    return a.text(left) == b.text(right);
  return bench == cmp || (std::isnan(bench) && std::isnan(cmp));
}

void compare_records(const Entry& a, Entry::Index left, const Entry& b, Entry::Index right, std::string name,
                     RankTensors& block) {
  TensorRow row;
  row.equal = Equal::yes;
  bool any_number = false;
  for (std::size_t i = 0; i < kStatistics.size(); ++i) {
    const Entry::Index ours = a.find(left, kStatistics[i]);
    any_number = any_number || (is_number(a, ours) && std::isfinite(a.number(ours)));
    if (!compare_numbers(a, ours, b, b.find(right, kStatistics[i]), row.difference[i])) row.equal = Equal::no;
  }
  // Other members, such as a shape.
  double unused = 0;
  std::size_t others = 0;
  a.children(left, [&](Entry::Index child) {
    const Entry::Index theirs = b.find(right, a.key(child));
    if (theirs == Entry::kNone || !compare_numbers(a, child, b, theirs, unused)) row.equal = Equal::no;
    ++others;
  });
  b.children(right, [&](Entry::Index) { --others; });
  if (others != 0) row.equal = Equal::no;
  if (row.equal == Equal::yes) {
    if (any_number) {
      ++block.coverage.compared;
    } else {
      block.coverage.miss("no statistic is a number on both sides", name);
    }
  }
  block.add(std::move(name), row.equal);
  block.rows.back().difference = row.difference;
}

using Members = std::unordered_map<std::string_view, Entry::Index>;

Members members_of(const Entry& entry, Entry::Index node) {
  Members members;
  entry.children(node, [&](Entry::Index child) { members.emplace(entry.key(child), child); });
  return members;
}

/// Walks the trees of a model's inputs on both sides together.
class TreeComparison {
 public:
  TreeComparison(const Entry& bench, const Entry& cmp, RankTensors& block)
      : a_(bench), b_(cmp), block_(block) {}

  void run() { objects(0, 0, "", 0); }

 private:
  static std::string below(const std::string& path, std::string_view key) {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }

  void objects(Entry::Index left, Entry::Index right, const std::string& path, int depth) {
    if (depth > kMostDepth) return;
    const Members others = members_of(b_, right);
    a_.children(left, [&](Entry::Index child) {
      const std::string name = below(path, a_.key(child));
      const auto found = others.find(a_.key(child));
      if (found == others.end()) {
        block_.add(name, Equal::no);
      } else {
        values(child, found->second, name, depth);
      }
    });
    const Members ours = members_of(a_, left);
    b_.children(right, [&](Entry::Index child) {
      if (!ours.contains(b_.key(child))) block_.add(below(path, b_.key(child)), Equal::no);
    });
  }

  void values(Entry::Index left, Entry::Index right, const std::string& name, int depth) {
    const bool left_object = a_.is(left, dump::NodeKind::object);
    const bool right_object = b_.is(right, dump::NodeKind::object);
    const bool left_record = is_record(a_, left);
    const bool right_record = is_record(b_, right);
    if (left_record && right_record) {
      compare_records(a_, left, b_, right, name, block_);
    } else if (left_object && right_object && !left_record && !right_record) {
      objects(left, right, name, depth + 1);
    } else if (left_object && !left_record && !right_object && !a_.empty(left)) {
      // A folder of tensors that became something else: each of them is gone.
      a_.children(left, [&](Entry::Index child) { block_.add(below(name, a_.key(child)), Equal::no); });
    } else if (left_object || right_object) {
      block_.add(name, Equal::no);
    } else {
      leaves(left, right, name);
    }
  }

  /// Recorders write an empty text for a value that is not a tensor.
  void leaves(Entry::Index left, Entry::Index right, const std::string& name) {
    double unused = 0;
    if (!compare_numbers(a_, left, b_, right, unused)) {
      block_.add(name, Equal::no);
    } else if (a_.is(left, dump::NodeKind::string) && a_.text(left).empty()) {
      ++block_.coverage.explained;
    } else if (has_content(a_, left)) {
      ++block_.coverage.compared;
    } else {
      block_.coverage.miss(kNull, name);
    }
  }

  const Entry& a_;
  const Entry& b_;
  RankTensors& block_;
};

void compare_weights(const Entry& bench, const Entry& cmp, RankTensors& block) {
  const Members others = members_of(cmp, 0);
  std::set<std::string_view> seen;
  bench.children(0, [&](Entry::Index child) {
    const auto found = others.find(bench.key(child));
    std::string name(bench.key(child));
    if (found == others.end()) {
      block.add(std::move(name), Equal::only_bench);
      return;
    }
    seen.insert(bench.key(child));
    if (is_record(bench, child) && is_record(cmp, found->second)) {
      compare_records(bench, child, cmp, found->second, std::move(name), block);
    } else {
      // No recorder writes this form; compare it as text.
      const bool same = bench.python_str(child) == cmp.python_str(found->second);
      if (same && has_content(bench, child)) ++block.coverage.compared;
      if (same && !has_content(bench, child)) block.coverage.miss(kNull, name);
      block.add(std::move(name), same ? Equal::yes : Equal::no);
    }
  });
  cmp.children(0, [&](Entry::Index child) {
    if (!seen.contains(cmp.key(child))) block.add(std::string(cmp.key(child)), Equal::only_cmp);
  });
}

/// A member of one pack and its partner in the other.
struct MemberPair {
  const pack::PackMember* bench = nullptr;
  const pack::PackMember* cmp = nullptr;
};

std::vector<MemberPair> pair_members(const std::vector<pack::PackMember>& bench,
                                     const std::vector<pack::PackMember>& cmp) {
  const auto order = [](const pack::PackMember& a, const pack::PackMember& b) {
    return std::tie(a.step, a.rank, a.name) < std::tie(b.step, b.rank, b.name);
  };
  std::vector<MemberPair> pairs;
  auto left = bench.begin();
  auto right = cmp.begin();
  while (left != bench.end() || right != cmp.end()) {
    if (right == cmp.end() || (left != bench.end() && order(*left, *right))) {
      pairs.push_back({&*left++, nullptr});
    } else if (left == bench.end() || order(*right, *left)) {
      pairs.push_back({nullptr, &*right++});
    } else {
      pairs.push_back({&*left++, &*right++});
    }
  }
  return pairs;
}

/// Names of the entries of a rank that only one side has; of a dataset the name of its file.
void one_sided(const pack::Pack& pack, const pack::PackMember& member, Equal equal, bool weights,
               RankTensors& block) {
  if (!weights) {
    block.add(std::string(member.file()), equal);
    return;
  }
  const Entry entry = read_object(pack, member);
  entry.children(0, [&](Entry::Index child) { block.add(std::string(entry.key(child)), equal); });
  if (block.rows.empty()) block.add(std::string(member.file()), equal);
}

SheetSection check_tensors(const Packs& packs, pack::Section which) {
  const bool weights = which == pack::Section::weights;
  auto table = std::make_unique<TensorTable>(weights ? "weight_name" : "tag");
  const std::vector<MemberPair> pairs = pair_members(packs.bench.members(which), packs.cmp.members(which));
  SheetSection section;
  section.name = pack::name_of(which);
  constexpr std::size_t kAtOnce = 256;  // blocks in memory besides the table
  for (std::size_t first = 0; first < pairs.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, pairs.size() - first);
    std::vector<RankTensors> blocks(count);
    std::vector<std::string> failures(count);
    parallel_for(count, [&](std::size_t i) {
      const MemberPair& pair = pairs[first + i];
      const pack::PackMember& any = pair.bench != nullptr ? *pair.bench : *pair.cmp;
      RankTensors& block = blocks[i];
      block.step = any.step;
      block.rank = any.rank;
      try {
        if (pair.bench == nullptr) {
          one_sided(packs.cmp, any, Equal::only_cmp, weights, block);
        } else if (pair.cmp == nullptr) {
          one_sided(packs.bench, any, Equal::only_bench, weights, block);
        } else {
          const Entry bench = read_object(packs.bench, *pair.bench);
          const Entry cmp = read_object(packs.cmp, *pair.cmp);
          if (weights) {
            compare_weights(bench, cmp, block);
          } else {
            TreeComparison(bench, cmp, block).run();
          }
        }
      } catch (const FormatError& error) {
        failures[i] = error.what();
        block.names.clear();
        block.rows.clear();
        block.add(std::string(any.file()), Equal::no);
        block.coverage = {};
        block.coverage.miss("the file could not be read", any.name);
      }
      if (block.coverage.asked() == 0) block.coverage.miss("the file holds nothing to compare", any.name);
    });
    for (std::size_t i = 0; i < count; ++i) {
      table->add(blocks[i]);
      section.coverage.add(blocks[i].coverage);
      if (!failures[i].empty()) section.reasons.push_back(std::move(failures[i]));
    }
  }
  section.status = table->status();
  section.table = std::move(table);
  section.shown = {0, 1, 2, 3, 4, 7};
  return section;
}

}  // namespace

SheetSection check_dataset(const Packs& packs) {
  return check_tensors(packs, pack::Section::dataset);
}

SheetSection check_weights(const Packs& packs) {
  return check_tensors(packs, pack::Section::weights);
}

}  // namespace msprobe::config_check

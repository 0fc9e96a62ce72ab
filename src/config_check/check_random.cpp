// SPDX-License-Identifier: Apache-2.0
// Compares calls of random functions with their stacks.

#include <algorithm>
#include <set>
#include <unordered_map>

#include "config_check/checks.hpp"
#include "config_check/similarity.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using dump::Entry;
using report::Severity;

constexpr const char* kNoMatch = "no match stack";
constexpr double kAlike = 0.8;
constexpr std::size_t kMostComparisons = 20'000'000;  // of stacks and short frames, in one pack

/// `File /a/b.py, line 3, in main, x = f()`
struct StackFrame {
  std::string_view file;  // without folders
  std::string_view function;
  std::string_view text;
  bool own = false;  // in msprobe's package
};

/// Is the file in msprobe's package, of this project or of the Python tool? Its frames between a program and
/// a random function differ from release to release and do not belong to the training.
bool is_own_file(std::string_view path) {
  constexpr std::string_view kParts[] = {"/msprobe/core/", "/msprobe/pytorch/", "/msprobe/mindspore/"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return path.find(part) != std::string_view::npos; });
}

StackFrame parse_frame(std::string_view frame) {
  constexpr std::string_view kFile = "File ";
  constexpr std::string_view kLine = ", line ";
  constexpr std::string_view kIn = ", in ";
  if (!frame.starts_with(kFile)) return {};
  // The path may contain anything, even the fixed words, but not the fixed words with a number between them.
  for (std::size_t line = frame.find(kLine); line != std::string_view::npos;
       line = frame.find(kLine, line + 1)) {
    std::size_t at = line + kLine.size();
    const std::size_t digits = at;
    while (at < frame.size() && frame[at] >= '0' && frame[at] <= '9') ++at;
    if (at == digits || !frame.substr(at).starts_with(kIn)) continue;
    StackFrame parsed;
    const std::string_view path = frame.substr(kFile.size(), line - kFile.size());
    parsed.file = path.substr(path.rfind('/') + 1);
    parsed.own = is_own_file(path);
    const std::string_view rest = frame.substr(at + kIn.size());
    const std::size_t comma = std::min(rest.find(", "), rest.size());
    parsed.function = rest.substr(0, comma);
    parsed.text = rest.substr(std::min(comma + 2, rest.size()));
    return parsed;
  }
  return {};
}

bool alike(const StackFrame& a, const StackFrame& b) {
  const double p = a.file == b.file && !a.file.empty() ? 1 : 0;
  const double f = a.function == b.function ? 1 : 0;
  // An equal text cannot compensate for a different file or function.
  if (p + f < 2) return false;
  const double s = a.text == b.text ? 1.0 : similarity(a.text, b.text);
  return (p + f + s) / 3.0 >= kAlike;
}

/// The extra cost of comparing two frames with long texts.
std::size_t work(const StackFrame& a, const StackFrame& b) {
  constexpr std::size_t kPerStep = 1024;
  if (a.file != b.file || a.function != b.function || a.text == b.text) return 0;
  return std::min(a.text.size(), kMostCompared) * std::min(b.text.size(), kMostCompared) / kPerStep;
}

struct RandomCall {
  std::vector<std::string> stack;
  std::vector<StackFrame> frames;  // without those of msprobe's package
  SheetCell count;
  std::string joined() const {
    std::string out;
    for (const std::string& frame : stack) {
      if (&frame != &stack.front()) out += '\n';
      out += frame;
    }
    return out;
  }
};

/// An operation and its calls, in the order of the file.
struct RandomOperation {
  std::string name;
  std::vector<RandomCall> calls;
};

/// Adds calls to an operation. Calls that differ only inside msprobe's package come from one place of the
/// training and count as one.
class CallList {
 public:
  explicit CallList(std::vector<RandomCall>& calls) : calls_(calls) {}

  void add(RandomCall call) {
    if (call.frames.size() != call.stack.size()) {
      std::string place;
      for (const StackFrame& frame : call.frames)
        place.append(frame.file).append(1, '\n').append(frame.function).append(1, '\n').append(frame.text) +=
            '\n';
      const auto [found, added] = places_.try_emplace(std::move(place), calls_.size());
      if (!added && add_count(calls_[found->second].count, call.count)) return;
    }
    calls_.push_back(std::move(call));
  }

 private:
  static bool add_count(SheetCell& sum, const SheetCell& more) {
    auto* whole = std::get_if<std::int64_t>(&sum);
    const auto* other = std::get_if<std::int64_t>(&more);
    return whole != nullptr && other != nullptr && !__builtin_add_overflow(*whole, *other, whole);
  }

  std::vector<RandomCall>& calls_;
  std::unordered_map<std::string, std::size_t> places_;
};

std::vector<RandomOperation> read_calls(const pack::Pack& pack, const pack::PackMember& member) {
  const Entry entry = read_object(pack, member);
  const auto fail = [&](std::string_view operation) {
    throw FormatError(display(pack.name() + ": " + member.name),
                      display(operation) + " is not a list of calls with count and stack");
  };
  std::vector<RandomOperation> operations;
  entry.children(0, [&](Entry::Index child) {
    RandomOperation& operation = operations.emplace_back();
    operation.name = entry.key(child);
    CallList calls(operation.calls);
    if (!entry.is(child, dump::NodeKind::array)) fail(operation.name);
    entry.children(child, [&](Entry::Index item) {
      const Entry::Index count = entry.find(item, "count");
      const Entry::Index stack = entry.find(item, "stack");
      if (count == Entry::kNone || !entry.is(stack, dump::NodeKind::array)) fail(operation.name);
      RandomCall call;
      call.count = cell_of(pack::from_entry(entry, count, pack.name()));
      entry.children(stack, [&](Entry::Index frame) { call.stack.push_back(entry.python_str(frame)); });
      for (const std::string& frame : call.stack) {
        const StackFrame parsed = parse_frame(frame);
        if (!parsed.own) call.frames.push_back(parsed);
      }
      calls.add(std::move(call));
    });
  });
  return operations;
}

class RankComparison {
 public:
  RankComparison(std::uint64_t rank, RowTable& rows, std::size_t& budget)
      : rank_(rank), rows_(rows), budget_(budget) {}

  void run(const std::vector<RandomOperation>& bench, const std::vector<RandomOperation>& cmp) {
    static const std::vector<RandomCall> kNone;
    std::unordered_map<std::string_view, const RandomOperation*> others;
    for (const RandomOperation& operation : cmp) others.emplace(operation.name, &operation);
    std::set<std::string_view> seen;
    for (const RandomOperation& operation : bench) {
      seen.insert(operation.name);
      const auto found = others.find(operation.name);
      compare(operation.name, operation.calls, found == others.end() ? kNone : found->second->calls);
    }
    for (const RandomOperation& operation : cmp) {
      if (!seen.contains(operation.name)) compare(operation.name, kNone, operation.calls);
    }
  }

 private:
  /// `first` is the text from which a difference is measured.
  bool match(const RandomCall& first, const RandomCall& second) {
    spend(1);
    if (first.frames.size() != second.frames.size()) return false;
    for (std::size_t i = 0; i < first.frames.size(); ++i) {
      spend(1 + work(first.frames[i], second.frames[i]));
      if (!alike(first.frames[i], second.frames[i])) return false;
    }
    return true;
  }

  void spend(std::size_t steps) {
    if (budget_ < steps) throw FormatError("too many different stacks to compare all of them");
    budget_ -= steps;
  }

  void compare(const std::string& name, const std::vector<RandomCall>& bench,
               const std::vector<RandomCall>& cmp) {
    const auto rank = static_cast<std::int64_t>(rank_);
    for (const RandomCall& call : bench) {
      check_interrupt();
      const auto partner =
          std::ranges::find_if(cmp, [&](const RandomCall& other) { return match(other, call); });
      if (partner == cmp.end()) {
        rows_.add({name, rank, call.joined(), kNoMatch, call.count, std::int64_t{0}, false}, Severity::error);
        continue;
      }
      const bool equal = call.count == partner->count;
      rows_.add({name, rank, call.joined(), partner->joined(), call.count, partner->count, equal},
                equal ? Severity::none : Severity::error);
    }
    for (const RandomCall& call : cmp) {
      check_interrupt();
      if (std::ranges::any_of(bench, [&](const RandomCall& other) { return match(other, call); })) continue;
      rows_.add({name, rank, kNoMatch, call.joined(), std::int64_t{0}, call.count, false}, Severity::error);
    }
  }

  std::uint64_t rank_;
  RowTable& rows_;
  std::size_t& budget_;
};

}  // namespace

bool frames_match(std::string_view bench, std::string_view cmp) {
  return alike(parse_frame(bench), parse_frame(cmp));
}

SheetSection check_random(const Packs& packs) {
  auto rows = std::make_unique<RowTable>(std::vector<std::string>{
      "op", "rank", "bench_stack", "cmp_stack", "bench_count", "cmp_count", "check_result"});
  SheetSection section;
  section.name = "random";
  std::set<std::uint64_t> ranks;
  const auto& bench = packs.bench.members(pack::Section::random);
  const auto& cmp = packs.cmp.members(pack::Section::random);
  for (const auto* members : {&bench, &cmp}) {
    for (const pack::PackMember& member : *members) ranks.insert(member.rank);
  }
  std::size_t budget = kMostComparisons;
  for (const std::uint64_t rank : ranks) {
    const auto calls = [&](const pack::Pack& pack, const std::vector<pack::PackMember>& members) {
      const auto found =
          std::ranges::find_if(members, [&](const pack::PackMember& member) { return member.rank == rank; });
      return found == members.end() ? std::vector<RandomOperation>() : read_calls(pack, *found);
    };
    RankComparison(rank, *rows, budget).run(calls(packs.bench, bench), calls(packs.cmp, cmp));
  }
  section.status = rows->status();
  section.coverage.compared = rows->rows();
  if (rows->rows() == 0) ++section.coverage.explained;
  section.table = std::move(rows);
  section.shown = {0, 2, 3, 4, 5};
  return section;
}

}  // namespace msprobe::config_check

// SPDX-License-Identifier: Apache-2.0
#include "anomaly/rank_scan.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_set>

#include "anomaly/bad_flow.hpp"
#include "anomaly/entry_probe.hpp"
#include "anomaly/levels.hpp"
#include "dump/names.hpp"

namespace msprobe::anomaly {
namespace {

/// The limit for remembered calls with bad outputs.
constexpr std::size_t kMostForwards = 1 << 16;
constexpr std::uint64_t kReportBytes = std::uint64_t{1} << 20;

class RankScanner {
 public:
  RankScanner(const ByteSource& file, const AnomalyRules& rules,
              const std::function<void(std::uint64_t)>& on_bytes)
      : file_(file), rules_(rules), on_bytes_(on_bytes) {}

  RankScan run() {
    result_.header = dump::read_values(
        file_, [&](dump::MemberStream& stream, std::string_view name) { entry(stream, name); });
    settle_last();
    for (std::size_t i = 0; i < result_.suspects.size(); ++i) {
      if (flow_.is_contained(i)) result_.suspects[i].contained = true;
    }
    if (on_bytes_) on_bytes_(file_.size() - reported_);
    return std::move(result_);
  }

 private:
  void entry(dump::MemberStream& stream, std::string_view name) {
    const bool comm = rules_.is_communication(name);
    EntryProbe probe;
    const std::string_view text = stream.value(probe);
    offset_ = stream.value_offset();
    size_ = text.size();
    if (const auto raised = probe.raised()) note_raised(name, *raised);
    const bool judged = probe.has_statistics() || probe.raised();
    if (comm || !probe.known() || !judged) dump::build_entry(text, entry_, file_.name(), name);
    if (judged) {
      ++result_.coverage.compared;
    } else {
      cover_entry(entry_, name, result_.coverage);
    }
    if (comm) {
      communication(name);
    } else {
      const bool ignored = rules_.is_never_blamed(name);
      const EntryBadness bad = probe.known() ? probe.badness() : judge_entry(entry_, nullptr);
      const bool of_bad_forward = follows_forward(name, bad);
      const bool blamed = bad.inputs == 0 && !ignored && !of_bad_forward;
      const bool followed = (bad.inputs | bad.outputs) != 0 && (bad.inputs == 0 || flow_.follows());
      if (followed) {
        if (probe.known()) dump::build_entry(text, entry_, file_.name(), name);
        flow_.add(entry_, bad, blamed, result_.entries);
      }
      note_direction(name, text, bad, probe.known() && !followed);
      compute(name, ignored, bad, blamed);
      if (!ignored) ++sub_layer_;
    }
    ++result_.entries;
    if (on_bytes_ && offset_ - reported_ >= kReportBytes) {
      on_bytes_(offset_ - reported_);
      reported_ = offset_;
    }
  }

  void note_direction(std::string_view name, std::string_view text, const EntryBadness& bad, bool unread) {
    if ((bad.inputs | bad.outputs) == 0 || result_.bad_gradient) return;
    const auto parsed = dump::parse_entry_name(name);
    if (!parsed) return;
    if (parsed->direction == dump::Direction::forward) {
      result_.nan_in_forward = result_.nan_in_forward || ((bad.inputs | bad.outputs) & kNan) != 0;
      return;
    }
    if (unread) dump::build_entry(text, entry_, file_.name(), name);
    const bool makes_nan = bad.inputs == 0 && (bad.outputs & kNan) != 0;
    const dump::Entry::Index section = entry_.find(0, bad.inputs != 0 ? "input" : "output");
    const bool half = section != dump::Entry::kNone && is_of_float16(entry_, section);
    // The limit is chosen. With smaller gradients, an Inf comes from a division by zero, not from their size.
    constexpr double kLargeGradient = 64;
    const bool large = bad.inputs != 0 || largest_in(entry_, entry_.find(0, "input")) >= kLargeGradient;
    result_.bad_gradient = BadGradient{place(name), half && large && !makes_nan};
  }

  static double largest_in(const dump::Entry& entry, dump::Entry::Index node) {
    double largest = 0;
    if (node == dump::Entry::kNone || !entry.is_container(node)) return largest;
    if (entry.is(node, dump::NodeKind::object)) {
      for (const dump::Entry::Index value : entry.find_all<2>(node, {"Max", "Min"}))
        largest = std::max(largest, std::abs(dump::number_of(entry, value).value_or(0)));
    }
    entry.children(node,
                   [&](dump::Entry::Index child) { largest = std::max(largest, largest_in(entry, child)); });
    return largest;
  }

  /// Are all bad values below the node float16?
  static bool is_of_float16(const dump::Entry& entry, dump::Entry::Index node) {
    bool all = true;
    each_bad(entry, node, [&](dump::Entry::Index item) {
      const dump::Entry::Index dtype = entry.find(item, "dtype");
      const std::string_view name = dtype == dump::Entry::kNone ? std::string_view() : entry.string(dtype);
      all = all && (name == "torch.float16" || name == "Float16");
    });
    return all;
  }

  /// True if a backward call makes bad values from clean inputs, but its forward call had bad outputs: the
  /// backward uses values that the forward kept.
  bool follows_forward(std::string_view name, const EntryBadness& bad) {
    if (bad.outputs == 0) return false;
    const auto parsed = dump::parse_entry_name(name);
    if (!parsed) return false;
    std::string call = std::string(parsed->base) + '.' + std::string(parsed->call);
    if (parsed->direction != dump::Direction::forward) return bad.inputs == 0 && bad_forwards_.contains(call);
    if (bad_forwards_.size() < kMostForwards) bad_forwards_.insert(std::move(call));
    return false;
  }

  void note_raised(std::string_view name, bool raised) {
    ++result_.checked_entries;
    if (!raised) return;
    ++result_.raised_entries;
    if (!result_.raised) result_.raised = suspect(name, {});
  }

  ScannedEntry place(std::string_view name) const {
    return {std::string(name), result_.entries, offset_, size_};
  }

  SuspectEntry suspect(std::string_view name, const EntryBadness& bad) const {
    return {place(name), static_cast<std::uint32_t>(result_.comms.size()),
            sub_layer_,  bad.inputs,
            bad.outputs, false};
  }

  void communication(std::string_view name) {
    ScannedCommunication node;
    node.place = place(name);
    split_name(name, node);
    node.sub_layer = sub_layer_;
    const auto write_only = rules_.write_only_inputs.find(node.operation);
    const ArgumentPlaces* skip = write_only != rules_.write_only_inputs.end() ? &write_only->second : nullptr;
    node.bad = judge_entry(entry_, skip);
    node.call = dump::read_comm_call(entry_, pool_);
    if (node.bad.inputs != 0 && !result_.first_bad) {
      result_.external = suspect(name, node.bad);
      result_.external_is_comm = true;
    }
    note_bad(name, node.bad);
    if (node.bad.inputs != 0) {
      confirm_last();
      flow_.add_unknown(result_.entries, node.bad.inputs);
    }
    result_.comms.push_back(std::move(node));
    sub_layer_ = 0;
  }

  /// API and direction from the name, which is parsed from the right. A name without a direction has the API
  /// as its second part.
  void split_name(std::string_view name, ScannedCommunication& node) const {
    const auto parsed = dump::parse_entry_name(name);
    if (parsed) {
      node.operation = parsed->operation();
      node.backward = parsed->direction == dump::Direction::backward;
      return;
    }
    const std::size_t first = name.find('.');
    const std::size_t second = name.find('.', first + 1);
    node.operation = name.substr(first + 1, second - first - 1);
  }

  void compute(std::string_view name, bool ignored, const EntryBadness& bad, bool blamed) {
    if (bad.inputs == 0 && bad.outputs == 0) {
      const auto parsed = dump::parse_entry_name(name);
      if (parsed && parsed->direction == dump::Direction::forward) flow_.add_clean(result_.entries);
      return;
    }
    if (bad.inputs != 0) {
      if (bad.outputs != 0)
        confirm_last();
      else
        consumed_ = true;
    }
    if (!ignored) {
      if (bad.inputs != 0 && !result_.first_bad) result_.external = suspect(name, bad);
      if (bad.inputs == kInf && (bad.outputs & kNan) != 0 && !result_.inf_to_nan)
        result_.inf_to_nan = suspect(name, bad);
      if (blamed) {
        settle_last();
        result_.suspects.push_back(suspect(name, bad));
        watching_ = true;
        consumed_ = false;
      }
    }
    note_bad(name, bad);
  }

  void note_bad(std::string_view name, const EntryBadness& bad) {
    if (bad.inputs == 0 && bad.outputs == 0) return;
    ++result_.bad_entries;
    if (!result_.first_bad) result_.first_bad = place(name);
  }

  /// The bad values of the last suspect were passed on.
  void confirm_last() { watching_ = false; }
  /// No later entry can show more about the last suspect.
  void settle_last() {
    if (watching_ && consumed_) result_.suspects.back().contained = true;
    watching_ = false;
  }

  const ByteSource& file_;
  const AnomalyRules& rules_;
  const std::function<void(std::uint64_t)>& on_bytes_;
  RankScan result_;
  dump::RankListPool pool_;
  dump::Entry entry_;
  std::uint64_t offset_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t reported_ = 0;
  std::uint32_t sub_layer_ = 0;
  BadFlow flow_;
  std::unordered_set<std::string> bad_forwards_;
  bool watching_ = false;  // the last suspect is neither confirmed nor settled
  bool consumed_ = false;
};

}  // namespace

RankScan scan_rank(const ByteSource& file, const AnomalyRules& rules,
                   const std::function<void(std::uint64_t)>& on_bytes) {
  return RankScanner(file, rules, on_bytes).run();
}

}  // namespace msprobe::anomaly

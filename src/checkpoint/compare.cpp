// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "checkpoint/average.hpp"
#include "checkpoint/loaders.hpp"
#include "checkpoint/lone_contents.hpp"
#include "checkpoint/match.hpp"
#include "checkpoint/names.hpp"
#include "checkpoint/other_names.hpp"
#include "checkpoint/packets.hpp"
#include "checkpoint/pieces.hpp"
#include "checkpoint/quantized_forms.hpp"
#include "checkpoint/step_check.hpp"
#include "report/writers.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/memory_gate.hpp"
#include "support/progress.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

report::Format details_format(const std::string& path) {
  const auto format = report::format_of_file(path);
  if (!format) throw UsageError("--details: the name must end in .csv, .xlsx, .json or .jsonl");
  return *format;
}

/// If the name does not say how the slices belong together, the shape in the other checkpoint decides.
void guess_merge(CheckpointEntry& entry, const CheckpointEntry& other, ParameterResult& result) {
  if (entry.slices.size() < 2 || entry.parameter.shape == other.parameter.shape) return;
  for (std::size_t axis = 0; axis < entry.parameter.shape.size(); ++axis) {
    Shape joined = entry.parameter.shape;
    joined[axis] *= static_cast<std::int64_t>(entry.slices.size());
    if (joined != other.parameter.shape) continue;
    entry.parameter = concatenate(entry.slices, axis);
    entry.replicas.clear();
    result.note = fmt::format("its {} slices are joined along axis {}, as the other shape suggests; ",
                              entry.slices.size(), axis);
    return;
  }
}

/// True if all rows have the same bytes, as rows of zeros do.
bool are_rows_alike(const Parameter& rows) {
  constexpr std::size_t kMostOfRow = std::size_t{16} << 20;
  const auto size = static_cast<std::size_t>(rows.numel() / rows.shape[0]) * tensor::info(rows.dtype).size;
  if (size > kMostOfRow) return false;
  ParameterReader reader(rows);
  std::vector<std::byte> first(size);
  std::vector<std::byte> next(size);
  reader.read(first);
  for (std::int64_t i = 1; i < rows.shape[0]; ++i) {
    check_interrupt();
    reader.read(next);
    if (next != first) return false;
  }
  return true;
}

/// Leaves out rows that only pad the vocabulary: the rows after the tokens that a side's configuration
/// counts, or surplus rows that are all equal, as compare_pair() finds out.
void trim_vocabulary(Pairing::ParameterPair& pair, const std::set<std::int64_t>& vocabularies,
                     ParameterResult& result) {
  CheckpointEntry& first = pair.first;
  CheckpointEntry& second = pair.second;
  const Shape a = first.parameter.shape;
  const Shape b = second.parameter.shape;
  if (a == b || a.empty() || a.size() != b.size() || !is_vocabulary(result.name)) return;
  if (!std::equal(a.begin() + 1, a.end(), b.begin() + 1)) return;
  const std::int64_t rows = std::min(a[0], b[0]);
  result.note += fmt::format("{} and {} rows: the {} rows that both have are compared; ", a[0], b[0], rows);
  const Parameter& longer = a[0] > b[0] ? first.parameter : second.parameter;
  if (!vocabularies.contains(rows)) pair.surplus = narrow(longer, 0, rows, longer.shape[0] - rows);
  first.parameter = narrow(first.parameter, 0, 0, rows);
  second.parameter = narrow(second.parameter, 0, 0, rows);
}

void describe(const CheckpointEntry& entry, std::optional<Shape>& shape, std::string& dtype) {
  // A parameter that could not be opened has no shape.
  if (!entry.problem.empty() && entry.parameter.blocks.empty()) return;
  shape = entry.parameter.shown_shape();
  dtype = std::string(tensor::info(entry.parameter.dtype).name);
}

/// Integers (token ids, packed words of a quantized tensor), booleans and scales that are powers of two are
/// either equal or different: a word that is larger by one may decode to any other weight.
bool is_exact(const Parameter& parameter) {
  const tensor::DTypeKind kind = tensor::info(parameter.dtype).kind;
  return kind == tensor::DTypeKind::integer || kind == tensor::DTypeKind::boolean ||
         parameter.dtype == tensor::DType::float8_e8m0fnu;
}

PairStatus judge(const PairMetrics& metrics, bool exact, double tolerance) {
  if (metrics.bitwise_equal) return PairStatus::equal;
  if (metrics.unequal == 0) return PairStatus::same_values;
  if (exact) return PairStatus::different;
  if (metrics.unrounded.holds()) return PairStatus::rounded;
  return metrics.relative_l2 <= tolerance ? PairStatus::close : PairStatus::different;
}

/// The coordinates of the element with this number in row-major order.
Shape place_of(std::int64_t index, const Shape& shape) {
  Shape place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] <= 0) return {};
    place[i] = index % shape[i];
    index /= shape[i];
  }
  return place;
}

/// The same coordinates in the shape that reports show. Grouped experts are read one by one as (experts,
/// rows, columns), but they are shown side by side or one below the other.
Shape shown_place(std::int64_t index, const Parameter& parameter) {
  Shape place = place_of(index, parameter.shape);
  if (parameter.reported_shape.size() != 2 || place.size() != 3) return place;
  const bool side_by_side = merge_kind(parameter.name) == MergeKind::experts_in;
  return side_by_side ? Shape{place[1], place[0] * parameter.shape[2] + place[2]}
                      : Shape{place[0] * parameter.shape[1] + place[1], place[2]};
}

class CheckpointComparison {
 public:
  CheckpointComparison(const CheckpointOptions& options, std::set<std::int64_t> vocabularies,
                       const ThirdCheckpoint* third, Progress* progress)
      : options_(options), vocabularies_(std::move(vocabularies)), third_(third), progress_(progress) {}

  void run(Pairing pairing, CheckpointReport& report) {
    pairs_ = std::move(pairing.pairs);
    report.results.resize(pairs_.size());
    std::uint64_t total = 0;
    std::vector<std::uint64_t> bytes(pairs_.size());
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      prepare(pairs_[i], report.results[i]);
      bytes[i] = work(pairs_[i], report.results[i]);
      total += bytes[i];
    }
    if (progress_ != nullptr) progress_->begin("comparing parameters", total, "B");
    SharedWork shared;
    shared.units = "parameters";
    shared.progress = progress_;
    shared.name = [&](std::size_t i) { return report.results[i].name; };
    shared.bytes = std::move(bytes);
    for (const ParameterResult& result : report.results) shared.plan = fingerprint(shared.plan, result.name);
    shared.compute = [&](std::size_t i) { compare_pair(pairs_[i], report.results[i]); };
    shared.pack = [&](std::size_t i, PacketWriter& packet) { packet(report.results[i]); };
    shared.unpack = [&](std::size_t i, PacketReader& packet) {
      packet(report.results[i]);
      if (pairs_.size() > kMostKept) pairs_[i] = {};
    };
    team().share(shared);
    if (!team().is_root()) return;
    relate_to_others(report.results);
    if (pairs_.size() <= kMostKept) {
      relate_to_equal(pairs_, report.results);
      relate_near_contents(pairs_, report.results);
    }
    for (const Pairing::Tied& tied : pairing.tied) settle(tied, pairing, report);
    for (Pairing::Unreadable& lone : pairing.unreadable) {
      ParameterResult& result = report.results.emplace_back();
      result.name = std::move(lone.name);
      result.status = PairStatus::unreadable;
      result.note = std::move(lone.problem);
    }
    std::ranges::sort(pairing.only_first, in_model_order);
    std::ranges::sort(pairing.only_second, in_model_order);
    for (const std::string& name : pairing.only_first) add_single(report, name, PairStatus::only_first);
    for (const std::string& name : pairing.only_second) add_single(report, name, PairStatus::only_second);
    relate_lone(pairing, report);
  }

 private:
  static void add_single(CheckpointReport& report, const std::string& name, PairStatus status) {
    ParameterResult& result = report.results.emplace_back();
    result.name = name;
    result.status = status;
  }

  void relate_lone(const Pairing& pairing, CheckpointReport& report) {
    if (pairing.lone_first.empty() || pairing.lone_second.empty()) return;
    std::function<void(std::uint64_t)> on_bytes;
    if (progress_ != nullptr) {
      std::uint64_t total = 0;
      for (const auto* side : {&pairing.lone_first, &pairing.lone_second}) {
        for (const Parameter& parameter : *side) total += parameter.bytes();
      }
      progress_->begin("looking for other names", total, "B");
      on_bytes = [&](std::uint64_t bytes) { progress_->advance(bytes); };
    }
    const LoneContents texts = find_lone_contents(pairing.lone_first, pairing.lone_second, on_bytes);
    for (ParameterResult& result : report.results) {
      if (!is_one_sided(result.status)) continue;
      const auto found = texts.find({result.status == PairStatus::only_second, result.name});
      if (found != texts.end()) result.relation.text = found->second;
    }
  }

  /// Checks whether both names have the same tensor. If not, the name belongs to one side alone.
  void settle(const Pairing::Tied& tied, Pairing& pairing, CheckpointReport& report) {
    bool same = tied.parameter.blocks.empty();
    if (!same) {
      try {
        const MemoryGate::Pass pass(gate_, tied.parameter.memory() + tied.kept_parameter.memory());
        same = measure(tied.kept_parameter, tied.parameter, {.ulp = false, .counts = false, .on_bytes = {}})
                   .unequal == 0;
      } catch (const Error&) {
        // A tensor that cannot be read counts as a separate parameter that one side alone has.
      }
    }
    if (same) {
      report.remarks.push_back(fmt::format("{}: {} is the same as {}",
                                           display(tied.is_second ? options_.second : options_.first),
                                           display(tied.name), display(tied.kept)));
    } else {
      (tied.is_second ? pairing.only_second : pairing.only_first).push_back(tied.name);
    }
  }

  void prepare(Pairing::ParameterPair& pair, ParameterResult& result) {
    result.name = pair.name;
    if (pair.first.problem.empty() && pair.second.problem.empty()) {
      guess_merge(pair.first, pair.second, result);
      guess_merge(pair.second, pair.first, result);
    }
    describe(pair.first, result.first_shape, result.first_dtype);
    describe(pair.second, result.second_shape, result.second_dtype);
    for (const CheckpointEntry* entry : {&pair.first, &pair.second}) {
      if (!entry->problem.empty()) {
        result.status = PairStatus::unreadable;
        result.note += entry->problem + "; ";
      }
    }
    if (result.status == PairStatus::unreadable) return;
    trim_vocabulary(pair, vocabularies_, result);
    if (pair.first.parameter.shape != pair.second.parameter.shape) result.status = PairStatus::shapes_differ;
  }

  static std::uint64_t work(const Pairing::ParameterPair& pair, const ParameterResult& result) {
    std::uint64_t bytes = 0;
    if (result.status == PairStatus::equal)
      bytes += pair.first.parameter.bytes() + pair.second.parameter.bytes();
    for (const CheckpointEntry* entry : {&pair.first, &pair.second}) {
      for (const Replica& replica : entry->replicas) bytes += 2 * replica.parameter.bytes();
    }
    return bytes;
  }

  void compare_pair(Pairing::ParameterPair& pair, ParameterResult& result) {
    MeasureOptions options;
    options.ulp = !options_.details.empty();
    options.counts = !options_.details.empty();
    if (progress_ != nullptr) options.on_bytes = [&](std::uint64_t bytes) { progress_->advance(bytes); };
    bool is_near = false;
    if (result.status == PairStatus::equal) {
      try {
        const MemoryGate::Pass pass(gate_, pair.first.parameter.memory() + pair.second.parameter.memory());
        result.metrics = measure(pair.first.parameter, pair.second.parameter, options);
        result.compared = true;
        const bool exact = is_exact(pair.first.parameter) || is_exact(pair.second.parameter);
        result.status = judge(result.metrics, exact, options_.tolerance);
        result.is_nan = are_nan(pair, result.metrics);
        if (result.is_nan) result.note += "NaN throughout in both; ";
        is_near = judge_steps(pair, result);
        if (pair.surplus && !are_rows_alike(*pair.surplus)) {
          result.note +=
              "the others are not padding: they are not all equal, and no vocab_size that was read excludes "
              "them; ";
          if (severity_of(result.status) == report::Severity::none) result.status = PairStatus::shapes_differ;
        }
        note_places(pair.first.parameter, result);
      } catch (const Error& error) {
        result.status = PairStatus::unreadable;
        result.note += std::string(error.what()) + "; ";
      }
    }
    if (!is_near || pair.first.parameter.base != nullptr) relate(pair, result);
    options.ulp = options.counts = false;
    check_copies(pair.first, options_.first, options, result);
    check_copies(pair.second, options_.second, options, result);
    const bool would_do = severity_of(result.status) == report::Severity::none;
    if (result.copies_differ && would_do) result.status = PairStatus::copies_differ;
    if (result.note.ends_with("; ")) result.note.resize(result.note.size() - 2);
    // Many pairs would keep too much open. A few stay, for comparisons under other names.
    if (pairs_.size() > kMostKept) pair = {};
  }

  /// True if both sides hold nothing but NaN.
  static bool are_nan(const Pairing::ParameterPair& pair, const PairMetrics& metrics) {
    const Parameter& first = pair.first.parameter;
    const Parameter& second = pair.second.parameter;
    if (metrics.unequal > 0 || !std::isnan(metrics.relative_l2)) return false;
    // The first pass does not count elements of sides that are equal bit for bit.
    const PairMetrics counted = measure(first, second);
    const auto all = static_cast<std::uint64_t>(first.numel()) * (is_complex(first.dtype) ? 2 : 1);
    return counted.first.nan == all && counted.second.nan == all;
  }

  /// Checks whether a quantized weight is as near to its original as its format allows. Returns true if most
  /// elements are that near: then no relation has to explain the difference.
  static bool judge_steps(const Pairing::ParameterPair& pair, ParameterResult& result) {
    if (result.status != PairStatus::close && result.status != PairStatus::different) return false;
    const StepCheck& check = result.steps = check_steps(pair.first.parameter, pair.second.parameter);
    if (!check.tried) return false;
    result.status = check.holds()       ? PairStatus::within_step
                    : check.as_searched ? PairStatus::close
                                        : PairStatus::different;
    const auto numel = static_cast<std::uint64_t>(pair.first.parameter.numel());
    if (check.holds()) return true;
    if (check.beyond == 0) {
      result.step_note =
          "half a step of the format is larger than nearly all of its elements, so whether "
          "they are right is unknown";
      return true;
    }
    // If most elements are further away, it is another weight, and the difference itself says more.
    if (check.beyond > numel / 2) return false;
    const auto place = [&](std::int64_t at) { return shape_text(shown_place(at, pair.first.parameter)); };
    result.step_note = fmt::format(
        "{} of {} elements are further apart than half a step of the format, the first at {}, {}",
        human_count(check.beyond), human_count(numel), place(check.first),
        check.as_searched       ? "as a quantizer that searches for scales leaves them"
        : check.farthest_at < 0 ? "where the step is 0"
                                : fmt::format("the furthest {} half steps, at {}",
                                              short_number(check.farthest, 3), place(check.farthest_at)));
    // Rows in another order may leave a few rows in place, so only a small share may be further away.
    constexpr std::uint64_t kFew = 16;
    return check.as_searched || check.beyond < numel / kFew;
  }

  /// Finds how the sides differ. This costs another pass over pairs that differ.
  void relate(const Pairing::ParameterPair& pair, ParameterResult& result) {
    const Parameter& first = pair.first.parameter;
    const Parameter& second = pair.second.parameter;
    const bool transposed = first.shape.size() == 2 && second.shape == Shape{first.shape[1], first.shape[0]};
    // A slow average is close to the weights that it is made of.
    const bool may_be_average = third_ != nullptr && result.status == PairStatus::close;
    if (result.status != PairStatus::different && result.status != PairStatus::shapes_differ &&
        !may_be_average)
      return;
    try {
      const MemoryGate::Pass pass(gate_, first.memory() + second.memory());
      if (result.status == PairStatus::shapes_differ && !transposed) {
        result.relation.text = find_slice(first, second);
        return;
      }
      if (third_ != nullptr) result.relation.text = third_->average(first, second);
      const bool has_steps = first.half_step != nullptr || second.half_step != nullptr;
      if (result.relation.text.empty() && has_steps)
        result.relation.text = find_near_relation(first, second, result.metrics);
      result.relation.is_proved = !result.relation.text.empty();
      // If most elements are near, only a relation that explains all of them is worth reporting.
      if (result.relation.is_proved || may_be_average || !result.step_note.empty()) return;
      result.relation = find_relation(first, second, result.metrics);
      if (!result.relation.place.empty()) result.note += result.relation.place + "; ";
    } catch (const Error&) {
      // The comparison has read the parameter before, or has reported why it could not.
    }
  }

  static void note_places(const Parameter& parameter, ParameterResult& result) {
    const PairMetrics& metrics = result.metrics;
    if (metrics.first_unequal < 0) return;
    result.first_place = shown_place(metrics.first_unequal, parameter);
    if (result.status == PairStatus::within_step) return;
    const Unrounded& unrounded = metrics.unrounded;
    // Nearly all elements of a copy in a narrower type differ; the note counts those that rounding leaves.
    if (!unrounded.tried || unrounded.count == 0 || unrounded.count > metrics.unequal / 2) return;
    result.note +=
        fmt::format("all but {} of its elements are equal after rounding, the first unequal one at {}; ",
                    unrounded.count, shape_text(shown_place(unrounded.first, parameter)));
  }

  void check_copies(const CheckpointEntry& entry, const std::string& path, const MeasureOptions& options,
                    ParameterResult& result) {
    for (const Replica& replica : entry.replicas) {
      const Parameter& original = replica.original ? *replica.original : entry.parameter;
      try {
        const MemoryGate::Pass pass(gate_, original.memory() + replica.parameter.memory());
        const PairMetrics check = measure(original, replica.parameter, options);
        if (check.unequal == 0) continue;
        result.copies_differ = true;
        result.note +=
            fmt::format("in {}, its copy on {} differs in {} of {} elements, by up to {}; ", display(path),
                        replica.where, check.unequal, original.numel(), python_repr(check.max_abs));
      } catch (const Error& error) {
        result.note += fmt::format("its copy on {} cannot be read: {}; ", replica.where, error.what());
        result.status = PairStatus::unreadable;
        result.compared = false;
      }
    }
  }

  static constexpr std::size_t kMostKept = 20'000;

  const CheckpointOptions& options_;
  std::set<std::int64_t> vocabularies_;  // the sizes that the configurations give
  const ThirdCheckpoint* third_;         // null: none
  Progress* progress_;
  std::vector<Pairing::ParameterPair> pairs_;
  MemoryGate gate_{2 * formats::ElementReader::kMaxGather};
};

void write_results(const CheckpointOptions& options, CheckpointReport& report) {
  const std::string json = similarity_json(report);
  if (options.output == "-") {
    write_all(STDOUT_FILENO, json + "\n", "standard output");
  } else {
    OutputFile file(options.output, options.existing);
    file.write(json);
    file.commit();
    report.files.push_back(options.output);
  }
  if (options.details.empty()) return;
  report::WriteOptions write;
  write.existing = options.existing;
  for (std::string& file :
       report::write_file(*details_table(report), details_format(options.details), options.details, write)) {
    report.files.push_back(std::move(file));
  }
}

/// True for a pair of tensors without elements.
bool has_no_element(const ParameterResult& result) {
  const auto none = [](const std::optional<Shape>& shape) {
    return !shape || std::ranges::find(*shape, 0) != shape->end();
  };
  return !is_one_sided(result.status) && result.status != PairStatus::unreadable &&
         none(result.first_shape) && none(result.second_shape);
}

bool has_training_state(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.entries, [](const CheckpointEntry& entry) {
    return is_training_state(entry.parameter.name) || is_beside_model(entry.parameter.name);
  });
}

}  // namespace

std::string_view status_name(PairStatus status) {
  constexpr std::string_view kNames[] = {
      "equal",          "same values",       "equal after rounding", "equal within half a step",
      "close",          "different",         "shapes differ",        "copies differ",
      "not comparable", "only in the first", "only in the second"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string all_notes(const ParameterResult& result) {
  return result.step_note + (result.step_note.empty() || result.note.empty() ? "" : "; ") + result.note;
}

report::Severity severity_of(PairStatus status) {
  switch (status) {
    case PairStatus::equal:
    case PairStatus::same_values:
    case PairStatus::rounded:
    case PairStatus::within_step:
    case PairStatus::close:
      return report::Severity::none;
    case PairStatus::only_first:
    case PairStatus::only_second:
      return report::Severity::warning;
    case PairStatus::different:
    case PairStatus::shapes_differ:
    case PairStatus::copies_differ:
    case PairStatus::unreadable:
      break;
  }
  return report::Severity::error;
}

bool is_one_sided(PairStatus status) {
  return status == PairStatus::only_first || status == PairStatus::only_second;
}

std::size_t CheckpointReport::count(PairStatus status) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(results, [&](const ParameterResult& result) { return result.status == status; }));
}

bool CheckpointReport::any_different() const {
  return std::ranges::any_of(results, [](const ParameterResult& result) {
    return result.copies_differ ||
           (is_one_sided(result.status) ? !is_computed_buffer(result.name)
                                        : severity_of(result.status) == report::Severity::error);
  });
}

bool CheckpointReport::any_unequal() const {
  return any_different() || std::ranges::any_of(results, [](const ParameterResult& result) {
           return result.status != PairStatus::equal && !is_one_sided(result.status);
         });
}

bool CheckpointReport::any_missing() const {
  return count(PairStatus::only_first) + count(PairStatus::only_second) > 0;
}

bool CheckpointReport::any_unreadable() const {
  return count(PairStatus::unreadable) > 0;
}

Coverage CheckpointReport::coverage(bool by_bits) const {
  Coverage coverage;
  for (const ParameterResult& result : results) {
    if (result.status == PairStatus::unreadable) {
      coverage.miss("it could not be read", result.name);
    } else if (has_no_element(result) || (is_one_sided(result.status) && is_computed_buffer(result.name))) {
      ++coverage.explained;
    } else if (is_one_sided(result.status)) {
      coverage.miss("only one checkpoint has it", result.name);
    } else if (result.is_nan && !(by_bits && result.status == PairStatus::equal)) {
      coverage.miss("it is NaN throughout in both", result.name);
    } else {
      ++coverage.compared;
    }
  }
  return coverage;
}

std::string CheckpointReport::nothing_in_common() const {
  const std::size_t alone = count(PairStatus::only_first) + count(PairStatus::only_second);
  if (alone < results.size()) {
    return std::ranges::all_of(results,
                               [](const ParameterResult& result) {
                                 return is_one_sided(result.status) || has_no_element(result);
                               })
               ? "the parameters that both have hold no element: nothing was compared"
               : "";
  }
  for (const ComparedCheckpoint* side : {&first, &second}) {
    if (side->parameters == 0) return display(side->path) + " has no parameters: nothing was compared";
  }
  return fmt::format(
      "{} and {} have no parameter in common: nothing was compared; if only names differ, "
      "pair them with --name-map FILE",
      display(first.path), display(second.path));
}

CheckpointReport compare(const CheckpointOptions& options, Progress* progress) {
  if (!options.details.empty()) details_format(options.details);
  if (team().is_root()) {
    if (options.output != "-") prepare_output(options.output, options.existing);
    if (!options.details.empty()) prepare_output(options.details, options.existing);
  }
  if (!options.details.empty() && options.details == options.output)
    throw UsageError("--details and --output_path name the same file");
  const NameMap map = options.name_map.empty() ? NameMap::built_in() : NameMap::from_file(options.name_map);
  if (progress != nullptr) progress->begin("reading checkpoints", 2, "checkpoints");
  Checkpoint first = load(options.first, options.load);
  if (progress != nullptr) progress->advance();
  Checkpoint second = load(options.second, options.load);
  CheckpointReport report;
  report.first = {first.path, first.format, first.entries.size()};
  report.second = {second.path, second.format, second.entries.size()};
  report.tolerance = options.tolerance;
  report.warnings = std::move(first.warnings);
  std::move(second.warnings.begin(), second.warnings.end(), std::back_inserter(report.warnings));
  for (Checkpoint* side : {&first, &second})
    std::ranges::move(side->left_out, std::back_inserter(report.not_judged));
  report.remarks = dequantize(first, second);
  if (!options.adapter.empty()) report.remarks.push_back(add_adapter(first, options.adapter));
  if (options.load.optimizer && !has_training_state(first) && !has_training_state(second))
    report.not_judged.emplace_back(
        "--optimizer: neither checkpoint has an optimizer, a scheduler or a random state");
  std::set<std::int64_t> vocabularies;
  for (const Checkpoint* side : {&first, &second}) {
    if (side->architecture.vocabulary) vocabularies.insert(*side->architecture.vocabulary);
  }
  std::optional<ThirdCheckpoint> third;
  if (!options.third.empty()) {
    third.emplace(load(options.third, options.load));
    if (!third->knows(first))
      report.not_judged.push_back(display(options.third) +
                                  ": no parameter has a name of the first checkpoint");
  }
  Pairing pairing = pair_up(std::move(first), std::move(second), map);
  report.remarks.insert(report.remarks.end(), pairing.remarks.begin(), pairing.remarks.end());
  if (!options.name_map.empty() && !pairing.map_applies)
    report.not_judged.push_back(display(options.name_map) + ": no rule matches a name of either checkpoint");
  CheckpointComparison(options, std::move(vocabularies), third ? &*third : nullptr, progress)
      .run(std::move(pairing), report);
  if (progress != nullptr) progress->end();
  if (team().is_root()) write_results(options, report);
  return report;
}

}  // namespace msprobe::checkpoint

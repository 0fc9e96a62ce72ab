// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "inspect/facts.hpp"
#include "report/terminal.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

using report::Color;
using report::paint;

std::string list_of(const std::vector<std::int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string joined(const std::map<std::string, std::uint64_t>& counts) {
  std::string out;
  for (const auto& [name, count] : counts) {
    if (!out.empty()) out += ", ";
    out += fmt::format("{} {}", display(name), human_count(count));
  }
  return out;
}

class Renderer {
 public:
  explicit Renderer(bool color) : color_(color) {}

  std::string run(const PathFacts& facts) {
    if (!facts.file && !facts.tree && !facts.checkpoint && !facts.rated) return {};
    out_ = paint(facts.path, Color::bold, color_) + "\n";
    if (facts.file) file(*facts.file, !facts.problems.empty());
    if (facts.checkpoint) checkpoint(*facts.checkpoint);
    if (facts.tree) tree(*facts.tree);
    if (facts.rated) rated(*facts.rated);
    return std::move(out_);
  }

 private:
  void line(const std::string& label, const std::string& text, int indent = 2) {
    out_ += fmt::format("{:{}}{:<11}{}\n", "", indent, label, text);
  }

  void columns(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
               std::vector<report::Severity> severities = {}) {
    report::TerminalStyle style;
    style.width = report::terminal_width(STDOUT_FILENO);
    style.indent = 4;
    style.color = color_;
    style.severities = std::move(severities);
    out_ += report::render_columns(header, rows, style);
  }

  void file(const FileFacts& file, bool problems) {
    line("container", fmt::format("{}, {}", file.container, human_bytes(file.size)));
    if (!file.holds.empty() && !file.single) line("holds", file.holds);
    for (const auto& [name, value] : file.metadata) line("metadata", display(name) + " = " + display(value));
    if (!file.values.empty()) {
      out_ += "  values\n";
      std::vector<std::vector<std::string>> rows;
      for (const auto& [name, value] : file.values) rows.push_back({name, value});
      columns({}, rows);
    }
    if (file.single) {
      single(file.tensors.front());
    } else if (!file.tensors.empty()) {
      table(file.tensors);
    } else if (!file.has_pickle && !problems) {
      line("tensors", "none");
    }
    if (file.has_pickle) globals(file.globals);
    if (!file.contents.empty()) contents(file.contents);
  }

  void single(const TensorFacts& tensor) {
    if (!tensor.problem.empty()) return line("problem", paint(tensor.problem, Color::red, color_));
    line("dtype", tensor.dtype + extras(tensor));
    line("shape", list_of(tensor.shape));
    line("strides", list_of(tensor.strides) +
                        (tensor.offset == 0 ? "" : fmt::format(", from element {}", tensor.offset)));
    line("elements", fmt::format("{}, {}", human_count(static_cast<std::uint64_t>(tensor.elements)),
                                 human_bytes(tensor.bytes)));
    if (tensor.elements == 0) return;
    const tensor::Statistics& s = *tensor.statistics;
    line("statistics", fmt::format("max {}, min {}, mean {}, norm {}",
                                   tensor.range ? tensor.range->max : python_repr(s.max),
                                   tensor.range ? tensor.range->min : python_repr(s.min),
                                   python_repr(s.mean()), python_repr(s.norm())));
    const std::string counts = fmt::format("NaN {}, Inf {}, -Inf {}, zero {}, denormal {}",
                                           human_count(s.nan), human_count(s.pos_inf), human_count(s.neg_inf),
                                           human_count(s.zero), human_count(s.denormal));
    const bool bad = s.nan + s.pos_inf + s.neg_inf > 0;
    line("counts", paint(counts, bad ? Color::yellow : Color::none, color_));
    const bool more = tensor.elements > static_cast<std::int64_t>(tensor.first.size());
    if (!tensor.first.empty())
      line("first", fmt::format("{}{}", fmt::join(tensor.first, ", "), more ? ", ..." : ""));
  }

  static std::string extras(const TensorFacts& tensor) {
    std::string text;
    if (tensor.big_endian) text += ", big-endian";
    if (tensor.conjugate) text += ", conjugated view";
    if (tensor.negative) text += ", negated view";
    return text;
  }

  void table(const std::vector<TensorFacts>& tensors) {
    std::uint64_t bytes = 0;
    bool statistics = false;
    for (const TensorFacts& tensor : tensors) {
      bytes += tensor.bytes;
      statistics = statistics || tensor.statistics != nullptr;
    }
    line("tensors", fmt::format("{}, {}", human_count(tensors.size()), human_bytes(bytes)));
    std::vector<std::string> header = {"name", "dtype", "shape", "bytes"};
    if (statistics)
      header.insert(header.end(), {"max", "min", "mean", "norm", "NaN", "Inf", "zero", "denormal"});
    std::vector<std::vector<std::string>> rows;
    std::vector<report::Severity> severities;
    for (const TensorFacts& tensor : tensors) {
      std::vector<std::string>& row = rows.emplace_back();
      row = {tensor.name, tensor.dtype, tensor.dtype.empty() ? "" : list_of(tensor.shape)};
      if (!tensor.whole.empty())
        row[2] += fmt::format(" of {} from {}", list_of(tensor.whole), list_of(tensor.begin));
      severities.push_back(tensor.problem.empty() ? report::Severity::none : report::Severity::error);
      if (!tensor.problem.empty()) {
        row.push_back(tensor.problem);
        row.resize(header.size());
        continue;
      }
      row.push_back(std::to_string(tensor.bytes));
      if (!statistics) continue;
      const tensor::Statistics s = tensor.statistics ? *tensor.statistics : tensor::Statistics{};
      row.push_back(tensor.range ? tensor.range->max : short_number(s.max, 6));
      row.push_back(tensor.range ? tensor.range->min : short_number(s.min, 6));
      row.push_back(short_number(s.mean(), 6));
      row.push_back(short_number(s.norm(), 6));
      for (const std::uint64_t count : {s.nan, s.pos_inf + s.neg_inf, s.zero, s.denormal}) {
        row.push_back(std::to_string(count));
      }
    }
    columns(header, rows, std::move(severities));
  }

  void globals(const std::vector<GlobalFacts>& globals) {
    if (globals.empty()) return line("pickle", "names no globals");
    const auto count = [&](Rating rating) {
      return std::ranges::count_if(globals,
                                   [&](const GlobalFacts& global) { return global.rating == rating; });
    };
    const auto dangerous = count(Rating::dangerous);
    const std::string text =
        fmt::format("{} global{}: {} dangerous, {} unknown (none was looked up or called)", globals.size(),
                    globals.size() == 1 ? "" : "s", dangerous, count(Rating::unknown));
    line("pickle", paint(text, dangerous > 0 ? Color::red : Color::none, color_));
    std::vector<std::vector<std::string>> rows;
    std::vector<report::Severity> severities;
    // The worst first, else in the order of the file.
    for (const Rating rating : {Rating::dangerous, Rating::unknown, Rating::ok}) {
      for (const GlobalFacts& global : globals) {
        if (global.rating != rating) continue;
        rows.push_back({std::string(formats::rating_name(rating)), global.name,
                        global.called ? "to be called" : "named", fmt::format("byte {}", global.offset),
                        global.where});
        severities.push_back(severity(rating));
      }
    }
    columns({}, rows, std::move(severities));
  }

  void contents(const std::vector<ContentFacts>& contents) {
    out_ += "  contents\n";
    std::vector<std::vector<std::string>> rows;
    std::vector<report::Severity> severities;
    for (const ContentFacts& content : contents) {
      rows.push_back({std::string(formats::rating_name(content.rating)), content.what, content.where});
      severities.push_back(severity(content.rating));
    }
    columns({}, rows, std::move(severities));
  }

  void rated(const RatedFolder& folder) {
    const std::string sum = fmt::format("{}, {}: {} ok, {} unknown, {} dangerous", human_count(folder.files),
                                        human_bytes(folder.bytes), human_count(folder.ok),
                                        human_count(folder.unknown), human_count(folder.dangerous));
    const std::string unfinished =
        folder.unfinished == 0 ? ""
                               : fmt::format("; {} not inspected to the end", human_count(folder.unfinished));
    const Color color = folder.dangerous > 0 ? Color::red : Color::none;
    line("files", paint(sum + unfinished, color, color_));
    std::vector<std::vector<std::string>> rows;
    std::vector<report::Severity> severities;
    for (const RatedFile& file : folder.listed) {
      const bool only_problem = file.rating == Rating::ok;
      std::string reason = fmt::format("{}", fmt::join(file.reasons, ", "));
      if (file.reason_count > file.reasons.size())
        reason += fmt::format(", and {} more", file.reason_count - file.reasons.size());
      if (!file.problem.empty()) reason += (reason.empty() ? "" : "; ") + file.problem;
      rows.push_back(
          {only_problem ? "problem" : std::string(formats::rating_name(file.rating)), file.path, reason});
      severities.push_back(only_problem ? report::Severity::warning : severity(file.rating));
    }
    columns({}, rows, std::move(severities));
  }

  static report::Severity severity(Rating rating) {
    return rating == Rating::dangerous ? report::Severity::error
           : rating == Rating::unknown ? report::Severity::warning
                                       : report::Severity::none;
  }

  void checkpoint(const CheckpointFacts& found) {
    line("checkpoint", found.format);
    line("parameters", fmt::format("{}, {} elements, {}", human_count(found.parameters),
                                   human_count(found.elements), human_bytes(found.bytes)));
    if (!found.types.empty()) line("types", joined(found.types));
    for (const std::string& warning : found.warnings) line("warning", paint(warning, Color::yellow, color_));
    for (const std::string& problem : found.unreadable) line("problem", paint(problem, Color::red, color_));
    if (found.unreadable_count > found.unreadable.size())
      line("problems", fmt::format("{} in all", human_count(found.unreadable_count)));
    line("more", "compare it with another, parameter by parameter: 'msprobe ckpt_compare'");
  }

  void tree(const TreeFacts& tree) {
    std::size_t ranks = 0;
    for (const StepFacts& step : tree.steps) ranks += step.ranks.size();
    if (tree.kind == "root") {
      const std::size_t steps = tree.steps.size();
      line("dump", fmt::format("{} step{}, {} rank folder{}", steps, steps == 1 ? "" : "s", ranks,
                               ranks == 1 ? "" : "s"));
    } else if (tree.kind == "step") {
      line("dump", fmt::format("one step, {} rank folder{}", ranks, ranks == 1 ? "" : "s"));
    } else {
      line("dump", tree.kind == "rank" ? "one rank" : "one file");
    }
    for (const StepFacts& step : tree.steps) {
      if (!step.label.empty()) out_ += "  " + paint(step.label, Color::bold, color_) + "\n";
      if (!step.missing_ranks.empty()) {
        line("missing", paint(some(step.missing_ranks, step.missing_ranks.size()), Color::yellow, color_));
      }
      for (const RankFacts& each : step.ranks) rank(each, !step.label.empty());
    }
  }

  void rank(const RankFacts& rank, bool below_step) {
    const int indent = below_step ? 4 : 2;
    const auto say = [&](const char* label, const std::string& text) { line(label, text, indent + 2); };
    out_ += fmt::format("{:{}}{}\n", "", indent,
                        paint(rank.label.empty() ? rank.json : rank.label, Color::cyan, color_));
    if (!rank.problem.empty()) say("problem", paint(rank.problem, Color::red, color_));
    const auto or_none = [](const std::string& text) {
      return text.empty() ? std::string("not recorded") : display(text);
    };
    if (rank.problem.empty() || rank.entries > 0) {
      say("task", fmt::format("{}, level {}, framework {}", or_none(rank.task), or_none(rank.level),
                              or_none(rank.framework)));
      say("entries", fmt::format("{}, {} tensors", human_count(rank.entries), human_count(rank.tensors)));
      if (!rank.types.empty()) say("types", joined(rank.types));
      if (!rank.directions.empty()) say("directions", joined(rank.directions));
    }
    if (rank.named_files > 0 || rank.files > 0) {
      say("files",
          fmt::format("{} named, {} in the folder", human_count(rank.named_files), human_count(rank.files)));
    }
    if (!rank.absent.empty())
      say("absent", paint(fmt::format("{}", fmt::join(rank.absent, ", ")), Color::yellow, color_));
    if (rank.missing_count > 0) {
      say("missing", paint(some(rank.missing_files, rank.missing_count), Color::yellow, color_));
    }
    if (rank.stray_count > 0)
      say("stray", paint(some(rank.stray_files, rank.stray_count), Color::yellow, color_));
  }

  static std::string some(const std::vector<std::string>& names, std::uint64_t count) {
    const std::size_t shown = std::min(names.size(), kMostNames);
    const std::vector<std::string> first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown));
    std::string text = count > 1 ? human_count(count) + ": " : "";
    text += fmt::format("{}", fmt::join(first, ", "));
    if (count > shown) text += ", ...";
    return text;
  }

  bool color_;
  std::string out_;
};

}  // namespace

std::string to_text(const PathFacts& facts, bool color) {
  return Renderer(color).run(facts);
}

}  // namespace msprobe::inspect

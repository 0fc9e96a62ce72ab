// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/sinks/packets.hpp"
#include "compare/sinks/page_parts.hpp"
#include "compare/sinks/report_data.hpp"
#include "compare/sinks/summary_text.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/construct_json.hpp"
#include "report/page.hpp"
#include "report/writers.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/json_writer.hpp"
#include "support/log.hpp"
#include "support/progress.hpp"
#include "support/spill_file.hpp"
#include "support/version.hpp"

namespace msprobe::compare {
namespace {

using Write = report::PageSink;

/// The data that the page needs before it unpacks the rows.
std::string overview(const CompareReport& report, const std::vector<PackedRank>& ranks) {
  JsonWriter json({.compact = true, .text = JsonText::utf8});
  json.open_object();
  json.member("version", kVersion);
  json.member("onlyOneSide", report.one_sided);
  if (report.diagnosis) {
    const diagnosis::Diagnosis& diagnosis = *report.diagnosis;
    json.open_object("diagnosis");
    json.member("independent", diagnosis.independent);
    json.member("threshold", diagnosis.threshold);
    json.open_list("answer");
    for (const diagnosis::Line& line : diagnosis::answer(diagnosis)) {
      json.list(line.heads, line.name, line.text + (line.confidence.empty() ? "" : "   " + line.confidence));
    }
    json.close();
    json.open_list("findings");
    for (const std::string& finding : diagnosis::to_json(diagnosis)) json.raw(finding);
    json.close();
    json.open_object("origins");
    for (std::size_t i = 0; i < diagnosis::kOrigins; ++i)
      json.member(diagnosis::name_of(static_cast<diagnosis::Origin>(i)), diagnosis.counts[i]);
    json.close();
    json.close();
  }
  json.open_list("ranks");
  for (std::size_t i = 0; i < report.tasks.size(); ++i) {
    const TaskSummary& summary = report.tasks[i];
    json.open_object();
    json.member("label", summary.label);
    json.member("step", summary.step);
    json.member("rank", summary.rank);
    json.member("target", summary.target);
    json.member("golden", summary.golden);
    json.member("failure", summary.failure);
    json.member("mode", measuring::mode_name(summary.mode));
    json.member("rows", summary.rows);
    json.member("errors", summary.errors);
    json.member("warnings", summary.warnings);
    json.member("unmatched", summary.unmatched);
    json.member("goldenOnly", summary.golden_only);
    json.member("unreadable", summary.unreadable);
    json.member("leftOut", summary.rows_left_out);
    json.member("wholeLeftOut", summary.left_out);
    if (summary.first_bad && ranks[i].first_bad) {
      json.open_object("first");
      json.member("row", summary.first_bad->index);
      json.member("onPage", *ranks[i].first_bad);
      json.member("measure", summary.first_bad->measure);
      json.member("reason", summary.first_bad->reason);
      json.close();
    }
    json.member("notHere", ranks[i].left_out);
    json.open_list("chunks");
    for (const PackedRank::Chunk& chunk : ranks[i].chunks) json.value(chunk.rows);
    json.close();
    json.close();
  }
  json.close();
  json.close();
  return json.take();
}

void write_all_data(const CompareReport& report, const std::vector<PackedRank>& ranks, const Write& sink) {
  report::write_page_data("overview", report::deflate_all(overview(report, ranks)), sink);
  std::vector<std::string> steps;
  for (const TaskSummary& summary : report.tasks) steps.push_back(summary.step);
  report::write_page_data("exchanges", report::deflate_all(exchanges_json(ranks, steps)), sink);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].chunks.empty()) continue;
    report::write_page_data(fmt::format("rank-{}-names", i), ranks[i].names, sink);
    for (std::size_t k = 0; k < ranks[i].chunks.size(); ++k) {
      report::write_page_data(fmt::format("rank-{}-rows-{}", i, k), ranks[i].chunks[k].columns, sink);
    }
  }
}

/// The rows of a task, kept until it is known whether all rows fit on the page.
struct KeptRows {
  PackedRank sample;  // all rows, if they are not more than its share
  std::optional<SpillFile::Piece> all;
};

class HtmlReport final : public Sink {
 public:
  HtmlReport(const std::string& path, Existing existing, Progress* progress, std::size_t room)
      : path_(path), existing_(existing), progress_(progress), room_(room), spilled_(path_) {}

  void begin(const TaskPlan& plan) override {
    if (!plan.entries) {
      throw UsageError("--format html supports only dumps with a dump.json: use csv, xlsx, json or jsonl");
    }
    if (path_ != "-") prepare_output(path_, existing_);
    kept_.resize(plan.tasks.size());
  }

  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& summary) override {
    // With several tasks, the progress shows the comparison, which goes on while others are packed.
    if (progress_ != nullptr && kept_.size() == 1) progress_->begin("making the report", 0, "");
    const RankRows& entries = *rows->of_entries();
    const dump::ConstructBeside* const construct = entries.result().target_construct.get();
    if (construct != nullptr && !construct->problem().empty())
      log_warning(construct->problem() + "; the report takes the modules from the entry names");
    KeptRows kept;
    std::optional<std::size_t> first_bad;
    if (summary.first_bad) first_bad = summary.first_bad->index;
    kept.sample = pack_rank(entries, first_bad, std::max<std::size_t>(room_ / kept_.size(), 1));
    if (kept.sample.left_out > 0 && has_room(kept.sample)) {
      PacketWriter all;
      all(pack_rank(entries, first_bad));
      kept.all = spilled_.add(all.bytes());
    }
    keep(task, std::move(kept));
  }

  void pack(std::size_t task, PacketWriter& packet) const override {
    packet(kept_[task].sample, kept_[task].all ? spilled_.read(*kept_[task].all) : std::string());
  }
  void unpack(std::size_t task, PacketReader& packet) override {
    KeptRows kept;
    std::string all;
    packet(kept.sample, all);
    if (!all.empty()) kept.all = spilled_.add(all);
    keep(task, std::move(kept));
  }

  void end(CompareReport& report) override {
    std::vector<PackedRank> ranks;
    for (KeptRows& kept : kept_) {
      PackedRank& rank = ranks.emplace_back();
      if (rows_ <= room_ && kept.all) {
        const std::string all = spilled_.read(*kept.all);
        PacketReader packet(all);
        packet(rank);
      } else {
        rank = std::move(kept.sample);
      }
      report.rows_not_in_html += rank.left_out;
    }
    if (path_ == "-") {
      const auto write = [&](const report::Sink& sink) { write_html(report, ranks, sink); };
      if (!report::to_stdout(write)) report.pipe_closed = true;
      return;
    }
    OutputFile file(path_, existing_);
    write_html(report, ranks, [&](std::string_view bytes) { file.write(bytes); });
    check_interrupt();
    file.commit();
    report.html_file = path_;
  }

 private:
  bool has_room(const PackedRank& rank) {
    const std::lock_guard lock(mutex_);
    return rows_ + rows_of(rank) <= room_;
  }

  void keep(std::size_t task, KeptRows kept) {
    const std::lock_guard lock(mutex_);
    rows_ += rows_of(kept.sample);
    kept_[task] = std::move(kept);
  }

  static std::uint64_t rows_of(const PackedRank& sample) {
    std::uint64_t rows = sample.left_out;
    for (const PackedRank::Chunk& chunk : sample.chunks) rows += chunk.rows;
    return rows;
  }

  std::string path_;
  Existing existing_;
  Progress* progress_;
  std::size_t room_;
  std::mutex mutex_;  // guards the following members while tasks are taken
  std::vector<KeptRows> kept_;
  std::uint64_t rows_ = 0;
  mutable SpillFile spilled_;
};

}  // namespace

void write_html(const CompareReport& report, const std::vector<PackedRank>& ranks, const Write& sink) {
  report::write_page(
      {kPage, kStyles, kScripts, render_result(report)}, [&] { write_all_data(report, ranks, sink); }, sink);
}

std::unique_ptr<Sink> html_sink(const std::string& path, Existing existing, Progress* progress,
                                std::size_t room) {
  return std::make_unique<HtmlReport>(path, existing, progress, room);
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/html_page.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <stdexcept>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/sinks/page_parts.hpp"
#include "compare/sinks/report_data.hpp"
#include "diagnosis/sentences.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/progress.hpp"
#include "support/version.hpp"

namespace msprobe::compare {
namespace {

using Write = std::function<void(std::string_view)>;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 0x3F];
    }
  }
  return out;
}

/// A script or style may be part of the page if its hash is named, and nothing else may.
std::string policy_source(const PagePart& part) {
  std::string hash;
  for (std::size_t i = 0; i + 1 < part.sha256.size(); i += 2) {
    hash += static_cast<char>(std::stoi(std::string(part.sha256.substr(i, 2)), nullptr, 16));
  }
  return " 'sha256-" + base64(hash) + "'";
}

std::string policy() {
  std::string styles;
  for (const PagePart& style : kStyles) styles += policy_source(style);
  std::string scripts;
  for (const PagePart& script : kScripts) scripts += policy_source(script);
  return "default-src 'none'; script-src" + scripts + "; style-src" + styles +
         "; img-src data:; base-uri 'none'; form-action 'none'";
}

/// Data lies in elements that the browser does not look into; base64 holds nothing that could end one.
void write_data(const std::string& id, std::string_view deflated, const Write& sink) {
  constexpr std::size_t kAtOnce = std::size_t{3} << 18;  // a multiple of three: base64 can be put together
  sink("<script type=\"application/octet-stream\" id=\"" + id + "\">");
  for (std::size_t at = 0; at < deflated.size(); at += kAtOnce) {
    check_interrupt();
    sink(base64(deflated.substr(at, kAtOnce)));
  }
  sink("</script>\n");
}

/// What the page has to know before it unpacks the rows.
std::string overview(const CompareReport& report, const std::vector<PackedRank>& ranks) {
  JsonWriter json({.compact = true, .text = JsonText::utf8});
  json.open_object();
  json.member("version", kVersion);
  json.member("onlyOneSide", report.one_sided);
  if (report.diagnosis) {
    const diagnosis::Diagnosis& diagnosis = *report.diagnosis;
    json.key("diagnosis");
    json.open_object();
    json.member("independent", diagnosis.independent);
    json.member("threshold", diagnosis.threshold);
    json.key("answer");
    json.open_list();
    for (const diagnosis::Line& line : diagnosis::answer(diagnosis)) {
      json.open_list();
      json.value(line.heads);
      json.value(line.name);
      json.value(line.text);
      json.close();
    }
    json.close();
    json.key("findings");
    json.open_list();
    for (const std::string& finding : diagnosis::to_json(diagnosis)) json.raw(finding);
    json.close();
    json.key("origins");
    json.open_object();
    for (std::size_t i = 0; i < diagnosis::kOrigins; ++i)
      json.member(name_of(static_cast<diagnosis::Origin>(i)), diagnosis.counts[i]);
    json.close();
    json.close();
  }
  json.key("ranks");
  json.open_list();
  for (std::size_t i = 0; i < report.tasks.size(); ++i) {
    const TaskSummary& summary = report.tasks[i];
    json.open_object();
    json.member("label", summary.label);
    json.member("step", summary.step);
    json.member("rank", summary.rank);
    json.member("target", summary.target);
    json.member("golden", summary.golden);
    json.member("failure", summary.failure);
    json.member("mode", mode_name(summary.mode));
    json.member("rows", summary.rows);
    json.member("errors", summary.errors);
    json.member("warnings", summary.warnings);
    json.member("unmatched", summary.unmatched);
    json.member("goldenOnly", summary.golden_only);
    json.member("unreadable", summary.unreadable);
    json.member("leftOut", summary.rows_left_out);
    json.member("wholeLeftOut", summary.left_out);
    if (summary.first_bad) {
      json.key("first");
      json.open_object();
      json.member("row", summary.first_bad->index);
      json.member("measure", summary.first_bad->measure);
      json.member("reason", summary.first_bad->reason);
      json.close();
    }
    json.key("chunks");
    json.open_list();
    for (const PackedRank::Chunk& chunk : ranks[i].chunks) json.value(chunk.rows);
    json.close();
    json.close();
  }
  json.close();
  json.close();
  return json.take();
}

void write_all_data(const CompareReport& report, const std::vector<PackedRank>& ranks, const Write& sink) {
  write_data("overview", deflate_all(overview(report, ranks)), sink);
  std::vector<std::string> steps;
  for (const TaskSummary& summary : report.tasks) steps.push_back(summary.step);
  write_data("exchanges", deflate_all(exchanges_json(ranks, steps)), sink);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].chunks.empty()) continue;
    write_data(fmt::format("rank-{}-names", i), ranks[i].names, sink);
    for (std::size_t k = 0; k < ranks[i].chunks.size(); ++k) {
      write_data(fmt::format("rank-{}-rows-{}", i, k), ranks[i].chunks[k].columns, sink);
    }
  }
}

/// Leaves a writer when the reader of standard output is gone.
struct ClosedPipe {};

class HtmlReport final : public Sink {
 public:
  HtmlReport(const std::string& directory, const std::string& file, Progress* progress)
      : path_(directory.empty() ? file : directory + "/" + file),
        progress_(progress) {}

  void begin(const Plan& plan) override {
    if (!plan.entries) {
      throw UsageError("--format html shows dumps with a dump.json only: take csv, xlsx, json or jsonl here");
    }
    if (path_ != "-") prepare_output(path_);
    packed_.resize(plan.tasks.size());
  }

  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& /*summary*/) override {
    // Of several tasks some are packed while others are compared, and that is what progress tells of then.
    if (progress_ != nullptr && packed_.size() == 1) progress_->begin("making the report", 0, "");
    packed_[task] = pack_rank(*rows->of_entries());
  }

  void end(CompareReport& report) override {
    if (path_ == "-") {
      try {
        write_html(report, packed_, [](std::string_view bytes) {
          if (!write_all(STDOUT_FILENO, bytes, "standard output")) throw ClosedPipe();
        });
      } catch (const ClosedPipe&) {
        report.pipe_closed = true;
      }
      return;
    }
    OutputFile file(path_);
    write_html(report, packed_, [&](std::string_view bytes) { file.write(bytes); });
    check_interrupt();
    file.commit();
    report.html_file = path_;
  }

 private:
  std::string path_;
  Progress* progress_;
  std::vector<PackedRank> packed_;
};

}  // namespace

void write_html(const CompareReport& report, const std::vector<PackedRank>& ranks, const Write& sink) {
  std::string_view rest = kPage;
  const auto upto = [&](std::string_view mark) {
    const std::size_t at = rest.find(mark);
    if (at == std::string_view::npos) throw std::logic_error("page.html lacks " + std::string(mark));
    sink(rest.substr(0, at));
    rest.remove_prefix(at + mark.size());
  };
  upto("{{policy}}");
  sink(policy());
  upto("{{styles}}");
  for (const PagePart& style : kStyles) {
    sink("<style>");
    sink(style.text);
    sink("</style>\n");
  }
  upto("{{data}}");
  write_all_data(report, ranks, sink);
  upto("{{scripts}}");
  for (const PagePart& script : kScripts) {
    sink("<script>");
    sink(script.text);
    sink("</script>\n");
  }
  sink(rest);
}

std::unique_ptr<Sink> html_sink(const std::string& directory, const std::string& file, Progress* progress) {
  return std::make_unique<HtmlReport>(directory, file, progress);
}

}  // namespace msprobe::compare

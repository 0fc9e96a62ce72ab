// SPDX-License-Identifier: Apache-2.0
// SARIF 2.1.0: https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os.html
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "compare/sinks/code_place.hpp"
#include "compare/sinks/judgement.hpp"
#include "compare/sinks/texts.hpp"
#include "diagnosis/sentences.hpp"
#include "report/terminal.hpp"
#include "support/ascii.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"
#include "support/version.hpp"

namespace msprobe::compare {
namespace {

using diagnosis::Confidence;
using diagnosis::Finding;
using diagnosis::Kind;
using diagnosis::name_of;

/// The meaning of each kind, in the order of the kinds.
constexpr std::array<std::string_view, static_cast<std::size_t>(Kind::stretch) + 1> kMeanings = {
    "A call that golden does not make",
    "A call that only golden makes",
    "Another operation in the place of golden's",
    "An argument with another value",
    "A tensor of another dtype",
    "A tensor of another shape",
    "A tensor that requires a gradient on one side only",
    "A parameter that differs before it is used",
    "Parameters that were updated differently",
    "Data from outside that differs",
    "A tensor that changed in code that was not recorded",
    "An input that comes from another call",
    "A gradient that differs as it arrives",
    "An output that does not follow from its inputs when it is recomputed",
    "An error that does not follow from the inputs",
    "An error that grew more than the operation explains",
    "Random numbers that differ",
    "A decision that rounding flipped",
    "Communication between ranks, or data that other ranks sent",
    "A checksum that differs",
    "A difference that rounding does not explain and that no rule judged",
    "The calls after the last place where two code bases agree",
};

std::string_view sarif_level(Confidence confidence) {
  return confidence == Confidence::certain ? "error" : confidence == Confidence::likely ? "warning" : "note";
}

/// A brace would mark an argument, and `](` would make a link (SARIF 3.11.5 and 3.11.6).
std::string message_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '(' && out.ends_with(']')) out.insert(out.size() - 1, 1, '\\');
    out += c;
    if (c == '{' || c == '}') out += c;
  }
  return out;
}

void add_message(JsonWriter& json, std::string_view text) {
  json.open_object("message");
  json.member("text", message_text(text));
  json.close();
}

void add_artifact(JsonWriter& json, const dump::SourceLine& line) {
  json.open_object("physicalLocation");
  json.open_object("artifactLocation");
  json.member("uri", report::file_address(line.file));
  json.close();
  const auto number = whole_number<std::int32_t>(line.number);
  if (number && *number > 0) {
    json.open_object("region");
    json.member("startLine", *number);
    if (!line.code.empty()) {
      json.open_object("snippet");
      json.member("text", display(line.code));
      json.close();
    }
    json.close();
  }
  json.close();
}

void add_logical(JsonWriter& json, std::string_view name, std::string_view kind) {
  if (name.empty()) return;
  json.open_object();
  json.member("fullyQualifiedName", display(name));
  json.member("kind", kind);
  json.close();
}

/// A fingerprint that stays the same in the next run, whatever its numbers are.
std::string fingerprint_of(const Finding& finding) {
  std::string all(name_of(finding.kind));
  for (const std::string* part : {&finding.entry, &finding.place, &finding.step, &finding.rank})
    all += '\0' + *part;
  return crc32_hex(all);
}

void add_result(JsonWriter& json, const Finding& finding) {
  json.open_object();
  json.member("ruleId", name_of(finding.kind));
  json.member("ruleIndex", static_cast<std::size_t>(finding.kind));
  json.member("level", sarif_level(finding.confidence));
  std::string text = display(diagnosis::headline_of(finding)) + ": " + display(diagnosis::sentence(finding));
  if (!finding.side.empty()) text += "; " + display(finding.side);
  const CodePlace code = code_place(finding.where);
  if (code.in_golden || (!code.frame.empty() && !code.line)) text += "; " + display(finding.where);
  if (!finding.next.empty()) text += "; next: " + display(finding.next);
  add_message(json, text);
  json.open_list("locations");
  json.open_object();
  if (code.line) add_artifact(json, *code.line);
  json.open_list("logicalLocations");
  add_logical(json, finding.module, "module");
  add_logical(json, finding.entry, "function");
  json.close();
  json.close();
  json.close();
  json.open_object("partialFingerprints");
  json.member("msprobe/v1", fingerprint_of(finding));
  json.close();
  json.open_object("properties");
  json.member("confidence", name_of(finding.confidence));
  json.member("step", display(finding.step));
  json.member("rank", display(finding.rank));
  json.member("place", display(finding.place));
  json.member("goldenEntry", display(finding.golden_entry));
  json.close();
  json.close();
}

void add_notification(JsonWriter& json, std::string_view level, const std::string& text) {
  json.open_object();
  json.member("level", level);
  add_message(json, display(text));
  json.close();
}

void add_invocation(JsonWriter& json, const CompareReport& report) {
  bool successful = true;
  for (const TaskSummary& task : report.tasks) successful = successful && task.failure.empty();
  const bool has_culprit = report.diagnosis && report.diagnosis->has_culprit();
  json.open_object();
  json.member("executionSuccessful", successful);
  json.open_list("toolExecutionNotifications");
  if (!has_culprit)
    add_notification(json, is_judged(report) ? "note" : "warning", judgement_of(report).sentence());
  for (const TaskSummary& task : report.tasks) {
    if (!task.failure.empty())
      add_notification(json, "error", (task.label.empty() ? task.target : task.label) + ": " + task.failure);
  }
  for (const std::string& line : report.one_sided) add_notification(json, "warning", "not compared: " + line);
  json.close();
  json.close();
}

}  // namespace

std::string sarif_text(const CompareReport& report) {
  JsonWriter json({.indent = 2, .text = JsonText::utf8});
  json.open_object();
  json.member("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  json.member("version", "2.1.0");
  json.open_list("runs");
  json.open_object();
  json.open_object("tool");
  json.open_object("driver");
  json.member("name", "msprobe");
  json.member("version", kVersion);
  json.open_list("rules");
  for (std::size_t i = 0; i < kMeanings.size(); ++i) {
    json.open_object();
    json.member("id", name_of(static_cast<Kind>(i)));
    json.open_object("shortDescription");
    json.member("text", kMeanings[i]);
    json.close();
    json.close();
  }
  json.close();
  json.close();
  json.close();
  json.open_list("invocations");
  add_invocation(json, report);
  json.close();
  json.open_list("results");
  for (std::size_t i = 0; report.diagnosis && i < report.diagnosis->independent; ++i)
    add_result(json, report.diagnosis->findings[i]);
  json.close();
  json.close();
  json.close();
  json.close();
  return json.take() + "\n";
}

}  // namespace msprobe::compare

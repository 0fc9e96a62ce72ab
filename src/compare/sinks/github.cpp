// SPDX-License-Identifier: Apache-2.0
// Workflow commands, which GitHub shows beside the code:
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
// Their escapes are those of actions/toolkit, packages/core/src/command.ts.
#include <algorithm>
#include <string>
#include <string_view>

#include "compare/sinks/code_place.hpp"
#include "compare/sinks/judgement.hpp"
#include "compare/sinks/texts.hpp"
#include "diagnosis/sentences.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using diagnosis::Confidence;
using diagnosis::Finding;

std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%') {
      out += "%25";
    } else if (c == '\r') {
      out += "%0D";
    } else if (c == '\n') {
      out += "%0A";
    } else if (property && c == ':') {
      out += "%3A";
    } else if (property && c == ',') {
      out += "%2C";
    } else {
      out += c;
    }
  }
  return out;
}

/// `place`: properties with their comma, or nothing. The message may have several lines.
std::string command(std::string_view level, const std::string& place, std::string_view title,
                    std::string_view message) {
  return "::" + std::string(level) + " " + place + "title=" + escaped(title, true) +
         "::" + escaped(message, false) + "\n";
}

std::string_view github_command(Confidence confidence) {
  return confidence == Confidence::certain  ? "error"
         : confidence == Confidence::likely ? "warning"
                                            : "notice";
}

std::string command_of(const Finding& finding, std::string_view title) {
  std::string message = display(diagnosis::headline_of(finding));
  const auto add = [&](std::string_view label, const std::string& text) {
    if (!text.empty()) message += "\n" + std::string(label) + display(text);
  };
  add("", diagnosis::sentence(finding));
  add("", finding.side);
  const CodePlace code = code_place(finding.where);
  std::string place;
  if (code.line) {
    place = "file=" + escaped(display(code.line->file), true) +
            ",line=" + escaped(display(code.line->number), true) + ",";
  }
  if (code.in_golden || !code.line) add("", finding.where);
  add("next: ", finding.next);
  const std::string heading =
      std::string(title) + " (" + std::string(diagnosis::name_of(finding.confidence)) + ")";
  return command(github_command(finding.confidence), place, heading, message);
}

}  // namespace

std::string github_text(const CompareReport& report) {
  std::string text;
  if (report.diagnosis && report.diagnosis->has_culprit()) {
    for (std::size_t i = 0; i < report.diagnosis->independent; ++i)
      text += command_of(report.diagnosis->findings[i], i == 0 ? "culprit" : "also");
  } else {
    const diagnosis::NoCulprit said = judgement_of(report);
    text += command(is_judged(report) ? "notice" : "warning", "", said.title, display(said.why));
  }
  for (const TaskSummary& task : report.tasks) {
    if (task.failure.empty()) continue;
    text += command("error", "", "not compared",
                    display(task.label.empty() ? task.target : task.label) + ": " + display(task.failure));
  }
  for (const std::string& line : report.one_sided)
    text += command("warning", "", "not compared", display(line));
  return text;
}

}  // namespace msprobe::compare

// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/texts.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compare/sinks/judgement.hpp"

namespace msprobe::compare_texts_test {

using namespace msprobe;
using namespace msprobe::compare;

namespace {

using diagnosis::Confidence;
using diagnosis::Finding;

Finding finding_of(std::string entry, Confidence confidence, std::string rank = "rank0") {
  Finding finding;
  finding.entry = finding.golden_entry = std::move(entry);
  finding.confidence = confidence;
  finding.step = "step0";
  finding.rank = std::move(rank);
  finding.text = "output error 1.0e-02 from inputs 1.0e-07";
  finding.where = "/lab/gpt.py, line 12, in forward: return self.mlp(x)";
  return finding;
}

/// Two ranks, of which all was judged and nothing differs.
CompareReport agreement() {
  CompareReport report;
  for (const char* rank : {"rank0", "rank1"}) {
    TaskSummary& task = report.tasks.emplace_back();
    task.label = std::string("step0/") + rank;
    task.step = "step0";
    task.rank = rank;
    task.rows = task.measured = 3;
  }
  diagnosis::Diagnosis& diagnosis = report.diagnosis.emplace();
  diagnosis.coverage.compared = 6;
  diagnosis.counts[static_cast<std::size_t>(diagnosis::Origin::equal)] = 6;
  return report;
}

CompareReport with_findings(std::vector<Finding> findings) {
  CompareReport report = agreement();
  report.diagnosis->independent = findings.size();
  report.diagnosis->findings = std::move(findings);
  return report;
}

/// Does --fail-on culprit let it pass?
bool passes(const CompareReport& report) {
  return !found_something(report, "culprit") && coverage_of(report, "culprit").is_complete() &&
         not_judged(report, "culprit").empty();
}

nlohmann::json sarif_run(const CompareReport& report) {
  return nlohmann::json::parse(sarif_text(report)).at("runs").at(0);
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("texts: all say the same as the gate") {
  std::vector<CompareReport> reports(6, agreement());
  reports[1].diagnosis.reset();
  reports[2].diagnosis->unread = 1;
  reports[2].diagnosis->coverage.miss("the tensors could not be read or compared",
                                      "Torch.add.0.forward.input.0");
  reports[3].one_sided.emplace_back("step0/rank2: only in target");
  reports[4].diagnosis->counts[static_cast<std::size_t>(diagnosis::Origin::unexplained)] = 1;
  reports[5] = with_findings({finding_of("Torch.add.0.forward", Confidence::likely)});
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const CompareReport& report = reports[i];
    CAPTURE(i);
    CHECK(found_something(report, "culprit") == (i == 4 || i == 5));
    CHECK(passes(report) == (i == 0));
    CHECK(count(junit_text(report), "<failure ") == (i > 0 ? 1 : 0));
    const std::string github = github_text(report);
    CHECK(github.starts_with("::notice title=no culprit::") == (i == 0 || i == 3));
    CHECK((count(github, "::warning ") == 1) == (i > 0));
    const nlohmann::json run = sarif_run(report);
    CHECK(run["results"].size() == (i == 5 ? 1 : 0));
    const nlohmann::json& said = run["invocations"][0]["toolExecutionNotifications"];
    CHECK(said.size() == (i == 5 ? 0 : i == 3 ? 2 : 1));
    CHECK(run["invocations"][0]["executionSuccessful"] == true);
  }
}

TEST_CASE("texts: a rank of which nothing was judged is no agreement") {
  CompareReport report = agreement();
  report.tasks[1].not_judged = "golden has no entries";
  CHECK(!found_something(report, "culprit"));
  CHECK(!passes(report));
  CHECK(count(junit_text(report), "<failure ") == 1);
  CHECK(github_text(report).starts_with("::warning title=not judged::step0/rank1: golden has no entries"));
}

TEST_CASE("texts: what could not be compared is an error") {
  CompareReport report = agreement();
  report.tasks[1].failure = "dump.json: broken";
  const std::string junit = junit_text(report);
  CHECK(junit.find("<error message=\"dump.json: broken\">") != std::string::npos);
  CHECK(
      junit.find("<testsuite name=\"step0/rank1\" tests=\"2\" failures=\"0\" errors=\"1\" skipped=\"1\">") !=
      std::string::npos);
  CHECK(github_text(report).find("::error title=not compared::step0/rank1: dump.json: broken\n") !=
        std::string::npos);
  CHECK(sarif_run(report)["invocations"][0]["executionSuccessful"] == false);
}

TEST_CASE("texts: a fault is reported once, where it is; ranks that show the same say so") {
  Finding culprit = finding_of("Torch.add.0.forward", Confidence::certain);
  culprit.other_ranks = {"rank1"};
  const std::string junit =
      junit_text(with_findings({culprit, finding_of("Torch.mul.3.forward", Confidence::likely, "rank7")}));
  CHECK(count(junit, "<failure ") == 2);
  CHECK(junit.find("<skipped message=\"shows the same as rank0\">") != std::string::npos);
  // The rank of the second was not compared.
  CHECK(junit.find("<testcase classname=\"msprobe.compare\" name=\"culprit\">") != std::string::npos);
}

TEST_CASE("junit: a testcase has one failure, which tells all faults of its rank") {
  const std::string junit =
      junit_text(with_findings({finding_of("Torch.add.0.forward", Confidence::certain),
                                finding_of("Torch.<mul>.3.forward", Confidence::likely)}));
  CHECK(count(junit, "<failure ") == 1);
  CHECK(junit.find("message=\"Torch.add.0.forward, step 0, rank 0 (certain): output error") !=
        std::string::npos);
  CHECK(junit.find("\nTorch.&lt;mul&gt;.3.forward, step 0, rank 0 (likely): output error") !=
        std::string::npos);
}

TEST_CASE("github: the level, the line, and escapes that nothing gets out of") {
  Finding certain = finding_of("Torch.100%\n::error::x.0.forward", Confidence::certain);
  certain.where = "/lab/a,b:c%.py, line 12, in f: x";
  const std::string text =
      github_text(with_findings({certain, finding_of("Torch.mul.1.forward", Confidence::likely)}));
  CHECK(text.starts_with("::error file=/lab/a%2Cb%3Ac%25.py,line=12,title=culprit (certain)::Torch.100%25"));
  CHECK(
      text.find("\n::warning file=/lab/gpt.py,line=12,title=also (likely)::Torch.mul.1.forward, step 0, rank "
                "0%0Aoutput error") != std::string::npos);
  CHECK(count(text, "\n") == 2);
  CHECK(count(text, "\n::error") == 0);
}

TEST_CASE("github: a line of golden's code is said to be one") {
  Finding removed = finding_of("Torch.add.0.forward", Confidence::likely);
  removed.where = "in golden: /lab/gpt.py, line 7, in f: x";
  CHECK(github_text(with_findings({removed})).find("%0Ain golden: /lab/gpt.py, line 7") != std::string::npos);
}

TEST_CASE("sarif: levels, places and fingerprints") {
  Finding finding = finding_of("Torch.add.0.forward", Confidence::likely);
  finding.module = "blocks.2";
  finding.where = "lab/my model.py, line 12, in f: x";
  nlohmann::json result = sarif_run(with_findings({finding}))["results"][0];
  CHECK(result["level"] == "warning");
  CHECK(result["ruleId"] == "introduced");
  const nlohmann::json place = result["locations"][0];
  CHECK(place["physicalLocation"]["artifactLocation"]["uri"] == "lab/my%20model.py");
  CHECK(place["physicalLocation"]["region"]["startLine"] == 12);
  CHECK(place["logicalLocations"][0]["fullyQualifiedName"] == "blocks.2");
  CHECK(place["logicalLocations"][1]["fullyQualifiedName"] == "Torch.add.0.forward");
  const nlohmann::json fingerprints = result["partialFingerprints"];
  finding.text = "output error 2.0e-02 from inputs 3.0e-07";
  finding.excess = 77;
  CHECK(sarif_run(with_findings({finding}))["results"][0]["partialFingerprints"] == fingerprints);
  finding.entry = "Torch.add.1.forward";
  CHECK(sarif_run(with_findings({finding}))["results"][0]["partialFingerprints"] != fingerprints);
  // No line from 1 on.
  for (const char* number : {"0", "99999999999999999999"}) {
    finding.where = std::string("/a.py, line ") + number + ", in f: x";
    const nlohmann::json at = sarif_run(with_findings({finding}))["results"][0]["locations"][0];
    CHECK_FALSE(at["physicalLocation"].contains("region"));
  }
  const nlohmann::json rules = sarif_run(agreement())["tool"]["driver"]["rules"];
  CHECK(rules[result["ruleIndex"].get<std::size_t>()]["id"] == "introduced");
  CHECK(rules.back()["id"] == "stretch");
}

TEST_CASE("sarif: nothing of a name is an argument or a link") {
  Finding finding = finding_of("Torch.{0}[a](http://x).0.forward", Confidence::certain);
  const nlohmann::json result = sarif_run(with_findings({finding}))["results"][0];
  CHECK(result["message"]["text"].get<std::string>().starts_with(
      "Torch.{{0}}[a\\](http://x).0.forward, step 0, rank 0: output error"));
}

TEST_CASE("junit: names stay data, whatever bytes they have") {
  Finding finding = finding_of("Torch.<a>\"']]>&amp;\x01\xff\xef\xbf\xbe\n.0.forward", Confidence::certain);
  const std::string text = junit_text(with_findings({finding}));
  CHECK(text.find("]]>") == std::string::npos);
  CHECK(text.find("<a>") == std::string::npos);
  CHECK(text.find('\x01') == std::string::npos);
  CHECK(text.find('\xff') == std::string::npos);
  CHECK(text.find("\xef\xbf\xbe") == std::string::npos);
  CHECK(text.find("Torch.&lt;a&gt;&quot;']]&gt;&amp;amp;") != std::string::npos);
}

}  // namespace msprobe::compare_texts_test

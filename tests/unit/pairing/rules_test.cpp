// SPDX-License-Identifier: Apache-2.0
#include "pairing/rules.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/error.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_rules_test {

using namespace msprobe;
using namespace msprobe::pairing;

namespace {

/// A file of rules, gone when the test is.
class RulesFile {
 public:
  explicit RulesFile(std::string_view text) { test::put_file(path_, std::string(text)); }
  const std::string& path() const { return path_; }

 private:
  test::ScratchDirectory scratch_;
  std::string path_ = scratch_ / "rules.yaml";
};

/// The message about a file, without its path.
std::string failure(std::string_view text) {
  const RulesFile file(text);
  try {
    load_rules(file.path());
  } catch (const FormatError& error) {
    const std::string message = error.what();
    REQUIRE(message.starts_with(file.path() + ": "));
    return message.substr(file.path().size() + 2);
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the built-in rules are those of the Python tool 26.x") {
  const Rules rules = default_rules();
  CHECK(rules.ratio_input_above == 0.9);
  CHECK(rules.ratio_output_below == 0.1);
  CHECK(rules.norm_error_input_below == 0.1);
  CHECK(rules.norm_error_output_above == 0.5);
  CHECK(rules.norm_error_growth_above == 10);
  CHECK(rules.norm_error_from_zero_above == 0.1);
  CHECK(rules.cosine_input_above == 0.9);
  CHECK(rules.cosine_drop_above == 0.1);
  CHECK(rules.never_judged.size() == 9);
  CHECK(rules.never_judged.contains("__setitem__"));
  CHECK(rules.outputs_only.size() == 4);
  CHECK(rules.outputs_only.contains("batch_isend_irecv"));
  CHECK(rules.dtype_groups.size() == 2);
  CHECK(rules.dtype_classes.size() == 4);
}

TEST_CASE("a file changes what it names and nothing else") {
  const RulesFile file("ratio_output_below: 0.6\nnever_judged: [mine]\n");
  const Rules rules = load_rules(file.path());
  CHECK(rules.ratio_output_below == 0.6);
  CHECK(rules.never_judged == std::set<std::string, std::less<>>{"mine"});
  CHECK(rules.ratio_input_above == default_rules().ratio_input_above);
  CHECK(rules.outputs_only == default_rules().outputs_only);
  CHECK(rules.dtype_groups == default_rules().dtype_groups);
}

TEST_CASE("every list of operations takes the place of the table's") {
  const RulesFile file(
      "never_judged: [a]\noutputs_only: [b]\nnever_first: [Torch.c]\nnames_source: [d]\nignored_outputs: {e: "
      "[7]}\n");
  const Rules rules = load_rules(file.path());
  const Rules built_in = default_rules();
  using Names = std::set<std::string, std::less<>>;
  CHECK(rules.never_judged == Names{"a"});
  CHECK(rules.outputs_only == Names{"b"});
  CHECK(rules.never_first == std::vector<std::string>{"Torch.c"});
  CHECK(rules.names_source == Names{"d"});
  CHECK(rules.ignored_outputs.size() == 1);
  CHECK(rules.ignored_outputs.at("e") == std::set<std::size_t>{7});
  CHECK(built_in.never_first == std::vector<std::string>{"Torch.empty", "Torch.fill", "Tensor.__setitem__"});
  CHECK(built_in.names_source == Names{"recv", "irecv", "recv_object_list", "broadcast", "scatter"});
  CHECK(built_in.ignored_outputs.at("npu_fusion_attention") == std::set<std::size_t>{4, 5});
}

TEST_CASE("lists may be empty, groups replace the built-in ones") {
  const RulesFile file("outputs_only: []\ndtype_groups: [[torch.int32, torch.int64]]\n");
  const Rules rules = load_rules(file.path());
  CHECK(rules.outputs_only.empty());
  REQUIRE(rules.dtype_groups.size() == 1);
  CHECK(rules.dtype_groups[0].contains("torch.int64"));
}

TEST_CASE("what is no rule, or not of its type, is said with its line") {
  CHECK(failure("ratio_input_above: 0.9\nratio_outptu_below: 0.6\n") ==
        "line 2: unknown rule 'ratio_outptu_below'");
  CHECK(failure("ratio_input_above: high\n") == "line 1: ratio_input_above must be a number");
  CHECK(failure("ratio_input_above: [0.9]\n") == "line 1: ratio_input_above must be a number");
  CHECK(failure("ratio_input_above: .nan\n") == "line 1: ratio_input_above must be a number");
  CHECK(failure("ratio_input_above: nan\n") == "line 1: ratio_input_above must be a number");
  CHECK(failure("cosine_drop_above:\n") == "line 1: cosine_drop_above must be a number");
  CHECK(failure("never_judged: to\n") == "line 1: never_judged must be a list of names");
  CHECK(failure("never_judged:\n  - to\n  - [a]\n") == "line 3: never_judged must be a list of names");
  CHECK(failure("dtype_groups: 7\n") == "line 1: dtype_groups must be a list of lists");
  CHECK(failure("dtype_groups: [a, b]\n") == "line 1: dtype_groups must be a list of names");
  CHECK(failure("[a]: 1\n").find("unknown rule") != std::string::npos);
  CHECK(failure("- ratio_input_above\n") == "line 1: rules must be a mapping of names to values");
  CHECK(failure("").find("rules must be a mapping of names to values") != std::string::npos);
}

TEST_CASE("what is no YAML, or too much of it, is refused") {
  CHECK(failure("a: [1\n").starts_with("line "));
  CHECK(failure("never_judged: &x [a]\noutputs_only: *x\n") == "YAML anchors are not accepted here");
  CHECK(failure(std::string(2'000'000, '#')) != "accepted");
  CHECK(failure("never_judged: " + std::string(100'000, '[')) != "accepted");
  CHECK(failure("ratio_input_above: 0.9\n---\nratio_input_above: 0.8\n") != "");
  CHECK_THROWS_AS(load_rules("/nonexistent/rules.yaml"), IoError);
}

}  // namespace msprobe::compare_rules_test

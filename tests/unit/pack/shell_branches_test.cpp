// SPDX-License-Identifier: Apache-2.0
// Branches that can be decided are held against bash in tests/cli/golden_config_collect.py; here are those
// that cannot.
#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "pack/hyper_parameters.hpp"
#include "pack/several_values.hpp"
#include "pack/shell_condition.hpp"
#include "pack/shell_script.hpp"
#include "pack/value.hpp"
#include "support/error.hpp"

namespace msprobe::pack::shell_branches_test {
namespace {

/// "name=value", the values of several with their description.
std::vector<std::string> options(const std::string& script) {
  std::vector<std::string> out;
  const FlatMap found = read_shell_script(script, "run.sh");
  for (const auto& [name, value] : found.items()) {
    out.push_back(name + "=" + python_str(value));
  }
  return out;
}

using Lines = std::vector<std::string>;

std::string open(const std::string& values) {
  return "{'description': 'depends_on_condition', 'values': [" + values + "]}";
}

Truth test(const std::vector<std::optional<std::string>>& words) {
  return evaluate_test(words);
}

}  // namespace

TEST_CASE("where a condition cannot be decided both values are told") {
  CHECK(options("if [ -f x ]; then LR=1; else LR=2; fi\ntorchrun t.py --lr $LR --bs 4") ==
        Lines{"lr=" + open("'1', '2'"), "bs=4"});
  CHECK(options("case $1 in a) LR=1;; b) LR=2;; *) LR=3;; esac\ntorchrun t.py --lr $LR") ==
        Lines{"lr=" + open("'1', '2', '3'")});
  // Without an else there is the way past all branches.
  CHECK(options("LR=1\nif grep -q x y; then LR=2; fi\ntorchrun t.py --lr $LR") ==
        Lines{"lr=" + open("'2', '1'")});
  CHECK(options("torchrun t.py --a 1 ${X:+no} $([ y ])") == Lines{"a=['1', '$([ y ])']"});
}

TEST_CASE("an option that a way does not give is null there") {
  CHECK(options("[ -d /data ] && ARGS=--fast\nARGS=${ARGS:-}\ntorchrun t.py --lr 1 $ARGS") ==
        Lines{"lr=1", "fast=" + open("True, None")});
}

TEST_CASE("branches behind one that nobody knows are open too, those behind one that is certain are not") {
  CHECK(
      options("A=1\nif [ -f x ]; then L=1; elif [ $A = 1 ]; then L=2; else L=3; fi\ntorchrun t.py --l $L") ==
      Lines{"l=" + open("'1', '2'")});
  CHECK(options("A=1\nif [ $A = 1 ]; then L=1; elif [ -f x ]; then L=2; fi\ntorchrun t.py --l $L") ==
        Lines{"l=1"});
  // What stands in a branch that does not run is not asked.
  CHECK(options("if false; then if [ -f x ]; then L=1; fi; case $1 in a) L=2;; esac; fi\nL=3\ntorchrun t.py "
                "--l $L") == Lines{"l=3"});
}

TEST_CASE("a variable that is not set in the script is not known") {
  CHECK(options("if [ \"$BACKEND\" = x ]; then L=1; else L=2; fi\ntorchrun t.py --l $L") ==
        Lines{"l=" + open("'1', '2'")});
  CHECK(options("B=${B:-x}\nif [ $B = x ]; then L=1; else L=2; fi\ntorchrun t.py --l $L") == Lines{"l=1"});
}

TEST_CASE("a launch in a branch that nobody knows is one") {
  CHECK(options("if [ -f x ]; then torchrun t.py --a 1; else torchrun t.py --a 2 --b 3; fi") ==
        Lines{"a=" + open("'1', '2'"), "b=" + open("None, '3'")});
}

TEST_CASE("values of several kinds are told in one list") {
  FlatMap merged = merge_ways({});
  CHECK(merged.empty());
  FlatMap first;
  first.set("lr", Value::of_text("1"));
  FlatMap second;
  second.set("lr", Value::of_text("2"));
  merge(first, second);
  FlatMap third;
  third.set("lr", Value::of_text("3"));
  CHECK(python_str(*merge_ways({first, third}).find("lr")) == open("'1', '2', '3'"));
  merge(third, merge_ways({first, second}));
  CHECK(python_str(*third.find("lr")) == open("'3', '1', '2'"));
}

TEST_CASE("tests are decided where all of their words are known") {
  CHECK(test({"[", "a", "=", "a", "]"}) == Truth::yes);
  CHECK(test({"[", "a", "!=", "a", "]"}) == Truth::no);
  CHECK(test({"[", {}, "=", "a", "]"}) == Truth::unknown);
  CHECK(test({"[", "07", "-eq", "7", "]"}) == Truth::yes);
  CHECK(test({"[", "x", "-eq", "7", "]"}) == Truth::unknown);
  CHECK(test({"[", "-n", "", "]"}) == Truth::no);
  CHECK(test({"[", "!", "-z", "", "]"}) == Truth::no);
  CHECK(test({"[", "-f", "x", "]"}) == Truth::unknown);
  CHECK(test({"[", "x"}) == Truth::unknown);
  CHECK(test({"[", "a", "=", "a", "-a", "b", "]"}) == Truth::unknown);
  CHECK(test({"[[", "a", "==", "a*", "]]"}) == Truth::unknown);
  CHECK(test({"[[", "a", "==", "b", "||", "-n", "x", "]]"}) == Truth::yes);
  CHECK(test({"[[", {}, "==", "b", "&&", "a", "==", "b", "]]"}) == Truth::no);
  CHECK(test({"[[", "(", "a", "==", "b", "]]"}) == Truth::unknown);
  CHECK(test({}) == Truth::unknown);
}

TEST_CASE("patterns of letters, stars and question marks") {
  CHECK(fits_pattern("a*b?", "axxbc") == true);
  CHECK(fits_pattern("a*b?", "axxb") == false);
  CHECK(fits_pattern("*", "") == true);
  CHECK(fits_pattern("", "a") == false);
  CHECK_FALSE(fits_pattern("[ab]", "a").has_value());
  // Neither many stars nor long texts take long.
  CHECK(fits_pattern("*a*a*a*a*a*a*a*a*b", std::string(10'000, 'a')) == false);
  CHECK_FALSE(fits_pattern(std::string(10'000, 'a'), std::string(10'000, 'a')).has_value());
}

TEST_CASE("scripts with too many ways or nested too deep are refused") {
  const auto refused = [](const std::string& script) {
    try {
      read_shell_script(script, "run.sh");
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  std::string many = "case $1 in ";
  for (int i = 0; i < 70; ++i) many += "a" + std::to_string(i) + ") L=1;; ";
  CHECK(refused(many + "esac\ntorchrun t.py") ==
        "run.sh: refused: too many branches that only a shell could decide");
  std::string deep;
  for (int i = 0; i < 1001; ++i) deep += "if a; then ";
  CHECK(refused(deep) == "run.sh: refused: it is nested more than 1000 deep");
  // Keywords without their partners, and scripts that end in the middle, do no harm.
  for (const char* script :
       {"fi", "esac", "then", "else x", "case", "case a", "case a in", "case a in b", "case a in (", "if",
        "if [[ a", "[[ a && ( b", "}", "if a; then b; }", "a &&", "|| a", ";;", "case a in ;;"}) {
    CAPTURE(script);
    CHECK(refused(std::string(script) + "\n") == "accepted");
  }
}

}  // namespace msprobe::pack::shell_branches_test

// SPDX-License-Identifier: Apache-2.0
// The reader does not evaluate conditions, loops and functions.
// tests/cli/golden_config_collect.py holds their options against those with which bash starts the training.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pack/several_values.hpp"
#include "pack/shell_script.hpp"
#include "pack/value.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::pack::shell_branches_test {
namespace {

using Lines = std::vector<std::string>;
using Numbers = std::vector<std::size_t>;

/// "name=value", the values of several with their description.
Lines options(const std::string& script) {
  Lines out;
  const FlatMap found = options_of(read_script(script, "run.sh"));
  for (const auto& [name, value] : found.items()) {
    out.push_back(name + "=" + python_str(value));
  }
  return out;
}

Numbers not_understood(const std::string& script) {
  return read_script(script, "run.sh").not_understood;
}

std::string open(const std::string& values) {
  return "{'description': 'depends_on_condition', 'values': [" + values + "]}";
}

}  // namespace

TEST_CASE("a condition gives all its values") {
  CHECK(options("if [ -f x ]; then LR=1; else LR=2; fi\ntorchrun t.py --lr $LR --bs 4") ==
        Lines{"lr=" + open("'1', '2'"), "bs=4"});
  CHECK(options("case $1 in a) LR=1;; (b | c)\n LR=2;; *) LR=3;; esac\ntorchrun t.py --lr $LR") ==
        Lines{"lr=" + open("'1', '2', '3'")});
  // Without an else there is the way past all branches.
  CHECK(options("LR=1\nif grep -q x y; then LR=2; fi\ntorchrun t.py --lr $LR") ==
        Lines{"lr=" + open("'1', '2'")});
  CHECK(options("case $1 in a) LR=1;; esac\ntorchrun t.py --lr $LR") == Lines{"lr=" + open("'$LR', '1'")});
  // A condition is not evaluated, even if the script alone decides it.
  CHECK(options("A=1\nif [ $A = 1 ]; then L=1; elif false; then L=2; fi\ntorchrun t.py --l ${L-0}") ==
        Lines{"l=" + open("'0', '1', '2'")});
  CHECK(options("torchrun t.py --a 1 ${X:+no} $([ y ])") == Lines{"a=['1', '$([ y ])']"});
}

TEST_CASE("an option that a way does not give is null there") {
  CHECK(options("[ -d /data ] && ARGS=--fast\nARGS=${ARGS:-}\ntorchrun t.py --lr 1 $ARGS") ==
        Lines{"lr=1", "fast=" + open("None, True")});
  CHECK(options("if [ -f x ]; then torchrun t.py --a 1; else torchrun t.py --a 2 --b 3; fi") ==
        Lines{"a=" + open("'1', '2'"), "b=" + open("None, '3'")});
}

TEST_CASE("what a loop or a function would do is not certain") {
  CHECK(options("LR=1\nfor i in 1 2; do LR=$i; done\ntorchrun t.py --lr $LR") ==
        Lines{"lr=" + open("'1', '$i'")});
  CHECK(options("i=0\nwhile read i; do torchrun t.py --a 1; done <f\ntorchrun t.py --b 2") ==
        Lines{"b=2", "a=" + open("None, '1'")});
  CHECK(options("for ((i=0; i<2; i++)); do torchrun t.py --a 1; done") == Lines{"a=" + open("None, '1'")});
  for (const char* head : {"go() {", "go ()\n{", "function go {", "function go() {", "go() ("}) {
    CAPTURE(head);
    const std::string end = std::string(head).back() == '(' ? ")" : "}";
    CHECK(options(std::string(head) + "\n LR=2\n" + end + "\nLR=${LR:-1}\ntorchrun t.py --lr $LR") ==
          Lines{"lr=" + open("'1', '2'")});
  }
  // A group is no function.
  CHECK(options("{ LR=2; (BS=3; torchrun t.py --lr $LR --bs $BS); }") == Lines{"lr=2", "bs=3"});
}

TEST_CASE("commands after && and || are not certain") {
  const auto lr = [](const std::string& lines) { return options(lines + "\ntorchrun t.py --lr $LR"); };
  CHECK(lr("LR=1; [ -f x ] && LR=2") == Lines{"lr=" + open("'1', '2'")});
  CHECK(lr("LR=1; [[ -f x || $A < b ]] && LR=2 || LR=3") == Lines{"lr=" + open("'3', '2'")});
  CHECK(lr("LR=1; test -f x && { LR=2; BS=1; } || { LR=3; }") == Lines{"lr=" + open("'3', '2'")});
  CHECK(lr("LR=1; ((A > 1)) &&\n  LR=2") == Lines{"lr=" + open("'1', '2'")});
  CHECK(lr("LR=1; grep -q x y && LR=2") == Lines{"lr=" + open("'1', '2'")});
  CHECK(lr("A=1 && export LR=2 && B=3") == Lines{"lr=2"});
  CHECK(options("[ -f x ] && (torchrun t.py --a 1)") == Lines{"a=" + open("None, '1'")});
  // Commands are taken to succeed where training depends on them.
  CHECK(options("cd x && torchrun t.py --a 1 || exit 1") == Lines{"a=1"});
}

TEST_CASE("each branch is taken, also those inside of others, and with what comes behind") {
  CHECK(
      options("if a; then if b; then L=1; else L=2; fi; else if c; then L=3; fi; fi\ntorchrun t.py --l $L") ==
      Lines{"l=" + open("'1', '2', '$L', '3'")});
  CHECK(options("case $1 in a) L=1;; b) L=2;; c) L=3;; esac\ngo() { torchrun t.py --l $L; }\ngo") ==
        Lines{"l=" + open("None, '1', '2', '3'")});
  // Behind them a certain value is certain again.
  CHECK(options("if a; then L=1; else L=2; fi\nL=3\ntorchrun t.py --l $L") == Lines{"l=3"});
}

TEST_CASE("lines that are not understood are listed, each once") {
  CHECK(not_understood("A=1\nexport B=${A:-2}\nC=(\"${A[@]}\" $1 $UNKNOWN)\ncd x || exit 1\ntorchrun t.py") ==
        Numbers{});
  CHECK(not_understood(
            "\nif a; then\n  B=1\nfi\nwhile b; do c; done\nfor i in 1; do c; done\ncase x in\na) ;;\nesac\n"
            "f() {\n}\n[ a ] && b\n((1))\nA=$(b) B=`b` C=$((1))\nb <(c)\ngrep a b && A=1\n") ==
        Numbers{2, 5, 6, 7, 10, 12, 13, 14, 15, 16});
  CHECK(not_understood("A=\"\n  --a ${A%.*}\n  --b ${#A} ${!A}\n  --c ${A[i]} \\\n  --d $(e\n\n)\"\nfor i in "
                       "1; do b; done") == Numbers{2, 3, 4, 5, 8});
}

TEST_CASE("one list has values of several kinds") {
  FlatMap merged = merge_ways({});
  CHECK(merged.empty());
  FlatMap first;
  first.set("lr", PackValue::of_text("1"));
  FlatMap second;
  second.set("lr", PackValue::of_text("2"));
  merge(first, second);
  FlatMap third;
  third.set("lr", PackValue::of_text("3"));
  CHECK(python_str(*merge_ways({first, third}).find("lr")) == open("'1', '2', '3'"));
  merge(third, merge_ways({first, second}));
  CHECK(python_str(*third.find("lr")) == open("'3', '1', '2'"));
}

TEST_CASE("scripts with too many ways or nested too deep are refused") {
  const auto refused = [](const std::string& script) {
    return test::message_of([&] { read_script(script, "run.sh"); });
  };
  const auto selection = [](int branches) {
    std::string script = "case $1 in ";
    for (int i = 0; i < branches; ++i) script += "a" + std::to_string(i) + ") L=1;; ";
    return script + "esac\ntorchrun t.py";
  };
  CHECK(refused(selection(255)) == "accepted");
  CHECK(refused(selection(256)) == "run.sh: refused: too many branches that only a shell could decide");
  std::string deep;
  for (int i = 0; i < 1001; ++i) deep += "if a; then ";
  CHECK(refused(deep) == "run.sh: refused: it is nested more than 1000 deep");
  CHECK(refused(std::string(1001, '{') + "\n") == "accepted");
  std::string groups;
  for (int i = 0; i < 1001; ++i) groups += "( ";
  CHECK(refused(groups) == "run.sh: refused: it is nested more than 1000 deep");
  // Keywords without their partners, and scripts that end in the middle, do no harm.
  for (const char* script : {"fi",
                             "esac",
                             "then",
                             "else x",
                             "case",
                             "case a",
                             "case a in",
                             "case a in b",
                             "case a in (",
                             "if",
                             "if [[ a",
                             "[[ a && ( b",
                             "}",
                             ")",
                             "if a; then b; }",
                             "a &&",
                             "|| a",
                             ";;",
                             "case a in ;;",
                             "for",
                             "function",
                             "f()",
                             "for (("}) {
    CAPTURE(script);
    CHECK(refused(std::string(script) + "\n") == "accepted");
  }
}

}  // namespace msprobe::pack::shell_branches_test

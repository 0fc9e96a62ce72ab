// SPDX-License-Identifier: Apache-2.0
// tests/cli/golden_config_check.py compares with bash; these tests cover what bash cannot show.
#include "pack/shell_words.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pack/shell_script.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::pack::shell_words_test {
namespace {

using Words = std::vector<std::string>;

Words launched(const std::string& script) {
  const std::vector<Launch> launches = read_script(script, "run.sh").ways.front();
  return launches.size() == 1 ? launches[0].words : Words{std::to_string(launches.size()) + " launches"};
}

std::string refused(const std::string& script) {
  return test::message_of([&] { read_script(script, "run.sh"); });
}

}  // namespace

TEST_CASE("what only a running shell knows stays as it is written, in one piece") {
  CHECK(launched("torchrun t.py --d $(date +%s) --e `hostname -s` --f $((2 * 3)) --g $1 --h \"$@\" --i $?") ==
        Words{"torchrun", "t.py", "--d", "$(date +%s)", "--e", "`hostname -s`", "--f", "$((2 * 3))", "--g",
              "$1", "--h", "$@", "--i", "$?"});
  CHECK(launched("X=$(ls | wc -l)\ntorchrun t.py --x $X/a") ==
        Words{"torchrun", "t.py", "--x", "$(ls | wc -l)/a"});
  CHECK(launched("torchrun t.py --a ${X%.*} --b ${#X} --c ${X/a/b} --d ${!X} --e ${A[i]}") ==
        Words{"torchrun", "t.py", "--a", "${X%.*}", "--b", "${#X}", "--c", "${X/a/b}", "--d", "${!X}", "--e",
              "${A[i]}"});
  CHECK(launched("torchrun t.py --a $UNKNOWN --b ${UNKNOWN}/x") ==
        Words{"torchrun", "t.py", "--a", "$UNKNOWN", "--b", "${UNKNOWN}/x"});
}

TEST_CASE("nothing in a script is executed") {
  CHECK(launched("$(touch /tmp/it_ran); torchrun t.py $(touch /tmp/it_ran)").size() == 3);
}

TEST_CASE("scripts that end in the middle are read to their end") {
  const auto last_word = [](const char* end) {
    const Words words = launched(std::string("torchrun t.py ") + end);
    REQUIRE(words.size() == 3);
    CHECK(words[0] == "torchrun");
    CHECK(words[1] == "t.py");
    return words[2];
  };
  CHECK(last_word("'a") == "a");
  CHECK(last_word("\"a") == "a");
  CHECK(last_word("$'a") == "a");
  CHECK(last_word("$(a") == "$(a");
  CHECK(last_word("${a") == "${a");
  CHECK(last_word("${a:-") == "${a:-");
  CHECK(last_word("`a") == "`a");
  CHECK(last_word("$") == "$");
  CHECK(last_word("\"$") == "$");
  CHECK(launched("torchrun t.py \\") == Words{"torchrun", "t.py"});
  CHECK(launched("torchrun t.py >") == Words{"torchrun", "t.py"});
  CHECK(launched("torchrun <<E") == Words{"torchrun"});
  CHECK(launched("A=(torchrun") == Words{"0 launches"});
}

TEST_CASE("an empty array between quotes is no word") {
  CHECK(launched("A=()\ntorchrun t.py --a 1 \"${A[@]}\" \"$B${A[@]}\" \"\"") ==
        Words{"torchrun", "t.py", "--a", "1", "$B", ""});
}

TEST_CASE("letters that the reader uses itself are replaced") {
  CHECK(launched("A=a\x01$B\x02\nB=b\ntorchrun \x01t.py\x02 $A") == Words{"torchrun", "?t.py?", "a?b?"});
}

TEST_CASE("words do not contain the carriage returns at line ends") {
  CHECK(launched("A=1\r\ntorchrun t.py \\\r\n  --a $A \\\r\n  --b\r\n") ==
        Words{"torchrun", "t.py", "--a", "1", "--b"});
}

TEST_CASE("arguments that a script builds up line by line") {
  const auto built = [](const std::string& before, const std::string& after, int lines) {
    std::string script = "A=t.py\n";
    Words expected = {"torchrun", "t.py"};
    for (int i = 0; i < lines; ++i) {
      script.append(before).append(" --n").append(std::to_string(i)).append(after).append("\n");
      expected.push_back("--n" + std::to_string(i));
    }
    return launched(script + "torchrun $A") == expected;
  };
  CHECK(built("A=\"$A", "\"", 1500));
  CHECK(built("A+=\"", "\"", 30'000));
  CHECK(launched("A='a b'\nA=\"$A c\"\ntorchrun $A \"$A\"") == Words{"torchrun", "a", "b", "c", "a b c"});
  CHECK(launched("A='a  b'\nA=$A' c'd\ntorchrun \"$A\" $A") == Words{"torchrun", "a  b cd", "a", "b", "cd"});
  CHECK(launched("A=a\nA=$A$(date)\nA=${A}b\ntorchrun $A") == Words{"torchrun", "a$(date)b"});
  CHECK(launched("A=a\nA=\"$A $U\"\nU=u\nA=\"$A b\"\nU=v\ntorchrun $A") == Words{"torchrun", "a", "u", "b"});
  CHECK(launched("A=(a b)\nA=\"$A c\"\ntorchrun \"$A\" ${A[1]}") == Words{"torchrun", "a c", "b"});
  CHECK(launched("A=a\nA+=(b)\nA=\"$A c\"\ntorchrun ${A[@]}") == Words{"torchrun", "a", "c", "b"});
  CHECK(launched("A=x\nA=\"$A $A\"\nA=\"$A $A\"\ntorchrun $A") == Words{"torchrun", "x", "x", "x", "x"});
}

TEST_CASE("variables cannot make text without end") {
  std::string doubling = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 40; ++i) doubling += "A=\"$A$A\"\n";
  CHECK(refused(doubling) == "run.sh: refused: its variables expand to too much text");
  std::string unknown = "A=$U$U\n";
  for (int i = 0; i < 40; ++i) unknown += "A=$A$A\n";
  CHECK(refused(unknown) == "run.sh: refused: its variables expand to too much text");
  std::string array = "A=(x x)\n";
  for (int i = 0; i < 40; ++i) array += "A=(${A[@]} ${A[@]})\n";
  CHECK(refused(array) == "run.sh: refused: its variables expand to too much text");
  CHECK(launched("A=$B\nB=$A\ntorchrun t.py $A") == Words{"torchrun", "t.py", "$B"});
  CHECK(launched("A=$A\nA=$A\ntorchrun t.py $A") == Words{"torchrun", "t.py", "$A"});
  std::string deep = "torchrun t.py ";
  for (int i = 0; i < 5000; ++i) deep += "${A:-";
  // A word that nests too deeply to be understood stays as it is written.
  CHECK(launched(deep) == Words{"torchrun", "t.py", deep.substr(14)});
  CHECK(launched("torchrun t.py " + std::string(100'000, '(')) == Words{"torchrun", "t.py"});
}

TEST_CASE("a script that starts training very often is refused") {
  std::string script;
  for (int i = 0; i < 1001; ++i) script += "torchrun t.py --a " + std::to_string(i) + "\n";
  CHECK(refused(script) == "run.sh: refused: it starts training more than 1000 times");
}

TEST_CASE("launchers are known by their names, also with folders and behind wrappers") {
  CHECK(launched("/opt/bin/torchrun a").front() == "/opt/bin/torchrun");
  CHECK(launched("nohup env X=1 /usr/bin/python3.11 train.py --a").front() == "/usr/bin/python3.11");
  CHECK(launched("accelerate config\naccelerate launch t.py").size() == 3);
  CHECK(launched("mpirun -np 8 python t.py --lr 1").size() == 7);
  CHECK(launched("pythonx t.py") == Words{"0 launches"});
  CHECK(launched("python -c 'import x'") == Words{"0 launches"});
  CHECK(launched("echo torchrun t.py") == Words{"0 launches"});
}

}  // namespace msprobe::pack::shell_words_test

// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "formats/unpickler.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/formats/peak_memory.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::formats::pickle_test {
namespace {

using namespace std::string_literals;

Pickle load(const std::string& bytes, const PickleLimits& limits = {}) {
  return load_pickle(*memory_source(bytes, "some.pkl"), 0, limits);
}

std::string complaint(const std::string& bytes, const PickleLimits& limits = {}) {
  return test::complaint_about("some.pkl", [&] { load(bytes, limits); });
}

std::int64_t integer(const std::string& bytes) {
  const Pickle pickle = load(bytes);
  return pickle.integer(pickle.root());
}

std::string text(const std::string& bytes) {
  const Pickle pickle = load(bytes);
  return std::string(pickle.text(pickle.root()));
}

double real(const std::string& bytes) {
  const Pickle pickle = load(bytes);
  return pickle.real(pickle.root());
}

}  // namespace

// The expected values are what CPython's pickle.loads gives for the same bytes.
TEST_CASE("scalars of every protocol") {
  CHECK(integer("K\xff."s) == 255);
  CHECK(integer("M\x01\x02."s) == 513);
  CHECK(integer("J\xfe\xff\xff\xff."s) == -2);
  CHECK(integer("I-17\n."s) == -17);
  CHECK(integer("L9223372036854775807L\n."s) == INT64_MAX);
  CHECK(integer("\x8a\x00."s) == 0);
  CHECK(integer("\x8a\x01\xff."s) == -1);
  CHECK(integer("\x8a\x02\xff\x00."s) == 255);
  CHECK(integer("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s) == INT64_MIN);
  CHECK(integer("\x8b\x02\x00\x00\x00\x00\x80."s) == -32768);
  // Blanks, signs, underscores and prefixes as int() takes them; C ends the text at a zero byte.
  CHECK(integer("I 5 \n."s) == 5);
  CHECK(integer("I+0x1_f\n."s) == 31);
  CHECK(integer("I-0b101\n."s) == -5);
  CHECK(integer("L-0o17L\n."s) == -15);
  CHECK(integer("I7\0x\n."s) == 7);
  CHECK(integer("L-9223372036854775808L\n."s) == INT64_MIN);
  CHECK(integer("L-128\n."s) == -128);
  CHECK(real("G\x3f\xf8\x00\x00\x00\x00\x00\x00."s) == 1.5);
  CHECK(real("F-2.5e3\n."s) == -2500.0);
  const Pickle large = load("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s);
  CHECK(large.kind(large.root()) == PickleKind::big_integer);
  CHECK(large.raw(large.root()) == "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"s);
  // (1 << 70) and -(1 << 70) - 1
  const Pickle decimal = load("L1180591620717411303424L\n."s);
  CHECK(decimal.raw(decimal.root()) == "\0\0\0\0\0\0\0\0\x40"s);
  const Pickle below = load("I-1180591620717411303425\n."s);
  CHECK(below.raw(below.root()) == "\xff\xff\xff\xff\xff\xff\xff\xff\xbf"s);
  for (const auto& [bytes, value] :
       {std::pair{"\x88."s, true}, {"\x89."s, false}, {"I01\n."s, true}, {"I00\n."s, false}}) {
    const Pickle pickle = load(bytes);
    CHECK(pickle.boolean(pickle.root()) == value);
  }
  const Pickle none = load("N.");
  CHECK(none.kind(none.root()) == PickleKind::none);
}

TEST_CASE("strings of every protocol") {
  CHECK(text("X\x02\x00\x00\x00h\xc3."s) == "h\xc3");
  CHECK(text("\x8c\x02hi."s) == "hi");
  CHECK(text("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi."s) == "hi");
  CHECK(text("U\x02hi."s) == "hi");
  CHECK(text("T\x02\x00\x00\x00hi."s) == "hi");
  CHECK(text("S'a\\n\\x41\\101\\'\\\\'\n."s) == "a\nAA'\\");
  CHECK(text("V\\u00e9\xe9\\U0001f600\\x\n."s) == "é\xc3\xa9😀\\x");
  for (const auto& bytes :
       {"C\x02\x00\xff."s, "B\x02\x00\x00\x00\x00\xff."s, "\x8e\x02\x00\x00\x00\x00\x00\x00\x00\x00\xff."s,
        "\x96\x02\x00\x00\x00\x00\x00\x00\x00\x00\xff."s}) {
    const Pickle pickle = load(bytes);
    CHECK(pickle.kind(pickle.root()) == PickleKind::bytes);
    CHECK(pickle.raw(pickle.root()) == "\x00\xff"s);
  }
  CHECK(text("V\\\\u0041\\\\\\u0041\n."s) == "\\\\u0041\\\\A");
  CHECK_REFUSED("S'a\n."s, "malformed");
  CHECK_REFUSED("S'\\q'\n."s, "malformed");
  CHECK_REFUSED("S'\\'\n."s, "malformed");
  CHECK_REFUSED("V\\u12\n."s, "malformed");
  CHECK_REFUSED("V\\U00110000\n."s, "malformed");
}

TEST_CASE("containers hold their items in order, and dicts their last value") {
  // {"a": [1, (2, 3)], "a": {4}} by opcodes of protocols 1 to 4
  const Pickle pickle =
      load("\x80\x04}(X\x01\x00\x00\x00\x61](K\x01K\x02K\x03\x86\x65\x8c\x01\x61\x8f(K\x04\x90u."s);
  const auto pairs = pickle.pairs(pickle.root());
  REQUIRE(pairs.size() == 4);
  const auto list = pickle.items(pairs[1]);
  REQUIRE(list.size() == 2);
  CHECK(pickle.integer(list[0]) == 1);
  CHECK(pickle.integer(pickle.items(list[1])[1]) == 3);
  const auto found = pickle.find(pickle.root(), "a");
  REQUIRE(found);
  CHECK(pickle.kind(*found) == PickleKind::set);
  CHECK(pickle.integer(pickle.items(*found)[0]) == 4);
  CHECK_FALSE(pickle.find(pickle.root(), "b"));
}

TEST_CASE("the memo gives the same value again, also under scattered keys") {
  for (const auto& bytes : {"(]q\x00h\x00t."s, "(]q\x07h\x07t."s, "(]r\xff\xff\xff\xffj\xff\xff\xff\xfft."s,
                            "(]p12345678901\ng12345678901\nt."s, "(]\x94h\x00t."s, "(]2t."s}) {
    const Pickle pickle = load(bytes);
    const auto items = pickle.items(pickle.root());
    REQUIRE(items.size() == 2);
    CHECK(items[0] == items[1]);
  }
  // Python reads the keys as numbers; it counts a key once, however often and in whatever order it is set.
  for (const auto& bytes :
       {"(]p7\ng+7\nt."s, "(]p 1_0\nh\x0at."s, "(]p7\ng07\0x\nt."s, "(Nq\x01q\x00q\x01\x30]\x94h\x02t."s}) {
    CAPTURE(bytes);
    const Pickle pickle = load(bytes);
    const auto items = pickle.items(pickle.root());
    REQUIRE(items.size() == 2);
    CHECK(items[0] == items[1]);
  }
  CHECK_REFUSED("h\x00."s, "memo entry 0 was never set");
  CHECK_REFUSED("Nq\x01h\x02."s, "memo entry 2 was never set");
}

TEST_CASE("nothing is called: an unknown global becomes a name, its call a node") {
  const Pickle pickle = load("cposix\nsystem\nX\x04\x00\x00\x00true\x85R."s);
  REQUIRE(pickle.kind(pickle.root()) == PickleKind::object);
  const PickleObject& object = pickle.object(pickle.root());
  CHECK(pickle.global(object.callable).full_name() == "posix.system");
  CHECK(pickle.text(pickle.items(object.args)[0]) == "true");
  REQUIRE(pickle.globals().size() == 1);
  CHECK(pickle.globals()[0].called);
  CHECK(pickle.globals()[0].offset == 0);
}

TEST_CASE("every way of calling is recorded, mentioning is not calling") {
  for (const auto& bytes : {"cm\nf\n)R."s, "cm\nf\n)\x81."s, "cm\nf\n)}\x92."s, "(im\nf\n."s, "(cm\nf\no."s,
                            "\x8c\x01m\x8c\x01\x66\x93)R."s}) {
    const Pickle pickle = load(bytes);
    CHECK(pickle.kind(pickle.root()) == PickleKind::object);
    CHECK(pickle.globals()[0].full_name() == "m.f");
    CHECK(pickle.globals()[0].called);
  }
  const Pickle mention = load("cm\nf\ncm\nf\n\x86."s);
  CHECK(mention.globals().size() == 1);
  CHECK_FALSE(mention.globals()[0].called);
}

TEST_CASE("an object keeps its state, and what was added to it") {
  // Namespace(a=1) as argparse pickles it; then items and pairs, as subclasses of list and dict do.
  const Pickle pickle =
      load("cm\nC\n)\x81}X\x01\x00\x00\x00\x61K\x01sbK\x02\x61(K\x03K\x04\x65K\x05K\x06s."s);
  const PickleObject& object = pickle.object(pickle.root());
  CHECK(pickle.integer(*pickle.find(object.state, "a")) == 1);
  CHECK(pickle.items(object.items).size() == 3);
  CHECK(pickle.integer(pickle.pairs(object.pairs)[1]) == 6);
}

TEST_CASE("container types are evaluated") {
  const std::string pairs = "](K\x01K\x02\x86K\x03K\x04\x86\x65"s;
  for (const auto& bytes : {"ccollections\nOrderedDict\n"s + pairs + "\x85R."s,
                            "ccollections\nOrderedDict\n)R(K\x01K\x02K\x03K\x04u."s,
                            "ccollections\nOrderedDict\n)R(K\x01K\x02K\x03K\x04u}X\x01\x00\x00\x00mNsb."s,
                            "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x01K\x02K\x03K\x04u."s,
                            "cbuiltins\ndict\n(K\x01K\x02K\x03K\x04\x64\x85R."s}) {
    const Pickle pickle = load(bytes);
    REQUIRE(pickle.pairs(pickle.root()).size() == 4);
    CHECK(pickle.integer(pickle.pairs(pickle.root())[3]) == 4);
    for (const PickleGlobal& global : pickle.globals()) CHECK_FALSE(global.called);
  }
  const Pickle size = load("ctorch\nSize\n(K\x01K\x02t\x85R."s);
  CHECK(size.kind(size.root()) == PickleKind::tuple);
  CHECK(size.items(size.root()).size() == 2);
  const Pickle set = load("c__builtin__\nset\n](K\x01K\x02\x65\x85R."s);
  CHECK(set.kind(set.root()) == PickleKind::set);
  CHECK_REFUSED("ccollections\nOrderedDict\n](K\x01\x65\x85R."s, "an integer instead of a sequence");
  CHECK_REFUSED("ccollections\nOrderedDict\n]()\x65\x85R."s, "something other than pairs");
}

TEST_CASE("type confusion is refused") {
  CHECK_REFUSED("NK\x01K\x02s."s, "sets items of None");
  CHECK_REFUSED("X\x01\x00\x00\x00\x61K\x01K\x02s."s, "sets items of a string");
  CHECK_REFUSED("](K\x01K\x02u."s, "sets items of a list");
  CHECK_REFUSED(")K\x01\x61."s, "adds items to a tuple");
  CHECK_REFUSED("}K\x01\x61."s, "adds items to a dict");
  CHECK_REFUSED("](K\x01\x90."s, "adds items to a list");
  CHECK_REFUSED("\x8f(K\x01\x65."s, "adds items to a set");
  CHECK_REFUSED("N)R."s, "it calls None");
  CHECK_REFUSED("X\x01\x00\x00\x00\x61)R."s, "it calls a string");
  CHECK_REFUSED("cm\nf\nNR."s, "a call with None for arguments");
  CHECK_REFUSED("cm\nf\n](K\x01\x65R."s, "a call with a list for arguments");
  CHECK_REFUSED("cm\nf\n)N\x92."s, "without a dict of keywords");
  CHECK_REFUSED("K\x01}b."s, "sets the state of an integer");
  CHECK_REFUSED("K\x01K\x02\x93."s, "a global without a name");
  CHECK_REFUSED("}(K\x01u."s, "a key without a value");
  CHECK_REFUSED("(K\x01\x64."s, "a key without a value");
  const Pickle list = load("].");
  CHECK_THROWS_WITH_AS((void)list.integer(list.root()),
                       "some.pkl: the pickle has a list instead of an integer", FormatError);
  CHECK_THROWS_AS((void)list.pairs(list.root()), FormatError);
  CHECK_THROWS_AS((void)list.text(list.root()), FormatError);
  CHECK_THROWS_AS((void)list.raw(list.root()), FormatError);
  CHECK_THROWS_AS((void)list.object(list.root()), FormatError);
  CHECK_THROWS_AS((void)list.global(list.root()), FormatError);
  CHECK_THROWS_AS((void)list.persistent_id(list.root()), FormatError);
}

TEST_CASE("an empty stack, a missing mark and values left over are refused") {
  for (const char* bytes :
       {".",    "0.", "2.",  "q\x01.", "\x85.", "N\x86.", "NN\x87.", "a.",    "Na.",   "s.",
        "NNs.", "R.", "NR.", "b.",     "Nb.",   "Q.",     "\x93.",   "\x94.", "\x81.", "NN\x92."}) {
    CAPTURE(bytes);
    CHECK_REFUSED(bytes, bytes == std::string(".") ? "left on its stack" : "stack underflow");
  }
  // A mark is a floor: values below it are not there.
  for (const auto& bytes : {"N(\x85."s, "]](\x61."s, "}NN(s."s, "(e."s, "N((e."s, "(u."s, "(o."s}) {
    CAPTURE(bytes);
    CHECK_FALSE(complaint(bytes).empty());
  }
  for (const char* bytes :
       {"t.", "Nt.", "l.", "d.", "e.", "]e.", "u.", "1.", "o.", "\x90.", "\x91.", "im\nf\n."}) {
    CAPTURE(bytes);
    CHECK_REFUSED(bytes, "a mark is missing");
  }
  CHECK_REFUSED("NN.", "left on its stack");
  CHECK_REFUSED("(N.", "left on its stack");
  CHECK(complaint("N(0.").find("left") == std::string::npos);  // POP takes a mark off, as in Python
}

TEST_CASE("frames must hold whole values and end where they say") {
  CHECK(complaint("\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N."s).empty());
  CHECK(complaint("\x80\x04\x95\x01\x00\x00\x00\x00\x00\x00\x00NN\x86."s).empty());
  CHECK_REFUSED("\x80\x04\x95\x09\x00\x00\x00\x00\x00\x00\x00N."s, "a frame reaches beyond the end");
  CHECK_REFUSED("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN."s, "a frame reaches beyond the end");
  CHECK_REFUSED("\x80\x04\x95\x03\x00\x00\x00\x00\x00\x00\x00N.."s, "stops inside a frame");
  CHECK_REFUSED("\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00M\x01\x02."s, "reaches beyond its frame");
  CHECK_REFUSED("\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x95\x01\x00\x00\x00\x00\x00\x00\x00N.N"s,
                "a frame inside");
}

TEST_CASE("a pickle gives its end, and the bytes after it are not read") {
  const std::string two = "K\x01.K\x02.garbage";
  const auto source = memory_source(two);
  const Pickle first = load_pickle(*source);
  CHECK(first.integer(first.root()) == 1);
  CHECK(first.end() == 3);
  const Pickle second = load_pickle(*source, first.end());
  CHECK(second.integer(second.root()) == 2);
  CHECK_THROWS_AS(load_pickle(*source, two.size() + 1), FormatError);
}

TEST_CASE("every truncation of a pickle is refused") {
  const std::string whole =
      "\x80\x04\x8c\x05hello("
      "K\x01M\x02\x02J\x03\x03\x03\x03\x8a\x03\x01\x02\x03G\x3f\xf8\x00\x00\x00\x00\x00\x00"
      "cm\nf\n)RI12\nS'q'\nt\x86."s;
  CHECK(complaint(whole).empty());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_REFUSED(whole.substr(0, length), "truncated");
  }
}

TEST_CASE("lengths are checked against the bytes that are there before anything is allocated") {
  CHECK_REFUSED("X\xff\xff\xff\xffhi."s, "truncated");
  CHECK_REFUSED("B\xff\xff\xff\xffhi."s, "truncated");
  CHECK_REFUSED("\x8d\xff\xff\xff\xff\x34\x00\x00\x00hi."s, "refused");  // 226 GB
  CHECK_REFUSED("\x8e\xff\xff\xff\xff\xff\xff\xff\xffhi."s, "refused");
  CHECK_REFUSED("\x96\xff\xff\xff\xff\xff\xff\xff\xffhi."s, "refused");
  CHECK_REFUSED("\x8b\xff\xff\xff\x7fhi."s, "truncated");
  CHECK_REFUSED("\x8b\xff\xff\xff\xffhi."s, "negative length");
  CHECK_REFUSED("T\xff\xff\xff\xffhi."s, "negative length");
}

TEST_CASE("malformed lines and numbers are refused") {
  for (const auto& bytes : {"I\n."s, "I1x\n."s, "I1__0\n."s, "I0x\n."s, "L\n."s, "LL\n."s, "F\n."s, "Fx\n."s,
                            "Np-1\n."s, "Np\n."s, "gx\n."s, "g99999999999999999999999\n."s}) {
    CAPTURE(bytes);
    CHECK_REFUSED(bytes, "malformed");
  }
  CHECK_REFUSED("I1"s + std::string(100'000, '2'), "truncated");
}

TEST_CASE("opcodes that data does not need are refused") {
  CHECK_REFUSED("\x82\x01."s, "extension registry");
  CHECK_REFUSED("\x83\x01\x00."s, "extension registry");
  CHECK_REFUSED("\x84\x01\x00\x00\x00."s, "extension registry");
  CHECK_REFUSED("\x97."s, "buffers outside");
  CHECK_REFUSED("N\x98."s, "buffers outside");
  CHECK_REFUSED("\x80\x06N."s, "protocol 6");
  CHECK_REFUSED("\x00."s, "unknown opcode 0x00");
  CHECK_REFUSED("\xff."s, "unknown opcode 0xff");
}

TEST_CASE("limits on size, steps and stack hold") {
  const std::string nones = std::string(1000, 'N') + std::string(999, '0') + ".";
  CHECK(complaint(nones).empty());
  CHECK(complaint(nones, {.max_opcodes = 1999}).find("more than 1999 steps") != std::string::npos);
  CHECK(complaint(nones, {.max_stack = 999}).find("more than 999") != std::string::npos);
  CHECK(complaint(nones, {.max_bytes = 1999}).find("refused: more than 1999 bytes") != std::string::npos);
}

TEST_CASE("what a pickle takes is bound to its size") {
  constexpr std::size_t kSize = 2'000'000;
  const auto many = [](const std::string& unit) {
    std::string bytes = "cfoo\nbar\nq\0("s;
    while (bytes.size() < kSize) bytes += unit;
    return bytes + "t.";
  };
  // Each byte or two would be a container.
  for (const std::string& unit : {"]"s, "}"s, "\x8f"s, "(l"s}) {
    CAPTURE(unit);
    CHECK_REFUSED(many(unit), "refused: its values need too much memory");
  }
  for (const std::string& unit : {"]"s, "(l"s, "h\0)R"s, "h\0)RNa"s, "P\n"s, "N\x85"s, "U\0"s, "F1\n"s}) {
    CAPTURE(unit);
    const std::string bytes = many(unit);
    CHECK(peak_growth([&] { complaint(bytes); }) < 10 * kSize + (std::size_t{48} << 20));
  }
  // Equal values are stored once.
  for (const std::string& unit : {"N"s, "\x88"s, "\x89"s, ")"s, "K\7"s}) {
    CAPTURE(unit);
    std::string bytes = "(";
    while (bytes.size() < kSize) bytes += unit;
    const Pickle pickle = load(bytes + "t.");
    CHECK(pickle.size() == 2);
    CHECK(pickle.items(pickle.root()).size() == (bytes.size() - 1) / unit.size());
  }
  // The size in the file counts for a packed pickle.
  const std::string lists = "(" + std::string(1'000'000, ']') + "t.";
  CHECK(complaint(lists, {.file_size = 1}).find("too much memory") != std::string::npos);
  CHECK(complaint(lists, {.file_size = 100'000'000}).empty());
}

TEST_CASE("names are kept up to a number that no data needs") {
  std::string bytes;
  for (int i = 0; i < 100'001; ++i) bytes += "cm\n" + std::to_string(i) + "\n0";
  CHECK_REFUSED(bytes + "N.", "refused: more than 100000 names");
}

TEST_CASE("deep nesting, cycles and shared values cost no more than their opcodes") {
  constexpr std::size_t kDeep = 200'000;
  const Pickle nested = load(std::string(kDeep, ']') + std::string(kDeep - 1, 'a') + ".");
  CHECK(nested.size() == kDeep);
  const Pickle tuples = load(")"s + std::string(kDeep, '\x85') + ".");
  CHECK(tuples.size() == kDeep + 1);

  const Pickle cycle = load("]q\x00h\x00\x61."s);
  CHECK(cycle.items(cycle.root())[0] == cycle.root());
  const Pickle state = load("cm\nC\n)\x81q\x00}X\x01\x00\x00\x00\x61h\x00sb."s);
  CHECK(*state.find(state.object(state.root()).state, "a") == state.root());

  // 2^100 leaves if values were copied.
  std::string laughs = "N";
  for (int i = 0; i < 100; ++i) laughs += "2\x86";
  CHECK(load(laughs + ".").size() == 101);
}

TEST_CASE("copying one list over and over runs into the step limit") {
  std::string bytes = "("s;
  for (int i = 0; i < 1000; ++i) bytes += 'N';
  bytes += "lq\x00\x30"s;
  bytes += "c__builtin__\nset\nq\x01\x30("s;
  for (int i = 0; i < 1000; ++i) bytes += "h\x01h\x00\x85R"s;
  bytes += "l.";
  CHECK(complaint(bytes).empty());
  CHECK(complaint(bytes, {.max_opcodes = 100'000}).find("refused: more than") != std::string::npos);
}

}  // namespace msprobe::formats::pickle_test

// SPDX-License-Identifier: Apache-2.0
#include "dump/entry.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/packet.hpp"
#include "unit/dump/entry_text.hpp"

namespace msprobe::dump_entry_test {

using namespace msprobe;

namespace {

std::string again(const std::string& json, int indent = 2) {
  const dump::Entry entry = dump::entry_of(json);
  std::string out;
  dump::append_json(out, entry, 0, 0, indent);
  return out;
}

}  // namespace

// The expected texts are those of json.dumps(json.loads(text), indent=2) of Python 3.11.
TEST_CASE("values are written as Python writes them") {
  CHECK(again("[ ]") == "[]");
  CHECK(again("{ }") == "{}");
  CHECK(again("[1,{\"a\":[],\"b\":{\"c\":null}},true,false]") ==
        "[\n  1,\n  {\n    \"a\": [],\n    \"b\": {\n      \"c\": null\n    }\n  },\n  true,\n  false\n]");
  CHECK(again("[1,{\"a\":[]}]", 0) == "[1, {\"a\": []}]");
  CHECK(again("NaN") == "NaN");
  CHECK(again("[Infinity,-Infinity,1e999]", 0) == "[Infinity, -Infinity, Infinity]");
  CHECK(again("[-0,-0.0,1e5,1E22,1e16,0.00001,1.10,100000000000000000000]", 0) ==
        "[0, -0.0, 100000.0, 1e+22, 1e+16, 1e-05, 1.1, 100000000000000000000]");
  CHECK(again("{\"a\":1,\"b\":2,\"a\":3}", 0) == "{\"a\": 3, \"b\": 2}");
}

TEST_CASE("text is written in ASCII") {
  CHECK(again(R"("\"\\\/\b\f\n\r\t\u001f\u007f~")") == R"("\"\\/\b\f\n\r\t\u001f\u007f~")");
  CHECK(again("\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"") == R"("\u00e9\u20ac\ud83d\ude00")");
  CHECK(again(R"("\ud83d\ude00")") == R"("\ud83d\ude00")");
  // Surrogates without a partner, as Python keeps them of file names that are not UTF-8.
  CHECK(again(R"("\udcff \ud83dx \ude00\ud83d")") == R"("\udcff \ud83dx \ude00\ud83d")");
  std::string out;
  append_json_string(out, "\xFF");
  CHECK(out == R"("\udcff")");
}

TEST_CASE("a packet that is cut or changed holds no tree, or another whole one") {
  const dump::Entry entry = dump::entry_of(R"({"a": {"b": [1, "text"]}, "c": null, "a": [true, {}]})");
  PacketWriter writer;
  entry.pack(writer);
  const std::string bytes = writer.take();
  std::size_t refused = 0;
  const auto read = [&](const std::string& packet) {
    dump::Entry out;
    PacketReader reader(packet);
    try {
      out.unpack(reader);
    } catch (const FormatError&) {
      ++refused;
      return std::string();
    }
    std::string text;
    if (out.memory() > 0) dump::append_json(text, out, 0, 0, 0);
    return text;
  };
  CHECK(read(bytes) == R"({"a": [true, {}], "c": null})");
  for (std::size_t size = 0; size < bytes.size(); ++size) read(bytes.substr(0, size));
  CHECK(refused == bytes.size());
  // A count, a place, the end of a node, a kind: all bytes in turn.
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int byte : {0, 1, 2, 5, 100, 127, 128, 255}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(byte);
      read(changed);
    }
  }
  CHECK(refused > 2 * bytes.size());
}

}  // namespace msprobe::dump_entry_test

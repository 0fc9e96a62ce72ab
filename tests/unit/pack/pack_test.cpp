// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "pack/environment.hpp"
#include "pack/pack_reader.hpp"
#include "pack/pack_writer.hpp"
#include "pack/packages.hpp"
#include "support/error.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::pack::pack_test {
namespace {

using archive::Piece;

std::string refused(const std::vector<Piece>& parts, const PackLimits& limits = {}) {
  return test::message_of([&] { Pack(memory_source(archive::build_zip(parts), "p.zip"), limits).verify(); });
}

}  // namespace

TEST_CASE("a pack is read back as it was written") {
  const test::ScratchDirectory scratch;
  const std::string path = scratch / "p.zip";
  const std::string text(50'000, 'x');
  {
    PackWriter writer(path);
    PackValue map = PackValue::map();
    map.push("A", PackValue::of_text("é"));
    writer.add_json("env", map);
    writer.add("pip", text);
    CHECK_FALSE(std::filesystem::exists(path));  // not there before it is whole
    writer.commit();
  }
  CHECK(scratch.names() == std::vector<std::string>{"p.zip"});
  const Pack pack(open_file(path));
  pack.verify();
  CHECK(pack.warnings().empty());
  REQUIRE(pack.members(Section::env).size() == 1);
  CHECK(pack.read(pack.members(Section::env).front()) == "{\n    \"A\": \"\\u00e9\"\n}");
  CHECK(pack.read(pack.members(Section::pip).front()) == text);
  CHECK(test::read_file(path).size() < 1000);  // compressed
}

TEST_CASE("a pack that is not finished leaves nothing") {
  const test::ScratchDirectory scratch;
  {
    PackWriter writer(scratch / "p.zip");
    writer.add("pip", "a=1\n");
  }
  CHECK(scratch.names().empty());
}

TEST_CASE("members are sorted by the numbers in their names") {
  std::vector<Piece> parts;
  for (const char* name : {"weights/step10/rank0/weight.json", "weights/step9/rank10/weight.json",
                           "weights/step9/rank9/weight.json", "weights/step9/rank9/deep/er.json",
                           "dataset/step0/rank0/dataset.json", "dataset/step0/rank0/other.json",
                           "dataset/stepX/rank0/dataset.json", "random/rank7.json", "random/notes.json",
                           "hyperparameters/x.json", "README"})
    parts.push_back({.name = name, .payload = "{}"});
  const Pack pack(memory_source(archive::build_zip(parts), "p.zip"));
  std::vector<std::string> names;
  for (const PackMember& member : pack.members(Section::weights)) names.push_back(member.name);
  CHECK(names ==
        std::vector<std::string>{"weights/step9/rank9/deep/er.json", "weights/step9/rank9/weight.json",
                                 "weights/step9/rank10/weight.json", "weights/step10/rank0/weight.json"});
  CHECK(pack.members(Section::dataset).size() == 1);
  CHECK(pack.members(Section::random).front().rank == 7);
  REQUIRE(pack.warnings().size() == 1);
  CHECK(pack.warnings().front() == "p.zip: ignored 5 members that do not belong in a pack");
}

TEST_CASE("names that lead out of a folder make the whole pack suspect") {
  for (const char* name :
       {"/env", "../env", "a/../../env", "a/..", "..", "\\\\host\\env", "a\\..\\..\\env", "C:env"}) {
    CAPTURE(name);
    CHECK(refused({{.name = name, .payload = "{}"}}).starts_with("p.zip: refused: member "));
  }
  CHECK(refused({{.name = "other", .payload = "env", .attributes = 0120777u << 16}}) ==
        "p.zip: refused: member other: it is a symbolic link");
  for (const char* name : {"env", "a..b/c", "...", "weights/.hidden", "a\\b"}) {
    CAPTURE(name);
    CHECK(refused({{.name = name, .payload = "{}"}}) == "accepted");
  }
}

TEST_CASE("the last of several members of one name counts") {
  const Pack pack(memory_source(archive::build_zip({{.name = "pip", .payload = "a=1"},
                                                    {.name = "env", .payload = "{}"},
                                                    {.name = "pip", .payload = "a=2"}}),
                                "p.zip"));
  REQUIRE(pack.members(Section::pip).size() == 1);
  CHECK(pack.read(pack.members(Section::pip).front()) == "a=2");
  REQUIRE(pack.warnings().size() == 1);
  CHECK(pack.warnings().front() == "p.zip: duplicate member pip; the last one is used");
}

TEST_CASE("what a pack unpacks to has limits") {
  const std::vector<Piece> parts = {{.name = "env", .payload = std::string(1000, ' ')},
                                    {.name = "pip", .payload = std::string(1000, ' ')}};
  CHECK(refused(parts, {.max_member = 999}) ==
        "p.zip: refused: member env unpacks to 1.0 kB; the limit is 999 B");
  CHECK(refused(parts, {.max_total = 1999}) == "p.zip: refused: it unpacks to more than 2.0 kB");
  CHECK(refused(parts, {.max_members = 1}).find("too many entries") != std::string::npos);
  CHECK(refused(parts, {.max_members = 2, .max_member = 1000, .max_total = 2000}) == "accepted");
}

TEST_CASE("a member whose checksum is wrong is damaged, stored or not") {
  std::string zip = archive::build_zip({{.name = "env", .payload = "{\"A\": \"1\"}"}});
  const std::size_t at = zip.find("\"1\"");
  REQUIRE(at != std::string::npos);
  zip[at + 1] = '2';
  const Pack pack(memory_source(zip, "p.zip"));
  CHECK_THROWS_WITH_AS(pack.verify(), "p.zip: zip entry env: wrong checksum", FormatError);
}

TEST_CASE("secrets and passwords never reach a pack") {
  const char* const variables[] = {"A_TOKEN=1",
                                   "my_password=2",
                                   "PATH=/bin",
                                   "=odd",
                                   "none",
                                   "PROXY=http://u:p@h/",
                                   "URL=http://h/a:b@c",
                                   "EMPTY=",
                                   "TWO=a://u:p@h b://x:y@z",
                                   nullptr};
  const EnvironmentOptions options{{"TOKEN", "PASSWORD"}, {}};
  CHECK(python_repr(environment(variables, options)) ==
        "{'A_TOKEN': '******', 'my_password': '******', 'PATH': '/bin', 'PROXY': 'http://u:******@h/', "
        "'URL': 'http://h/a:b@c', 'EMPTY': '', 'TWO': 'a://u:******@h b://x:******@z'}");
}

TEST_CASE("names of packages are normalised as PyPI does") {
  CHECK(normalized_name("Torch_NPU") == "torch-npu");
  CHECK(normalized_name("a.-_b") == "a-b");
  CHECK(normalized_name("-a-") == "-a-");
}

}  // namespace msprobe::pack::pack_test

// SPDX-License-Identifier: Apache-2.0
#include "archive/zip_writer.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "archive/zip_reader.hpp"
#include "support/byte_source.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::archive {
namespace {

std::string text_of(const ByteSource& source) {
  const std::vector<std::byte> bytes = read_all(source, 1 << 20);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint32_t crc_of(const std::string& text) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

}  // namespace

TEST_CASE("what is written to a zip archive is read back, in both styles") {
  const test::ScratchDirectory scratch;
  const std::string long_text(100'000, 'x');
  for (const ZipStyle style : {ZipStyle::plain, ZipStyle::torch}) {
    const std::string path = scratch / "a.zip";
    OutputFile file(path);
    ZipWriter zip(file, style);
    zip.add("first", "one");
    zip.add("empty", "");
    zip.begin("in/pieces", long_text.size());
    for (std::size_t i = 0; i < long_text.size(); i += 999)
      zip.write(std::string_view(long_text).substr(i, 999));
    zip.end();
    zip.add("é", "name that is not ASCII");
    zip.finish();
    file.commit();

    const ZipReader reader(open_file(path));
    REQUIRE(reader.entries().size() == 4);
    const std::string names[] = {"first", "empty", "in/pieces", "é"};
    const std::string texts[] = {"one", "", long_text, "name that is not ASCII"};
    for (std::size_t i = 0; i < 4; ++i) {
      const ZipEntry& entry = reader.entries()[i];
      CHECK(entry.name == names[i]);
      CHECK(entry.method == ZipMethod::stored);
      CHECK(entry.crc32 == crc_of(texts[i]));
      CHECK(text_of(*reader.open(entry)) == texts[i]);
      if (style == ZipStyle::torch) CHECK(reader.payload_offset(entry) % 64 == 0);
    }
  }
}

TEST_CASE("an entry that does not get the bytes it was begun with is a mistake of the program") {
  const test::ScratchDirectory scratch;
  OutputFile file(scratch / "a.zip");
  ZipWriter zip(file, ZipStyle::plain);
  zip.begin("four", 4);
  zip.write("ab");
  CHECK_THROWS_AS(zip.end(), std::logic_error);
  CHECK_THROWS_AS(zip.finish(), std::logic_error);
  CHECK_THROWS_AS(zip.begin("next", 1), std::logic_error);
  CHECK_THROWS_AS(zip.write("cde"), std::logic_error);
  zip.write("cd");
  zip.end();
  zip.finish();
}

}  // namespace msprobe::archive

// SPDX-License-Identifier: Apache-2.0
#include "archive/zip_writer.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "archive/zip_reader.hpp"
#include "support/byte_source.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/report/workbook_reader.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::archive::zip_writer_test {
namespace {

std::string text_of(const ByteSource& source) {
  return read_all(source, 1 << 20);
}

std::uint32_t crc_of(const std::string& text) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

template <class Fill>
std::string workbook(Fill fill) {
  const test::ScratchDirectory scratch;
  OutputFile file(scratch / "a.zip");
  ZipWriter zip(file, ZipStyle::workbook);
  fill(zip);
  zip.finish();
  file.commit();
  return test::read_file(scratch / "a.zip");
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
  CHECK_THROWS_AS(zip.append(DeflatedBlock{}), std::logic_error);
  zip.end();
  CHECK_THROWS_AS(zip.begin_blocks("blocks"), std::logic_error);
  zip.finish();
}

TEST_CASE("blocks of an entry join to what went in") {
  std::string all;
  const auto entries = test::unzip(workbook([&](ZipWriter& zip) {
    zip.begin_blocks("empty");
    zip.end();
    zip.begin_blocks("blocks");
    DeflatedBlock block;
    for (const std::size_t size : {0U, 1U, 100'000U, 3U, 70'000U}) {
      std::string raw(size, '\0');
      for (std::size_t i = 0; i < size; ++i) raw[i] = static_cast<char>((i * i >> 7) ^ size);
      deflate_block(raw, block);
      zip.append(block);
      all += raw;
    }
    zip.end();
    zip.begin_blocks("text");
    deflate_block("text", block);
    zip.append(block);
    zip.end();
  }));
  CHECK(entries.size() == 3);
  CHECK(entries.at("empty").empty());
  CHECK(entries.at("blocks") == all);
  CHECK(entries.at("text") == "text");
  CHECK(test::unzip(workbook([](ZipWriter&) {})).empty());
}

TEST_CASE("an entry of more than four gigabytes gets Zip64 sizes in both headers") {
  constexpr std::uint64_t kSize = 5'000'000'000;
  const std::string bytes = workbook([&](ZipWriter& zip) {
    zip.begin_blocks("huge");
    DeflatedBlock block;
    deflate_block("x", block);
    block.raw_size = kSize;  // only the bookkeeping is looked at here
    zip.append(block);
    zip.end();
  });
  CHECK(test::number_at(bytes, 4, 2) == 45);
  CHECK(test::number_at(bytes, 18, 4) == 0xFFFFFFFF);
  CHECK(test::number_at(bytes, 22, 4) == 0xFFFFFFFF);
  CHECK(test::number_at(bytes, 30 + 4, 2) == 1);
  CHECK(test::number_at(bytes, 30 + 4 + 2, 2) == 16);
  CHECK(test::number_at(bytes, 30 + 4 + 4, 8) == kSize);
  const std::uint64_t packed = test::number_at(bytes, 30 + 4 + 12, 8);
  const std::size_t directory = 30 + 4 + 20 + packed;
  CHECK(test::number_at(bytes, directory, 4) == 0x02014B50);
  CHECK(test::number_at(bytes, directory + 20, 4) == 0xFFFFFFFF);
  CHECK(test::number_at(bytes, directory + 24, 4) == 0xFFFFFFFF);
  CHECK(test::number_at(bytes, directory + 30, 2) == 20);
  CHECK(test::number_at(bytes, directory + 46 + 4, 2) == 1);
  CHECK(test::number_at(bytes, directory + 46 + 4 + 4, 8) == kSize);
  CHECK(test::number_at(bytes, directory + 46 + 4 + 12, 8) == packed);
}

}  // namespace msprobe::archive::zip_writer_test

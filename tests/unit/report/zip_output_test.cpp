// SPDX-License-Identifier: Apache-2.0
#include "report/zip_output.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "support/output_file.hpp"
#include "unit/report/workbook_reader.hpp"
#include "unit/support/scratch_directory.hpp"

using namespace msprobe;
using namespace msprobe::report;
using test::number_at;

namespace {

template <class Fill>
std::string archive(Fill fill) {
  const test::ScratchDirectory scratch;
  OutputFile file(scratch / "a.zip");
  ZipOutput zip(file);
  fill(zip);
  zip.finish();
  file.commit();
  return test::read_file(scratch / "a.zip");
}

}  // namespace

TEST_CASE("blocks of an entry join to what went in") {
  std::string all;
  const auto entries = test::unzip(archive([&](ZipOutput& zip) {
    zip.add("empty", "");
    zip.begin_entry("blocks");
    DeflatedBlock block;
    for (const std::size_t size : {0U, 1U, 100'000U, 3U, 70'000U}) {
      std::string raw(size, '\0');
      for (std::size_t i = 0; i < size; ++i) raw[i] = static_cast<char>((i * i >> 7) ^ size);
      deflate_block(raw, block);
      zip.append(block);
      all += raw;
    }
    zip.end_entry();
    zip.add("text", "text");
  }));
  CHECK(entries.size() == 3);
  CHECK(entries.at("empty").empty());
  CHECK(entries.at("blocks") == all);
  CHECK(entries.at("text") == "text");
  CHECK(test::unzip(archive([](ZipOutput&) {})).empty());
}

TEST_CASE("an entry of more than four gigabytes gets Zip64 sizes in both headers") {
  constexpr std::uint64_t kSize = 5'000'000'000;
  const std::string bytes = archive([&](ZipOutput& zip) {
    zip.begin_entry("huge");
    DeflatedBlock block;
    deflate_block("x", block);
    block.raw_size = kSize;  // only the bookkeeping is looked at here
    zip.append(block);
    zip.end_entry();
  });
  CHECK(number_at(bytes, 4, 2) == 45);
  CHECK(number_at(bytes, 18, 4) == 0xFFFFFFFF);
  CHECK(number_at(bytes, 22, 4) == 0xFFFFFFFF);
  CHECK(number_at(bytes, 30 + 4, 2) == 1);
  CHECK(number_at(bytes, 30 + 4 + 2, 2) == 16);
  CHECK(number_at(bytes, 30 + 4 + 4, 8) == kSize);
  const std::uint64_t packed = number_at(bytes, 30 + 4 + 12, 8);
  const std::size_t directory = 30 + 4 + 20 + packed;
  CHECK(number_at(bytes, directory, 4) == 0x02014B50);
  CHECK(number_at(bytes, directory + 20, 4) == 0xFFFFFFFF);
  CHECK(number_at(bytes, directory + 24, 4) == 0xFFFFFFFF);
  CHECK(number_at(bytes, directory + 30, 2) == 20);
  CHECK(number_at(bytes, directory + 46 + 4, 2) == 1);
  CHECK(number_at(bytes, directory + 46 + 4 + 4, 8) == kSize);
  CHECK(number_at(bytes, directory + 46 + 4 + 12, 8) == packed);
}

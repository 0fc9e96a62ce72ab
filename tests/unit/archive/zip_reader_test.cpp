// SPDX-License-Identifier: Apache-2.0
#include "archive/zip_reader.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::archive::zip_reader_test {
namespace {

std::string content(const ZipReader& zip, std::string_view name) {
  const ZipEntry* entry = zip.find(name);
  REQUIRE(entry != nullptr);
  return read_all(*zip.open(*entry), 1'000'000);
}

// The message from reading every entry of an archive; empty if all can be read. Nothing but FormatError may
// come out.
std::string complaint(const std::string& bytes) {
  return test::complaint_about("some.zip", [&] {
    const ZipReader zip(memory_source(bytes, "some.zip"));
    for (const ZipEntry& entry : zip.entries()) read_all(*zip.open(entry), ZipReader::kInflateLimit);
  });
}

}  // namespace

TEST_CASE("stored and deflated entries give their bytes, in directory order") {
  const std::string text(5000, 'x');
  const std::string bytes = build_zip({
      {.name = "a/one", .payload = "hello"},
      {.name = "a/two", .payload = deflated(text), .method = 8, .size = text.size(), .crc = crc_of(text)},
      {.name = "a/empty"},
      {.name = "a/nothing", .payload = deflated(""), .method = 8, .size = 0, .crc = 0},
  });
  const ZipReader zip(memory_source(bytes));
  REQUIRE(zip.entries().size() == 4);
  CHECK(zip.entries()[0].name == "a/one");
  CHECK(zip.entries()[1].size == 5000);
  CHECK(zip.entries()[1].compressed_size < 100);
  CHECK(content(zip, "a/one") == "hello");
  CHECK(content(zip, "a/two") == text);
  CHECK(content(zip, "a/empty").empty());
  CHECK(content(zip, "a/nothing").empty());
  CHECK(zip.find("a/none") == nullptr);
  CHECK(zip.find("") == nullptr);
}

TEST_CASE("a stored entry is a part of the file, found through its own local header") {
  const std::string padding = Bytes().u16(0x4246).u16(7).text("ZZZZZZZ").str();
  const std::string bytes = build_zip({{.name = "n", .payload = "hello", .local_extra = padding}});
  const ZipReader zip(memory_source(bytes));
  CHECK(zip.payload_offset(zip.entries()[0]) == 30 + 1 + 11);
  CHECK(content(zip, "n") == "hello");
}

TEST_CASE("what PyTorch writes: sizes only in the directory, zip64 end records") {
  const std::string bytes = build_zip(
      {{.name = "a/data.pkl", .payload = "hello", .flags = 0x0808}, {.name = "a/v", .payload = "3\n"}},
      {.zip64 = true});
  const ZipReader zip(memory_source(bytes));
  CHECK(content(zip, "a/data.pkl") == "hello");
  CHECK(content(zip, "a/v") == "3\n");
}

TEST_CASE("64-bit sizes and offsets come from the extra field") {
  const std::string other = Bytes().u16(0x9999).u16(2).text("xx").str();
  const std::string wide = Bytes().u16(1).u16(24).u64(5).u64(5).u64(0).str();
  Piece piece{.name = "n", .payload = "hello", .flags = 8, .size = 0xffffffff, .compressed_size = 0xffffffff};
  piece.header_offset = 0xffffffff;
  piece.central_extra = other + wide;
  const std::string bytes = build_zip({piece});
  const ZipReader zip(memory_source(bytes));
  CHECK(content(zip, "n") == "hello");
  piece.central_extra = Bytes().u16(1).u16(16).u64(5).u64(5).str();
  CHECK_REFUSED(build_zip({piece}), "64-bit sizes are missing");
  piece.central_extra = Bytes().u16(1).u16(60).u64(5).u64(5).str();
  CHECK_REFUSED(build_zip({piece}), "64-bit sizes are missing");
}

TEST_CASE("an archive with a comment is read, one with a second end record in it is not") {
  const std::string fake = Bytes().u32(0x06054b50).u64(0).u64(0).u16(0).str();
  CHECK(complaint(build_zip({{.name = "n", .payload = "x"}}, {.comment = std::string(60'000, 'c')})).empty());
  CHECK(complaint(build_zip({{.name = "n", .payload = "x"}}, {.comment = fake + "."})).empty());
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x"}}, {.comment = fake}), "directory is not where");
}

TEST_CASE("a truncated archive is refused, wherever it is cut") {
  const std::string bytes =
      build_zip({{.name = "a/one", .payload = "hello"}, {.name = "a/two", .payload = "w"}}, {.zip64 = true});
  CHECK(complaint(bytes).empty());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(complaint(bytes.substr(0, length)).empty());
  }
}

TEST_CASE("no single damaged byte leads anywhere but to a message or to bytes of the file") {
  const std::string text = "wwwwww";
  const std::string bytes = build_zip(
      {{.name = "a", .payload = "hello"},
       {.name = "b", .payload = deflated(text), .method = 8, .size = text.size(), .crc = crc_of(text)}},
      {.zip64 = true});
  std::size_t refused = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const char value : {'\x00', '\x01', '\x7f', '\xff'}) {
      CAPTURE(i);
      CAPTURE(value);
      std::string damaged = bytes;
      damaged[i] = value;
      std::vector<std::string> contents;
      const std::string message = test::complaint_about("some.zip", [&] {
        const ZipReader zip(memory_source(damaged, "some.zip"));
        for (const ZipEntry& entry : zip.entries()) {
          contents.push_back(read_all(*zip.open(entry), ZipReader::kInflateLimit));
        }
      });
      if (!message.empty()) {
        CHECK(damaged != bytes);
        ++refused;
        continue;
      }
      // A stored entry is not checksummed and may hold the damage; a compressed one is checksummed.
      REQUIRE(contents.size() == 2);
      CHECK(contents[0].size() == 5);
      CHECK(damaged.find(contents[0]) != std::string::npos);
      CHECK(contents[1] == text);
    }
  }
  CHECK(refused > bytes.size());
}

TEST_CASE("entries must not overlap") {
  const Piece one{.name = "one", .payload = "hello"};
  CHECK_REFUSED(build_zip({one, {.name = "two", .payload = "x", .header_offset = 0}}), "overlaps");
  CHECK_REFUSED(build_zip({one, {.name = "two", .payload = "x", .header_offset = 10}}), "overlaps");
  // Bounds that only the local header reveals: its extra field reaches into the next entry.
  std::string bytes = build_zip({one, {.name = "two", .payload = "world"}});
  bytes[28] = 20;
  CHECK_REFUSED(bytes, "overlaps");
  // The last entry and the directory.
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .size = 40, .compressed_size = 40}}),
                "reaches beyond");
}

TEST_CASE("an entry outside the file is refused") {
  const std::uint64_t far = 0x70000000;
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .header_offset = far}}), "reaches beyond");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .size = far, .compressed_size = far}}),
                "reaches beyond");
  Piece huge{.name = "n", .payload = "x", .size = 0xffffffff, .compressed_size = 0xffffffff};
  huge.central_extra = Bytes().u16(1).u16(16).u64(~0ULL).u64(~0ULL).str();
  CHECK_REFUSED(build_zip({huge}), "reaches beyond");
  Piece away{.name = "n", .payload = "x", .header_offset = 0xffffffff};
  away.central_extra = Bytes().u16(1).u16(8).u64(~0ULL - 8).str();
  CHECK_REFUSED(build_zip({away}), "reaches beyond");
}

TEST_CASE("the directory must be where the end record says, and as large") {
  const Piece piece{.name = "n", .payload = "x"};
  for (const bool zip64 : {false, true}) {
    CAPTURE(zip64);
    CHECK_REFUSED(build_zip({piece}, {.directory_size = 46, .zip64 = zip64}), "directory is not where");
    CHECK_REFUSED(build_zip({piece}, {.directory_size = 48, .zip64 = zip64}), "directory is not where");
    CHECK_REFUSED(build_zip({piece}, {.directory_offset = 0x40000000, .zip64 = zip64}),
                  "directory is not where");
    CHECK_REFUSED(build_zip({piece}, {.count = 0, .zip64 = zip64}), "larger than its entries");
    CHECK_REFUSED(build_zip({piece}, {.count = 2, .zip64 = zip64}), "more entries");
  }
  CHECK_REFUSED(build_zip({piece}, {.count = 1ULL << 60, .zip64 = true}), "too many entries");
  CHECK_REFUSED(build_zip({piece}, {.directory_size = ~0ULL, .zip64 = true}), "directory is not where");
  CHECK_REFUSED(build_zip({piece}, {.directory_offset = ~0ULL, .zip64 = true}), "directory is not where");
}

TEST_CASE("the two end records must agree") {
  std::string bytes = build_zip({{.name = "n", .payload = "x"}}, {.zip64 = true});
  const std::size_t end = bytes.size() - 22;
  std::string other_count = bytes;
  other_count[end + 8] = other_count[end + 10] = 7;
  other_count[end + 9] = other_count[end + 11] = 0;
  CHECK_REFUSED(other_count, "disagree");
  std::string moved = bytes;
  moved[end - 20 + 8] = 1;
  CHECK_REFUSED(moved, "misplaced");
}

TEST_CASE("split, encrypted and exotic archives are refused") {
  const Piece piece{.name = "n", .payload = "x"};
  CHECK_REFUSED(build_zip({piece}, {.disk = 1}), "several parts");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .disk = 3}}), "several parts");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .flags = 1}}), "encrypted");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .flags = 0x40}}), "encrypted");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .flags = 0x2000}}), "encrypted");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .flags = 0x20}}), "patch");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .method = 12}}), "compression method 12");
}

TEST_CASE("a local header that tells another story is refused") {
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .local_name = "m"}}), "disagree");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .local_method = 8}}), "disagree");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .local_size = 2}}), "disagree about its size");
  std::string bytes = build_zip({{.name = "n", .payload = "x"}});
  std::string flagged = bytes;
  flagged[6] = 1;
  CHECK_REFUSED(flagged, "by its local header");
  std::string unsigned_header = bytes;
  unsigned_header[0] = 'Q';
  CHECK_REFUSED(unsigned_header, "no local header");
}

TEST_CASE("names: duplicates and zero bytes are refused, paths are only keys") {
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x"}, {.name = "n", .payload = "y"}}), "two entries");
  CHECK_REFUSED(build_zip({{.name = std::string("a\0b", 3), .payload = "x"}}), "zero byte");
  CHECK(complaint(build_zip({{.name = "../../etc/passwd", .payload = "x"}})).empty());
}

TEST_CASE("bytes before the first entry or behind the end are refused") {
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x"}}, {.prefix = "#!/bin/sh\n"}),
                "before the first entry");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x"}}) + "tail", "no end record");
}

TEST_CASE("compressed data is bounded by its declared size, the limit and the best possible ratio") {
  const std::string zeros(3'000'000, '\0');
  const std::string packed = deflated(zeros);
  Piece bomb{.name = "n", .payload = packed, .method = 8, .size = zeros.size(), .crc = crc_of(zeros)};
  const ZipReader zip(memory_source(build_zip({bomb})));
  CHECK(zip.open(zip.entries()[0])->size() == zeros.size());
  CHECK_THROWS_WITH_AS(zip.open(zip.entries()[0], 1'000'000),
                       "memory: zip entry n: refused: 3000000 bytes unpacked, at most 1000000 are accepted",
                       FormatError);
  bomb.size = zeros.size() - 1;
  CHECK_REFUSED(build_zip({bomb}), "compressed data is damaged");
  bomb.size = zeros.size() + 1;
  CHECK_REFUSED(build_zip({bomb}), "compressed data is damaged");
  bomb.size = 0xf0000000;
  CHECK_REFUSED(build_zip({bomb}), "cannot unpack to");
  bomb.size = zeros.size();
  bomb.crc = 1;
  CHECK_REFUSED(build_zip({bomb}), "checksum");
  bomb.payload = packed + "more";
  bomb.crc = crc_of(zeros);
  CHECK_REFUSED(build_zip({bomb}), "compressed data is damaged");
  bomb.payload = packed.substr(0, packed.size() / 2);
  bomb.size = 1'000'000;
  CHECK_REFUSED(build_zip({bomb}), "compressed data is damaged");
  CHECK_REFUSED(build_zip({{.name = "n", .payload = "x", .size = 2}}), "sizes differ");
}

TEST_CASE("the caller's limits hold") {
  std::vector<Piece> many;
  for (int i = 0; i < 20; ++i) many.push_back({.name = std::to_string(i)});
  const std::string bytes = build_zip(many);
  CHECK(ZipReader(memory_source(bytes)).entries().size() == 20);
  CHECK_THROWS_WITH_AS(ZipReader(memory_source(bytes), ZipLimits{.max_entries = 19}),
                       "memory: too many entries: 20", FormatError);
  CHECK_THROWS_AS(ZipReader(memory_source(bytes), ZipLimits{.max_directory = 100}), FormatError);
}

}  // namespace msprobe::archive::zip_reader_test

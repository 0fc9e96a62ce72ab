// SPDX-License-Identifier: Apache-2.0
#include "inspect/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/foreign_files.hpp"
#include "formats/limits.hpp"
#include "formats/npy.hpp"
#include "inspect/configuration.hpp"
#include "inspect/pictures.hpp"
#include "inspect/plain_files.hpp"
#include "inspect/plain_text.hpp"
#include "inspect/second_archives.hpp"
#include "inspect/text_blocks.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

using formats::Container;
using Source = std::shared_ptr<const ByteSource>;

// A checkpoint packed by hand has archives two levels deep, an exported program three.
constexpr int kMostDepth = 8;
// The limit for one file; dangerous contents may be twice as many.
constexpr std::size_t kMostContents = 1000;
constexpr std::size_t kMostProblems = 1000;

bool starts_with(const ByteSource& bytes, std::string_view start) {
  return first_bytes(bytes, start.size()) == start;
}

/// Is the member a storage of torch.save or torch.package? It holds the elements of a tensor, which may begin
/// with any bytes.
bool is_storage(std::string_view name) {
  return name.find("/data/") != std::string_view::npos || name.ends_with(".storage");
}

/// The folder of all members of an archive of torch.save(); empty for other archives.
std::string torch_root(const archive::ZipReader& zip) {
  if (zip.entries().empty()) return {};
  const std::string& first = zip.entries().front().name;
  std::string root = first.substr(0, std::min(first.find('/'), first.size())) + '/';
  return zip.find(root + "data.pkl") != nullptr ? root : std::string();
}

// Notes, numbers and words, that torch.save() writes beside the pickle.
constexpr std::array<std::string_view, 5> kNotes = {"version", "byteorder", ".data/serialization_id",
                                                    ".format_version", ".storage_alignment"};

bool is_of_torch(std::string_view name, std::string_view root) {
  if (root.empty() || !name.starts_with(root)) return false;
  name.remove_prefix(root.size());
  if (name == "data.pkl" || std::ranges::find(kNotes, name) != kNotes.end()) return true;
  constexpr std::string_view kData = "data/";
  return name.starts_with(kData) &&
         name.find_first_not_of("0123456789", kData.size()) == std::string_view::npos;
}

/// Is the member such a note, and does it look like one?
bool is_small_text(const ByteSource& member, std::string_view name) {
  const bool note = std::ranges::any_of(kNotes, [&](std::string_view each) { return name.ends_with(each); });
  constexpr std::uint64_t kLongest = 64;
  return note && member.size() <= kLongest && is_text(member);
}

/// Did torch.export.save() write the member, in either generation of the format?
bool is_exported_program(const ByteSource& member, std::string_view name) {
  return name == "serialized_exported_program.json" ||
         (name.ends_with("archive_format") && starts_with(member, "pt2"));
}

/// joblib unpacks these two formats without being asked. The first two bytes of zlib are a method, a window
/// of 32 KiB and a checksum (RFC 1950); the first bytes of lzma are its usual settings (the .lzma format).
bool is_packed_without_magic(const ByteSource& bytes) {
  const std::string start = first_bytes(bytes, 3);
  if (start.size() < 3) return false;
  const unsigned zlib = static_cast<unsigned char>(start[0]) * 256U + static_cast<unsigned char>(start[1]);
  return (start[0] == 'x' && zlib % 31 == 0) || start == std::string_view("\x5d\0\0", 3);
}

}  // namespace

ContentScanner::ContentScanner(Source source, PathFacts& facts, PickleFinder& pickles, bool rates)
    : source_(std::move(source)),
      facts_(facts),
      file_(*facts.file),
      pickles_(pickles),
      rates_(rates),
      may_unpack_(formats::MemoryAllowance::unpacked(source_->size())) {}

void ContentScanner::problem(const std::string& where, const std::string& message) {
  if (++problem_count_ == kMostProblems) facts_.problems.emplace_back("more problems, not listed");
  if (problem_count_ >= kMostProblems) return;
  facts_.problems.push_back((where.empty() ? "" : display(where) + ": ") +
                            without_path(message, source_->name()));
}

void ContentScanner::look_for_archives(const Source& bytes, const std::string& where, int depth) {
  if (is_tar(*bytes)) problem(where, "it is also a tar archive, whose members are not inspected");
  const Source zip = appended_zip(bytes);
  if (zip == nullptr) return;
  problem(where, "it is also a zip archive");
  scan_nested(zip, where, depth + 1);
}

void ContentScanner::scan_members(Container container) {
  scan_archive(archive::ZipReader(source_), "", 0, container);
}

void ContentScanner::scan_series(const std::vector<Source>& archives) {
  std::size_t number = 0;
  for (const Source& zip : archives) scan_nested(zip, fmt::format("archive {}", ++number), 0);
}

void ContentScanner::scan_nested(const Source& zip, const std::string& where, int depth) {
  if (depth > kMostDepth)
    return problem(where, fmt::format("archives are nested more than {} deep", kMostDepth));
  try {
    scan_archive(archive::ZipReader(zip), where.empty() ? "" : where + "!/", depth, Container::other_zip);
  } catch (const FormatError& error) {
    problem(where, error.what());
  }
}

void ContentScanner::scan_archive(const archive::ZipReader& zip, const std::string& prefix, int depth,
                                  Container container) {
  std::string code;
  std::size_t code_count = 0;
  const std::string root = torch_root(zip);
  for (const archive::ZipEntry& entry : zip.entries()) {
    check_interrupt();
    const std::string where = prefix + entry.name;
    const bool array = container == Container::npz && entry.name.ends_with(".npy");
    if (array && !rates_) continue;  // the reader of npz reads it
    if (rates_ && !array && !is_of_torch(entry.name, root))
      note({"a member that belongs to no format", where, Rating::unknown});
    try {
      const Source member = array ? zip.open(entry) : open_member(zip, entry);
      scan_member(member, entry.name, where, depth);
      if (is_exported_program(*member, entry.name))
        problem(where, "an exported program (torch.export), whose expressions are not inspected");
      if (!is_storage(entry.name) && !code_kind(*member, entry.name).empty() && code_count++ == 0)
        code = where;
    } catch (const FormatError& error) {
      problem(prefix.empty() ? "" : where, error.what());
    }
  }
  if (rates_) {
    const std::string surplus = zip.surplus();
    if (!surplus.empty()) note({"a zip archive with " + surplus, prefix, Rating::unknown});
  }
  // Python runs such code on import. For TorchScript the caller has reported its code already.
  if (code_count == 0 || container == Container::torchscript) return;
  problem(code, fmt::format("code, which is not inspected{}",
                            code_count == 1 ? "" : fmt::format(" (and {} more)", code_count - 1)));
}

Source ContentScanner::open_member(const archive::ZipReader& zip, const archive::ZipEntry& entry) {
  if (entry.method == archive::ZipMethod::stored) return zip.open(entry);
  Source member = zip.open(entry, may_unpack_);
  may_unpack_ -= entry.size;
  return member;
}

void ContentScanner::scan_member(const Source& member, std::string_view member_name, const std::string& where,
                                 int depth) {
  // PyTorch ignores case in the names of archive members.
  const std::string name = lower_case(member_name);
  const bool named = name.ends_with(".pkl") || name.ends_with(".pickle");
  const bool elements = is_storage(name) && !named;
  if (starts_with(*member, "\x93N")) return look_at_array(*member, where);
  if (starts_with(*member, "PK\x03\x04")) return scan_nested(member, where, depth + 1);
  const bool is_pickle = pickles_.scan_bytes(*member, where,
                                             named      ? PickleHint::named
                                             : elements ? PickleHint::elements
                                                        : PickleHint::none);
  if (elements || is_small_text(*member, name)) return;
  if (!is_pickle) look_at_other(*member, name, where);
  look_for_archives(member, where, depth);
}

void ContentScanner::look_at_array(const ByteSource& npy, const std::string& where) {
  if (rates_ && formats::is_plain_npy(npy)) return;
  pickles_.scan_object_array(npy, where);
  if (rates_) note({"an array that may hold objects", where, Rating::unknown});
}

void ContentScanner::scan_object_member(const archive::ZipReader& zip, const archive::ZipEntry& entry,
                                        const std::string& where) {
  try {
    const Source member = open_member(zip, entry);
    if (starts_with(*member, "\x93N")) pickles_.scan_object_array(*member, where);
  } catch (const FormatError&) {
    // The caller has reported already that the member cannot be read.
  }
}

void ContentScanner::look_at_other(const ByteSource& bytes, std::string_view name, const std::string& where) {
  if (const std::string code = code_kind(bytes, name); !code.empty())
    return note({code, where, Rating::unknown});
  if (const std::string format = formats::foreign_format(bytes); !format.empty()) {
    // Some loaders unpack these without being asked, and then load the content.
    if (formats::is_packed_format(format)) return problem(where, format + ", which is not unpacked");
    return note({format + ", which is not inspected", where, Rating::unknown});
  }
  if (is_text(bytes)) {
    for (ContentFacts& found : rate_text(bytes, name)) note(std::move(found), where);
    return;
  }
  if (const std::string picture = picture_kind(bytes); !picture.empty()) {
    if (!is_whole_picture(bytes))
      note({picture + " with something else in it or after it", where, Rating::unknown});
    return;
  }
  if (is_sentencepiece(bytes) && !is_named(name, {".pb", ".pbtxt", ".meta"})) return;
  if (is_packed_without_magic(bytes)) return problem(where, "zlib or lzma, which is not unpacked");
  note({"not recognized", where, Rating::unknown});
}

void ContentScanner::look_at_metadata(const std::vector<std::pair<std::string, std::string>>& metadata) {
  for (const auto& [name, value] : metadata) {
    for (ContentFacts& found : rate_value(name, value)) note(std::move(found), "metadata");
  }
}

void ContentScanner::look_at_text(const ByteSource& text, const std::string& key) {
  constexpr std::uint64_t kLargestTemplate = std::uint64_t{64} << 20;
  for (ContentFacts& found : rate_value(key, read_all(text, kLargestTemplate))) note(std::move(found), key);
}

void ContentScanner::note(ContentFacts content, const std::string& where) {
  content.where = where;
  note(std::move(content));
}

void ContentScanner::note(ContentFacts content) {
  const std::size_t limit = content.rating == Rating::dangerous ? 2 * kMostContents : kMostContents;
  if (file_.contents.size() < limit) file_.contents.push_back(std::move(content));
}

}  // namespace msprobe::inspect

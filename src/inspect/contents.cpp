// SPDX-License-Identifier: Apache-2.0
#include "inspect/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/foreign_files.hpp"
#include "formats/limits.hpp"
#include "formats/safetensors.hpp"
#include "inspect/plain_files.hpp"
#include "inspect/second_archives.hpp"
#include "inspect/text_rating.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

using formats::Container;
using Source = std::shared_ptr<const ByteSource>;

// A checkpoint packed by hand has two archives in one another, an exported program three.
constexpr int kMostDepth = 8;
// Of one file; twice as many contents if they are dangerous.
constexpr std::size_t kMostContents = 1000;
constexpr std::size_t kMostProblems = 1000;

bool starts_with(const ByteSource& bytes, std::string_view start) {
  return first_bytes(bytes, start.size()) == start;
}

/// The elements of a tensor may begin in any way: what torch.save and torch.package call storages.
bool is_storage(std::string_view name) {
  return name.find("/data/") != std::string_view::npos || name.ends_with(".storage");
}

/// What torch.export.save() writes, of either generation.
bool is_exported_program(const ByteSource& member, std::string_view name) {
  return name == "serialized_exported_program.json" ||
         (name.ends_with("archive_format") && starts_with(member, "pt2"));
}

}  // namespace

ContentScanner::ContentScanner(Source source, PathFacts& facts, PickleFinder& pickles)
    : source_(std::move(source)),
      facts_(facts),
      file_(*facts.file),
      pickles_(pickles),
      may_unpack_(formats::Allowance::unpacked(source_->size())) {}

void ContentScanner::problem(const std::string& where, const std::string& message) {
  if (++problem_count_ == kMostProblems) facts_.problems.emplace_back("more problems, not listed");
  if (problem_count_ >= kMostProblems) return;
  facts_.problems.push_back((where.empty() ? "" : display(where) + ": ") +
                            without_path(message, source_->name()));
}

void ContentScanner::look_for_archives() {
  look_for_archives_in(source_, "", 0);
}

void ContentScanner::look_for_archives_in(const Source& bytes, const std::string& where, int depth) {
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
  for (const archive::ZipEntry& entry : zip.entries()) {
    check_interrupt();
    // Those of an archive of arrays are read as such.
    if (container == Container::npz && lower_case(entry.name).ends_with(".npy")) continue;
    const std::string where = prefix + entry.name;
    try {
      const Source member = open_member(zip, entry);
      scan_member(member, entry.name, where, depth);
      if (is_exported_program(*member, entry.name))
        problem(where, "an exported program (torch.export), whose expressions are not inspected");
      if (!is_storage(entry.name) && !code_kind(*member, entry.name).empty() && code_count++ == 0)
        code = where;
    } catch (const FormatError& error) {
      problem(prefix.empty() ? "" : where, error.what());
    }
  }
  // Python runs it on import, as PyTorch runs the code of TorchScript, which is told already.
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
  // PyTorch finds the members of an archive whatever their case.
  const std::string name = lower_case(member_name);
  const bool named = name.ends_with(".pkl") || name.ends_with(".pickle");
  const bool elements = is_storage(name) && !named;
  if (starts_with(*member, "\x93N")) return pickles_.scan_object_array(*member, where);
  if (starts_with(*member, "PK\x03\x04")) return scan_nested(member, where, depth + 1);
  const bool is_pickle = pickles_.scan_bytes(*member, where,
                                             named      ? PickleHint::named
                                             : elements ? PickleHint::elements
                                                        : PickleHint::none);
  if (elements) return;
  if (!is_pickle) look_at_other(*member, name, where);
  look_for_archives_in(member, where, depth);
}

void ContentScanner::scan_object_member(const archive::ZipReader& zip, const archive::ZipEntry& entry,
                                        const std::string& where) {
  try {
    const Source member = open_member(zip, entry);
    if (starts_with(*member, "\x93N")) pickles_.scan_object_array(*member, where);
  } catch (const FormatError&) {
    // That it cannot be read is told already.
  }
}

void ContentScanner::look_at_other(const ByteSource& bytes, std::string_view name, const std::string& where) {
  if (const std::string code = code_kind(bytes, name); !code.empty())
    return note({code, where, Rating::unknown});
  if (const std::string format = formats::foreign_format(bytes); !format.empty()) {
    // Some loaders unpack these by themselves, and whatever is in them.
    if (formats::is_packed_format(format)) return problem(where, format + ", which is not unpacked");
    return note({format + ", which is not inspected", where, Rating::unknown});
  }
  if (is_text(bytes)) {
    for (ContentFacts& found : rate_text(bytes, name, where)) note(std::move(found));
    return;
  }
  if (is_picture(bytes) || is_sentencepiece(bytes) || formats::looks_like_safetensors(bytes)) return;
  note({"not recognized", where, Rating::unknown});
}

void ContentScanner::look_at_metadata(const std::vector<std::pair<std::string, std::string>>& metadata) {
  for (const auto& [name, value] : metadata) {
    const Source text = memory_source(fmt::format("\"{}\": {}", name, value), source_->name());
    for (ContentFacts& found : rate_text(*text, "", "metadata")) note(std::move(found));
  }
}

void ContentScanner::look_at_text(const ByteSource& text, const std::string& key) {
  for (ContentFacts& found : rate_text(text, "", key)) note(std::move(found));
}

void ContentScanner::note(ContentFacts content) {
  const std::size_t limit = content.rating == Rating::dangerous ? 2 * kMostContents : kMostContents;
  if (file_.contents.size() < limit) file_.contents.push_back(std::move(content));
}

}  // namespace msprobe::inspect

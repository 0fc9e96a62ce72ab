// SPDX-License-Identifier: Apache-2.0
#include "inspect/pickles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <vector>

#include "archive/zip_format.hpp"
#include "formats/limits.hpp"
#include "formats/pickle_scan.hpp"
#include "formats/pickle_search.hpp"
#include "formats/unpickler.hpp"
#include "inspect/second_archives.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

using formats::PickleGlobal;
using formats::PickleScan;
using Source = std::shared_ptr<const ByteSource>;

// A legacy PyTorch file is a chain of five pickles. Of one with more than this the rest would go unseen.
constexpr int kMostPickles = 10'000;
// Of one file; twice as many if they are dangerous.
constexpr std::size_t kMostGlobals = 10'000;
constexpr int kNoLimit = 0;

bool names_importable(const PickleScan& scan) {
  return std::ranges::any_of(scan.globals, formats::is_importable);
}

// Frames that lie are seldom there by chance, and never for a good reason.
bool may_name(const PickleScan& scan) {
  return names_importable(scan) || scan.straddles;
}

// Of any archive but an empty one.
bool begins_like_zip(const ByteSource& member) {
  std::array<std::byte, 4> start{};
  if (member.size() < start.size()) return false;
  member.read_at(0, start);
  return load_le<std::uint32_t>(start.data()) == archive::kLocalSignature;
}

std::array<std::byte, 2> start_of(const ByteSource& member) {
  std::array<std::byte, 2> start{};
  if (member.size() >= start.size()) member.read_at(0, start);
  return start;
}

bool begins_like_pickle(const ByteSource& member) {
  const auto start = start_of(member);
  return start[0] == std::byte{0x80} && start[1] <= std::byte{5};
}

bool begins_like_array(const ByteSource& member) {
  const auto start = start_of(member);
  return start[0] == std::byte{0x93} && start[1] == std::byte{'N'};
}

}  // namespace

PickleFinder::PickleFinder(Source source, PathFacts& facts)
    : source_(std::move(source)),
      facts_(facts),
      file_(*facts.file),
      may_unpack_(formats::Allowance::unpacked(source_->size())) {}

void PickleFinder::problem(const std::string& message) {
  facts_.problems.push_back(without_path(message, source_->name()));
}

PickleFinder::Chain PickleFinder::scan_chain(const ByteSource& source, std::uint64_t offset,
                                             const std::string& where) {
  return follow_chain(source, offset, where, kNoLimit);
}

PickleFinder::Chain PickleFinder::scan_read_chain(int count) {
  return follow_chain(*source_, 0, "", count);
}

PickleFinder::Chain PickleFinder::follow_chain(const ByteSource& source, std::uint64_t offset,
                                               const std::string& where, int count) {
  Chain chain;
  const std::uint64_t begin = offset;
  std::set<std::tuple<std::string, std::string, bool>> noted;
  const auto note_new = [&](const std::vector<PickleGlobal>& globals) {
    for (const PickleGlobal& global : globals) {
      if (noted.emplace(global.module, global.name, global.computed).second) note(global, where);
    }
  };
  const auto hides = [&](const std::string& failure, std::uint64_t at) {
    if (!chain.failure.empty()) return;
    chain.failure = failure;
    note_as_unknown(at, where);
  };
  int i = 0;
  for (; offset < source.size() && (count == kNoLimit || i < count); ++i) {
    check_interrupt();
    if (i == kMostPickles) {
      hides(fmt::format("{}: refused: more than {} pickles", display(source.name()), kMostPickles), offset);
      break;
    }
    const PickleScan scan = formats::scan_pickle(source, offset, 0, {.file_size = source_->size()});
    note_new(scan.globals);
    chain.is_pickle = chain.is_pickle || names_importable(scan) || (i == 0 && scan.failure.empty());
    if (!scan.failure.empty()) {
      hides(scan.failure, scan.end);
      note_new(formats::search_dangerous_names(source, scan.end));
      break;
    }
    // What its values are is another question, and so is whether they make sense.
    if (count == kNoLimit) {
      try {
        const formats::Pickle pickle = formats::load_pickle(source, offset, {.file_size = source_->size()});
        if (i == 0 && where.empty()) file_.holds = formats::kind_name(pickle.kind(pickle.root()));
      } catch (const FormatError& error) {
        hides(error.what(), offset);
      }
    }
    offset = scan.end;
  }
  // Read with one memo for all, the same pickles may name other things.
  if (count == kNoLimit && i > 1) {
    const PickleScan together = formats::scan_pickle(source, begin, offset, {.file_size = source_->size()});
    note_new(together.globals);
    if (!together.failure.empty()) hides(together.failure, together.end);
  }
  file_.has_pickle = file_.has_pickle || chain.is_pickle;
  return chain;
}

void PickleFinder::note(const PickleGlobal& global, const std::string& where) {
  // A name that is made when the pickle is loaded is hidden on purpose.
  const Rating rating =
      global.computed ? Rating::dangerous : formats::rate_global(global.module, global.name);
  const std::size_t limit = rating == Rating::dangerous ? 2 * kMostGlobals : kMostGlobals;
  if (file_.globals.size() >= limit) {
    ++untold_globals_;
    return;
  }
  file_.globals.push_back({global.full_name(), where, global.offset, global.called, rating});
}

void PickleFinder::note_as_unknown(std::uint64_t offset, const std::string& where) {
  file_.globals.push_back({"(not understood)", where, offset, false, Rating::unknown});
}

void PickleFinder::tell_what_was_left_out() {
  if (untold_globals_ > 0)
    problem(fmt::format("its pickles name {} more globals, not listed", untold_globals_));
}

void PickleFinder::look_for_second_face() {
  const PickleScan scan = formats::scan_pickle(*source_, 0);
  if (!may_name(scan)) return;
  // What a pickle made of mere numbers would name, no Python could import.
  for (const PickleGlobal& global : scan.globals) {
    if (formats::is_importable(global)) note(global, "");
  }
  file_.has_pickle = true;
  problem(scan.straddles ? "it is also a pickle, with false frame lengths"
                         : "it is also a pickle that names globals");
}

void PickleFinder::look_for_archives() {
  if (is_tar(*source_)) problem("it is also a tar archive, whose members are not inspected");
  const Source zip = appended_zip(source_);
  if (zip == nullptr) return;
  problem("it is also a zip archive");
  try {
    scan_members_of(archive::ZipReader(zip), false);
  } catch (const FormatError& error) {
    problem(error.what());
  }
}

void PickleFinder::scan_members(bool is_npz) {
  scan_members_of(archive::ZipReader(source_), is_npz);
}

void PickleFinder::scan_members_of(const archive::ZipReader& zip, bool is_npz) {
  for (const archive::ZipEntry& entry : zip.entries()) {
    check_interrupt();
    try {
      scan_member(zip, entry, is_npz);
    } catch (const FormatError& error) {
      problem(error.what());
    }
  }
}

Source PickleFinder::open_member(const archive::ZipReader& zip, const archive::ZipEntry& entry) {
  if (entry.method == archive::ZipMethod::stored) return zip.open(entry);
  Source member = zip.open(entry, may_unpack_);
  may_unpack_ -= entry.size;
  return member;
}

void PickleFinder::scan_member(const archive::ZipReader& zip, const archive::ZipEntry& entry, bool is_npz) {
  const std::string name =
      lower_case(entry.name);  // PyTorch finds the members of an archive whatever their case
  const bool named = name.ends_with(".pkl") || name.ends_with(".pickle");
  // The elements of a tensor may begin in any way, and nothing loads them as a pickle.
  const bool elements = !named && name.find("/data/") != std::string::npos;
  if (elements && entry.method != archive::ZipMethod::stored) return;
  // Those of an archive of arrays are read as such.
  if (is_npz && name.ends_with(".npy")) return;
  const Source member = open_member(zip, entry);
  if (begins_like_array(*member)) return scan_object_array(*member, entry.name);
  if (!elements && begins_like_zip(*member))
    return problem(display(entry.name) + ": an archive inside the archive, which is not inspected");
  const bool likely = begins_like_pickle(*member);
  if (elements && !likely) return;
  // Old protocols begin with no mark. What is a pickle by chance names nothing that Python has.
  if (!named && (elements || !likely) &&
      !may_name(formats::scan_pickle(*member, 0, 0, {.file_size = source_->size()})))
    return;
  const Chain chain = scan_chain(*member, 0, entry.name);
  file_.has_pickle = true;
  if (!chain.failure.empty())
    problem(display(entry.name) + ": " + without_path(chain.failure, source_->name()));
}

void PickleFinder::scan_object_member(const archive::ZipReader& zip, const archive::ZipEntry& entry,
                                      const std::string& where) {
  try {
    scan_object_array(*open_member(zip, entry), where);
  } catch (const FormatError&) {
    // That it cannot be read is told already.
  }
}

void PickleFinder::scan_object_array(const ByteSource& npy, const std::string& where) {
  std::array<std::byte, 12> start{};
  if (npy.size() <= start.size()) return;
  npy.read_at(0, start);
  const bool short_length = start[6] == std::byte{1};
  const std::uint64_t payload = short_length ? 10 + std::uint64_t{load_le<std::uint16_t>(&start[8])}
                                             : 12 + std::uint64_t{load_le<std::uint32_t>(&start[8])};
  if (!begins_like_array(npy) || payload >= npy.size()) return;
  // Numbers that are not a pickle may still begin like one.
  if (!may_name(formats::scan_pickle(npy, payload, 0, {.file_size = source_->size()}))) return;
  const Chain chain = scan_chain(npy, payload, where);
  if (!chain.failure.empty())
    problem((where.empty() ? "" : display(where) + ": ") + without_path(chain.failure, source_->name()));
}

}  // namespace msprobe::inspect

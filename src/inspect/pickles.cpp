// SPDX-License-Identifier: Apache-2.0
#include "inspect/pickles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <vector>

#include "formats/numpy_objects.hpp"
#include "formats/pickle_scan.hpp"
#include "formats/pickle_search.hpp"
#include "formats/pickle_text.hpp"
#include "formats/unpickler.hpp"
#include "inspect/plain_files.hpp"
#include "inspect/text_blocks.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

using formats::PickleGlobal;
using formats::PickleScan;
using Source = std::shared_ptr<const ByteSource>;

// A legacy PyTorch file is a chain of five pickles. In a file with more pickles than this, the rest is not
// scanned.
constexpr int kMostPickles = 10'000;
// The limit for one file; dangerous globals may be twice as many.
constexpr std::size_t kMostGlobals = 10'000;

bool names_importable(const PickleScan& scan) {
  return std::ranges::any_of(scan.globals, formats::is_importable);
}

// False frame lengths seldom occur by chance, and never for a good reason.
bool may_name(const PickleScan& scan) {
  return names_importable(scan) || scan.straddles;
}

/// In the elements of a tensor, a name occurs by chance less often than opcodes that compute one.
bool spells_importable(const PickleScan& scan) {
  return std::ranges::any_of(scan.globals, [](const PickleGlobal& global) {
    return !global.computed && formats::is_importable(global) &&
           std::ranges::all_of(global.name, formats::is_of_python_name);
  });
}

bool begins_like_pickle(const ByteSource& bytes) {
  const std::string start = first_bytes(bytes, 2);
  return start.size() == 2 && start[0] == '\x80' && start[1] <= '\5';
}

}  // namespace

PickleFinder::PickleFinder(Source source, PathFacts& facts)
    : source_(std::move(source)), facts_(facts), file_(*facts.file) {}

void PickleFinder::problem(const std::string& message) {
  facts_.problems.push_back(without_path(message, source_->name()));
}

PickleFinder::Chain PickleFinder::scan_chain(const ByteSource& source, std::uint64_t offset,
                                             const std::string& where, int count) {
  Chain chain;
  const std::uint64_t begin = offset;
  std::set<std::tuple<std::string, std::string, bool, bool>> noted;
  const auto note_new = [&](const std::vector<PickleGlobal>& globals, const std::vector<bool>& initialized) {
    for (std::size_t k = 0; k < globals.size(); ++k) {
      const PickleGlobal& global = globals[k];
      const bool calls = initialized[k] && formats::is_data_class(global.module, global.name);
      if (noted.emplace(global.module, global.name, global.computed, calls).second)
        note(global, where, calls);
    }
  };
  const auto hides = [&](const std::string& failure, std::uint64_t at) {
    if (!chain.failure.empty()) return;
    chain.failure = failure;
    file_.globals.push_back({"(not understood)", where, at, false, Rating::unknown});
  };
  int i = 0;
  for (; offset < source.size() && (count == kNoLimit || i < count); ++i) {
    check_interrupt();
    if (i == kMostPickles) {
      hides(fmt::format("{}: refused: more than {} pickles", display(source.name()), kMostPickles), offset);
      break;
    }
    const PickleScan scan = formats::scan_pickle(source, offset, 0, {.file_size = source_->size()});
    note_new(scan.globals, scan.initialized);
    if (scan.changes_globals)
      note_content("a class that is changed, and not an object", where, Rating::unknown);
    if (scan.calls_results) note_content("a call of the result of another call", where, Rating::unknown);
    chain.is_pickle = chain.is_pickle || names_importable(scan) || (i == 0 && scan.failure.empty());
    if (!scan.failure.empty()) {
      hides(scan.failure, scan.end);
      const auto names = formats::search_dangerous_names(source, scan.end);
      note_new(names, std::vector<bool>(names.size()));
      break;
    }
    // The scan does not check the values and whether they make sense; load_pickle() does.
    try {
      const formats::Pickle pickle = formats::load_pickle(source, offset, {.file_size = source_->size()});
      if (count == kNoLimit && i == 0 && where.empty())
        file_.holds = formats::kind_name(pickle.kind(pickle.root()));
      const formats::NumpyFinding finding = formats::rate_numpy_objects(pickle);
      if (finding.rating != Rating::ok) note_content(finding.what, where, finding.rating);
    } catch (const FormatError& error) {
      hides(error.what(), offset);
    }
    offset = scan.end;
  }
  // If one reader with one memo reads them all, the same pickles may name other things.
  if (count == kNoLimit && i > 1) {
    const PickleScan together = formats::scan_pickle(source, begin, offset, {.file_size = source_->size()});
    note_new(together.globals, together.initialized);
    if (!together.failure.empty()) hides(together.failure, together.end);
  }
  file_.has_pickle = file_.has_pickle || chain.is_pickle;
  return chain;
}

void PickleFinder::note(const PickleGlobal& global, const std::string& where, bool initialized) {
  // A name that is computed when the pickle is loaded is hidden on purpose.
  Rating rating = global.computed ? Rating::dangerous : formats::rate_global(global.module, global.name);
  if (initialized && formats::is_data_class(global.module, global.name)) rating = Rating::unknown;
  const std::size_t limit = rating == Rating::dangerous ? 2 * kMostGlobals : kMostGlobals;
  if (file_.globals.size() >= limit) {
    ++untold_globals_;
    return;
  }
  file_.globals.push_back({global.full_name(), where, global.offset, global.called, rating});
}

void PickleFinder::note_content(std::string what, const std::string& where, Rating rating) {
  if (file_.contents.size() < kMostGlobals) file_.contents.push_back({std::move(what), where, rating});
}

void PickleFinder::tell_what_was_left_out() {
  if (untold_globals_ > 0)
    problem(fmt::format("its pickles name {} more globals, not listed", untold_globals_));
}

void PickleFinder::look_for_second_face() {
  const PickleScan scan = formats::scan_pickle(*source_, 0);
  if (!spells_importable(scan) && !scan.straddles) return;
  // If numbers look like a pickle by chance, Python could not import the names in it.
  for (const PickleGlobal& global : scan.globals) {
    if (formats::is_importable(global)) note(global, "", true);
  }
  file_.has_pickle = true;
  problem(scan.straddles ? "it is also a pickle, with false frame lengths"
                         : "it is also a pickle that names globals");
}

bool PickleFinder::may_act(const ByteSource& bytes, std::uint64_t offset, PickleHint hint) const {
  // Pickles without names may precede one with names.
  for (int i = 0; i < kMostPickles && offset < bytes.size(); ++i) {
    const PickleScan scan = formats::scan_pickle(bytes, offset, 0, {.file_size = source_->size()});
    const bool names =
        hint == PickleHint::elements
            ? spells_importable(scan) || (scan.failure.empty() && begins_like_pickle(bytes) && may_name(scan))
            : may_name(scan);
    if (names) return true;
    if (!scan.failure.empty()) return false;
    offset = scan.end;
  }
  return offset < bytes.size();
}

bool PickleFinder::scan_bytes(const ByteSource& bytes, const std::string& where, PickleHint hint) {
  // Old protocols have no magic number. Bytes that are a pickle only by chance name nothing that Python has.
  const bool surely = hint == PickleHint::named || (hint == PickleHint::none && begins_like_pickle(bytes));
  if (!surely && is_text(bytes) && !formats::scan_pickle(bytes, 0).failure.empty())
    return scan_lines(bytes, where);
  if (!surely && !may_act(bytes, 0, hint)) return false;
  const Chain chain = scan_chain(bytes, 0, where);
  file_.has_pickle = true;
  if (!chain.failure.empty()) problem(display(where) + ": " + without_path(chain.failure, source_->name()));
  return true;
}

bool PickleFinder::scan_lines(const ByteSource& text, const std::string& where) {
  // Opcodes that can begin a pickle and occur in a text.
  constexpr std::string_view kFirst = "(]})NIJKLMFGSTUVXBCPchijgeq\xc2";
  // Words that follow one another by chance name no module with a dot, and seldom one of Python's.
  const auto is_meant = [](const PickleGlobal& global) {
    return formats::is_importable(global) &&
           (global.computed || global.module.find('.') != std::string::npos ||
            formats::rate_global(global.module, global.name) == Rating::dangerous);
  };
  bool found = false;
  std::uint64_t number = 0;
  std::uint64_t may_follow = (std::uint64_t{64} << 20) + 16 * text.size();
  each_line(text, [&](std::uint64_t begin, char first) {
    ++number;
    if (kFirst.find(first) == std::string_view::npos) return true;
    const PickleScan scan = formats::scan_pickle(text, begin, 0, {.file_size = source_->size()});
    const bool meant = begin == 0 ? names_importable(scan) : std::ranges::any_of(scan.globals, is_meant);
    if (scan.acts && meant) {
      if (!found)
        note_content(fmt::format("a pickle that begins in line {}", number), where, Rating::unknown);
      found = true;
      for (const PickleGlobal& global : scan.globals) note(global, where, true);
    }
    const std::uint64_t followed = scan.end - begin;
    if (followed <= may_follow && file_.globals.size() < kMostGlobals) {
      may_follow -= followed;
      return true;
    }
    note_content("a text with too many lines that begin like pickles", where, Rating::unknown);
    return false;
  });
  file_.has_pickle = file_.has_pickle || found;
  return found;
}

void PickleFinder::scan_object_array(const ByteSource& npy, const std::string& where) {
  std::array<std::byte, 12> start{};
  if (npy.size() <= start.size()) return;
  npy.read_at(0, start);
  const bool short_length = start[6] == std::byte{1};
  const std::uint64_t payload = short_length ? 10 + std::uint64_t{load_le<std::uint16_t>(&start[8])}
                                             : 12 + std::uint64_t{load_le<std::uint32_t>(&start[8])};
  if (payload >= npy.size()) return;
  // An array of numbers is not a pickle, but its bytes may begin like one.
  if (!may_act(npy, payload, PickleHint::none)) return;
  const Chain chain = scan_chain(npy, payload, where);
  if (!chain.failure.empty())
    problem((where.empty() ? "" : display(where) + ": ") + without_path(chain.failure, source_->name()));
}

}  // namespace msprobe::inspect

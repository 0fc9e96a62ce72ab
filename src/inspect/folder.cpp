// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "inspect/facts.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::inspect {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFolderDepth = 64;
constexpr std::size_t kMostFiles = 2'000'000;

/// A file below the folder. `reason` says why it cannot be inspected; it is empty if it can.
struct FoundFile {
  std::string path;  // relative
  std::string reason;
};

/// Is the path in `models--ORGANIZATION--NAME/blobs`? Hugging Face's cache keeps the contents of files there;
/// snapshots, and folders filled from the cache, link to them.
bool is_cached_blob(const fs::path& path) {
  const fs::path blobs = path.parent_path();
  const std::string owner = blobs.parent_path().filename().string();
  return blobs.filename() == "blobs" && owner.find("s--") != std::string::npos;
}

class FolderWalk {
 public:
  explicit FolderWalk(const std::string& root) : root_(root), real_root_(fs::canonical(root)) {}

  std::vector<FoundFile> run() {
    enter(real_root_, "", 0);
    std::ranges::sort(found_, {}, &FoundFile::path);
    return std::move(found_);
  }

 private:
  void enter(const fs::path& folder, const std::string& relative, int depth) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0 || !known_.emplace(status.st_dev, status.st_ino).second) return;
    if (depth > kMostFolderDepth) return note(relative, "folders are nested too deeply");
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      check_interrupt();
      const std::string name = entry->path().filename().string();
      look_at(*entry, relative.empty() ? name : relative + "/" + name, depth);
      if (found_.size() > kMostFiles)
        throw FormatError(display(root_), fmt::format("more than {} files", kMostFiles));
    }
    if (error) note(relative, error.message());
  }

  void look_at(const fs::directory_entry& entry, const std::string& relative, int depth) {
    std::error_code error;
    const bool is_link = entry.is_symlink(error);
    const fs::path real = is_link ? fs::canonical(entry.path(), error) : entry.path();
    if (error) return note(relative, fmt::format("a link that leads nowhere ({})", error.message()));
    if (is_link && !is_beneath(real, real_root_) && !is_cached_blob(real))
      return note(relative, "a link that leads out of the folder");
    if (fs::is_directory(real, error)) return enter(real, relative, depth + 1);
    if (!fs::is_regular_file(real, error)) return note(relative, "not a regular file");
    note(relative, "");
  }

  void note(const std::string& relative, std::string reason) {
    found_.push_back({relative.empty() ? "." : relative, std::move(reason)});
  }

  const std::string& root_;
  fs::path real_root_;
  std::vector<FoundFile> found_;
  std::set<std::pair<dev_t, ino_t>> known_;  // folders visited, so that links cannot form a loop
};

struct Rated {
  std::uint64_t bytes = 0;
  RatedFile file;
};

/// Sorts the reasons by severity and removes duplicates.
void take_reasons(const FileFacts& file, RatedFile& rated) {
  std::vector<std::string> reasons;
  const auto add = [&](std::string reason, const std::string& where) {
    if (!where.empty()) reason += " in " + where;
    if (std::ranges::find(reasons, reason) != reasons.end()) return;
    ++rated.reason_count;
    if (reasons.size() < kMostReasons) reasons.push_back(std::move(reason));
  };
  for (const Rating rating : {Rating::dangerous, Rating::unknown}) {
    for (const GlobalFacts& global : file.globals) {
      if (global.rating == rating) add(global.name, global.where);
    }
    for (const ContentFacts& content : file.contents) {
      if (content.rating == rating) add(content.what, content.where);
    }
  }
  rated.reasons = std::move(reasons);
}

Rated rate(const std::string& root, const FoundFile& found) {
  Rated rated;
  rated.file.path = found.path;
  if (!found.reason.empty()) {
    rated.file.rating = Rating::unknown;
    rated.file.problem = found.reason;
    return rated;
  }
  PathFacts facts;
  facts.path = root + "/" + found.path;
  try {
    const auto source = open_file(facts.path);
    rated.bytes = source->size();
    rate_file(source, facts);
  } catch (const Error& error) {
    facts.problems.push_back(without_path(error.what(), facts.path));
  } catch (const std::bad_alloc&) {
    facts.problems.emplace_back("not enough memory");
  }
  if (!facts.problems.empty()) rated.file.problem = facts.problems.front();
  rated.file.rating = Rating::ok;
  if (!facts.file) return rated;
  rated.file.rating = facts.file->rating();
  take_reasons(*facts.file, rated.file);
  // A shell takes such a name for an option, or for several words.
  const std::string base = found.path.substr(found.path.rfind('/') + 1);
  if (base.starts_with('-') ||
      std::ranges::any_of(base, [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
    rated.file.rating = std::max(rated.file.rating, Rating::unknown);
    rated.file.reasons.emplace_back("a name that shells take for an option");
    ++rated.file.reason_count;
  }
  const auto bad = std::ranges::find_if_not(facts.file->tensors, &std::string::empty, &TensorFacts::problem);
  if (rated.file.problem.empty() && bad != facts.file->tensors.end())
    rated.file.problem = display(bad->name) + ": " + bad->problem;
  return rated;
}

}  // namespace

void rate_folder(const std::string& path, PathFacts& facts) {
  std::vector<FoundFile> files;
  try {
    files = FolderWalk(path).run();
  } catch (const fs::filesystem_error& error) {
    throw IoError(display(path), error.code().message());
  }
  if (files.empty()) facts.problems.emplace_back("there is no file in it");
  std::vector<Rated> all(files.size());
  parallel_for(files.size(), [&](std::size_t i) { all[i] = rate(path, files[i]); });
  RatedFolder& sum = facts.rated.emplace();
  for (Rated& rated : all) {
    ++sum.files;
    sum.bytes += rated.bytes;
    const bool finished = rated.file.problem.empty();
    if (!finished) ++sum.unfinished;
    if (finished && rated.bytes == 0) ++sum.empty;
    if (rated.file.rating == Rating::dangerous) {
      ++sum.dangerous;
    } else if (rated.file.rating == Rating::unknown) {
      ++sum.unknown;
    } else if (finished) {
      ++sum.ok;
      continue;
    }
    sum.listed.push_back(std::move(rated.file));
  }
}

}  // namespace msprobe::inspect
